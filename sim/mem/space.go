package mem

import (
	"cmp"
	"math/bits"
	"slices"
	"syscall"
)

// Prot are the rights of a mapping.
type Prot uint8

// Rights.
const (
	Read Prot = 1 << iota
	Write
)

// pte is a page of a mapping: page number, rights, and whether it is present.
type pte uint64

const (
	ptePresent = 1 << 7
	pteShift   = 8
)

func makePTE(pg uint64, prot Prot) pte { return pte(pg<<pteShift) | ptePresent | pte(prot) }

func (e pte) page() uint64  { return uint64(e) >> pteShift }
func (e pte) prot() Prot    { return Prot(e) &^ ptePresent }
func (e pte) present() bool { return e&ptePresent != 0 }

// mapping is what one Map made. Pages of it may be gone.
type mapping struct {
	start VA
	pt    []pte
	left  int   // present pages
	shift uint8 // log2 of the size of huge pages; 0: the host's own
}

// Space is the address space of a process: its mappings and page tables. Between what
// two calls of Map made at least one page is never mapped, and no address is used twice but
// by MapAt, so that an overrun or a stale pointer hits unmapped memory.
type Space struct {
	m    *Memory
	maps []*mapping // by address
	last *mapping   // of the last look-up
	next VA
	obs  []*observer
	x    *foreign   // of a process outside; nil for a simulated one
	lazy *lazySpace // what is mapped lazily; nil while nothing ever was
	// Changes counts unmappings and changes of rights: what was looked up
	// about a mapped page is valid until the count changes.
	Changes uint64
	// Pinned counts pins of pages, as the kernel counts pinned_vm.
	Pinned uint64
}

// observer is a registered interval notifier.
type observer struct {
	start, end VA
	f          Notifier
}

// Notifier is called before the pages of a range change (mmu_interval_notifier).
// The range is clipped to the interval that was registered.
type Notifier func(start VA, n uint64)

const (
	firstVA = VA(0x7f00_0000_0000)
	lastVA  = VA(0x7fff_ffff_f000)
)

// NewSpace makes an empty address space over m.
func NewSpace(m *Memory) *Space { return &Space{m: m, next: firstVA} }

// Memory is the physical memory under the space.
func (s *Space) Memory() *Memory { return s.m }

// Map maps n bytes of anonymous zeroed memory (backed at once, contiguous where it
// can be) and returns its page-aligned address. EINVAL for n of 0; ENOMEM when
// memory or addresses are used up.
func (s *Space) Map(n uint64, prot Prot) (VA, error) {
	if n == 0 || s.x != nil {
		return 0, errorf(syscall.EINVAL, "map %d B (foreign: %v)", n, s.x != nil)
	}
	pages := s.m.pages(n)
	s.m.makeFree(pages)
	if pages > uint64(lastVA-s.next)>>s.m.shift || pages > s.m.size>>s.m.shift-s.m.used {
		return 0, errorf(syscall.ENOMEM, "map %d B", n)
	}
	v := &mapping{start: s.next, pt: make([]pte, 0, pages), left: int(pages)}
	for got := uint64(0); got < pages; {
		k := pages - got
		start, ok := s.m.take(k, 1)
		for !ok && k > 1 {
			k = (k + 1) / 2
			start, ok = s.m.take(k, 1)
		}
		if !ok {
			for _, e := range v.pt {
				s.m.put(e.page())
			}
			return 0, errorf(syscall.ENOMEM, "map %d B", n)
		}
		for i := range k {
			v.pt = append(v.pt, makePTE(start+i, prot))
		}
		got += k
	}
	s.maps = append(s.maps, v)
	s.next = v.start + VA((pages+1)<<s.m.shift)
	return v.start, nil
}

