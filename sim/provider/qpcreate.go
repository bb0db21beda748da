package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// CreateQP is ibv_create_qp, and ibv_create_qp_ex for what CompMask asks.
func (p *PD) CreateQP(vt verbs.Thread, a verbs.QPInitAttr) (_ verbs.QP, err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	if err := p.ctx.noQueues(); err != nil {
		return nil, err
	}
	q, err := p.newQP(&a)
	if err != nil {
		return nil, fmt.Errorf("create_qp: %w", err)
	}
	if t.breaks(rule.DomainQueuesHaveNoLock) {
		q.sq.lock.single, q.rq.lock.single = p.ctx.env.SingleThreaded, p.ctx.env.SingleThreaded
	}
	build := q.build
	if q.dct() {
		build = q.buildDCT
	}
	if err := build(t, &a); err != nil {
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
	if err := q.checkDirect(a); err != nil {
		return nil, err
	}
	if a.CreateFlags != 0 {
		return nil, fmt.Errorf("create_flags %#x: %w", a.CreateFlags, syscall.EOPNOTSUPP)
	}
	if c.env.signature {
		return nil, fmt.Errorf("MLX5_QP_SIGNATURE is set, and signatures are not modelled: %w", syscall.EOPNOTSUPP)
	}
	if q.dct() {
		return q.newDCT(a)
	}
	ops := opsAny
	q.atomics = c.attr.Atomic != verbs.AtomicNone
	if a.CompMask&verbs.QPInitSendOpsFlags != 0 {
		if ops = a.SendOpsFlags; ops&^q.allowedOps() != 0 && !q.ctx.breaks(rule.SendOpsAreOfTheType) || ops&opsAtomic != 0 && !q.atomics {
			return nil, fmt.Errorf("send_ops_flags %#x: %w", ops, syscall.EOPNOTSUPP)
		}
		q.ex = &qpEx{q: q}
	}
	if err := q.checkDirectOps(directOps(a)); err != nil {
		return nil, err
	}
	var ok bool
	if q.sendCQ, ok = a.SendCQ.(*CQ); !ok || q.sendCQ == nil {
		return nil, fmt.Errorf("no send CQ: %w", syscall.EINVAL)
	}
	if q.recvCQ, ok = a.RecvCQ.(*CQ); (!ok || q.recvCQ == nil) && a.Type != verbs.QPTXRCSend {
		return nil, fmt.Errorf("no receive CQ: %w", syscall.EINVAL)
	}
	var err error
	if directOps(a)&opsLayout != 0 {
		ops |= opsUMR // of whose size they are
	}
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
	q.layOut()
	single := c.env.SingleThreaded || p.td != nil && !c.proc.Params.TDKeepsQPLock
	q.sq.lock = lock{single: single, what: "a send queue"}
	q.rq.lock = lock{single: single, what: "a receive queue"}
	if a.SigAll {
		q.signal = prm.CtrlCQUpdate
	}
	return q, nil
}

func (q *QP) allowedOps() uint64 {
	switch q.typ {
	case verbs.QPTRC:
		if q.ctx.proc.Params.AtomicWrite {
			return opsRC | verbs.QPExAtomicWrite
		}
		return opsRC
	case verbs.QPTXRCSend, verbs.QPTDriver:
		return opsRC
	case verbs.QPTUC:
		return opsUC
	case verbs.QPTUD:
		return opsUD
	}
	return 0
}

// layOut puts the receive queue at the start of the buffer and the send queue behind it, on a page
// of its own for raw packets: there the two are queues of the device (libmlx5's sq_buf).
func (q *QP) layOut() {
	rq, sq := &q.rq, &q.sq
	rq.mask, sq.mask = rq.cnt<<rq.shift-1, sq.cnt<<sq.shift-1
	sq.off = rq.cnt << rq.shift
	if q.raw() {
		sq.off = align(sq.off, q.ctx.proc.PageSize)
	}
	rq.limit, sq.limit = -1, -1
	rq.requests, sq.requests = make([]request, rq.cnt), make([]request, sq.cnt)
	q.maxInl = sq.inline
}

// build allocates memory and register and makes the QP in the kernel.
func (q *QP) build(t *Thread, a *verbs.QPInitAttr) error {
	c := q.ctx
	var err error
	size := max(q.sq.off+q.sq.cnt<<q.sq.shift, c.proc.PageSize)
	if q.ring, err = (allocator{c.proc, q.pd.custom()}).newRing(t, size, resQP); err != nil {
		return err
	}
	if err := q.readyMkeyOps(t); err != nil {
		return err
	}
	if q.ring.custom != nil { // the library's own memory is fresh
		q.ring.fill(make([]byte, wqebb))
	}
	if q.db, err = c.newDBRec(t, q.pd.custom()); err != nil {
		return err
	}
	q.dbRecord = prm.QPDBRec(q.db.b)
	r := kernel.QPReq{Type: a.Type, PD: q.pd.h, SendCQ: q.sendCQ.h, Cap: a.Cap, SigAll: a.SigAll,
		BufAddr: uint64(q.ring.va), DBAddr: uint64(q.db.va), SQWQECount: uint32(q.sq.cnt), RQWQECount: uint32(q.rq.cnt),
		RQWQEShift: uint32(q.rq.shift), ScatterToCQE: c.env.scatterToCQE}
	if q.raw() {
		r.AccessKey = uint64(q.ring.va) + uint64(q.sq.off)
	}
	q.directRequest(&r)
	if q.typ == verbs.QPTXRCSend { // libibverbs asks for no receives, whatever ring the library has made room for
		r.Cap.MaxRecvWR, r.Cap.MaxRecvSGE = 0, 0
	} else {
		r.RecvCQ = q.recvCQ.h
	}
	if q.srq != nil {
		r.SRQ, r.HasSRQ = q.srq.h, true
	}
	if q.typ == verbs.QPTDriver {
		r.DC = kernel.DCIEnd
		if a.Direct.CompMask&verbs.DirectQPDCIStreams != 0 {
			r.Vendor |= qpDCIStream
		}
		r.ScatterToCQE = r.ScatterToCQE && q.ex == nil && directOps(a) == 0 // its setters do not reckon with it
	}
	if err := q.register(t, &r); err != nil {
		return err
	}
	q.uidx = c.uidx.take(q)
	r.UIDX, r.Cookie = q.uidx, uint64(q.uidx)
	h, resp, err := c.u.CreateQP(t.caller, r)
	if err != nil {
		c.uidx.put(q.uidx)
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
func (q *QP) register(t *Thread, r *kernel.QPReq) (err error) {
	if q.pd.td == nil {
		q.bf, q.own, err = q.ctx.queueRegister(t, r)
		return err
	}
	q.bf = q.pd.td.reg
	q.ctx.nameRegister(q.bf, r)
	return nil
}

// queueRegister takes a register from the context's pools for a QP; nil: the kernel is to choose
// one.
func (c *Context) queueRegister(t *Thread, r *kernel.QPReq) (bf *bfReg, own bool, err error) {
	if c.isStatic() {
		return nil, false, nil
	}
	if bf, err = c.pooled(c.bf.pools.Get(c.newUAR(t))); err != nil {
		return nil, false, err
	}
	c.nameRegister(bf, r)
	return bf, true, nil
}

func (c *Context) nameRegister(bf *bfReg, r *kernel.QPReq) {
	if c.isStatic() {
		r.BFRegMode, r.BFRegIndex = bfIndex, uint32(bf.index)
	} else {
		r.BFRegMode, r.BFRegIndex = bfUARPage, bf.uar
	}
}

// QPReq.BFRegMode.
const (
	bfIndex   = 1
	bfUARPage = 2
)
