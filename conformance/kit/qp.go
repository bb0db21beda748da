package kit

import (
	"cmp"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Options say how queue pairs are made and connected; Default returns the usual ones. Timeout and
// MinRNRTimer are codes, as in verbs.QPAttr.
type Options struct {
	Type   verbs.QPType
	Cap    verbs.QPCap
	SigAll bool
	// PD is where QPs are created; nil: the Env's PD.
	PD verbs.PD
	// SendCQ and RecvCQ are used when given; else each QP gets its own pair of CQs of
	// CQE entries.
	SendCQ, RecvCQ verbs.CQ
	SRQ            verbs.SRQ // nil: a receive queue of its own
	CQE            int
	// SendOps asks for the extended way to post (QPInitAttr.SendOpsFlags).
	SendOps uint64
	// Direct are direct attributes (QPInitAttr.Direct).
	Direct *verbs.DirectQPAttr

	Access      verbs.AccessFlags
	MTU         verbs.MTU
	PSN         uint32 // of the first request of A to B; of B to A it is PSN+0x1000
	Timeout     uint8
	RetryCnt    uint8
	RNRRetry    uint8
	MinRNRTimer uint8
	RdAtomic    uint8 // both max_rd_atomic and max_dest_rd_atomic
}

// Default returns the options of an RC QP with room for 64 requests of 4 SGEs on either queue, MTU
// 1024, an ACK timeout of 4.096 us * 2^14 (67 ms), 7 retries, and RNR retries without limit.
func Default() Options {
	return Options{Type: verbs.QPTRC, Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4},
		CQE: 255, Access: RemoteAll, MTU: verbs.MTU1024, PSN: 0x123456, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
		MinRNRTimer: 12, RdAtomic: 8}
}

// QP is a queue pair with its CQs and the options to connect it.
type QP struct {
	verbs.QP
	Env            *Env
	SendCQ, RecvCQ verbs.CQ
	Opt            Options
	DestroyNow     func(c *spec.C) // destroys it; the case's end does it too
}

// CreateQP creates a queue pair in RESET, and CQs for it unless the options have them.
func (e *Env) CreateQP(c *spec.C, o Options) *QP {
	if o.Type == verbs.QPTXRCSend { // mlx5 refuses one with room for receives
		o.Cap.MaxRecvWR, o.Cap.MaxRecvSGE = 0, 0
	}
	q := &QP{Env: e, SendCQ: o.SendCQ, RecvCQ: o.RecvCQ, Opt: o}
	if q.SendCQ == nil {
		q.SendCQ = e.CreateCQ(c, o.CQE)
	}
	if q.RecvCQ == nil {
		q.RecvCQ = e.CreateCQ(c, o.CQE)
	}
	qp, err := e.pdFor(o).CreateQP(c.T, q.InitAttr())
	ok(c, "create_qp", err)
	q.QP = qp
	q.DestroyNow = DestroyOnce(c, "destroy_qp", qp.Destroy)
	return q
}

// RecordCreate records the errno of creating a queue pair with the options, which hardware decides,
// and reports whether it was created. The queue pair is destroyed at once.
func (e *Env) RecordCreate(c *spec.C, step string, o Options) bool {
	cq := e.CreateCQ(c, 16)
	q, err := e.pdFor(o).CreateQP(c.T, (&QP{SendCQ: cq, RecvCQ: cq, Opt: o}).InitAttr())
	if RecordErrno(c, step, err) != 0 {
		return false
	}
	ok(c, "destroy_qp", q.Destroy(c.T))
	return true
}

func (e *Env) pdFor(o Options) verbs.PD {
	return cmp.Or(o.PD, e.PD)
}

// InitAttr returns the attributes with which the QP is created.
func (q *QP) InitAttr() verbs.QPInitAttr {
	a := verbs.QPInitAttr{Type: q.Opt.Type, SendCQ: q.SendCQ, RecvCQ: q.RecvCQ, Cap: q.Opt.Cap, SigAll: q.Opt.SigAll,
		SRQ: q.Opt.SRQ, Direct: q.Opt.Direct}
	if q.Opt.SendOps != 0 {
		a.CompMask, a.SendOpsFlags = verbs.QPInitSendOpsFlags, q.Opt.SendOps
	}
	return a
}

// Peer is the other end of a connection.
type Peer struct {
	QPN uint32
	Addr
	PSN uint32 // of its first request
}

// Peer returns the QP as the other end needs to know it.
func (q *QP) Peer() Peer { return Peer{q.QPN(), q.Env.LocalAddr, q.Opt.PSN} }

// Attributes that each transition to RTS must have.
const (
	MaskInitRC  = verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags
	MaskInitUD  = verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskQKey
	MaskInitRaw = verbs.QPMaskState | verbs.QPMaskPort
	MaskRTRUC   = verbs.QPMaskState | verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	MaskRTRRC   = MaskRTRUC | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	MaskRTSUC   = verbs.QPMaskState | verbs.QPMaskSQPSN
	MaskRTSRC   = MaskRTSUC | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
)

