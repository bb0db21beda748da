package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// CQ is a completion queue.
type CQ struct {
	verbs.UnimplementedCQ
	ctx    *Context
	user   any     // cq_context
	ex     *exPoll // of the extended call
	h      kernel.Handle
	cqn    uint32
	cookie uint64
	ring   *ring
	parent *PD // whose allocator made the memory
	esize  int
	comp   uint8  // format of compressed entries, 0: there are none
	n      uint32 // entries, a power of two
	ci     uint32 // consumer index, not reduced
	db     *dbrec
	lock   lock
	line   cpu.Line // consumer index and what goes with it
	entry  cpu.Line // stands for the entry being read, which the device wrote last
	watch  []int
	wakeup func(uint64)
	// Threads that spin in PollWait are parked here.
	pollers []*poller

	channel   *CompChannel
	armSN     uint32
	compAcks  acks
	asyncAcks acks
}

// Limits and flags of creation (rdma-core, create_cq).
const (
	maxCQEntries = 1 << 24
	cqMaskFlags  = 1 << 0
	cqMaskPD     = 1 << 1
	wcFlagsKnown = 1<<12 - 1
)

// CreateCQ is ibv_create_cq, or ibv_create_cq_ex when attr.Ex is set.
func (c *Context) CreateCQ(vt verbs.Thread, a verbs.CQAttr) (verbs.CQ, error) {
	t := c.enter(vt)
	if err := c.noQueues(); err != nil {
		return nil, err
	}
	q, err := c.newCQ(t, &a)
	if err != nil {
		return nil, fmt.Errorf("create_cq: %w", err)
	}
	if err := q.build(t, &a); err != nil {
		q.release(t)
		return nil, fmt.Errorf("create_cq: %w", err)
	}
	return q, nil
}

// newCQ checks the attributes as libmlx5 does and sizes the ring.
func (c *Context) newCQ(t *Thread, a *verbs.CQAttr) (*CQ, error) {
	q := &CQ{ctx: c, user: a.Context, esize: a.CQESize}
	single := c.env.SingleThreaded
	if a.Ex {
		if err := q.checkEx(a); err != nil {
			return nil, err
		}
		single = single || a.Flags&verbs.CQSingleThreaded != 0
		q.ex = &exPoll{flags: a.WCFlags}
	}
	if q.esize == 0 {
		q.esize = c.env.cqeSize
		if c.env.cqeSizeBad {
			return nil, fmt.Errorf("MLX5_CQE_SIZE is %d: %w", c.env.cqeSize, syscall.EINVAL)
		}
	}
	if q.esize != 64 && q.esize != 128 {
		return nil, fmt.Errorf("entries of %d bytes: %w", q.esize, syscall.EINVAL)
	}
	if a.CQEPad && q.esize != 128 {
		return nil, fmt.Errorf("padding of entries of %d bytes: %w", q.esize, syscall.EINVAL)
	}
	if have := c.attr.CQEComp; a.CQECompression != 0 && (have.MaxNum == 0 || uint32(a.CQECompression)&have.Formats == 0) {
		return nil, fmt.Errorf("compressed CQEs of format %#x, the device has %#x: %w", a.CQECompression, have.Formats, syscall.EINVAL)
	}
	if a.CQE <= 0 || a.CQE >= maxCQEntries {
		return nil, fmt.Errorf("%d entries: %w", a.CQE, syscall.EINVAL)
	}
	if a.CompVector < 0 {
		return nil, fmt.Errorf("completion vector %d: %w", a.CompVector, syscall.EINVAL)
	}
	if a.Channel != nil {
		ch, ok := a.Channel.(*CompChannel)
		if !ok || ch.ctx != c {
			return nil, fmt.Errorf("the channel is of another context: %w", syscall.EINVAL)
		}
		q.channel = ch
	}
	q.n = uint32(roundupPow2(a.CQE + 1))
	q.comp = a.CQECompression
	q.lock = lock{single: single, what: "a CQ"}
	return q, nil
}

func (q *CQ) checkEx(a *verbs.CQAttr) error {
	if a.CompMask&^(cqMaskFlags|cqMaskPD) != 0 {
		return fmt.Errorf("comp_mask %#x: %w", a.CompMask, syscall.EINVAL)
	}
	if a.WCFlags&^wcFlagsKnown != 0 {
		return fmt.Errorf("wc_flags %#x: %w", a.WCFlags, syscall.ENOTSUP)
	}
	if a.Flags&^(verbs.CQSingleThreaded|verbs.CQIgnoreOverrun) != 0 {
		return fmt.Errorf("flags %#x: %w", a.Flags, syscall.EINVAL)
	}
	if a.ParentDomain != nil {
		p, ok := a.ParentDomain.(*PD)
		if !ok || p.parent == nil {
			return fmt.Errorf("the parent domain is a plain PD: %w", syscall.EINVAL)
		}
		q.parent = p
	}
	return nil
}

// build allocates the memory and makes the CQ in the kernel.
func (q *CQ) build(t *Thread, a *verbs.CQAttr) error {
	c := q.ctx
	var err error
	if q.ring, err = q.newRing(t, q.n); err != nil {
		return err
	}
	if q.db, err = c.newDBRec(t, q.parent); err != nil {
		return err
	}
	q.cookie = c.newCookie(q)
	r := kernel.CQReq{Entries: q.n, CQE: uint32(a.CQE), CompVector: uint32(a.CompVector), Cookie: q.cookie,
		BufAddr: uint64(q.ring.va), DBAddr: uint64(q.db.va), CQESize: uint32(q.esize), Pad: a.CQEPad,
		Compress: a.CQECompression != 0, CompFormat: a.CQECompression}
	if q.channel != nil {
		r.Channel = q.channel.k
	}
	if !c.isStatic() {
		r.UARPage, r.UARValid = c.bf.ncPage, true
	}
	if a.Ex {
		r.IgnoreOverrun = a.Flags&verbs.CQIgnoreOverrun != 0
	}
	if q.h, q.cqn, err = c.u.CreateCQ(t.caller, r); err != nil {
		c.putCookie(q.cookie)
		return err
	}
	if q.channel != nil {
		q.channel.refs++
	}
	if q.parent != nil {
		q.parent.hold()
	}
	q.wakeup = q.deviceWrote
	q.watch = q.ring.watch(c.proc, q.wakeup)
	return nil
}

