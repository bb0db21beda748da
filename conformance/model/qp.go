package model

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// QP is a queue pair.
type QP struct {
	Name           string
	World          *World
	Type           verbs.QPType
	Number         uint32
	Cap            verbs.QPCap // as granted
	SigAll         bool
	Extended       bool // posts by ibv_wr_*
	SendCQ, RecvCQ *CQ
	SRQ            *SRQ // nil: it has a receive queue
	Peer           *QP
	State          verbs.QPState
	// MostRd and MostDestRd are the most max_rd_atomic and max_dest_rd_atomic that the device has
	// (max_qp_init_rd_atom and max_qp_rd_atom); 0: not known.
	MostRd, MostDestRd int

	attr  verbs.QPAttr
	known verbs.QPAttrMask // of attr

	member    bool            // of the multicast group
	may       []verbs.QPState // states in which it may be; State is one of them
	sends     []Request       // that wait, for a state or for a choice
	gone      bool            // destroyed
	named     []*SRQ          // of the target of an XRC connection: those of its domain
	namedDone []*workQueue
	held      bool // a choice has to be seen first
	recvs     []recvWR

	sendDone, recvDone *workQueue
	posted, freed      int // send requests ever
	taken              int // receives ever
	used               int // places of receives whose completion was not polled
	scratch            []byte
}

// Request is a send request.
type Request struct {
	ID               uint64
	Op               verbs.WROpcode
	Flags            verbs.SendFlags
	Local            []Piece
	Remote           Piece // Len is ignored: Local determines the length
	Imm              uint32
	CompareAdd, Swap uint64
	Bind             *Bind  // of WRBindMW and WRLocalInv
	Inv              *MW    // of WRSendInv: a window of the peer that is bound; Imm is its key
	QKey             uint32 // of a datagram
	Group            bool   // of a datagram: it is to the group that members have joined
	SRQ              *SRQ   // that a request of an XRC connection names; nil: none has the number
	Header           []byte // of a datagram: the routing header, as far as HeaderKnown has a bit for the byte
	HeaderKnown      uint64
	seq              int
}

// NewQP adds a queue pair in RESET. The caller sets its fields.
func (w *World) NewQP(q *QP) *QP {
	q.World = w
	q.sendDone, q.recvDone = &workQueue{qp: q}, &workQueue{qp: q, recv: true}
	q.SendCQ.queues = append(q.SendCQ.queues, q.sendDone)
	q.RecvCQ.queues = append(q.RecvCQ.queues, q.recvDone)
	w.qps = append(w.qps, q)
	return q
}

// Uncertain reports whether the state of the queue pair has to be queried before the program goes
// on.
func (q *QP) Uncertain() bool { return len(q.may) > 0 }

// Quiet reports whether no result of the queue pair is undecided.
func (q *QP) Quiet() bool { return !q.held && len(q.may) == 0 }

// Posted returns how many receives wait.
func (q *QP) Posted() int {
	if q.SRQ != nil {
		return len(q.SRQ.list)
	}
	return len(q.recvs)
}

// Waiting returns how many send requests wait for a state or an undecided result.
func (q *QP) Waiting() int { return len(q.sends) }

// Outstanding returns how many send requests occupy the queue.
func (q *QP) Outstanding() int { return q.posted - q.freed }

// Plain reports whether everything that the queue pair has posted succeeds, so that no completion
// decides between several results.
func (q *QP) Plain() bool {
	for i := range q.sendDone.entries {
		if e := &q.sendDone.entries[i]; e.statuses != set(verbs.WCSuccess) {
			return false
		}
	}
	return !q.held && len(q.may) == 0 && len(q.sends) == 0
}

// Drained reports whether the queue pair is in SQD, where requests wait.
func (q *QP) Drained() bool { return q.State == verbs.QPSSQD && len(q.may) == 0 }

// Destroy judges ibv_destroy_qp.
func (q *QP) Destroy(err error) error {
	q.World.Cover.add(q.state(), OpDestroy)
	if err == nil {
		q.leave()
		q.gone = true
		q.World.forget(q)
		if q.SendCQ != nil {
			q.SendCQ.drop()
		}
		for _, d := range q.queues() {
			d.cq().drop()
		}
	}
	return errnoIn(&ruleState, err, 0)
}

