package perf

import (
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// pagedPages is of how many pages the median counts.
const pagedPages = 33

// pagedBed writes from memory that is paged on demand to memory that is pinned.
type pagedBed struct {
	pair     *kit.Pair
	from, to *kit.Buffer
}

func connectPaged(c *spec.C) *pagedBed {
	e := kit.Open(c)
	o := options()
	o.RNRRetry = 7
	return &pagedBed{e.Pair(c, o), e.Paged(c, pagedPages*kit.Page, kit.AllAccess), e.Buffer(c, kit.Page, kit.AllAccess)}
}

// access is the median time of a write from each page, from the post to the completion.
func (b *pagedBed) access(c *spec.C, before func(page int)) time.Duration {
	var took []time.Duration
	for i := range pagedPages {
		if before != nil {
			before(i)
		}
		start := now(c)
		c.Status("write", b.pair.A.PostAndPoll(c, kit.Write(uint64(i), b.to, 0, b.from.SGE(i*kit.Page, 64))), verbs.WCSuccess)
		took = append(took, now(c)-start)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// discard takes a page away from the device.
func (b *pagedBed) discard(c *spec.C, page int) {
	kit.Must(c, "madvise", b.from.Pages(c).Advise(c.T, uint64(page)*kit.Page, kit.Page, verbs.AdviceDontNeed))
}

// secondAccess compares an access that meets an absent page with the next one.
func secondAccess(c *spec.C) {
	b := connectPaged(c)
	first, second := b.access(c, nil), b.access(c, nil)
	c.Observe("first access, us", threeDigits(first.Seconds()*1e6))
	c.Observe("second access, us", threeDigits(second.Seconds()*1e6))
	c.True("the second access is at least 10 times faster", second*10 <= first, "%v after %v", second, first)
}

// prefetchedAccess compares an access to a page that was prefetched with one to an absent page and
// one to a page that was used.
func prefetchedAccess(c *spec.C) {
	b := connectPaged(c)
	absent, used := b.access(c, nil), b.access(c, nil)
	for i := range pagedPages {
		b.discard(c, i)
	}
	prefetched := b.access(c, func(page int) {
		all := []verbs.SGE{b.from.SGE(page*kit.Page, kit.Page)}
		kit.Must(c, "prefetch", b.pair.PD.AdviseMR(c.T, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, all))
	})
	c.Observe("access to a prefetched page, us", threeDigits(prefetched.Seconds()*1e6))
	c.True("it is nearer to that of a page that was used", prefetched-used < absent-prefetched, "%v: used %v, absent %v", prefetched, used, absent)
}