// MapPages is Map of physical pages of size bytes: the memory's own, or a larger power of two (huge
// pages, of which whole ones are mapped). Their addresses, virtual and physical, are multiples of
// the size, and no page is contiguous with the one before it: so the memory of a host looks that
// has run for a while.
func (s *Space) MapPages(n, size uint64, prot Prot) (VA, error) {
	if n == 0 || s.x != nil || bits.OnesCount64(size) != 1 || size < s.m.PageSize() {
		return 0, errorf(syscall.EINVAL, "map %d B in pages of %d (foreign: %v)", n, size, s.x != nil)
	}
	start := (s.next + VA(size-1)) &^ VA(size-1)
	count, per := (n-1)/size+1, size>>s.m.shift
	if start > lastVA || count > uint64(lastVA-start)/size || count > s.m.size/size {
		return 0, errorf(syscall.ENOMEM, "map %d B in pages of %d", n, size)
	}
	v := &mapping{start: start, pt: make([]pte, 0, count*per), left: int(count * per)}
	if per > 1 {
		v.shift = uint8(bits.TrailingZeros64(size))
	}
	for count > 0 {
		k := count
		first, ok := s.m.take(k*per, per)
		for !ok && k > 1 {
			k = (k + 1) / 2
			first, ok = s.m.take(k*per, per)
		}
		if !ok {
			for _, e := range v.pt {
				s.m.put(e.page())
			}
			return 0, errorf(syscall.ENOMEM, "map %d B in pages of %d", n, size)
		}
		for page := first + k*per; page > first; { // the last one first
			page -= per
			for i := range per {
				v.pt = append(v.pt, makePTE(page+i, prot))
			}
		}
		count -= k
	}
	s.maps = append(s.maps, v)
	s.next = v.start + VA((uint64(len(v.pt))+1)<<s.m.shift)
	return v.start, nil
}

// find returns the mapping around va, or nil.
func (s *Space) find(va VA) *mapping {
	if v := s.last; v != nil && va >= v.start && uint64(va-v.start)>>s.m.shift < uint64(len(v.pt)) {
		return v
	}
	i, _ := slices.BinarySearchFunc(s.maps, va, func(v *mapping, va VA) int {
		if v.start <= va {
			return -1
		}
		return 1
	})
	if i == 0 {
		return nil
	}
	v := s.maps[i-1]
	if uint64(va-v.start)>>s.m.shift >= uint64(len(v.pt)) {
		return nil
	}
	s.last = v
	return v
}

// entry returns the page-table entry of va, or nil.
func (s *Space) entry(va VA) *pte {
	v := s.find(va)
	if v == nil {
		return nil
	}
	e := &v.pt[uint64(va-v.start)>>s.m.shift]
	if !e.present() {
		return nil
	}
	return e
}

// pageRange checks a range of whole pages, all mapped: EINVAL otherwise.
func (s *Space) pageRange(what string, va VA, n uint64) (pages uint64, err error) {
	ps := s.m.PageSize()
	pages = s.m.pages(n)
	if n == 0 || uint64(va)&(ps-1) != 0 || pages > uint64(lastVA)>>s.m.shift {
		return 0, errorf(syscall.EINVAL, "%s %d B at %#x", what, n, uint64(va))
	}
	for i := range pages {
		if s.entry(va+VA(i*ps)) == nil {
			return 0, errorf(syscall.EINVAL, "%s %d B at %#x: page %d is not mapped", what, n, uint64(va), i)
		}
	}
	return pages, nil
}

// Unmap removes whole pages; EINVAL, and nothing is done, for an unaligned address
// or when a page is not mapped, unless a part of the range is mapped lazily. Interval
// notifiers are called first. Pinned pages live on until they are unpinned, as on Linux.
func (s *Space) Unmap(va VA, n uint64) error {
	pages, err := s.pageRange("unmap", va, n)
	if err != nil && s.asLinux(va, n) {
		return s.unmapLazily(va, n)
	}
	if err != nil {
		return err
	}
	s.invalidate(va, pages<<s.m.shift)
	for i := range pages {
		at := va + VA(i<<s.m.shift)
		e := s.entry(at)
		if e == nil {
			continue
		}
		v, pg := s.find(at), e.page()
		*e = 0
		s.m.put(pg)
		if v.left--; v.left == 0 {
			s.drop(v)
		}
	}
	return nil
}

// MapAt maps fresh pages where none are: mmap with MAP_FIXED_NOREPLACE. EINVAL for an address
// that no mapping ever had, EEXIST when a page is mapped, ENOMEM.
func (s *Space) MapAt(va VA, n uint64, prot Prot) error {
	pages := s.m.pages(n)
	if n == 0 || s.x != nil || uint64(va)&(s.m.PageSize()-1) != 0 || va < firstVA || va >= s.next || pages > uint64(s.next-va)>>s.m.shift {
		return errorf(syscall.EINVAL, "map %d B at %#x", n, uint64(va))
	}
	for i := range pages {
		if at := va + VA(i<<s.m.shift); s.entry(at) != nil || s.reachesLazy(at, 1) {
			return errorf(syscall.EEXIST, "map %d B at %#x: page %d is mapped", n, uint64(va), i)
		}
	}
	if s.m.makeFree(pages); pages > s.m.size>>s.m.shift-s.m.used {
		return errorf(syscall.ENOMEM, "map %d B at %#x", n, uint64(va))
	}
	for i := range pages {
		pg, _ := s.m.take(1, 1)
		s.put(va+VA(i<<s.m.shift), makePTE(pg, prot))
	}
	return nil
}