// newRing makes a ring of n entries that the device owns.
func (q *CQ) newRing(t *Thread, n uint32) (*ring, error) {
	r, err := allocator{q.ctx.proc, q.parent}.newRing(t, int(n)*q.esize, resCQ)
	if err != nil {
		return nil, err
	}
	for i := range n {
		q.slot(r, i).SetOpOwn(prm.CQEInvalid, prm.CQEFormatPlain, false, 0)
	}
	return r, nil
}

// slot is entry i (reduced) of a ring: the second half of one of 128 bytes.
func (q *CQ) slot(r *ring, i uint32) prm.CQE64 {
	b := r.at(int(i) * q.esize)
	return prm.CQE64(b[q.esize-prm.CQE64Size : q.esize])
}

// at is the entry of an index that is not reduced.
func (q *CQ) at(ci uint32) prm.CQE64 { return q.slot(q.ring, ci&(q.n-1)) }

// Cap is cq->cqe.
func (q *CQ) Cap() int { return int(q.n) - 1 }

// Context is the cq_context given at creation.
func (q *CQ) Context() any { return q.user }

// CQN is the number of the CQ.
func (q *CQ) CQN() uint32 { return q.cqn }

// LockStats counts the CQ's lock.
func (q *CQ) LockStats() verbs.LockStats {
	return verbs.LockStats{CQ: q.lock.taken, Waits: q.lock.waits, WaitTime: Duration(q.lock.waited)}
}

// ReqNotify is ibv_req_notify_cq: the arm word to the record, then to the register.
// It takes no lock.
func (q *CQ) ReqNotify(vt verbs.Thread, solicitedOnly bool) error {
	t := Of(vt)
	t.Core.Run(t.P, q.ctx.proc.Params.ReqNotify)
	t.P.Sync()
	w := prm.MakeArmWord(q.armSN&3, solicitedOnly, q.ci)
	prm.CQDBRec(q.db.b).SetArm(w)
	var b [prm.CQArmDoorbellSize]byte
	prm.CQArmDoorbell(b[:]).Set(w, q.cqn)
	t.Core.Fence(t.P)
	t.Core.Store(t.P, q.ctx.cqReg.m, q.ctx.cqReg.off+prm.UARCQArm, b[:])
	t.Core.Fence(t.P)
	return nil
}

// Destroy is ibv_destroy_cq: it waits until its events are acknowledged.
func (q *CQ) Destroy(vt verbs.Thread) error {
	t := q.ctx.enter(vt)
	comp, async, err := q.ctx.u.DestroyCQ(t.caller, q.h)
	if err != nil {
		return fmt.Errorf("destroy_cq: %w", err)
	}
	q.compAcks.wait(t, comp, "a CQ")
	q.asyncAcks.wait(t, async, "a CQ")
	q.ctx.putCookie(q.cookie)
	if q.channel != nil {
		q.channel.refs--
	}
	if q.parent != nil {
		q.parent.drop()
	}
	q.release(t)
	return nil
}

// release gives the memory back.
func (q *CQ) release(t *Thread) {
	q.unwatch(q.watch)
	q.watch = nil
	q.ctx.freeDBRec(t, q.parent, q.db)
	allocator{q.ctx.proc, q.parent}.freeRing(t, q.ring, resCQ)
}

func (q *CQ) unwatch(ids []int) {
	for _, id := range ids {
		q.ctx.proc.Mem.Unwatch(id)
	}
}

// clean drops the entries of a QP that is reset or destroyed, moves the others up
// over the holes with the owner bit of where they come to lie, and reports the
// consumer index (__mlx5_cq_clean, 3.3). It adds to cost what that takes.
func (q *CQ) clean(t *Thread, qp *QP, cost *sim.Time) {
	pi := q.ci
	for pi-q.ci < q.n {
		if _, ready := q.look(t, pi); !ready {
			break
		}
		pi++
	}
	*cost += q.ctx.proc.Params.CleanCQE*sim.Time(pi-q.ci) + t.owed
	t.owed = 0
	freed := uint32(0)
	for i := pi; i != q.ci; {
		i--
		e := q.at(i)
		switch {
		case e.SRQNUIdx() == qp.uidx:
			if qp.srq != nil && e.Opcode().Responder() {
				qp.srq.retire(t, e.WQECounter())
				*cost += t.owed
				t.owed = 0
			}
			freed++
		case freed > 0:
			dst := i + freed
			q.move(dst, i)
		}
	}
	if freed > 0 {
		q.ci += freed
		prm.CQDBRec(q.db.b).SetCI(q.ci)
	}
}

// move copies entry src over entry dst of the same ring, whose owner bit stays that
// of its place.
func (q *CQ) move(dst, src uint32) {
	d := q.ring.at(int(dst&(q.n-1)) * q.esize)[:q.esize]
	copy(d, q.ring.at(int(src&(q.n-1)) * q.esize)[:q.esize])
	e := prm.CQE64(d[q.esize-prm.CQE64Size:])
	e.SetOpOwn(e.Opcode(), e.Format(), e.SE(), prm.CQEOwner(dst, q.n))
}
