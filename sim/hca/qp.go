package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// qp is a queue pair: what its context says, and the two engines' state.
type qp struct {
	d     *Device
	num   uint32
	arg   uint64 // generation << 24 | number: the event word
	place uint32 // in the cache of contexts
	ctx   [prm.QPCSize]byte

	// Taken from ctx, for speed.
	state     uint32
	st        uint32 // service type
	transport roce.Transport
	pd        uint32
	uar       uint32
	uidx      uint32
	remote    uint32
	mtu       int
	scq, rcq  *cq
	srq       *srq
	qs        *qset
	ring      ring
	dbr       mem.PA
	user      odp.User
	loop      bool // the peer is on this port
	tmpl      roce.Template
	framing   roce.Framing
	vlan      uint16 // that packets come on; 0: none
	srcGID    roce.GID
	dstGID    roce.GID
	from4     uint64 // addresses of a packet from the peer, for RoCEv2IPv4
	dlid      uint16 // of the peer, on InfiniBand
	pkey      uint16
	ud        *datagrams // of UD only
	joined    int        // multicast groups

	epoch uint32 // counts resets and errors

	scripted []scriptedError // what FailNext asked for
	vendor   uint16          // vendor syndrome of the scripted error under way, plus 1; 0: none

	reaction *reaction      // of congestion control; nil while the QP is not limited
	resting  *reaction      // its memory, once the QP was
	cnp      *roce.Template // of the CNPs it sends; nil without congestion control
	cnpAt    sim.Time       // the last one

	requester
	responder
	dbrec [2 * prm.DBRecSize]byte // read from memory: for the RQ, and for a flush
}

// qpn is the QP with a number, or nil.
func (d *Device) qpn(n uint32) *qp {
	if uint64(n) >= uint64(len(d.qps)) {
		return nil
	}
	return d.qps[n]
}

// qpArg is the QP of an event word, or nil when it is gone.
func (d *Device) qpArg(arg uint64) *qp {
	q := d.qpn(uint32(arg & 0xffffff))
	if q == nil || q.arg != arg {
		return nil
	}
	return q
}

// context is the live view of the QP's context.
func (q *qp) context() prm.QPC { return prm.QPC(q.ctx[:]) }

// newQP makes a QP in state RST of a context that was checked.
func (d *Device) newQP(num uint32, c prm.QPC, r ring) *qp {
	d.qpGen++
	q := &qp{d: d, num: num, arg: d.qpGen<<24 | uint64(num), ring: r}
	q.place = d.qpc.place(uint64(num))
	copy(q.ctx[:], c)
	q.st, q.pd, q.uar, q.uidx = c.ST(), c.PD(), c.UARPage(), c.UserIndex()
	switch q.st {
	case prm.STUC:
		q.transport = roce.UC
	case prm.STUD:
		q.transport, q.ud = roce.UD, &datagrams{}
	}
	q.user = odp.User{PD: q.pd, QPN: num}
	q.txq, q.rtx, q.hold, q.ahead = emptyList, emptyList, emptyList, emptyList
	q.dbr = mem.PA(c.DBRAddr())
	q.scq, q.rcq = d.cqn(c.CQNSnd()), d.cqn(c.CQNRcv())
	q.qs = d.qset(c.CounterSetID())
	q.rqType = c.RQType()
	rq := uint64(0)
	if q.rqType == prm.RQTypeRegular {
		q.rqStride = 16 << c.LogRQStride()
		q.rqSize = 1 << c.LogRQSize()
		rq = uint64(q.rqSize) * uint64(q.rqStride)
	}
	if q.rqType == prm.RQTypeSRQ {
		q.srq = d.srqn(c.SRQN())
	}
	if !c.NoSQ() {
		q.sqOff, q.sqSize = rq, 1<<c.LogSQSize()
	}
	q.rst()
	return q
}

// rst is what 2RST does: every WQE is dropped without a CQE, counters are 0.
func (q *qp) rst() {
	q.stopEngines()
	q.state = prm.QPStateRST
	c := q.context()
	c.SetState(q.state)
	q.requester.clear()
	q.responder.clear()
}

// stopEngines drops what the engines have under way; completions that sessions hold back are
// written.
func (q *qp) stopEngines() {
	d := q.d
	q.scq.settle()
	q.rcq.settle()
	q.epoch++
	q.abandon(&q.txq)
	q.abandon(&q.rtx)
	for q.hold.head >= 0 {
		d.dropSlot(d.popSlot(&q.hold))
	}
	q.dropAhead()
	q.reaction = nil
	q.waiting, q.deadline = false, sim.Never
	q.dropResponses()
}

// setState notes a new state.
func (q *qp) setState(s uint32) {
	q.state = s
	q.context().SetState(s)
}

// sendsRequests and friends say what the state lets the engines do.
func (q *qp) sendsRequests() bool {
	return q.state == prm.QPStateRTS || q.draining && (q.open || q.cur != q.tail)
}