// leave forgets what is posted and what has completed.
func (q *QP) leave() {
	q.sends, q.recvs, q.held, q.may = nil, nil, false, nil
	q.sendDone.forget()
	for _, d := range q.queues() {
		d.forget()
	}
	q.State = verbs.QPSReset
	q.posted, q.freed, q.used = 0, 0, 0
}

// Query judges ibv_query_qp and settles in which of several states the queue pair is.
func (q *QP) Query(a *verbs.QPAttr, err error) error {
	q.World.Cover.add(q.state(), OpQuery)
	if err != nil {
		return errnoIn(&ruleQuery, err, 0)
	}
	if err := q.observe(a.State); err != nil {
		return err
	}
	rights := remoteAccess
	switch q.Type { // which reads and atomics do not concern, or nothing does
	case verbs.QPTUC, verbs.QPTUD:
		rights = verbs.AccessRemoteWrite
	case verbs.QPTXRCSend:
		rights = 0
	}
	route, local := verbs.QPAttrMask(0), verbs.QPMaskAV
	if q.attr.AH.IsGlobal {
		route, local = local, route
	}
	for _, f := range []struct {
		mask      verbs.QPAttrMask
		name      string
		want, got uint32
	}{
		{verbs.QPMaskAccessFlags, "access", uint32(q.attr.Access & rights), uint32(a.Access & rights)},
		{verbs.QPMaskPathMTU, "path_mtu", uint32(q.attr.PathMTU), uint32(a.PathMTU)},
		{verbs.QPMaskDestQPN, "dest_qp_num", q.attr.DestQPN, a.DestQPN},
		{verbs.QPMaskTimeout, "timeout", uint32(q.attr.Timeout), uint32(a.Timeout)},
		{verbs.QPMaskRetryCnt, "retry_cnt", uint32(q.attr.RetryCnt), uint32(a.RetryCnt)},
		{verbs.QPMaskRNRRetry, "rnr_retry", uint32(q.attr.RNRRetry), uint32(a.RNRRetry)},
		{verbs.QPMaskMinRNRTimer, "min_rnr_timer", uint32(q.attr.MinRNRTimer), uint32(a.MinRNRTimer)},
		{verbs.QPMaskMaxQPRdAtomic, "max_rd_atomic", uint32(q.attr.MaxRdAtomic), uint32(a.MaxRdAtomic)},
		{verbs.QPMaskMaxDestRdAtomic, "max_dest_rd_atomic", uint32(q.attr.MaxDestRdAtomic), uint32(a.MaxDestRdAtomic)},
		{verbs.QPMaskQKey, "qkey", q.attr.QKey, a.QKey},
		{verbs.QPMaskPort, "port_num", uint32(q.attr.Port), uint32(a.Port)},
		{local, "service level", uint32(q.attr.AH.SL), uint32(a.AH.SL)},
		{route, "traffic class", uint32(q.attr.AH.GRH.TrafficClass), uint32(a.AH.GRH.TrafficClass)},
		{route, "flow label", q.attr.AH.GRH.FlowLabel, a.AH.GRH.FlowLabel},
		{route, "the last bytes of the destination", uint32(q.attr.AH.GRH.DGID[14])<<8 | uint32(q.attr.AH.GRH.DGID[15]), uint32(a.AH.GRH.DGID[14])<<8 | uint32(a.AH.GRH.DGID[15])},
	} {
		rounded := f.mask&(verbs.QPMaskMaxQPRdAtomic|verbs.QPMaskMaxDestRdAtomic) != 0 && f.want > 0 && f.got == 1<<bits.Len32(f.want-1)
		if q.known&f.mask != 0 && f.want != f.got && !rounded { // to a power of two (k:mlx5/qp.c log_sra_max; k:sw/rxe/rxe_qp.c)
			return &Violation{&ruleQuery, fmt.Sprintf("%s %d of %s", f.name, f.want, q.Name), fmt.Sprint(f.got)}
		}
	}
	return nil
}

const remoteAccess = verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

// observe settles the state.
func (q *QP) observe(s verbs.QPState) error {
	for _, m := range q.may {
		if m == s {
			q.may = nil
			if s == verbs.QPSErr && q.State != s {
				q.State = s
				q.flushReceives()
			}
			q.State = s
			if len(q.recvs) > 0 && q.recvs[0].also != 0 {
				q.World.Vague = true // whether it has completed is not seen
			}
			q.run()
			return nil
		}
	}
	if s != q.State || q.may != nil {
		return &Violation{&ruleState, fmt.Sprintf("%s of %s", q.State, q.Name), s.String()}
	}
	return nil
}

