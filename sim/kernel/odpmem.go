package kernel

import (
	"fmt"
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// odpMem is memory of a process that a region reaches and that nothing pins (struct ib_umem_odp).
type odpMem struct {
	proc     *Process
	addr     uint64 // as registered, with its length
	length   uint64
	start    uint64 // in whole pages
	end      uint64
	shift    uint // of the size of pages
	writable bool
	implicit bool // of a whole address space: it has no pages itself
	pages    pageList
	// seq counts the invalidations that touched the region: who looks up pages commits them only if
	// it is as before.
	seq     uint64
	noted   uint64 // bytes that the host has noted of the region
	mr      *mr    // nil from the moment on at which the key is revoked
	unwatch func()
	// buf is a DMA-BUF instead of memory of the process; addr, start and end are offsets of it
	// then.
	buf *attachment
}

const hugeShift = 21 // of a page for AccessHugetlb (HPAGE_SHIFT)

// maxPages is how many pages a region has at most: their list, of 8 bytes a page, is no larger than
// an allocation of the kernel may be.
const maxPages = 1<<28 - 1

// newODPMem is ib_umem_odp_get. EOVERFLOW: a range that wraps; EINVAL: one without pages; ENOMEM:
// too many.
func newODPMem(p *Process, addr, length uint64, access verbs.AccessFlags) (*odpMem, error) {
	o := &odpMem{proc: p, addr: addr, length: length, shift: mem.PageShift, writable: access&writable != 0}
	if access&verbs.AccessHugetlb != 0 {
		o.shift = hugeShift
	}
	mask := uint64(1)<<o.shift - 1
	end := addr + length
	o.start, o.end = addr&^mask, (end+mask)&^mask
	if end < addr || o.end < end || o.end <= mask {
		return nil, fmt.Errorf("[%#x, +%#x) wraps: %w", addr, length, syscall.EOVERFLOW)
	}
	n := (o.end - o.start) >> mem.PageShift
	switch {
	case n == 0:
		return nil, fmt.Errorf("[%#x, +%#x) has no pages: %w", addr, length, syscall.EINVAL)
	case n > maxPages:
		return nil, fmt.Errorf("[%#x, +%#x) has %d pages, at most %d: %w", addr, length, n, maxPages, syscall.ENOMEM)
	}
	if err := p.RAM.roomForRegions(o.keeps()); err != nil {
		return nil, err
	}
	o.pages = newPageList(o.count())
	o.note(o.keeps())
	return o, nil
}

// count is how many pages there are, of the region's size.
func (o *odpMem) count() uint64 { return (o.end - o.start) >> o.shift }

// release gives the memory back (ib_umem_odp_release): no invalidation reaches it any more.
func (o *odpMem) release() {
	if o.unwatch != nil {
		o.unwatch()
		o.unwatch = nil
	}
	if o.buf != nil {
		o.buf.detach()
		o.buf = nil
	}
	o.pages = pageList{}
	o.note(0)
}

// How pages are looked for.
type pageFlags uint8

const (
	pagesReadOnly pageFlags = 1 << iota // MLX5_PF_FLAGS_DOWNGRADE
	pagesSnapshot                       // only what is there
	pagesEnable                         // and the key becomes usable
)

// foundPage is a page of the region and its translation.
type foundPage struct{ index, entry uint64 }

// find looks for the pages of [va, va+n) (hmm_range_fault), which then lie where it says until an
// invalidation.
func (o *odpMem) find(va, n uint64, how pageFlags) ([]foundPage, error) {
	if o.buf != nil {
		return o.findExported()
	}
	mask := uint64(1)<<o.shift - 1
	first, end := va&^mask, (va+n+mask)&^mask
	if first == end {
		return nil, fmt.Errorf("no pages at %#x: %w", va, syscall.EINVAL)
	}
	if how&pagesSnapshot != 0 {
		return o.snapshot(first, end)
	}
	space := o.proc.Space
	if (end-first)>>mem.PageShift > o.proc.ram() {
		return nil, fmt.Errorf("[%#x, +%#x) is more than there is memory: %w", va, n, syscall.ENOMEM)
	}
	flags, rights := mem.RangeFlags(0), uint64(prm.MTTRead)
	if o.writable && how&pagesReadOnly == 0 {
		flags, rights = mem.RangeWrite, prm.MTTRead|prm.MTTWrite
	}
	frames := make([]mem.Frame, (end-first)>>mem.PageShift)
	if err := space.Range(mem.VA(first), end-first, flags, frames); err != nil {
		return nil, err
	}
	per := uint64(1) << (o.shift - mem.PageShift)
	found := make([]foundPage, 0, uint64(len(frames))/per)
	for i := uint64(0); i < uint64(len(frames)); i += per {
		if o.small(frames[i]) {
			return nil, fmt.Errorf("page %#x is small: %w", first+i<<mem.PageShift, syscall.EINVAL)
		}
		found = append(found, foundPage{(first-o.start)>>o.shift + i/per, uint64(frames[i].PA) | rights})
	}
	return found, nil
}

// snapshot finds what is there of [first, end), each page with the rights of its mapping. Of a
// large page its first part counts.
func (o *odpMem) snapshot(first, end uint64) (found []foundPage, err error) {
	mask := mem.VA(1)<<o.shift - 1
	o.proc.Space.Present(mem.VA(first), end-first, func(at mem.VA, f mem.Frame) {
		switch {
		case at&mask != 0:
			return
		case o.small(f):
			err = fmt.Errorf("page %#x is small: %w", uint64(at), syscall.EINVAL)
			return
		}
		rights := uint64(prm.MTTRead)
		if f.Writable {
			rights |= prm.MTTWrite
		}
		found = append(found, foundPage{(uint64(at) - o.start) >> o.shift, uint64(f.PA) | rights})
	})
	return found, err
}

// small says whether a page is smaller than those of the region.
func (o *odpMem) small(f mem.Frame) bool { return o.shift > mem.PageShift && uint(f.Shift) < o.shift }

// holds says whether [va, va+n) lies in the region.
func (o *odpMem) holds(va, n uint64) bool {
	return va >= o.start && va <= o.end && n <= o.end-va
}

// wholeSpace is the length that asks for a region of the whole address space.
const wholeSpace = math.MaxUint64