// flushes says whether what is posted to the send queue ends with a flush error.
func (q *qp) flushes() bool { return q.state == prm.QPStateERR || q.state == prm.QPStateSQER }

func (q *qp) takesRequests() bool {
	switch q.state {
	case prm.QPStateRTR, prm.QPStateRTS, prm.QPStateSQD, prm.QPStateSQER:
		return true
	}
	return false
}

func (q *qp) takesResponses() bool {
	switch q.state {
	case prm.QPStateRTS, prm.QPStateSQD, prm.QPStateSQER:
		return true
	}
	return false
}

// admits checks transport, state, addresses and partition of a received packet
// (IBTA Vol. 1, 9.6, packet header validation); a packet that is not admitted is
// dropped silently.
func (q *qp) admits(p *roce.Packet) bool {
	if q.st == prm.STUD {
		return q.admitsDatagram(p)
	}
	if p.Op.Transport() != q.transport {
		return false
	}
	if p.Info().Kind == roce.KindRequest && !q.takesRequests() || p.Info().Kind == roce.KindResponse && !q.takesResponses() {
		return false
	}
	if !q.fromPeer(p) {
		q.d.c.RxAddress++
		return false
	}
	if !roce.PKeyMatch(p.BTH().PKey(), q.pkey) {
		q.d.badPKey()
		return false
	}
	return true
}

// fromPeer checks the addresses of a packet.
func (q *qp) fromPeer(p *roce.Packet) bool {
	if p.Framing != q.framing || p.VLANID() != q.vlan {
		return false
	}
	if p.Framing == roce.RoCEv2IPv4 {
		return p.IPv4().SrcDst() == q.from4
	}
	if p.Framing == roce.InfiniBand {
		return q.fromIBPeer(p)
	}
	return p.SrcGID() == q.dstGID && p.DstGID() == q.srcGID
}

// defaultHopLimit stands in for an address without one.
const defaultHopLimit = 64

// setPath makes the packet template of the primary path. It reports false when the
// source address is not in the table or does not suit the destination.
func (q *qp) setPath() bool {
	if q.d.ib != nil {
		return q.setIBPath()
	}
	c := q.context()
	a := c.PrimaryPath()
	d := q.d
	i := int(a.SrcAddrIndex())
	if i >= len(d.gids) || !d.gids[i].valid {
		return false
	}
	g := &d.gids[i]
	copy(q.dstGID[:], a.RGID())
	q.srcGID, q.remote, q.pkey = g.gid, c.RemoteQPN(), roce.DefaultPKey
	q.vlan = 0
	if g.vlanValid {
		q.vlan = g.vlan & roce.VLANMask
	}
	q.framing, q.from4 = g.framing(), roce.IPv4SrcDst(q.dstGID.IPv4(), q.srcGID.IPv4())
	flow := a.FlowLabel()
	if flow == 0 {
		flow = roce.FlowLabel(q.num, q.remote)
	}
	port := uint16(a.UDPSport())
	if port == 0 {
		port = roce.UDPSourcePort(flow)
	}
	path := roce.Path{
		Framing: g.framing(), SrcMAC: g.mac, SrcGID: q.srcGID, DstGID: q.dstGID,
		TrafficClass: uint8(a.TClass()), HopLimit: uint8(a.HopLimit()), FlowLabel: a.FlowLabel(),
		SrcPort: port, PKey: q.pkey, DestQP: q.remote, MigReq: true,
		Tagged: g.vlanValid, VLANTCI: uint16(a.EthPrio())<<13 | g.vlan,
	}
	copy(path.DstMAC[:], a.RMAC())
	if path.TrafficClass == 0 {
		path.TrafficClass = uint8(a.DSCP()<<2 | a.ECN())
	}
	if path.HopLimit == 0 {
		path.HopLimit = defaultHopLimit
	}
	q.cnp = nil
	if d.p.Congestion.DCQCN && (g.framing() == roce.RoCEv2IPv4 || g.framing() == roce.RoCEv2IPv6) {
		path.TrafficClass = ectTrafficClass(path.TrafficClass)
		notice := path
		notice.MigReq, notice.PKey, notice.TrafficClass = false, roce.DefaultPKey, d.p.Congestion.CNPDSCP<<2
		t, err := roce.NewTemplate(notice)
		if err != nil {
			return false
		}
		q.cnp, q.cnpAt = &t, -sim.Second
	}
	t, err := roce.NewTemplate(path)
	if err != nil {
		return false
	}
	q.tmpl = t
	q.loop = d.gidIndex(q.dstGID) >= 0
	d.loops = d.loops || q.loop
	return true
}

// cqeIndex is what CQEs carry to find the queue by: version 1 the user index, version
// 0 the SRQ of a receive, and 0 without one.
func (q *qp) cqeIndex(recv bool) uint32 {
	switch {
	case q.d.p.CQEVersion != 0:
		return q.uidx
	case recv && q.srq != nil:
		return q.srq.num
	}
	return 0
}