// maybe says that the queue pair may have gone to one of the states, or has stayed as it is.
func (q *QP) maybe(l ...verbs.QPState) {
	if q.State != verbs.QPSErr && q.may == nil {
		q.may = append([]verbs.QPState{q.State}, l...)
	}
}

// Modify judges ibv_modify_qp.
func (q *QP) Modify(a *verbs.QPAttr, mask verbs.QPAttrMask, err error) error {
	mask &^= ignored(q.Type)
	op, to := OpModify, q.State
	if mask&verbs.QPMaskState != 0 {
		op, to = OpTransition, a.State
	}
	q.World.Cover.add(q.state(), op)
	if mask == 0 && q.State == verbs.QPSErr { // the driver may take it for alive still, and the device knows
		return errnoIn(&ruleModify, err, 0, syscall.EINVAL)
	}
	if !legal(q.Type, q.State, to, mask) {
		return errnoIn(&ruleModify, err, syscall.EINVAL)
	}
	if mask&verbs.QPMaskMaxQPRdAtomic != 0 && q.MostRd > 0 && int(a.MaxRdAtomic) > q.MostRd ||
		mask&verbs.QPMaskMaxDestRdAtomic != 0 && q.MostDestRd > 0 && int(a.MaxDestRdAtomic) > q.MostDestRd {
		return errnoIn(&ruleMostReads, err, syscall.EINVAL)
	}
	if err != nil {
		return errnoIn(&ruleModify, err, 0)
	}
	q.set(a, mask)
	switch to {
	case verbs.QPSErr:
		q.fail()
	case verbs.QPSReset:
		q.leave()
		q.known = 0
	default:
		if to == verbs.QPSSQD && q.State == verbs.QPSRTS && mask&verbs.QPMaskEnSQDAsyncNotify != 0 && a.EnSQDAsyncNotify {
			q.World.allow(verbs.EventSQDrained, q, 1, &ruleDrained)
		}
		q.State = to
		q.run()
	}
	return nil
}

// set remembers attributes.
func (q *QP) set(a *verbs.QPAttr, mask verbs.QPAttrMask) {
	q.known |= mask
	o := &q.attr
	for _, f := range []struct {
		mask verbs.QPAttrMask
		do   func()
	}{
		{verbs.QPMaskAccessFlags, func() { o.Access = a.Access }}, {verbs.QPMaskPathMTU, func() { o.PathMTU = a.PathMTU }},
		{verbs.QPMaskDestQPN, func() { o.DestQPN = a.DestQPN }}, {verbs.QPMaskTimeout, func() { o.Timeout = a.Timeout }},
		{verbs.QPMaskRetryCnt, func() { o.RetryCnt = a.RetryCnt }}, {verbs.QPMaskRNRRetry, func() { o.RNRRetry = a.RNRRetry }},
		{verbs.QPMaskMinRNRTimer, func() { o.MinRNRTimer = a.MinRNRTimer }}, {verbs.QPMaskMaxQPRdAtomic, func() { o.MaxRdAtomic = a.MaxRdAtomic }},
		{verbs.QPMaskMaxDestRdAtomic, func() { o.MaxDestRdAtomic = a.MaxDestRdAtomic }}, {verbs.QPMaskQKey, func() { o.QKey = a.QKey }},
		{verbs.QPMaskPort, func() { o.Port = a.Port }}, {verbs.QPMaskAV, func() { o.AH = a.AH }},
	} {
		if mask&f.mask != 0 {
			f.do()
		}
	}
}

// fail brings the queue pair to ERR: what is posted is flushed.
func (q *QP) fail() {
	q.may = nil
	if q.State != verbs.QPSErr {
		q.State = verbs.QPSErr
		q.flushReceives()
	}
	q.run()
}

// flushReceives completes the receives of a queue pair that is in ERR.
func (q *QP) flushReceives() {
	if q.named != nil {
		q.World.allow(verbs.EventQPLastWQEReached, q, 0, &ruleLastWQE)
	} else if q.SRQ != nil {
		q.World.allow(verbs.EventQPLastWQEReached, q, 1, &ruleLastWQE)
	}
	for _, r := range q.recvs {
		q.flush(r)
	}
	q.recvs = nil
}

