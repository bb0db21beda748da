package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// queue is one direction of a QP.
type queue struct {
	wqSize
	off    int // of the queue in the QP's buffer
	mask   int // bytes of the queue less one
	head   uint32
	tail   uint32
	limit  int // qp_state_max_gs: -1 while posting is not allowed
	wrid   []uint64
	umr    []verbs.WCOpcode // send: what a UMR at the index is for; nil before the first
	heads  []uint32         // send: head when the WQE at the index was posted
	lock   lock
	line   cpu.Line // head, tail and tables
	posted uint32   // send: cur_post, in WQEBBs
}

// QP is a queue pair.
type QP struct {
	verbs.UnimplementedQP
	ctx    *Context
	pd     *PD
	h      kernel.Handle
	qpn    uint32
	uidx   uint32
	init   verbs.QPInitAttr
	state  verbs.QPState
	typ    verbs.QPType
	ring   *ring
	db     *dbrec
	sq, rq queue
	sendCQ *CQ
	recvCQ *CQ
	srq    *SRQ // or nil
	bf     *bfReg
	own    bool // the register is from the context's pools
	ex     *qpEx

	source   glance
	signal   uint8 // put into each WQE (sq_sig_all)
	fmCache  uint8 // fence for the WQE that follows
	maxInl   int
	atomics  bool
	acks     acks
	doorbell uint64 // doorbells rung
	blue     uint64 // BlueFlame pushes
}

// CreateQP is ibv_create_qp, and ibv_create_qp_ex for what CompMask asks.
func (p *PD) CreateQP(vt verbs.Thread, a verbs.QPInitAttr) (verbs.QP, error) {
	t := p.ctx.enter(vt)
	if err := p.ctx.noQueues(); err != nil {
		return nil, err
	}
	q, err := p.newQP(&a)
	if err != nil {
		return nil, fmt.Errorf("create_qp: %w", err)
	}
	if err := q.build(t, &a); err != nil {
		q.release(t)
		return nil, fmt.Errorf("create_qp: %w", err)
	}
	return q, nil
}

// newQP checks the attributes as libmlx5 does and sizes the queues.
func (p *PD) newQP(a *verbs.QPInitAttr) (*QP, error) {
	c := p.ctx
	q := &QP{ctx: c, pd: p, init: *a, typ: a.Type}
	if a.CompMask&^maskKnown != 0 {
		return nil, fmt.Errorf("comp_mask %#x: %w", a.CompMask, syscall.EINVAL)
	}
	if a.CreateFlags&createSourceQPN != 0 && a.Type != verbs.QPTUD {
		return nil, fmt.Errorf("a source QPN on a QP that is not UD: %w", syscall.EINVAL)
	}
	if a.CreateFlags != 0 {
		return nil, fmt.Errorf("create_flags %#x: %w", a.CreateFlags, syscall.EOPNOTSUPP)
	}
	if c.env.signature {
		return nil, fmt.Errorf("MLX5_QP_SIGNATURE is set, and signatures are not modelled: %w", syscall.EOPNOTSUPP)
	}
	ops := opsAny
	q.atomics = c.attr.Atomic != verbs.AtomicNone
	if a.CompMask&verbs.QPInitSendOpsFlags != 0 {
		if ops = a.SendOpsFlags; ops&^q.allowedOps() != 0 || ops&opsAtomic != 0 && !q.atomics {
			return nil, fmt.Errorf("send_ops_flags %#x: %w", ops, syscall.EOPNOTSUPP)
		}
		q.ex = &qpEx{q: q}
	}
	var ok bool
	if q.sendCQ, ok = a.SendCQ.(*CQ); !ok || q.sendCQ == nil {
		return nil, fmt.Errorf("no send CQ: %w", syscall.EINVAL)
	}
	if q.recvCQ, ok = a.RecvCQ.(*CQ); !ok || q.recvCQ == nil {
		return nil, fmt.Errorf("no receive CQ: %w", syscall.EINVAL)
	}
	var err error
	if q.sq.wqSize, err = c.sizeSQ(a.Type, ops, a.Cap); err != nil {
		return nil, err
	}
	if a.SRQ != nil { // no queue of its own
		if q.srq, ok = a.SRQ.(*SRQ); !ok || q.srq == nil || q.srq.ctx != c {
			return nil, fmt.Errorf("an SRQ of another context: %w", syscall.EINVAL)
		}
	} else if q.rq.wqSize, err = c.sizeRQ(a.Cap); err != nil {
		return nil, err
	}
	q.lay()
	single := c.env.SingleThreaded || p.td != nil && !c.proc.Params.TDKeepsQPLock
	q.sq.lock = lock{single: single, what: "a send queue"}
	q.rq.lock = lock{single: single, what: "a receive queue"}
	if a.SigAll {
		q.signal = prm.CtrlCQUpdate
	}
	return q, nil
}

