package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// The initiator of the dynamically connected transport (DCI) is a reliable requester with one
// connection at a time, to the target that the request under way names. For a request that names
// another it waits until all before it are done, says that it leaves, connects, and goes on without
// an answer to that: that requests wait for those to other targets, and that a change costs some 1
// us, is measured (the DCT notes beside Kalia et al., FaSST, OSDI 2016; Params.DCTurn); that the
// connect packet goes ahead of the request, and the form of the packets, are assumptions.

// initiator is what the requester of a DCI knows of its connection.
type initiator struct {
	connected bool
	announce  bool // the connect packet is to be sent, for the first time or again
	target    uint32
	number    uint32 // of the connection
	key       uint64
	path      [36]byte // of the address vector
}

// namedTarget is the address vector of the WQE of n blocks at the cursor, nil if it is local or not
// whole.
func (q *requester) namedTarget() prm.AVSegment {
	b := q.sq.whole(int(q.nbb))
	switch c := prm.CtrlSegment(b); c.Opcode() {
	case prm.WQEOpNOP, prm.WQEOpUMR:
		return nil
	}
	const end = prm.CtrlSegmentSize + prm.AVSegmentSize
	if len(b) < end || !prm.AVSegment(b[prm.CtrlSegmentSize:end]).Extended() {
		return nil
	}
	return prm.AVSegment(b[prm.CtrlSegmentSize:end])
}

// turns says whether the WQE at the cursor of a DCI waits: until those to another target are done,
// or while the DCI turns to its own.
//
//go:noinline
func (q *requester) turns() bool {
	av := q.namedTarget()
	if av == nil || q.streams.flushed(q.stream()) || !q.paths.path(&q.u.addresses, av, q.pkey, false).ok {
		return false // what needs no target, or will fail by itself
	}
	d := q.dci
	if d.connected && (d.target == av.DestQPN() && d.key == prm.DCKey(av) && d.path == [36]byte(av.Path()) || q.breaks(rule.InitiatorTurnsToItsTarget)) {
		return false
	}
	if q.head != q.tail {
		return true
	}
	q.disconnect()
	q.turnTo(av)
	if t := q.u.p.DCTurn; t > 0 {
		q.wait(t)
		return true
	}
	return false
}

// turnTo makes the target of an address vector the peer.
func (q *requester) turnTo(av prm.AVSegment) {
	u, d := q.u, q.dci
	u.dcConnections++
	*d = initiator{connected: true, announce: true, number: u.dcConnections, target: av.DestQPN(), key: prm.DCKey(av), path: [36]byte(av.Path())}
	e := q.paths.path(&u.addresses, av, q.pkey, false)
	q.tmpl, q.loop = e.tmpl, e.loop
	q.tmpl.SetDestQP(d.target)
	q.remote, q.srcGID, q.dstGID, q.vlan = d.target, roce.GID{}, roce.GID{}, 0
	if u.ib != nil {
		q.framing, q.dlid = roce.InfiniBand, av.RLID()
		if !av.GRHPresent() {
			return
		}
	}
	g := &u.gids[av.SGIDIndex()]
	copy(q.dstGID[:], av.RGID())
	q.srcGID, q.framing = g.gid, g.framing()
	if g.vlanValid {
		q.vlan = g.vlan & roce.VLANMask
	}
	q.from4 = roce.IPv4SrcDst(q.dstGID.IPv4(), q.srcGID.IPv4())
}

// announced sends the connect packet that is due ahead of a request at the cursor.
func (q *requester) announced() {
	if q.dci.announce {
		q.dci.announce = false
		q.sendDC(roce.OpDCConnect, q.una)
	}
}

// disconnect says that the DCI leaves its target. Nobody answers.
func (q *requester) disconnect() {
	if q.dci.connected {
		q.sendDC(roce.OpDCDisconnect, q.psn)
		*q.dci = initiator{}
	}
}

// reconnect leaves the target and connects to it again, from the oldest packet that it has not
// taken.
func (q *requester) reconnect() {
	if d := q.dci; d.connected {
		q.sendDC(roce.OpDCDisconnect, q.psn)
		q.u.dcConnections++
		d.number, d.announce = q.u.dcConnections, true
	}
}

// sendDC sends a packet about the connection.
func (q *requester) sendDC(op uint8, psn uint32) {
	f := q.tmpl.New(&q.u.frames, q.opcode(op), psn, 0, 0)
	q.nameInitiator(f)
	q.u.port.enqueue(&q.sender, &q.txq, q.u.getSlot(f))
}

// nameInitiator writes the header that each request packet of a DCI bears.
func (q *requester) nameInitiator(f *roce.Frame) {
	h := f.DCETH()
	h.SetAccessKey(q.dci.key)
	h.SetSrcQP(q.num)
	h.SetConnection(q.dci.number)
}

// nameTarget writes what names the target into a request packet of XRC or of a DCI.
func (q *requester) nameTarget(m *msg, f *roce.Frame, psn uint32) {
	if q.st == prm.STDCI {
		q.nameInitiator(f)
		return
	}
	q.nameSRQ(m, f, psn)
}
