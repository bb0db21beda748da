package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// packetPort is the port as Ethernet packets leave by it: in one order with those of RDMA.
type packetPort struct {
	*packetQueues
	mtu  *uint32 // frames on the wire, FCS included
	from sender  // of every packet: the port looks no further into it
	self selfListener
}

// selfListener has those who take packets that the function itself sends.
type selfListener interface {
	// fromSelf shows a packet of a transport domain that leaves, and says whether it has come to
	// its end here.
	fromSelf(f *roce.Frame, td uint32) bool
	// steer sends a packet through the flow tables and says what of it leaves: good until the next
	// call.
	steer(f *roce.Frame) []*roce.Frame
}

func newPacketPort(q *packetQueues, mtu *uint32, self selfListener) *packetPort {
	return &packetPort{packetQueues: q, mtu: mtu, from: sender{st: prm.STRC}, self: self}
}

// sendOne sends a packet of a transport domain. It reports false for what is too short to be one.
func (o *packetPort) sendOne(td uint32, eth prm.EthSegment, headers, payload []byte) bool {
	n := len(headers) + len(payload)
	if n < roce.EthernetSize {
		return false
	}
	f := o.frames.GetPlain(max(n, ether.MinFrame))
	copy(f.B[copy(f.B, headers):], payload)
	clear(f.B[n:])
	o.transmit(td, f, eth)
	return true
}

// sendLong cuts a send into packets. It reports false for what cannot be cut.
func (o *packetPort) sendLong(td uint32, eth prm.EthSegment, headers, payload []byte) bool {
	s, ok := ether.Cut(headers, payload, int(eth.MSS()))
	if !ok {
		return false
	}
	for i := range s.Count() {
		n := s.Len(i)
		f := o.frames.GetPlain(max(n, ether.MinFrame))
		s.Write(i, f.B[:n])
		clear(f.B[n:])
		o.transmit(td, f, eth)
	}
	return true
}

// transmit fills in the checksums that are asked for and puts on the port what flow tables leave of
// a frame.
func (o *packetPort) transmit(td uint32, f *roce.Frame, eth prm.EthSegment) {
	flags := eth.CSFlags()
	if flags&(prm.EthL3Checksum|prm.EthL4Checksum) != 0 {
		h := ether.Parse(f.B)
		if flags&prm.EthL3Checksum != 0 {
			h.FillNetwork(f.B)
		}
		if flags&prm.EthL4Checksum != 0 {
			h.FillTransport(f.B)
		}
	}
	for _, f := range o.self.steer(f) {
		o.leave(td, f)
	}
}

// leave puts a frame on the port.
func (o *packetPort) leave(td uint32, f *roce.Frame) {
	if len(f.B)+ether.FCSSize > int(*o.mtu) {
		o.c.txOversize++
		f.Release()
		return
	}
	if o.self.fromSelf(f, td) {
		f.Release()
		return
	}
	o.c.tx[castOf(f)].add(len(f.B))
	o.port.transmit(o.getSlot(f), &o.from)
}

// castOf is the kind of a frame's destination.
func castOf(f *roce.Frame) int {
	switch e := roce.Ethernet(f.B); {
	case !e.ToGroup():
		return unicast
	case e.Dst().IsBroadcast():
		return broadcast
	}
	return multicast
}
