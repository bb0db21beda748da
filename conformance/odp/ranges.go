package odp

import (
	"bytes"
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// unmappedRange registers addresses where nothing is mapped.
func unmappedRange(c *spec.C) {
	e := kit.Open(c)
	m := kit.MapLazily(c, size)
	kit.Must(c, "munmap", m.Unmap(c.T))
	mr, err := e.PD.RegMR(c.T, m.Addr(), size, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	c.NoErr("reg_mr of addresses that are not mapped", err)
	if mr != nil {
		kit.Must(c, "dereg_mr", mr.Dereg(c.T))
	}
}

// accessToAHole writes from a region of which a page is missing: that connection fails, another
// works with the rest.
func accessToAHole(c *spec.C) {
	e := kit.Open(c)
	x := &ends{pair: e.Pair(c, options()), from: e.Paged(c, size, kit.AllAccess), to: e.Paged(c, size, kit.AllAccess)}
	other := e.Pair(c, options())
	kit.Must(c, "munmap of a page", x.from.Pages(c).UnmapPart(c.T, 2*kit.Page, kit.Page))
	wc := x.pair.A.PostAndPoll(c, kit.Write(1, x.to, 0, x.from.SGE(2*kit.Page, 8)))
	c.True("write from the hole fails", wc.Status != verbs.WCSuccess, "it succeeds")
	c.Observe("status of the write", wc.Status)
	c.Equal("state", x.pair.A.QueryState(c), verbs.QPSErr)
	c.Status("write from beside it", other.A.PostAndPoll(c, kit.Write(2, x.to, 0, x.from.SGE(0, 2*kit.Page))), verbs.WCSuccess)
	third := e.Pair(c, options())
	kit.Must(c, "munmap of a page of the target", x.to.Pages(c).UnmapPart(c.T, 3*kit.Page, kit.Page))
	wc = third.A.PostAndPoll(c, kit.Write(3, x.to, 3*kit.Page, x.from.SGE(0, 8)))
	c.True("write to the hole fails", wc.Status != verbs.WCSuccess, "it succeeds")
	c.Observe("status of the write to the hole", wc.Status)
}

// fromAddressZero registers addresses from 0 on, but not all: such a region is one like others.
func fromAddressZero(c *spec.C) {
	e := kit.Open(c)
	mr, err := e.PD.RegMR(c.T, 0, size, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	c.NoErr("reg_mr from address 0", err)
	if mr == nil {
		return
	}
	x := &ends{pair: e.Pair(c, options()), to: e.Paged(c, size, kit.AllAccess)}
	wc := x.pair.A.PostAndPoll(c, kit.Write(1, x.to, 0, verbs.SGE{Addr: kit.Page, Length: 8, LKey: mr.LKey()}))
	c.True("write from a page that nobody has mapped fails", wc.Status != verbs.WCSuccess, "it succeeds")
	kit.Must(c, "dereg_mr", mr.Dereg(c.T))
}

// wholeSpaceFromElsewhere registers all bytes from an address on that is not 0.
func wholeSpaceFromElsewhere(c *spec.C) {
	e := kit.Open(c)
	_, err := e.PD.RegMR(c.T, kit.Page, math.MaxUint64, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	c.ErrnoIn("reg_mr of 2^64-1 bytes from a page on", err, syscall.EOVERFLOW, syscall.EINVAL)
}

// reads reads a buffer through the region and compares it.
func (x *ends) reads(c *spec.C, step string, want []byte) {
	c.Status(step, x.pair.A.PostAndPoll(c, kit.Read(9, x.from, 0, x.to.SGE(0, len(want)))), verbs.WCSuccess)
	c.True(step+": contents", bytes.Equal(x.to.Get(c, 0, len(want)), want), "other bytes")
}

// remapped puts other memory under a region: the device uses what the program sees.
func remapped(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	x.reads(c, "read", x.rand)
	r, ok := x.from.Mem.(verbs.Remapper)
	if !ok {
		c.Errorf("the target's memory cannot be mapped anew")
	}
	kit.Must(c, "map other memory in its place", r.Remap(c.T))
	x.reads(c, "read of the new memory", x.untouched)
	fresh := c.Rand().Bytes(size)
	x.to.Set(c, 0, fresh)
	c.Status("write", x.pair.A.PostAndPoll(c, kit.Write(2, x.from, 0, x.to.All())), verbs.WCSuccess)
	c.True("the program sees it", bytes.Equal(x.from.Get(c, 0, size), fresh), "other bytes")
}

// movedAway moves a mapping: its old addresses fail, and the new ones are not in the region.
func movedAway(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	x.reads(c, "read", x.rand)
	old := x.from.All()
	kit.Must(c, "mremap", x.from.Pages(c).Move(c.T, 0))
	c.True("the program sees its bytes", bytes.Equal(x.from.Get(c, 0, size), x.rand), "other bytes")
	wc := x.pair.A.PostAndPoll(c, kit.Write(1, x.to, 0, old))
	c.True("write from the old addresses fails", wc.Status != verbs.WCSuccess, "it succeeds")
	e := kit.Open(c)
	other := e.Pair(c, options())
	wc = other.A.PostAndPoll(c, kit.Write(1, x.to, 0, x.from.All()))
	c.True("write from the new addresses fails", wc.Status != verbs.WCSuccess, "it succeeds")
}

// anotherPartOfAFile maps another part of a file in place of the first.
func anotherPartOfAFile(c *spec.C) {
	o, ok := c.Process().(verbs.MemObjects)
	if !ok {
		c.Errorf("the target's processes have no files to map")
	}
	e := kit.Open(c)
	file, err := o.NewFile(c.T, 2*size)
	kit.Must(c, "make a file", err)
	c.Defer(func() { kit.Must(c, "close the file", file.Close(c.T)) })
	data := c.Rand().Bytes(2 * size)
	_, err = file.WriteAt(c.T, data, 0)
	kit.Must(c, "write the file", err)
	m, err := c.Process().Map(c.T, size, verbs.MapOptions{Lazy: true, Object: file})
	kit.Must(c, "mmap", err)
	x := &ends{pair: e.Pair(c, options()), from: e.PagedOver(c, m, size, kit.AllAccess), to: e.Paged(c, size, kit.AllAccess)}
	x.reads(c, "read", data[:size])
	m, err = c.Process().Map(c.T, size, verbs.MapOptions{Lazy: true, Object: file, ObjectOffset: size, At: m.Addr()})
	kit.Must(c, "mmap of the other part at the same address", err)
	c.Defer(func() { kit.Must(c, "munmap", m.Unmap(c.T)) })
	x.reads(c, "read of the other part", data[size:])
}

// discarded gives pages back to the system: they are zeros then, for the device too.
func discarded(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	x.reads(c, "read", x.rand)
	kit.Must(c, "madvise", x.from.Pages(c).Advise(c.T, 0, size, verbs.AdviceDontNeed))
	x.reads(c, "read of what was given back", x.untouched)
	x.to.Set(c, 0, x.rand)
	c.Status("write", x.pair.A.PostAndPoll(c, kit.Write(2, x.from, 0, x.to.All())), verbs.WCSuccess)
	c.True("the program sees it", bytes.Equal(x.from.Get(c, 0, size), x.rand), "other bytes")
}

// pagedOut has pages written to swap, between transfers: nobody notices.
func pagedOut(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	for i := range 3 {
		kit.Must(c, "madvise", x.from.Pages(c).Advise(c.T, 0, size, verbs.AdvicePageOut))
		x.reads(c, "read", x.rand)
		kit.Must(c, "madvise of the target", x.to.Pages(c).Advise(c.T, 0, size, verbs.AdvicePageOut))
		x.rand = c.Rand().Bytes(size)
		x.to.Set(c, 0, x.rand)
		c.Status("write", x.pair.A.PostAndPoll(c, kit.Write(uint64(i), x.from, 0, x.to.All())), verbs.WCSuccess)
	}
	c.True("the program sees the last", bytes.Equal(x.from.Get(c, 0, size), x.rand), "other bytes")
}

// hugePages registers memory in huge pages for paging in such pages, and memory that has none.
func hugePages(c *spec.C) {
	const huge = 2 << 20
	e := kit.Open(c)
	m, err := c.Process().Map(c.T, 2*huge, verbs.MapOptions{PageSize: huge})
	kit.Must(c, "mmap of huge pages", err)
	c.Defer(func() { kit.Must(c, "munmap", m.Unmap(c.T)) })
	x := &ends{pair: e.Pair(c, options()), from: e.PagedOver(c, m, 2*huge, kit.AllAccess|verbs.AccessHugetlb), to: e.Paged(c, size, kit.AllAccess)}
	want := c.Rand().Bytes(size)
	x.from.Set(c, huge-kit.Page, want)
	c.Status("read over both pages", x.pair.A.PostAndPoll(c, kit.Read(1, x.from, huge-kit.Page, x.to.All())), verbs.WCSuccess)
	c.True("contents", bytes.Equal(x.to.Get(c, 0, size), want), "other bytes")

	small, err := c.Process().Map(c.T, 2*huge, verbs.MapOptions{Lazy: true})
	kit.Must(c, "mmap", err)
	c.Defer(func() { kit.Must(c, "munmap", small.Unmap(c.T)) })
	at := (small.Addr() + huge - 1) &^ (huge - 1)
	access := verbs.AccessLocalWrite | verbs.AccessOnDemand | verbs.AccessHugetlb
	mr, err := e.PD.RegMR(c.T, at, huge, access)
	c.NoErr("reg_mr of memory that nobody has touched", err)
	if mr != nil {
		kit.Must(c, "dereg_mr", mr.Dereg(c.T))
	}
	_, err = small.WriteAt(c.T, []byte{1}, int64(at-small.Addr()))
	kit.Must(c, "write memory", err)
	_, err = e.PD.RegMR(c.T, at, huge, access)
	c.Errno("reg_mr of small pages", err, syscall.EINVAL)
}

// reregistered changes the rights of a region on demand, and then its memory.
func reregistered(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	x.reads(c, "read", x.rand)
	err := x.from.MR.Rereg(c.T, verbs.ReregAccess, nil, 0, 0, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessOnDemand)
	c.ErrnoIn("rereg_mr with fewer rights", err, 0, syscall.EOPNOTSUPP)
	c.ObservePlatform("fewer rights", verbs.ErrnoName(verbs.ErrnoOf(err)))
	x.reads(c, "read then", x.rand)
	if err == nil {
		wc := x.pair.A.Env.Pair(c, options())
		c.Status("write without the right", wc.A.PostAndPoll(c, kit.Write(1, x.from, 0, x.to.SGE(0, 8))), verbs.WCRemAccessErr)
	}

	m := kit.MapLazily(c, size)
	other := c.Rand().Bytes(size)
	_, err = m.WriteAt(c.T, other, 0)
	kit.Must(c, "write memory", err)
	err = x.from.MR.Rereg(c.T, verbs.ReregTranslation|verbs.ReregAccess, nil, m.Addr(), size, kit.AllAccess|verbs.AccessOnDemand)
	c.ErrnoIn("rereg_mr with other memory", err, 0, syscall.EOPNOTSUPP)
	c.ObservePlatform("other memory", verbs.ErrnoName(verbs.ErrnoOf(err)))
	if err == nil {
		x.from.Mem = m
		x.reads(c, "read of the other memory", other)
		kit.Must(c, "madvise", x.from.Pages(c).Advise(c.T, 0, size, verbs.AdviceDontNeed))
		x.reads(c, "read when it was given back", x.untouched)
	}
}
