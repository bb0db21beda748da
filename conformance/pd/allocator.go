package pd

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// cqMaskPD is IBV_CQ_INIT_ATTR_MASK_PD.
const cqMaskPD = 1 << 1

// allocator is a custom allocator that keeps a log.
type allocator struct {
	c      *spec.C
	answer func(n int) verbs.AllocAnswer // to the n-th request
	asked  []uint64                      // resource codes, in order
	live   map[uint64]uint64             // address to resource code
	freed  int
}

func newAllocator(c *spec.C, answer func(n int) verbs.AllocAnswer) *allocator {
	return &allocator{c: c, answer: answer, live: map[uint64]uint64{}}
}

// domain is a parent domain with the allocator.
func (a *allocator) domain(e *kit.Env) verbs.PD {
	pd, err := e.Ctx.AllocParentDomain(a.c.T, verbs.ParentDomainAttr{PD: e.PD, CompMask: verbs.ParentDomainAllocators,
		Alloc: a.alloc, Free: a.free})
	a.c.NoErr("alloc_parent_domain with allocators", err)
	a.c.Defer(func() { kit.Must(a.c, "dealloc the parent domain", pd.Dealloc(a.c.T)) })
	return pd
}

func (a *allocator) alloc(t verbs.Thread, size, alignment, resource uint64) (verbs.Buffer, verbs.AllocAnswer) {
	answer := a.answer(len(a.asked))
	a.asked = append(a.asked, resource)
	if answer != verbs.AllocOK {
		return nil, answer
	}
	b, err := t.Process().Map(t, size, verbs.MapOptions{})
	kit.Must(a.c, "map for the allocator", err)
	if alignment > 0 && b.Addr()%alignment != 0 {
		a.c.Errorf("the testbed maps memory without the alignment %d", alignment)
	}
	a.live[b.Addr()] = resource
	return b, verbs.AllocOK
}

func (a *allocator) free(t verbs.Thread, b verbs.Buffer, resource uint64) {
	was, ok := a.live[b.Addr()]
	a.c.True("free of what was given", ok, "the allocator is asked to free memory that is not its own, or twice")
	a.c.Equal("resource code of the free", resource, was)
	delete(a.live, b.Addr())
	a.freed++
	kit.Must(a.c, "unmap for the allocator", b.Unmap(t))
}

// objects makes a CQ and a pair of QPs on pd, sends through them and destroys them.
func objects(c *spec.C, e *kit.Env, pd verbs.PD) {
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 32, Ex: true, CompMask: cqMaskPD, ParentDomain: pd})
	c.NoErr("create_cq_ex", err)
	destroyCQ := kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
	o := kit.Default()
	o.PD, o.SendCQ, o.RecvCQ = pd, cq, cq
	p := e.Pair(c, o)
	src, dst := e.Buffer(c, 256, kit.AllAccess), e.Buffer(c, 256, kit.AllAccess)
	want := src.FillRandom(c)
	c.Status("write", p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.All())), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes", want)
	p.A.DestroyNow(c)
	p.B.DestroyNow(c)
	destroyCQ(c)
	if c.Has("srq") {
		srq, err := pd.CreateSRQ(c.T, verbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1})
		c.NoErr("create_srq", err)
		c.NoErr("destroy_srq", srq.Destroy(c.T))
	}
}

// Resource codes of mlx5 direct verbs, below the driver's number in the upper half.
const (
	resQP  = 1
	resDBR = 3
	resSRQ = 4
	resCQ  = 5
)

func allocatorBalanced(c *spec.C) {
	e := kit.Open(c)
	a := newAllocator(c, func(int) verbs.AllocAnswer { return verbs.AllocOK })
	objects(c, e, a.domain(e))
	seen := map[uint64]int{}
	for _, r := range a.asked {
		seen[r&0xffffffff]++
	}
	c.Observe("requests for CQ, QP, SRQ, doorbell memory", []int{seen[resCQ], seen[resQP], seen[resSRQ], seen[resDBR]})
	c.Equal("requests for CQ memory", seen[resCQ], 1)
	c.Equal("requests for QP memory", seen[resQP], 2)
	wantDBR := 3 // one each
	if c.Has("srq") {
		c.Equal("requests for SRQ memory", seen[resSRQ], 1)
		wantDBR++
	}
	c.Equal("requests for doorbell memory", seen[resDBR], wantDBR)
	c.Equal("requests of other kinds", len(a.asked)-seen[resCQ]-seen[resQP]-seen[resSRQ]-seen[resDBR], 0)
	c.Equal("freed", a.freed, len(a.asked))
	c.Equal("still live", len(a.live), 0)
}

func allocatorDefault(c *spec.C) {
	e := kit.Open(c)
	a := newAllocator(c, func(int) verbs.AllocAnswer { return verbs.AllocUseDefault })
	objects(c, e, a.domain(e))
	c.True("asked", len(a.asked) > 0, "the allocator was never asked")
	c.Equal("asked to free", a.freed, 0)
}

func allocatorFails(c *spec.C) {
	e := kit.Open(c)
	fail := 0
	a := newAllocator(c, func(n int) verbs.AllocAnswer {
		if n == fail {
			return verbs.AllocFailed
		}
		return verbs.AllocOK
	})
	pd := a.domain(e)
	cq := e.CreateCQ(c, 32)
	o := kit.Default()
	create := map[string]func() error{
		"create_cq_ex": func() error {
			cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 32, Ex: true, CompMask: cqMaskPD, ParentDomain: pd})
			if err == nil {
				kit.Must(c, "destroy_cq", cq.Destroy(c.T))
			}
			return err
		},
		"create_qp": func() error {
			qp, err := pd.CreateQP(c.T, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq, Cap: o.Cap})
			if err == nil {
				kit.Must(c, "destroy_qp", qp.Destroy(c.T))
			}
			return err
		},
	}
	for _, name := range []string{"create_cq_ex", "create_qp"} {
		for at := range 2 { // the ring, then the doorbell record
			fail = len(a.asked) + at
			c.ErrnoIn(name+" with a failing allocator", create[name](), syscall.ENOMEM)
			c.Equal("live after the failure", len(a.live), 0)
		}
		fail = -1
		c.Errno(name+" once memory is there", create[name](), 0)
	}
}
