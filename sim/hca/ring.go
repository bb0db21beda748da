package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// ring is a queue in host memory as its context describes it: a list of pages and
// an offset into the first.
type ring struct {
	pages []mem.PA
	shift uint
	off   uint64 // of the ring's start in the first page
	flat  bool   // the pages follow one another in memory
}

// newRing copies the page list of a ring of n bytes. It reports false when the
// list is too short or an address is not aligned to its page. The page offset
// is in units of page/64.
func newRing(pas prm.PAS, logPage, pageOffset uint32, n uint64) (ring, bool) {
	r := ring{shift: uint(logPage) + prm.PageShift, flat: true}
	if r.shift > 40 {
		return r, false
	}
	page := uint64(1) << r.shift
	r.off = uint64(pageOffset) * page / 64
	want := (r.off + n + page - 1) >> r.shift
	if uint64(pas.Count()) < want {
		return r, false
	}
	r.pages = make([]mem.PA, want)
	for i := range r.pages {
		a := pas.At(i)
		if a&(page-1) != 0 {
			return r, false
		}
		r.pages[i] = mem.PA(a)
		if i > 0 && r.pages[i] != r.pages[i-1]+mem.PA(page) {
			r.flat = false
		}
	}
	return r, true
}

// at is the address of byte off of the ring, and how many of the n bytes from
// there are contiguous.
func (r *ring) at(off uint64, n int) (mem.PA, int) {
	off += r.off
	if r.flat {
		return r.pages[0] + mem.PA(off), n
	}
	page := uint64(1) << r.shift
	in := off & (page - 1)
	return r.pages[off>>r.shift] + mem.PA(in), min(n, int(page-in))
}
