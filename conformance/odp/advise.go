package odp

import (
	"bytes"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// advised is a paged region, and its program's PD.
type advised struct {
	e *kit.Env
	b *kit.Buffer
}

func adviseBed(c *spec.C) *advised {
	e := kit.Open(c)
	return &advised{e, e.Paged(c, size, kit.AllAccess)}
}

// resident says which pages of the region are in memory.
func (x *advised) resident(c *spec.C) []bool {
	list, err := x.b.Pages(c).Resident(c.T, 0, size)
	c.NoErr("mincore", err)
	return list
}

// prefetch asks for pages and returns what the call says.
func (x *advised) prefetch(c *spec.C, advice verbs.AdviseMRAdvice, flags verbs.AdviseMRFlags, ranges ...verbs.SGE) error {
	return x.e.PD.AdviseMR(c.T, advice, flags, ranges)
}

func prefetchMapped(c *spec.C) {
	x := adviseBed(c)
	c.NoErr("prefetch", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, x.b.SGE(0, 2*kit.Page)))
	c.Equal("pages in memory", count(x.resident(c)), 2)
	c.NoErr("prefetch for writing", x.prefetch(c, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, x.b.All()))
	c.Equal("pages in memory then", count(x.resident(c)), size/kit.Page)
}

// hole takes a page of the region away.
func (x *advised) hole(c *spec.C) verbs.SGE {
	kit.Must(c, "munmap of a page", x.b.Pages(c).UnmapPart(c.T, 2*kit.Page, kit.Page))
	return x.b.SGE(2*kit.Page, kit.Page)
}

func prefetchHole(c *spec.C) {
	x := adviseBed(c)
	c.Errno("prefetch of a hole", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, x.hole(c)), syscall.EFAULT)
}

func prefetchHoleLater(c *spec.C) {
	x := adviseBed(c)
	hole := x.hole(c)
	c.NoErr("prefetch of a hole, not waited for", x.prefetch(c, verbs.AdvisePrefetch, 0, hole))
	to := x.e.Buffer(c, kit.Page, kit.AllAccess)
	wc := x.e.Pair(c, options()).A.PostAndPoll(c, kit.Write(1, to, 0, hole))
	c.True("write from the hole fails", wc.Status != verbs.WCSuccess, "it succeeds")
}

func prefetchBeyond(c *spec.C) {
	x := adviseBed(c)
	beyond := func(step string, s verbs.SGE) {
		c.Errno(step, x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, s), syscall.EFAULT)
		c.NoErr(step+", not waited for", x.prefetch(c, verbs.AdvisePrefetch, 0, s))
	}
	beyond("prefetch beyond the end", x.b.SGE(size-kit.Page, 2*kit.Page))
	beyond("prefetch before the start", x.b.SGE(-kit.Page, 2*kit.Page))
}

// bothWays expects an errno of a prefetch that is waited for and of one that is not.
func (x *advised) bothWays(c *spec.C, step string, advice verbs.AdviseMRAdvice, want syscall.Errno, s verbs.SGE) {
	c.Errno(step, x.prefetch(c, advice, verbs.AdviseFlush, s), want)
	c.Errno(step+", not waited for", x.prefetch(c, advice, 0, s), want)
}

func prefetchUnknownKey(c *spec.C) {
	x := adviseBed(c)
	s := x.b.All()
	s.LKey = 0x00fffe00
	x.bothWays(c, "prefetch by no key", verbs.AdvisePrefetch, syscall.ENOENT, s)
	s.LKey = x.b.MR.LKey() ^ 1
	x.bothWays(c, "prefetch by a key with another low byte", verbs.AdvisePrefetch, syscall.ENOENT, s)
}

func prefetchPinned(c *spec.C) {
	x := adviseBed(c)
	x.bothWays(c, "prefetch of a pinned region", verbs.AdvisePrefetch, syscall.ENOENT, x.e.Buffer(c, size, kit.AllAccess).All())
}

func prefetchOtherPD(c *spec.C) {
	x := adviseBed(c)
	pd, err := x.e.Ctx.AllocPD(c.T)
	kit.Must(c, "alloc_pd", err)
	c.Defer(func() { kit.Must(c, "dealloc_pd", pd.Dealloc(c.T)) })
	x.e.PD = pd
	x.bothWays(c, "prefetch on another PD", verbs.AdvisePrefetch, syscall.EPERM, x.b.All())
}

func prefetchReadOnlyRegion(c *spec.C) {
	x := adviseBed(c)
	b := x.e.Paged(c, size, 0)
	x.bothWays(c, "prefetch for writing of a region for reading", verbs.AdvisePrefetchWrite, syscall.EPERM, b.All())
	c.NoErr("prefetch for reading", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, b.All()))
}