// put enters a page, in the mapping around its address or in a new one.
func (s *Space) put(va VA, e pte) {
	v := s.find(va)
	if v == nil {
		v = &mapping{start: va, pt: make([]pte, 1)}
		i, _ := slices.BinarySearchFunc(s.maps, va, func(v *mapping, va VA) int { return cmp.Compare(v.start, va) })
		s.maps, s.last = slices.Insert(s.maps, i, v), nil
	}
	v.pt[uint64(va-v.start)>>s.m.shift] = e
	v.left++
}

// drop forgets a mapping without pages.
func (s *Space) drop(v *mapping) {
	s.last = nil
	i, ok := slices.BinarySearchFunc(s.maps, v.start, func(v *mapping, va VA) int { return cmp.Compare(v.start, va) })
	if ok {
		s.maps = slices.Delete(s.maps, i, i+1)
	}
}

// Protect changes the rights of whole pages, with the rules of Unmap. Where a part of the
// range is mapped lazily a hole is ENOMEM, and what lies before it has changed.
func (s *Space) Protect(va VA, n uint64, prot Prot) error {
	pages, err := s.pageRange("protect", va, n)
	if err != nil && s.asLinux(va, n) {
		return s.protectLazily(va, n, prot)
	}
	if err != nil {
		return err
	}
	s.invalidate(va, pages<<s.m.shift)
	for i := range pages {
		if e := s.entry(va + VA(i<<s.m.shift)); e != nil {
			*e = makePTE(e.page(), prot)
		}
	}
	return nil
}

// Translate gives the physical address of va and how many bytes from there are
// contiguous with equal rights (at most to the end of the mapping); ok is false
// when unmapped. Where memory is mapped lazily the page is touched, for writing if it may
// be written.
func (s *Space) Translate(va VA) (pa PA, contiguous uint64, prot Prot, ok bool) {
	if pa, contiguous, prot, ok = s.translate(va); !ok && s.lazy != nil {
		return s.translateLazily(va)
	}
	return pa, contiguous, prot, ok
}

// translate is Translate of what was mapped at once.
func (s *Space) translate(va VA) (pa PA, contiguous uint64, prot Prot, ok bool) {
	v := s.find(va)
	if v == nil {
		return 0, 0, 0, false
	}
	i := uint64(va-v.start) >> s.m.shift
	e := v.pt[i]
	if !e.present() {
		return 0, 0, 0, false
	}
	off := uint64(va) & (s.m.PageSize() - 1)
	j := i + 1
	for j < uint64(len(v.pt)) && v.pt[j] == e+pte((j-i)<<pteShift) {
		j++
	}
	return PA(e.page()<<s.m.shift + off), (j-i)<<s.m.shift - off, e.prot(), true
}

// Notify registers f for [va, va+n); the returned function removes it.
func (s *Space) Notify(va VA, n uint64, f Notifier) (remove func()) {
	o := &observer{va, va + VA(n), f}
	s.obs = append(s.obs, o)
	s.watchForeign()
	return func() {
		if i := slices.Index(s.obs, o); i >= 0 {
			s.obs = slices.Delete(s.obs, i, i+1)
			s.watchForeign()
		}
	}
}

func (s *Space) watchForeign() {
	if s.x != nil {
		s.x.watch(s.obs)
	}
}

// invalidate calls the notifiers in the order of their registration.
func (s *Space) invalidate(va VA, n uint64) {
	s.Changes++
	if len(s.obs) == 0 {
		return
	}
	end := va + VA(n)
	for _, o := range slices.Clone(s.obs) {
		if o.start < end && va < o.end && slices.Contains(s.obs, o) {
			a, b := max(va, o.start), min(end, o.end)
			o.f(a, uint64(b-a))
		}
	}
}

// Release unmaps everything, as the end of a process does.
func (s *Space) Release() {
	for _, v := range s.maps {
		s.invalidate(v.start, uint64(len(v.pt))<<s.m.shift)
	}
	for _, v := range s.maps {
		for i, e := range v.pt {
			if e.present() {
				v.pt[i] = 0
				s.m.put(e.page())
			}
		}
	}
	s.maps, s.last = nil, nil
	if s.lazy != nil {
		s.releaseLazily()
	}
	if s.x != nil {
		s.x.release(s.m)
	}
}