// Context is the qp_context given at creation.
func (q *QP) Context() any { return q.init.Context }

func (q *QP) allowedOps() uint64 {
	switch q.typ {
	case verbs.QPTRC:
		if q.ctx.proc.Params.AtomicWrite {
			return opsRC | verbs.QPExAtomicWrite
		}
		return opsRC
	case verbs.QPTUC:
		return opsUC
	case verbs.QPTUD:
		return opsUD
	}
	return 0
}

// lay puts the receive queue at the start of the buffer and the send queue behind it.
func (q *QP) lay() {
	rq, sq := &q.rq, &q.sq
	rq.mask, sq.mask = rq.cnt<<rq.shift-1, sq.cnt<<sq.shift-1
	sq.off = rq.cnt << rq.shift
	rq.limit, sq.limit = -1, -1
	rq.wrid = make([]uint64, rq.cnt)
	sq.wrid, sq.heads = make([]uint64, sq.cnt), make([]uint32, sq.cnt)
	q.maxInl = sq.inline
}

// build allocates memory and register and makes the QP in the kernel.
func (q *QP) build(t *Thread, a *verbs.QPInitAttr) error {
	c := q.ctx
	var err error
	size := max(q.rq.cnt<<q.rq.shift+q.sq.cnt<<q.sq.shift, c.proc.PageSize)
	if q.ring, err = (allocator{c.proc, q.pd.custom()}).newRing(t, size, resQP); err != nil {
		return err
	}
	if q.ring.custom != nil { // the library's own memory is fresh
		for _, w := range q.ring.chunks {
			clear(w)
		}
	}
	if q.db, err = c.newDBRec(t, q.pd.custom()); err != nil {
		return err
	}
	r := kernel.QPReq{Type: a.Type, PD: q.pd.h, SendCQ: q.sendCQ.h, RecvCQ: q.recvCQ.h, Cap: a.Cap, SigAll: a.SigAll,
		BufAddr: uint64(q.ring.va), DBAddr: uint64(q.db.va), SQWQECount: uint32(q.sq.cnt), RQWQECount: uint32(q.rq.cnt),
		RQWQEShift: uint32(q.rq.shift), ScatterToCQE: c.env.scatterToCQE}
	if q.srq != nil {
		r.SRQ, r.HasSRQ = q.srq.h, true
	}
	if err := q.register(t, &r); err != nil {
		return err
	}
	q.uidx = c.newUIDX(q)
	r.UIDX, r.Cookie = q.uidx, uint64(q.uidx)
	h, resp, err := c.u.CreateQP(t.caller, r)
	if err != nil {
		c.putUIDX(q.uidx)
		return err
	}
	q.h, q.qpn = h, resp.QPN
	if q.bf == nil {
		if int(resp.BFRegIndex) >= len(c.bf.static) {
			return fmt.Errorf("the kernel chose bfreg %#x of %d: %w", resp.BFRegIndex, len(c.bf.static), syscall.EIO)
		}
		q.bf = c.bf.static[resp.BFRegIndex]
	}
	q.bf.use(1)
	q.pd.hold()
	return nil
}

// register chooses the QP's register, or leaves it to the kernel
// (verbs.c: mlx5_attach_dedicated_bf, mlx5_get_qp_uar).
func (q *QP) register(t *Thread, r *kernel.QPReq) error {
	c := q.ctx
	switch {
	case q.pd.td != nil:
		q.bf = q.pd.td.reg
	case c.isStatic():
		return nil
	default:
		bf, err := c.pooled(c.bf.pools.Get(c.newUAR(t)))
		if err != nil {
			return err
		}
		q.bf, q.own = bf, true
	}
	if c.isStatic() {
		r.BFRegMode, r.BFRegIndex = bfIndex, uint32(q.bf.index)
	} else {
		r.BFRegMode, r.BFRegIndex = bfUARPage, q.bf.uar
	}
	return nil
}

// QPReq.BFRegMode.
const (
	bfIndex   = 1
	bfUARPage = 2
)

// release gives back what a QP that the kernel no longer knows still holds.
func (q *QP) release(t *Thread) {
	c := q.ctx
	if q.own {
		c.bf.pools.Put(q.bf.pool)
	}
	c.freeDBRec(t, q.pd.custom(), q.db)
	allocator{c.proc, q.pd.custom()}.freeRing(t, q.ring, resQP)
}