func prefetchReadOnlyMapping(c *spec.C) {
	x := adviseBed(c)
	kit.Must(c, "mprotect", x.b.Pages(c).Protect(c.T, 0, size, verbs.ProtRead))
	c.Errno("prefetch for writing of a mapping for reading", x.prefetch(c, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, x.b.All()), syscall.EPERM)
	c.NoErr("the same, not waited for", x.prefetch(c, verbs.AdvisePrefetchWrite, 0, x.b.All()))
	c.NoErr("prefetch for reading", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, x.b.All()))
}

func unknownAdvice(c *spec.C) {
	x := adviseBed(c)
	c.Errno("an advice that there is not", x.prefetch(c, 77, verbs.AdviseFlush, x.b.All()), syscall.EOPNOTSUPP)
	c.Errno("a flag that there is not", x.prefetch(c, verbs.AdvisePrefetch, 1<<5, x.b.All()), syscall.EINVAL)
}

func prefetchWithoutFaults(c *spec.C) {
	x := adviseBed(c)
	x.b.Set(c, kit.Page, []byte{1})
	before := x.resident(c)
	c.NoErr("prefetch of what is there", x.prefetch(c, verbs.AdvisePrefetchNoFault, verbs.AdviseFlush, x.b.All()))
	c.Equal("pages in memory", x.resident(c), before)
}

func prefetchTwo(c *spec.C) {
	x := adviseBed(c)
	bad := x.b.SGE(0, kit.Page)
	bad.LKey = 0x00fffe00
	c.Errno("prefetch of two ranges, the second by no key", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, x.b.SGE(0, kit.Page), bad), syscall.ENOENT)
	c.Equal("pages in memory", count(x.resident(c)), 1)
	c.Errno("the same, not waited for", x.prefetch(c, verbs.AdvisePrefetch, 0, x.b.SGE(kit.Page, kit.Page), bad), syscall.ENOENT)
	c.Equal("pages in memory then", count(x.resident(c)), 1)
}

func prefetchNothing(c *spec.C) {
	x := adviseBed(c)
	c.Errno("prefetch of no ranges", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush), syscall.EINVAL)
}

func prefetchImplicit(c *spec.C) {
	e := kit.Open(c)
	mr := everything(c, e, verbs.AccessLocalWrite)
	m := kit.MapLazily(c, size)
	x := &advised{e: e, b: &kit.Buffer{}}
	c.NoErr("prefetch", x.prefetch(c, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, within(mr, m, 0, 2*kit.Page)))
	p, ok := m.(verbs.PagedBuffer)
	if !ok {
		c.Errorf("the target's memory cannot be changed page by page")
	}
	resident, err := p.Resident(c.T, 0, size)
	c.NoErr("mincore", err)
	c.Equal("pages in memory", count(resident), 2)
	c.NoErr("prefetch, not waited for", x.prefetch(c, verbs.AdvisePrefetch, 0, within(mr, m, 0, size)))
	to := e.Buffer(c, size, kit.AllAccess)
	c.Status("write", e.Pair(c, options()).A.PostAndPoll(c, kit.Write(1, to, 0, within(mr, m, 0, size))), verbs.WCSuccess)
	c.True("contents", bytes.Equal(to.Get(c, 0, size), make([]byte, size)), "other bytes")
}

// prefetchWindow asks for pages by the key of a memory window that is bound.
func prefetchWindow(c *spec.C) {
	e := kit.Open(c)
	p := e.Pair(c, options())
	b := e.Paged(c, size, kit.AllAccess|verbs.AccessMWBind)
	w, err := e.PD.AllocMW(c.T, verbs.MWType2)
	kit.Must(c, "alloc_mw", err)
	c.Defer(func() { kit.Must(c, "dealloc_mw", w.Dealloc(c.T)) })
	bind := verbs.SendWR{ID: 7, Opcode: verbs.WRBindMW, Flags: verbs.SendSignaled, Bind: &verbs.MWBindWR{MW: w, RKey: verbs.IncRKey(w.RKey()),
		Info: verbs.MWBindInfo{MR: b.MR, Addr: b.Addr(0), Length: size, Access: verbs.AccessRemoteRead}}}
	c.Status("bind", p.A.PostAndPoll(c, bind), verbs.WCSuccess)
	s := b.All()
	s.LKey = bind.Bind.RKey
	for _, flags := range []verbs.AdviseMRFlags{verbs.AdviseFlush, 0} {
		c.ErrnoIn("prefetch by a window", e.PD.AdviseMR(c.T, verbs.AdvisePrefetch, flags, []verbs.SGE{s}), syscall.EINVAL, syscall.ENOENT)
	}
}