// QKey is the Q_Key of UD queue pairs.
const QKey = 0x11111111

// AttrFor returns the attributes of all steps to RTS with the given peer, without State.
func (q *QP) AttrFor(p Peer) verbs.QPAttr {
	o := q.Opt
	return verbs.QPAttr{Port: q.Env.Port, Access: o.Access, QKey: QKey, PathMTU: o.MTU, DestQPN: p.QPN, RQPSN: p.PSN,
		SQPSN: o.PSN, Timeout: o.Timeout, RetryCnt: o.RetryCnt, RNRRetry: o.RNRRetry, MinRNRTimer: o.MinRNRTimer,
		MaxRdAtomic: o.RdAtomic, MaxDestRdAtomic: o.RdAtomic, AH: q.Env.PathTo(p.Addr)}
}

// AHTo returns the address vector to a port or a group, with a global route.
func (e *Env) AHTo(to Addr) verbs.AHAttr {
	return verbs.AHAttr{IsGlobal: true, Port: e.Port, DLID: to.LID,
		GRH: verbs.GRH{DGID: to.GID, SGIDIndex: uint8(e.GID.Index), HopLimit: 64}}
}

// PathTo returns the address vector to the peer of a connection, on InfiniBand without a global
// route, as inside a subnet.
func (e *Env) PathTo(to Addr) verbs.AHAttr {
	if e.IB {
		return verbs.AHAttr{Port: e.Port, DLID: to.LID}
	}
	return e.AHTo(to)
}

// Group returns the address of a multicast group. On InfiniBand its LID would come from the subnet
// administrator; ports of one link accept any in the range of groups.
func (e *Env) Group(gid verbs.GID) Addr {
	if e.IB {
		return Addr{gid, roce.FirstMulticastLID + uint16(gid[15])}
	}
	return Addr{GID: gid}
}

// MaskFor returns the mask of attributes that a QP of this type needs to enter a state.
func MaskFor(t verbs.QPType, to verbs.QPState) verbs.QPAttrMask {
	switch to {
	case verbs.QPSInit:
		switch t {
		case verbs.QPTUD:
			return MaskInitUD
		case verbs.QPTRawPacket:
			return MaskInitRaw
		}
		return MaskInitRC
	case verbs.QPSRTR:
		switch t {
		case verbs.QPTRC, verbs.QPTXRCRecv:
			return MaskRTRRC
		case verbs.QPTUC, verbs.QPTXRCSend:
			return MaskRTRUC
		}
	case verbs.QPSRTS:
		switch t {
		case verbs.QPTRC, verbs.QPTXRCSend:
			return MaskRTSRC
		case verbs.QPTXRCRecv:
			return MaskRTSUC | verbs.QPMaskTimeout
		case verbs.QPTRawPacket:
			return verbs.QPMaskState
		}
		return MaskRTSUC
	}
	return verbs.QPMaskState
}

// StepTo moves the QP into a state with the attributes that the transition needs, and fails the
// case if it is refused. A target may be known to let an earlier error overtake the reset after it:
// then the refusal is recorded as a step of the case, and the QP is reset and moved again.
func (q *QP) StepTo(c *spec.C, p Peer, to verbs.QPState) {
	step := "modify_qp to " + to.String()
	a := q.AttrFor(p)
	a.State = to
	err := q.Modify(c.T, &a, MaskFor(q.Opt.Type, to))
	if to == verbs.QPSInit && err != nil && q.QueryState(c) == verbs.QPSErr {
		c.Errno(step, err, 0)
		q.ModifyState(c, verbs.QPSReset)
		err = q.Modify(c.T, &a, MaskFor(q.Opt.Type, to))
	}
	ok(c, step, err)
}

// BringUp takes a QP from RESET to the given state: INIT, RTR or RTS.
func (q *QP) BringUp(c *spec.C, p Peer, to verbs.QPState) {
	for s := verbs.QPSInit; s <= to; s++ {
		q.StepTo(c, p, s)
	}
}

// ModifyState modifies only the state, to RESET or ERR.
func (q *QP) ModifyState(c *spec.C, s verbs.QPState) {
	ok(c, "modify_qp to "+s.String(), q.Modify(c.T, &verbs.QPAttr{State: s}, verbs.QPMaskState))
}

// QueryState returns the state that ibv_query_qp reports.
func (q *QP) QueryState(c *spec.C) verbs.QPState {
	a, _, err := q.Query(c.T, verbs.QPMaskState)
	ok(c, "query_qp", err)
	return a.State
}

// Pair is two connected queue pairs of one context: A is the requester, B the responder.
// UnconnectedPair leaves them in RESET.
type Pair struct {
	*Env
	A, B *QP
}

// NewPair opens the first device, creates two queue pairs on that context, each with CQs of its own
// unless o has them, and connects them to each other.
func NewPair(c *spec.C, o Options) *Pair { return Open(c).Pair(c, o) }

