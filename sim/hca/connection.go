package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// connection is what requester and responder of a QP share: its number and state, what its
// context says, and the way to the peer. What each message needs comes first and close
// together: of many QPs it is in no cache of the machine that simulates.
type connection struct {
	d *Device
	sender
	cachedQP
	uar       uint32
	state     uint32
	pd        uint32
	qs        *qset
	from4     uint64 // addresses of a packet from the peer, for RoCEv2IPv4
	transport roce.Transport
	framing   roce.Framing
	vlan      uint16 // that packets come on; 0: none
	pkey      uint16

	tmpl     roce.Template
	reaction *reaction // of congestion control; nil while the QP is not limited
	mtu      int
	scq      *cq

	rcq   *cq
	srq   *srq
	owner owner // the QP as a whole
	*setup
	_ [24]byte // to whole cache lines
}

// setup is the rest of a connection: what is read when the QP is set up, queried or in
// trouble.
type setup struct {
	uidx uint32
	ring ring
	dbr  mem.PA

	// The peer of a connected QP.
	remote uint32
	srcGID roce.GID
	dstGID roce.GID
	dlid   uint16 // of the peer, on InfiniBand

	script []scriptedError // what FailNext asked for
	vendor uint16          // vendor syndrome of the scripted error under way, plus 1; 0: none

	resting *reaction      // memory of the reaction point, once the QP was limited
	cnp     *roce.Template // of the CNPs it sends; nil without congestion control
	cnpAt   sim.Time       // the last one

	ctx [prm.QPCSize]byte
}

// breaks says whether the run breaks a rule of the device (sim/mutant).
func (q *connection) breaks(r rule.Rule) bool { return rule.Mutants && q.d.breaks(r) }

// user is who accesses memory on behalf of the QP.
func (q *connection) user() mkey.User { return mkey.User{PD: q.pd, QPN: q.num} }

// context is the live view of the QP's context.
func (q *connection) context() prm.QPC { return prm.QPC(q.ctx[:]) }

// setState notes a new state.
func (q *connection) setState(s uint32) {
	q.state = s
	q.context().SetState(s)
}

// flushes says whether what is posted to the send queue ends with a flush error.
func (q *connection) flushes() bool { return q.state == prm.QPStateERR || q.state == prm.QPStateSQER }

// takesRequests says whether the state lets the responder work.
func (q *connection) takesRequests() bool {
	switch q.state {
	case prm.QPStateRTR, prm.QPStateRTS, prm.QPStateSQD, prm.QPStateSQER:
		return true
	}
	return false
}

// takesResponses says whether it lets the requester take answers.
func (q *connection) takesResponses() bool {
	switch q.state {
	case prm.QPStateRTS, prm.QPStateSQD, prm.QPStateSQER:
		return true
	}
	return false
}

// admits checks transport, state, addresses and partition of a received packet
// (IBTA Vol. 1, 9.6, packet header validation); a packet that is not admitted is
// dropped silently.
func (q *connection) admits(p *roce.Packet) bool {
	if q.st == prm.STUD {
		return q.admitsDatagram(p)
	}
	if p.Op.Transport() != q.transport {
		return false
	}
	if p.Info().Kind == roce.KindRequest && !q.takesRequests() || p.Info().Kind == roce.KindResponse && !q.takesResponses() {
		return false
	}
	if !q.fromPeer(p) && !q.breaks(rule.PacketsComeFromThePeer) {
		q.d.c.RxAddress++
		return false
	}
	if !roce.PKeyMatch(p.BTH().PKey(), q.pkey) && !q.breaks(rule.PKeysMatch) {
		q.d.badPKey()
		return false
	}
	return true
}

// fromPeer checks the addresses of a packet.
func (q *connection) fromPeer(p *roce.Packet) bool {
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
func (q *connection) setPath() bool {
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
	return true
}

// cqeIndex is what CQEs carry to find the queue by: version 1 the user index, version
// 0 the SRQ of a receive, and 0 without one.
func (q *connection) cqeIndex(recv bool) uint32 {
	switch {
	case q.d.p.CQEVersion != 0:
		return q.uidx
	case recv && q.srq != nil:
		return q.srq.num
	}
	return 0
}
