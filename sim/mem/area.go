package mem

import (
	"cmp"
	"math/bits"
	"slices"
	"syscall"
)

// area is a lazy mapping (a VMA): a range of addresses whose pages are not there until they are
// touched.
type area struct {
	start, end VA
	prot       Prot
	shift      uint    // log2 of the size of its pages
	obj        *Object // nil: anonymous memory
	off        uint64  // of start in obj
	private    bool    // what is written goes to a copy of the page
}

// lazySpace are the lazy mappings of a space and their page tables. A huge page has its entry at
// the index of its first page.
type lazySpace struct {
	areas []*area // by address, never overlapping
	last  *area   // of the last look-up
	pt    table
	next  VA // of the next mapping that may lie anywhere
	// faults count those of this space.
	faults Faults
	rss    uint64 // pages, but for those of zeroes
}

const (
	// Lazy mappings have addresses of their own, so that one of hundreds of GiB finds room.
	firstLazyVA = VA(0x1000_0000_0000)
	// minVA is vm.mmap_min_addr: below it nothing can be mapped.
	minVA = VA(0x1_0000)
)

// pteSwap marks an entry whose page is in swap: its number is that of a slot.
const pteSwap = 1 << 6

func swapPTE(slot uint64) pte { return pte(slot<<pteShift) | pteSwap }

func (e pte) swapped() bool  { return e&pteSwap != 0 }
func (e pte) writable() bool { return e.present() && e&pte(Write) != 0 }

// MapOptions say how MapWith maps memory.
type MapOptions struct {
	Prot Prot
	// Lazy: a page is there from its first touch on. Without it all pages are there at once, and
	// they stay until they are unmapped; what has an Object or an address is lazy at any rate, and
	// is touched at once.
	Lazy bool
	// Object is what is mapped from byte Offset on (a file, shared memory); nil: anonymous memory,
	// zeroed.
	Object *Object
	Offset uint64
	// Private: what is written to an Object's pages is not seen by others (MAP_PRIVATE).
	Private bool
	// PageSize in bytes of huge pages, of anonymous memory only; 0: the host's own.
	PageSize uint64
	// At is the address (MAP_FIXED: what is there is unmapped); 0: anywhere.
	At VA
	// NoReplace: EEXIST when something is mapped there (MAP_FIXED_NOREPLACE).
	NoReplace bool
}

// MapWith maps n bytes as o says, and returns the address. EINVAL for n of 0 and for what is not a
// multiple of the page size; EOVERFLOW for an object's offset that overflows; EPERM below the
// addresses that may be mapped; EEXIST; ENOMEM when addresses or, for what is not lazy, memory are
// used up.
func (s *Space) MapWith(n uint64, o MapOptions) (VA, error) {
	if !o.Lazy && o.Object == nil && o.At == 0 {
		if o.PageSize == 0 {
			return s.Map(n, o.Prot)
		}
		return s.MapPages(n, o.PageSize, o.Prot)
	}
	a, err := s.newArea(n, o)
	if err != nil {
		return 0, err
	}
	if o.At != 0 {
		if err := s.makeRoom(a, o.NoReplace); err != nil {
			return 0, err
		}
	}
	s.insertArea(a)
	if !o.Lazy && o.Prot&Read != 0 {
		if err := s.populate(a); err != nil {
			s.unmapAny(a.start, a.end)
			return 0, err
		}
	}
	return a.start, nil
}

// newArea checks the options, and finds the addresses.
func (s *Space) newArea(n uint64, o MapOptions) (*area, error) {
	ps := max(o.PageSize, s.m.PageSize())
	if n == 0 || s.x != nil || bits.OnesCount64(ps) != 1 || uint64(o.At)&(ps-1) != 0 || o.Offset&(ps-1) != 0 ||
		o.Object != nil && ps != s.m.PageSize() {
		return nil, errorf(syscall.EINVAL, "map %d B at %#x in pages of %d, offset %d (foreign: %v)",
			n, uint64(o.At), ps, o.Offset, s.x != nil)
	}
	s.needLazy()
	at := cmp.Or(o.At, (s.lazy.next+VA(ps-1))&^VA(ps-1))
	limit := lastVA
	if o.At == 0 {
		limit = firstVA
	}
	if at > limit || n > uint64(limit-at) {
		return nil, errorf(syscall.ENOMEM, "map %d B at %#x: no addresses", n, uint64(at))
	}
	n = (n + ps - 1) &^ (ps - 1)
	switch {
	case n > uint64(limit-at):
		return nil, errorf(syscall.ENOMEM, "map %d B at %#x: no addresses", n, uint64(at))
	case at < minVA:
		return nil, errorf(syscall.EPERM, "map at %#x", uint64(at))
	case o.Object != nil && o.Offset+n < n:
		return nil, errorf(syscall.EOVERFLOW, "map %d B of an object at offset %#x", n, o.Offset)
	case o.Object != nil && (o.Object.closed() || o.Object.m != s.m):
		return nil, errorf(syscall.EBADF, "map an object that is closed, or of another host")
	}
	if o.At == 0 {
		s.lazy.next = at + VA(n+ps)
	}
	return &area{
		start: at, end: at + VA(n), prot: o.Prot & (Read | Write), shift: uint(bits.TrailingZeros64(ps)),
		obj: o.Object, off: o.Offset, private: o.Object == nil || o.Private,
	}, nil
}