// UnconnectedPair creates two queue pairs in RESET.
func (e *Env) UnconnectedPair(c *spec.C, o Options) *Pair {
	a := e.CreateQP(c, o)
	o.PSN = o.NthPSN(0x1000)
	return &Pair{e, a, e.CreateQP(c, o)}
}

// Pair creates two queue pairs and connects them to each other.
func (e *Env) Pair(c *spec.C, o Options) *Pair {
	p := e.UnconnectedPair(c, o)
	p.Connect(c)
	return p
}

// Connect takes both ends from RESET to RTS, the responder first.
func (p *Pair) Connect(c *spec.C) {
	p.B.BringUp(c, p.A.Peer(), verbs.QPSRTS)
	p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
}

// Post posts send requests and fails the case if one is refused.
func (q *QP) Post(c *spec.C, wrs ...verbs.SendWR) {
	if bad, err := q.PostSend(c.T, wrs); err != nil {
		c.Failf("post_send: want success, got %s at request %d of %d (%v)",
			verbs.ErrnoName(verbs.ErrnoOf(err)), bad, len(wrs), err)
	}
}

// Recv posts receive requests and fails the case if one is refused.
func (q *QP) Recv(c *spec.C, wrs ...verbs.RecvWR) {
	if bad, err := q.PostRecv(c.T, wrs); err != nil {
		c.Failf("post_recv: want success, got %s at request %d of %d (%v)",
			verbs.ErrnoName(verbs.ErrnoOf(err)), bad, len(wrs), err)
	}
}

// RecvInto posts one receive and fails the case if it is refused.
func (q *QP) RecvInto(c *spec.C, id uint64, sges ...verbs.SGE) {
	q.Recv(c, verbs.RecvWR{ID: id, SGEs: sges})
}

// Send returns a signalled send.
func Send(id uint64, sges ...verbs.SGE) verbs.SendWR {
	return verbs.SendWR{ID: id, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: sges}
}

// Write returns a signalled RDMA write to off in the remote buffer.
func Write(id uint64, to *Buffer, off int, sges ...verbs.SGE) verbs.SendWR {
	return verbs.SendWR{ID: id, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: sges,
		RemoteAddr: to.Addr(off), RKey: to.MR.RKey()}
}

// Read returns a signalled RDMA read from off in the remote buffer.
func Read(id uint64, from *Buffer, off int, sges ...verbs.SGE) verbs.SendWR {
	w := Write(id, from, off, sges...)
	w.Opcode = verbs.WRRDMARead
	return w
}

// CmpSwap returns a signalled compare-and-swap on the word at off.
func CmpSwap(id uint64, on *Buffer, off int, compare, swap uint64, sges ...verbs.SGE) verbs.SendWR {
	w := Write(id, on, off, sges...)
	w.Opcode, w.CompareAdd, w.Swap = verbs.WRAtomicCmpSwp, compare, swap
	return w
}

// FetchAdd returns a signalled fetch-and-add on the word at off.
func FetchAdd(id uint64, on *Buffer, off int, add uint64, sges ...verbs.SGE) verbs.SendWR {
	w := Write(id, on, off, sges...)
	w.Opcode, w.CompareAdd = verbs.WRAtomicFetchAdd, add
	return w
}

// PostAndPoll posts one request and returns the next completion of the send CQ.
func (q *QP) PostAndPoll(c *spec.C, wr verbs.SendWR) verbs.WC {
	q.Post(c, wr)
	return PollOne(c, q.SendCQ)
}

// ExpectSendRefused checks that posting fails with an errno of set at request number at. It returns
// false if the target is known to accept the requests, which are then posted.
func (q *QP) ExpectSendRefused(c *spec.C, step string, at int, wrs []verbs.SendWR, set ...Errno) bool {
	bad, err := q.PostSend(c.T, wrs)
	return refused(c, step, bad, at, err, set...)
}

// ExpectRecvRefused checks that posting receives fails with want at request number at. It returns
// false if the target is known to accept them, which are then posted.
func (q *QP) ExpectRecvRefused(c *spec.C, step string, at int, wrs []verbs.RecvWR, want Errno) bool {
	bad, err := q.PostRecv(c.T, wrs)
	return refused(c, step, bad, at, err, want)
}

func refused(c *spec.C, step string, bad, at int, err error, set ...Errno) bool {
	if len(set) == 1 {
		c.Errno(step, err, set[0])
	} else {
		c.ErrnoIn(step, err, set...)
	}
	if err == nil {
		return false
	}
	c.Equal(step+": bad_wr", bad, at)
	return true
}

// ExpectFlushed takes n completions and fails the case unless all are WR_FLUSH_ERR. It returns
// them.
func ExpectFlushed(c *spec.C, cq verbs.CQ, n int) []verbs.WC {
	wc := Poll(c, cq, n)
	for _, w := range wc {
		c.Status("flushed", w, verbs.WCWRFlushErr)
	}
	return wc
}
