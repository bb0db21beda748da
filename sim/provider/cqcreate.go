package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// Limits and flags of creation (rdma-core, create_cq).
const (
	maxCQEntries = 1 << 24
	cqMaskFlags  = 1 << 0
	cqMaskPD     = 1 << 1
	wcFlagsKnown = 1<<12 - 1
)

// CreateCQ is ibv_create_cq, or ibv_create_cq_ex when attr.Ex is set.
func (c *Context) CreateCQ(vt verbs.Thread, a verbs.CQAttr) (_ verbs.CQ, err error) {
	defer Of(vt).answers(&err)
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
		if a.CQESize != 0 || a.CQEPad || a.CQECompression != 0 {
			if err := c.noDirect("create_cq"); err != nil {
				return nil, err
			}
		}
		q.ex = &exPoll{flags: a.WCFlags, unlocked: a.Flags&verbs.CQSingleThreaded != 0}
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
			return nil, fmt.Errorf("the channel belongs to another context: %w", syscall.EINVAL)
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
	q.cookie = uint64(c.cookies.take(q))
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
		c.cookies.put(uint32(q.cookie))
		return err
	}
	if q.channel != nil {
		q.channel.refs++
	}
	if q.parent != nil {
		q.parent.hold()
	}
	q.wakeup = q.deviceWrote
	q.watch = q.ring.watch(q.wakeup)
	return nil
}

// Destroy is ibv_destroy_cq: it waits until its events are acknowledged.
func (q *CQ) Destroy(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := q.ctx.enter(vt)
	comp, async, err := q.ctx.u.DestroyCQ(t.caller, q.h)
	if err != nil {
		return fmt.Errorf("destroy_cq: %w", err)
	}
	if !t.breaks(rule.EventsAreAwaited) {
		q.compAcks.wait(t, comp, "a CQ")
	}
	q.asyncAcks.wait(t, async, "a CQ")
	q.ctx.cookies.put(uint32(q.cookie))
	if q.channel != nil {
		q.channel.refs--
	}
	if q.parent != nil {
		q.parent.drop()
	}
	q.release(t)
	return nil
}