func (s *Space) needLazy() {
	if s.lazy == nil {
		s.lazy = &lazySpace{next: firstLazyVA}
	}
	s.m.needPaging()
}

// makeRoom unmaps what lies where an area of a given address comes, and keeps others from it.
func (s *Space) makeRoom(a *area, noReplace bool) error {
	if noReplace && s.anyMapped(a.start, a.end) {
		return errorf(syscall.EEXIST, "map %d B at %#x", uint64(a.end-a.start), uint64(a.start))
	}
	if err := s.wholeUnits(a.start, a.end); err != nil {
		return err
	}
	s.unmapAny(a.start, a.end)
	gap := VA(1) << a.shift
	if a.end > s.next {
		s.next = min(a.end+gap, lastVA)
	}
	if a.end > s.lazy.next && a.start < firstVA {
		s.lazy.next = min(a.end+gap, firstVA)
	}
	return nil
}

// anyMapped reports whether a page of [va, end) is mapped.
func (s *Space) anyMapped(va, end VA) bool {
	if s.lazy != nil && s.lazy.first(va, end) != nil {
		return true
	}
	found := false
	s.eachEager(va, end, func(*mapping, uint64) { found = true })
	return found
}

// insertArea enters an area where none is, which from now on uses its object.
func (s *Space) insertArea(a *area) {
	l := s.lazy
	l.areas, l.last = slices.Insert(l.areas, l.search(a.start), a), nil
	if a.obj != nil {
		a.obj.use(s, a)
	}
}

// removeArea forgets an area whose pages are gone.
func (s *Space) removeArea(a *area) {
	l := s.lazy
	i := slices.Index(l.areas, a)
	l.areas, l.last = slices.Delete(l.areas, i, i+1), nil
	if a.obj != nil {
		a.obj.unuse(a)
	}
}

// search is the number of areas that end at or before va.
func (l *lazySpace) search(va VA) int {
	i, _ := slices.BinarySearchFunc(l.areas, va, func(a *area, va VA) int {
		if a.end <= va {
			return -1
		}
		return 1
	})
	return i
}

// at is the area around va, or nil.
func (l *lazySpace) at(va VA) *area {
	if a := l.last; a != nil && a.start <= va && va < a.end {
		return a
	}
	if a := l.first(va, va+1); a != nil {
		l.last = a
		return a
	}
	return nil
}

// first is the first area that reaches into [va, end), or nil.
func (l *lazySpace) first(va, end VA) *area {
	if i := l.search(va); i < len(l.areas) && l.areas[i].start < end {
		return l.areas[i]
	}
	return nil
}

// unit is the first byte of the page around va.
func (a *area) unit(va VA) VA { return va &^ (1<<a.shift - 1) }

// index is the place of the page around va in the page tables.
func (s *Space) index(a *area, va VA) uint64 { return uint64(a.unit(va)) >> s.m.shift }

// page is the number of va's page in the object.
func (s *Space) objectPage(a *area, va VA) uint64 { return (a.off + uint64(va-a.start)) >> s.m.shift }

// split makes va, which is the beginning of a page, the border of two areas when it lies inside
// one.
func (s *Space) split(va VA) {
	a := s.lazy.at(va)
	if a == nil || a.start == va {
		return
	}
	b := *a
	b.start, b.off = va, a.off+uint64(va-a.start)
	a.end = va
	s.insertArea(&b)
}

// wholeUnits checks that neither end of [va, end) lies inside a huge page: EINVAL.
func (s *Space) wholeUnits(va, end VA) error {
	for _, at := range [...]VA{va, end} {
		if a := s.lazy.at(at); a != nil && a.unit(at) != at {
			return errorf(syscall.EINVAL, "%#x is inside a page of %d B", uint64(at), uint64(1)<<a.shift)
		}
	}
	return nil
}

// within calls f for the part of each area that lies in [va, end), in the order of addresses, and
// reports whether all of it is mapped lazily. f may put another area in the place of its own.
func (s *Space) within(va, end VA, f func(a *area, from, to VA)) (whole bool) {
	whole = true
	for va < end {
		a := s.lazy.first(va, end)
		if a == nil {
			return false
		}
		if a.start > va {
			whole, va = false, a.start
		}
		to := min(end, a.end)
		f(a, va, to)
		va = to
	}
	return whole
}

// join makes one area of those that meet at va when they differ in nothing.
func (s *Space) join(va VA) {
	b := s.lazy.at(va)
	if b == nil || b.start != va {
		return
	}
	a := s.lazy.at(va - 1)
	if a == nil || a.prot != b.prot || a.shift != b.shift || a.private != b.private || a.obj != b.obj ||
		a.obj != nil && a.off+uint64(a.end-a.start) != b.off {
		return
	}
	s.removeArea(b)
	a.end = b.end
}
