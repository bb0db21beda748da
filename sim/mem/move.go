package mem

import "syscall"

// Move is mremap without a change of size: the pages of [va, va+n) get the addresses from to on,
// where whatever was mapped is unmapped (MREMAP_FIXED), or with to of 0 addresses that nothing had.
// The pages stay where they are in physical memory. EFAULT: the range is not part of one mapping,
// or was not mapped lazily; EINVAL: addresses that are no page's, n of 0, or ranges that overlap;
// ENOMEM: no addresses.
func (s *Space) Move(va VA, n uint64, to VA) (VA, error) {
	end, err := s.lazyRange("move", va, n)
	if err != nil {
		return 0, err
	}
	n = uint64(end - va)
	if n == 0 || to != 0 && to < end && va < to+VA(n) {
		return 0, errorf(syscall.EINVAL, "move %d B from %#x to %#x", n, uint64(va), uint64(to))
	}
	if s.lazy == nil || s.lazy.at(va) == nil || s.lazy.at(va).end < end {
		return 0, errorf(syscall.EFAULT, "move %d B at %#x: they are not part of one lazy mapping", n, uint64(va))
	}
	old := s.lazy.at(va)
	b, err := s.newArea(n, MapOptions{Prot: old.prot, PageSize: 1 << old.shift, At: to})
	if err != nil {
		return 0, err
	}
	if to != 0 {
		if err := s.makeRoom(b, false); err != nil {
			return 0, err
		}
	}
	s.split(va)
	s.split(end)
	a := s.lazy.at(va)
	b.obj, b.off, b.private = a.obj, a.off, a.private
	s.insertArea(b)
	s.movePages(a, b)
	s.removeArea(a)
	return b.start, nil
}

// movePages gives the entries of a to b, which is as long, after the notifiers were called.
func (s *Space) movePages(a, b *area) {
	first, last := uint64(a.start)>>s.m.shift, uint64(a.end-1)>>s.m.shift
	if s.lazy.pt.any(first, last, ptePresent) {
		s.invalidate(a.start, uint64(a.end-a.start))
	}
	for i := first; i <= last; i++ {
		at, e, ok := s.lazy.pt.next(i, last)
		if !ok {
			return
		}
		from := VA(at << s.m.shift)
		to := b.start + (from - a.start)
		s.lazy.pt.set(at, 0)
		s.lazy.pt.set(uint64(to)>>s.m.shift, e)
		if f := s.pageOf(e); f != nil {
			f.renamed(mapRef{s, from}, mapRef{s, to})
		}
		i = at
	}
}

// renamed puts one entry's name in the place of another.
func (f *frame) renamed(old, name mapRef) {
	for i, r := range f.maps {
		if r == old {
			f.maps[i] = name
			return
		}
	}
}