func (q *QP) flush(r recvWR) {
	q.recvDone.add(entry{id: r.id, statuses: set(verbs.WCWRFlushErr) | r.also, rule: &ruleFlush})
}

// PostRecv judges ibv_post_recv of one receive.
func (q *QP) PostRecv(id uint64, pieces []Piece, err error) error {
	q.World.Cover.add(q.state(), OpPostRecv)
	if len(pieces) > int(q.Cap.MaxRecvSGE) {
		return errnoIn(&rulePostRecv, err, syscall.EINVAL, syscall.ENOMEM)
	}
	if err != nil {
		if q.used >= int(q.Cap.MaxRecvWR) || q.State == verbs.QPSErr {
			return errnoIn(&rulePostRecv, err, syscall.ENOMEM)
		}
		return errnoIn(&rulePostRecv, err, 0)
	}
	q.used++
	r := recvWR{id: id, pieces: pieces}
	if q.State == verbs.QPSErr {
		q.flush(r)
		return nil
	}
	q.recvs = append(q.recvs, r)
	return nil
}

// PostSend judges the posting of a list; bad is the index of the request that was refused if err is
// not nil.
func (q *QP) PostSend(list []Request, bad int, err error) error {
	good := list
	if err != nil {
		good = list[:bad]
	}
	for i := range good {
		r := &good[i]
		q.World.Cover.add(q.state(), opOf(r.Op))
		if q.refuses(r) {
			return &Violation{&rulePostSend, fmt.Sprintf("refusal of request %#x", r.ID), "0"}
		}
		r.seq = q.posted
		q.posted++
		q.sends = append(q.sends, *r)
	}
	q.run()
	if err == nil {
		return nil
	}
	rest := list[bad:]
	if !q.Extended {
		rest = rest[:1]
	}
	for i := range rest { // of a batch, which is refused as a whole, any may be the reason
		if q.refuses(&rest[i]) || q.mayRefuse(&rest[i], i) {
			return errnoIn(&rulePostSend, err, syscall.EINVAL, syscall.ENOMEM, syscall.EOPNOTSUPP, syscall.ENOSPC, syscall.EPERM)
		}
	}
	return errnoIn(&rulePostSend, err, 0)
}

// refuses reports whether a request must be refused.
func (q *QP) refuses(r *Request) bool {
	inline := r.Flags&verbs.SendInline != 0
	return inline && total(r.Local) > int(q.Cap.MaxInline) || len(r.Local) > int(q.Cap.MaxSendSGE) && !(inline && q.Extended)
}

// mayRefuse reports whether a request, with n before it in its call, may be refused.
func (q *QP) mayRefuse(r *Request, n int) bool {
	return q.Outstanding()+n >= int(q.Cap.MaxSendWR) || q.State < verbs.QPSRTS || !reliableType(q.Type) && !unreliable(r.Op) ||
		atomic(r.Op) && r.Remote.Off%8 != 0 || // p:rxe/rxe.c
		r.Bind != nil && r.Bind.faulty() || len(r.Local) > int(q.Cap.MaxSendSGE) // which inline data by ibv_wr_* may have (p:mlx5/qp.c)
}

// unreliable reports whether UC has an operation.
func unreliable(op verbs.WROpcode) bool {
	return op == verbs.WRSend || op == verbs.WRSendImm || op == verbs.WRRDMAWrite || op == verbs.WRRDMAWriteImm
}

// run carries out what is posted, as far as the state and the choices allow.
func (q *QP) run() {
	for len(q.sends) > 0 && !q.held {
		if q.State == verbs.QPSSQD || q.State < verbs.QPSRTS {
			return
		}
		r := q.sends[0]
		q.sends = q.sends[1:]
		switch {
		case q.State == verbs.QPSErr || q.State == verbs.QPSSQE || len(q.may) > 0:
			q.sendDone.add(entry{id: r.ID, seq: r.seq, statuses: set(verbs.WCWRFlushErr), rule: &ruleFlush})
		case r.Bind != nil:
			q.window(&r)
		case reliableType(q.Type):
			q.reliable(&r)
		default:
			q.unreliable(&r)
		}
	}
}
