package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/sim"
)

// nic is what a function has so that its driver can make a network interface of the port: SQs and
// RQs for Ethernet packets, and flow tables that say where received packets go.
type nic struct {
	packetQueues
	senders   *packetSenders
	receivers *packetReceivers
	steering  steering
	tirs      []*tir
	takers    int // TIRs
	rqts      []*rqt
	tiss      []*tis

	tirNums, rqtNums, tisNums numbers

	looping             sim.FIFO[incoming] // on their way from the function to itself
	arriving            sim.FIFO[incoming] // between port and flow tables
	onLooped, onArrival sim.Handler
	mtu                 *uint32
}

// incoming is a frame for the flow tables.
type incoming struct {
	f    *roce.Frame
	self bool   // the function has sent it
	td   uint32 // from this transport domain
}

// Limits, as the capabilities say. Assumed: more than drivers ask for.
const (
	logMaxTIR     = 12
	logMaxTIS     = 10
	logMaxRQT     = 12
	logMaxRQTSize = 11
)

// newNIC makes one without objects. Its queues have numbers of nums; mtu is the longest frame of
// the port, FCS included.
func newNIC(u *units, nums *numbers, mtu *uint32) *nic {
	n := &nic{packetQueues: packetQueues{units: u, numbers: nums}, mtu: mtu}
	n.senders = newPacketSenders(&n.packetQueues, newPacketPort(&n.packetQueues, mtu, n))
	n.receivers = newPacketReceivers(&n.packetQueues)
	n.onLooped = func(uint64) { n.admit(n.looping.Pop()) }
	n.onArrival = func(uint64) { n.arrived(n.arriving.Pop()) }
	n.reset()
	return n
}

// reset forgets all objects. Frames that have arrived still do.
func (n *nic) reset() {
	for _, q := range n.receivers.rqs {
		if q != nil {
			q.drop()
		}
	}
	n.senders.sqs, n.receivers.rqs, n.tirs, n.rqts, n.tiss, n.takers = nil, nil, nil, nil, nil, 0
	n.steering = newSteering(&n.tirs, &n.memory.icm)
	n.tirNums, n.rqtNums, n.tisNums = numbers{next: 1, limit: 1 << logMaxTIR}, numbers{next: 1, limit: 1 << logMaxRQT}, numbers{next: 1, limit: 1 << logMaxTIS}
}

// cqFailed moves the queues of a CQ that has failed to ERR.
func (n *nic) cqFailed(c *cq) {
	n.senders.cqFailed(c)
	n.receivers.cqFailed(c)
}

// takes says whether a frame, whose decoding ended with err, is the network interface's: all that
// is not RoCE, RoCE to others, and all while the driver has RoCE off.
func (n *nic) takes(f *roce.Frame, err error) bool {
	if len(f.B) < roce.EthernetSize {
		return false
	}
	switch err {
	case nil, roce.DropUDPLength, roce.DropUDPChecksum, roce.DropGRH, roce.DropBTHVersion, roce.DropOpcode, roce.DropLength: // RoCE, whole or not
	default:
		return true
	}
	if !prm.NICVportContext(n.vport[:]).RoCEEn() {
		return true
	}
	e := roce.Ethernet(f.B)
	return !e.ToGroup() && !n.isOwnMAC(e.Dst())
}

// isOwnMAC says whether an address is the port's: that of the card, or one with which the driver
// sends RoCE.
func (d *addresses) isOwnMAC(m roce.MAC) bool {
	if m == d.id.MAC {
		return true
	}
	for i := range d.gids {
		if g := &d.gids[i]; g.valid && g.mac == m {
			return true
		}
	}
	return false
}

// arrive takes a frame that has reached the port. Whoever has the network interface reads all bytes
// of RoCE's packets, too.
func (n *nic) arrive(f *roce.Frame) {
	f.FinishICRC()
	if len(f.B)+ether.FCSSize > int(*n.mtu) {
		n.c.rxOversize++
		f.Release()
		return
	}
	n.admit(incoming{f: f})
}

// admit takes a frame into the receive engine.
func (n *nic) admit(a incoming) {
	t, _ := n.rxReq.Take(n.e.Now(), n.p.RxInterval)
	n.arriving.Push(a)
	n.e.At(t+n.p.ResponderLatency, n.onArrival, 0)
}

// fromSelf takes a copy of a packet to a group, or the packet to the port's own address, where
// somebody listens to it and the driver has not turned that off.
func (n *nic) fromSelf(f *roce.Frame, td uint32) bool {
	e, vport := roce.Ethernet(f.B), prm.NICVportContext(n.vport[:])
	group, off := e.ToGroup(), vport.DisableUCLocalLB()
	if group {
		off = vport.DisableMCLocalLB()
	}
	heard := func(t *tir) bool { return t != nil && t.hears(td, group) }
	if off || !group && !n.isOwnMAC(e.Dst()) || !slices.ContainsFunc(n.tirs, heard) {
		return false
	}
	c := n.frames.GetPlain(len(f.B))
	copy(c.B, f.B)
	n.looping.Push(incoming{f: c, self: true, td: td})
	n.e.At(n.e.Now()+n.p.LoopbackLatency, n.onLooped, 0)
	return !group
}

// steer sends a frame through the flow tables of those that leave.
func (n *nic) steer(f *roce.Frame) []*roce.Frame { return n.steering.send(f) }

// arrived sends a frame through the flow tables.
func (n *nic) arrived(a incoming) {
	f := a.f
	n.core.c.RxPackets++
	n.core.c.RxOctets += uint64(len(f.B))
	n.c.rx[castOf(f)].add(len(f.B))
	h := ether.Parse(f.B)
	hits := n.steering.receive(f, &h)
	if len(hits) == 0 {
		n.c.rxDropped++
	}
	for _, hit := range hits {
		if a.self && !hit.tir.hears(a.td, roce.Ethernet(f.B).ToGroup()) {
			hit.f.Release()
			continue
		}
		p := received{f: hit.f, h: hit.h, tag: hit.tag}
		hit.tir.steer(&p).deliver(p)
	}
	f.Release()
}

// report is the counters of QUERY_VPORT_COUNTER. RoCE counts as InfiniBand: its packets are those
// of the port but for the network interface's.
func (n *nic) report(o prm.QueryVportCounterOut) {
	pairs := [castKinds][2]prm.VportCounter{
		unicast: {prm.VCRxEthUnicast, prm.VCTxEthUnicast}, multicast: {prm.VCRxEthMulticast, prm.VCTxEthMulticast}, broadcast: {prm.VCRxEthBroadcast, prm.VCTxEthBroadcast},
	}
	rx, tx := traffic{n.core.c.RxPackets, n.core.c.RxOctets}, traffic{n.core.c.TxPackets, n.core.c.TxOctets}
	for k, p := range pairs {
		r, t := n.c.rx[k], n.c.tx[k]
		o.Set(p[0], r.packets, r.octets)
		o.Set(p[1], t.packets, t.octets)
		rx.packets, rx.octets = rx.packets-r.packets, rx.octets-r.octets
		tx.packets, tx.octets = tx.packets-t.packets, tx.octets-t.octets
	}
	o.Set(prm.VCRxIBUnicast, rx.packets, rx.octets)
	o.Set(prm.VCTxIBUnicast, tx.packets, tx.octets)
}
