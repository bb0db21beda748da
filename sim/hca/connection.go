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
	u *units
	sender
	cachedQP
	uar       uint32
	state     uint32
	pd        uint32 // of an XRC target: that of the SRQ which the request under way has named
	from4     uint64 // addresses of a packet from the peer, for RoCEv2IPv4
	transport roce.Transport
	framing   roce.Framing
	vlan      uint16 // that packets come on; 0: none
	pkey      uint16

	tmpl     roce.Template
	reaction *reaction // of congestion control; nil while the QP is not limited
	mtu      int
	partners

	owner owner // the QP as a whole
	*setup
	wireQPN uint32   // the number of a datagram QP in packets: its own, or 0 and 1
	_       [12]byte // to whole cache lines
}

// owner is a QP as each of its engines sees it: what it may ask of the whole.
type owner interface {
	// toError moves the QP to ERR. Responses that are due still leave.
	toError()
	// abort moves the QP to ERR and drops the responses that are due.
	abort()
	// readRecord looks at the doorbell record, which says what was posted.
	readRecord()
	// rateReturned lets both engines go on that waited for the reaction point.
	rateReturned()
}

// partners are what a QP was made with.
type partners struct {
	scq, rcq *cq
	srq      *srq // nil: a receive queue of its own, or none; of an XRC target: that which the request under way has named
	qs       *qset
}

// setup is the rest of a connection: what is read when the QP is set up, queried or in
// trouble.
type setup struct {
	uidx  uint32
	spare *srq // of an XRC QP's context: nothing is received there; may be nil
	ring  ring
	dbr   mem.PA

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

// scriptedError is how a tester wants a request to end.
type scriptedError struct {
	syndrome prm.Syndrome
	vendor   uint8
}

// breaks says whether the run breaks a rule of the device (sim/mutant).
func (q *connection) breaks(r rule.Rule) bool { return rule.Mutants && q.u.breaks(r) }

// sum is an address n bytes on: in 64 bits, unless the run breaks rule r.
func (q *connection) sum(r rule.Rule, addr uint64, n uint32) uint64 {
	if q.breaks(r) {
		return addr&^(1<<32-1) | uint64(uint32(addr)+n)
	}
	return addr + uint64(n)
}

// user is who accesses memory on behalf of the QP.
func (q *connection) user() mkey.User { return mkey.User{PD: q.pd, QPN: q.num} }

// context is the live view of the QP's context.
func (q *connection) context() prm.QPC { return prm.QPC(q.ctx[:]) }

// opcode is that of an operation on the service of a reliable QP.
func (q *connection) opcode(op uint8) roce.Opcode { return q.transport.Opcode(op) }

// setState notes a new state.
func (q *connection) setState(s uint32) {
	q.state = s
	q.context().SetState(s)
}

// special says whether the QP is QP0 or QP1 of its port: a datagram QP with another number in
// packets than in commands.
func (q *connection) special() bool { return q.wireQPN != q.num }

// manages says whether the QP is QP0, whose packets have a lane of their own.
func (q *connection) manages() bool { return q.wireQPN == 0 && q.num != 0 }

// flushes says whether what is posted to the send queue ends with a flush error.
func (q *connection) flushes() bool { return q.state == prm.QPStateERR || q.state == prm.QPStateSQER }

// shown is the number that completions and events bear: of a DCR that of its target.
func (q *connection) shown() uint32 {
	if q.st == prm.STDCT {
		return q.wireQPN
	}
	return q.num
}

// raise reports an event of the queue.
func (q *connection) raise(t prm.EventType) {
	if q.st == prm.STDCT {
		q.u.events.ofDCT(t, q.wireQPN)
		return
	}
	q.u.events.ofQP(t, q.num)
}

// takes says whether a QP of the service types behind UD takes packets of a kind: an XRC QP those
// of its direction, a DCI responses, and a DCR none that names it.
func (q *connection) takes(k roce.Kind) bool {
	switch q.st {
	case prm.STXRC:
		return (k == roce.KindRequest) == q.target() || q.breaks(rule.InitiatorTakesNoRequests)
	case prm.STDCI:
		return k == roce.KindResponse
	}
	return false
}

// target says whether the QP is the target of an XRC connection, which has no send queue. It takes
// requests only, and an initiator responses only.
func (q *connection) target() bool { return q.st == prm.STXRC && q.context().NoSQ() }

// recvCQ is the CQ of what the QP receives: an XRC SRQ has its own, and none once it is destroyed.
func (q *connection) recvCQ() *cq {
	switch {
	case q.srq == nil, q.srq.xrc == nil, q.breaks(rule.XRCReceivesReportToTheirCQ):
		return q.rcq
	case !q.srq.exists():
		return nil
	}
	return q.srq.xrc.cq
}

// takesRequests says whether the state lets the responder work.
func (q *connection) takesRequests() bool {
	const states = 1<<prm.QPStateRTR | 1<<prm.QPStateRTS | 1<<prm.QPStateSQD | 1<<prm.QPStateSQER
	return states>>q.state&1 != 0
}

// takesResponses says whether it lets the requester take answers.
func (q *connection) takesResponses() bool {
	const states = 1<<prm.QPStateRTS | 1<<prm.QPStateSQD | 1<<prm.QPStateSQER
	return states>>q.state&1 != 0
}

// cqeIndex is what CQEs carry to find the queue by: version 1 the user index, version
// 0 the SRQ of a receive, and 0 without one.
func (q *connection) cqeIndex(recv bool) uint32 {
	switch {
	case recv && q.srq != nil && q.srq.xrc != nil && !q.breaks(rule.SharedReceivesBearTheIndexOfTheirSRQ):
		return q.srq.cqeIndex()
	case q.u.p.CQEVersion != 0:
		return q.uidx
	case recv && q.srq != nil:
		return q.srq.num
	}
	return 0
}

// setCounters moves the QP to a counter set.
func (q *connection) setCounters(n uint32, set *qset) {
	if q.qs != nil {
		q.qs.refs--
	}
	q.context().SetCounterSetID(n)
	if q.qs = set; set != nil {
		q.qs.refs++
	}
}

// sacks says whether NAKs of the connection have SACKs. The assumed form of DC has none, and goes
// by RepeatSingle.
func (q *connection) sacks() bool {
	return q.u.sacking && (q.transport == roce.RC || q.transport == roce.XRC)
}