// QPN is the number of the QP.
func (q *QP) QPN() uint32 { return q.qpn }

// Caps are what creation granted (verbs.c, mlx5_calc_wq_size).
func (q *QP) Caps() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: uint32(q.sq.maxPost), MaxRecvWR: uint32(q.rq.maxPost), MaxSendSGE: uint32(q.sq.maxGS),
		MaxRecvSGE: uint32(q.rq.maxGS), MaxInline: uint32(q.maxInl)}
}

// State is the state that the library remembers.
func (q *QP) State() verbs.QPState { return q.state }

// Modify is ibv_modify_qp: the kernel's part, then the limits of posting and, on
// RESET, the sweep of the CQs (verbs.c, mlx5_modify_qp).
func (q *QP) Modify(vt verbs.Thread, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	t := q.ctx.enter(vt)
	if err := q.ctx.u.ModifyQP(t.caller, q.h, a, mask); err != nil {
		return fmt.Errorf("modify_qp: %w", err)
	}
	if mask&verbs.QPMaskState == 0 {
		return nil
	}
	t.P.Sync()
	q.state = a.State
	switch a.State {
	case verbs.QPSReset:
		q.sweep(t)
		q.reset()
		if q.ex != nil {
			q.ex.refused = true
		}
	case verbs.QPSInit:
		q.rq.limit = q.rq.maxGS
	case verbs.QPSRTS:
		q.sq.limit = q.sq.maxGS
		if q.ex != nil {
			q.ex.refused = false
		}
	}
	return nil
}

// sweep removes the QP's completions from its CQs.
func (q *QP) sweep(t *Thread) {
	for i, cq := range [...]*CQ{q.recvCQ, q.sendCQ} {
		if i == 1 && cq == q.recvCQ {
			return
		}
		left := cq.lock.acquire(t, q.ctx.proc.Params, 0)
		cq.clean(t, q, &left)
		t.Core.Run(t.P, left)
		cq.lock.release(t)
	}
}

func (q *QP) reset() {
	for _, w := range [...]*queue{&q.sq, &q.rq} {
		w.head, w.tail, w.posted, w.limit = 0, 0, 0, -1
	}
	q.fmCache = 0
	d := prm.QPDBRec(q.db.b)
	d.SetRecv(0)
	d.SetSend(0)
}

// Query is ibv_query_qp.
func (q *QP) Query(vt verbs.Thread, mask verbs.QPAttrMask) (verbs.QPAttr, verbs.QPInitAttr, error) {
	t := q.ctx.enter(vt)
	a, err := q.ctx.u.QueryQP(t.caller, q.h, mask)
	if err != nil {
		return verbs.QPAttr{}, verbs.QPInitAttr{}, fmt.Errorf("query_qp: %w", err)
	}
	a.Cap = q.Caps()
	q.state = a.State
	init := q.init
	init.Cap = a.Cap
	return a, init, nil
}

// Destroy is ibv_destroy_qp.
func (q *QP) Destroy(vt verbs.Thread) error {
	t := q.ctx.enter(vt)
	async, err := q.ctx.u.DestroyQP(t.caller, q.h)
	if err != nil {
		return fmt.Errorf("destroy_qp: %w", err)
	}
	q.acks.wait(t, async, "a QP")
	q.sweep(t)
	t.P.Sync()
	q.ctx.putUIDX(q.uidx)
	q.bf.use(-1)
	q.pd.drop()
	q.release(t)
	return nil
}

// DataInOrder is ibv_query_qp_data_in_order: nothing is promised.
func (q *QP) DataInOrder(vt verbs.Thread, _ verbs.WROpcode, flags uint32) (int, error) {
	q.ctx.enter(vt)
	if flags > 1 {
		return 0, fmt.Errorf("query_qp_data_in_order: flags %#x: %w", flags, syscall.EINVAL)
	}
	return 0, nil
}

// LockStats counts the locks of the QP and of its register.
func (q *QP) LockStats() verbs.LockStats {
	return verbs.LockStats{SQ: q.sq.lock.taken, RQ: q.rq.lock.taken, BF: q.bf.taken, CQ: q.sendCQ.lock.taken,
		Waits:    q.sq.lock.waits + q.rq.lock.waits + q.bf.waits,
		WaitTime: Duration(q.sq.lock.waited + q.rq.lock.waited + q.bf.waited)}
}
