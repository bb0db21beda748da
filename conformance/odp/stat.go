package odp

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Names of the counters of a region (restrack.c of mlx5_ib).
const (
	faults        = "page_faults"
	invalidations = "page_invalidations"
	prefetches    = "page_prefetch"
)

// counters are those of a region by name.
func counters(c *spec.C, b *kit.Buffer) map[string]uint64 {
	list, err := b.MR.Counters(c.T)
	c.NoErr("counters of a region", err)
	m := map[string]uint64{}
	for _, x := range list {
		m[x.Name] = x.Value
	}
	return m
}

// touch has the device read pages of the region.
func (x *ends) touch(c *spec.C, page, n int) {
	c.Status("write", x.pair.A.PostAndPoll(c, kit.Write(1, x.to, 0, x.from.SGE(page*kit.Page, n*kit.Page))), verbs.WCSuccess)
}

func countedFaults(c *spec.C) {
	x := connect(c)
	x.touch(c, 0, 2)
	first := counters(c, x.from)[faults]
	c.True("faults of two pages", first >= 2, "%d", first)
	x.touch(c, 0, 2)
	c.Equal("faults when they are there", counters(c, x.from)[faults], first)
}

func countedInvalidations(c *spec.C) {
	x := connect(c)
	x.touch(c, 0, size/kit.Page)
	kit.Must(c, "madvise of the last two pages", x.from.Pages(c).Advise(c.T, size-2*kit.Page, 2*kit.Page, verbs.AdviceDontNeed))
	c.Equal("invalidations", counters(c, x.from)[invalidations], uint64(2))
	kit.Must(c, "munmap of the first page", x.from.Pages(c).UnmapPart(c.T, 0, kit.Page))
	c.Equal("invalidations then", counters(c, x.from)[invalidations], uint64(3))
}

func countedPrefetches(c *spec.C) {
	x := adviseBed(c)
	c.NoErr("prefetch of three pages", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, x.b.SGE(0, 3*kit.Page)))
	now := counters(c, x.b)
	c.Equal("prefetches", now[prefetches], uint64(3))
	c.Equal("faults", now[faults], uint64(0))
	c.NoErr("prefetch of them again, and of one more", x.prefetch(c, verbs.AdvisePrefetch, verbs.AdviseFlush, x.b.SGE(0, 4*kit.Page)))
	c.Equal("prefetches then", counters(c, x.b)[prefetches], uint64(7))
}

func uncountedInvalidations(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	kit.Must(c, "madvise of pages that the device never had", x.from.Pages(c).Advise(c.T, 0, size, verbs.AdviceDontNeed))
	c.Equal("invalidations", counters(c, x.from)[invalidations], uint64(0))
}

// twoRegionsOfAPage counts for two regions over the same memory.
func twoRegionsOfAPage(c *spec.C) {
	e := kit.Open(c)
	m := kit.MapLazily(c, size)
	x := &ends{pair: e.Pair(c, options()), from: e.PagedOver(c, m, size, kit.AllAccess), to: e.Paged(c, size, kit.AllAccess)}
	other := e.PagedOver(c, m, size, kit.AllAccess)
	x.touch(c, 0, 1)
	c.True("faults of the region that is used", counters(c, x.from)[faults] > 0, "none")
	c.Equal("faults of the other", counters(c, other)[faults], uint64(0))
	c.Status("write from the other", x.pair.A.PostAndPoll(c, kit.Write(2, x.to, 0, other.SGE(0, kit.Page))), verbs.WCSuccess)
	kit.Must(c, "madvise", x.from.Pages(c).Advise(c.T, 0, kit.Page, verbs.AdviceDontNeed))
	c.Equal("invalidations of the first", counters(c, x.from)[invalidations], uint64(1))
	c.Equal("invalidations of the other", counters(c, other)[invalidations], uint64(1))
}

// uncountedPinned looks for counters of a region whose memory is pinned.
func uncountedPinned(c *spec.C) {
	e := kit.Open(c)
	c.Equal("counters of a pinned region", len(counters(c, e.Buffer(c, size, kit.AllAccess))), 0)
	_, counted := counters(c, e.Paged(c, size, kit.AllAccess))[faults]
	c.True("a region on demand counts its page faults", counted, "it does not")
}
