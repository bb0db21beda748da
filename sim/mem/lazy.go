package mem

import (
	"slices"
	"syscall"
)

// What the calls of access.go and space.go do where pages are mapped lazily.

// mappedLazily is Mapped: it tells rights, and touches nothing.
func (s *Space) mappedLazily(va VA, n uint64, prot Prot) bool {
	for last := va + VA(n-1); ; {
		next := VA(0)
		if a := s.lazy.at(va); a != nil && a.prot&prot == prot {
			if next = a.end; a.obj != nil {
				next = min(next, a.start+VA(max(s.m.pages(a.obj.size)<<s.m.shift, a.off)-a.off))
			}
		} else if e := s.entry(va); e != nil && e.prot()&prot == prot {
			next = (va | VA(s.m.PageSize()-1)) + 1
		}
		if next <= va {
			return false
		}
		if va = next; va > last {
			return true
		}
	}
}

// access is ReadAt and WriteAt. A page may be gone again when the next one comes.
func (s *Space) access(what string, p []byte, va VA, prot Prot) error {
	if len(p) == 0 {
		return nil
	}
	if uint64(va)+uint64(len(p)) < uint64(va) || !s.mappedLazily(va, uint64(len(p)), prot) {
		return errorf(syscall.EFAULT, "%s %d B at %#x", what, len(p), uint64(va))
	}
	n := needRead
	if prot&Write != 0 {
		n = needWrite
	}
	for len(p) > 0 {
		pa, _, err := s.touch(va, prot, n)
		if err != nil {
			return err
		}
		k := min(len(p), s.m.left(pa))
		if prot&Write != 0 {
			s.m.Write(pa, p[:k])
		} else {
			s.m.Read(pa, p[:k])
		}
		p, va = p[k:], va+VA(k)
	}
	return nil
}

// pinLazily is Pin. What is pinned is never copied later: a page that is shared by copy-on-write is
// copied now.
func (s *Space) pinLazily(va VA, n uint64, prot Prot) (pages []PA, err error) {
	if !s.mappedLazily(va, n, prot) {
		return nil, errorf(syscall.EFAULT, "pin %d B at %#x", n, uint64(va))
	}
	need, ps := needOwn, VA(s.m.PageSize())
	if prot&Write != 0 {
		need = needWrite
	}
	for at, last := va&^(ps-1), va+VA(n-1); at <= last; at += ps {
		pa, _, err := s.touch(at, prot, need)
		if err != nil {
			for _, pa := range pages {
				s.m.put(uint64(pa) >> s.m.shift)
			}
			return nil, err
		}
		s.m.get(uint64(pa) >> s.m.shift)
		pages = append(pages, pa)
	}
	s.Pinned += uint64(len(pages))
	return pages, nil
}

// windowLazily is Window.
func (s *Space) windowLazily(va VA, n int, prot Prot) []byte {
	if n <= 0 || uint64(va)+uint64(n) < uint64(va) || !s.mappedLazily(va, uint64(n), prot) {
		return nil
	}
	a := s.lazy.at(va)
	if a == nil || a.unit(va) != a.unit(va+VA(n-1)) {
		return nil
	}
	need := needRead
	if prot&Write != 0 {
		need = needWrite
	}
	pa, _, err := s.touch(va, prot, need)
	if err != nil {
		return nil
	}
	return s.m.Window(pa, n)
}

// translateLazily is Translate. The page is touched, for writing where it may be written.
func (s *Space) translateLazily(va VA) (pa PA, contiguous uint64, prot Prot, ok bool) {
	a := s.lazy.at(va)
	if a == nil {
		return 0, 0, 0, false
	}
	need := needRead
	if a.prot&Write != 0 {
		need = needWrite
	}
	pa, _, err := s.touch(va, 0, need)
	if err != nil {
		return 0, 0, 0, false
	}
	return pa, uint64(a.unit(va) + 1<<a.shift - va), a.prot, true
}

// Lazy reports whether the page at va is mapped lazily.
func (s *Space) Lazy(va VA) bool { return s.lazy != nil && s.lazy.at(va) != nil }

// reachesLazy reports whether a part of [va, va+n) is mapped lazily.
func (s *Space) reachesLazy(va VA, n uint64) bool {
	end := uint64(va) + max(n, 1)
	return s.lazy != nil && end > uint64(va) && s.lazy.first(va, VA(end)) != nil
}

// asLinux reports whether holes in [va, va+n) are as Linux has it: where a part is mapped lazily,
// or could have been. An error elsewhere tells of a stale address.
func (s *Space) asLinux(va VA, n uint64) bool {
	return s.reachesLazy(va, n) || s.lazy != nil && va < firstVA && n <= uint64(firstVA-va)
}

// eachEager calls f for every page in [va, end) that was mapped at once, in the order of addresses.
// f may unmap its page.
func (s *Space) eachEager(va, end VA, f func(v *mapping, i uint64)) {
	k, _ := slices.BinarySearchFunc(s.maps, va, func(v *mapping, va VA) int {
		if v.start+VA(uint64(len(v.pt))<<s.m.shift) <= va {
			return -1
		}
		return 1
	})
	for k < len(s.maps) && s.maps[k].start < end {
		v, i := s.maps[k], uint64(0)
		if va > v.start {
			i = uint64(va-v.start) >> s.m.shift
		}
		for ; i < uint64(len(v.pt)) && v.start+VA(i<<s.m.shift) < end; i++ {
			if v.pt[i].present() {
				f(v, i)
			}
		}
		if k < len(s.maps) && s.maps[k] == v {
			k++
		}
	}
}

// lazyRange checks the range of a call: EINVAL for an address that is no page's, and for a border
// inside a huge page.
func (s *Space) lazyRange(what string, va VA, n uint64) (end VA, err error) {
	ps := s.m.PageSize()
	end = va + VA(s.m.pages(n)<<s.m.shift)
	if uint64(va)&(ps-1) != 0 || end < va || uint64(end-va) < n {
		return 0, errorf(syscall.EINVAL, "%s %d B at %#x", what, n, uint64(va))
	}
	if s.lazy == nil {
		return end, nil
	}
	return end, s.wholeUnits(va, end)
}

// unmapLazily is Unmap of a range in which something is mapped lazily: holes are no error there, as
// on Linux.
func (s *Space) unmapLazily(va VA, n uint64) error {
	end, err := s.lazyRange("unmap", va, n)
	if err != nil {
		return err
	}
	if n == 0 {
		return errorf(syscall.EINVAL, "unmap 0 bytes at %#x", uint64(va))
	}
	s.unmapAny(va, end)
	return nil
}

// unmapAny unmaps what there is in [va, end), whose ends are borders of pages. The notifiers are
// called once, for the whole range, when a page of it is there.
func (s *Space) unmapAny(va, end VA) {
	if s.anyPresent(va, end) {
		s.invalidate(va, uint64(end-va))
	}
	s.eachEager(va, end, func(v *mapping, i uint64) {
		pg := v.pt[i].page()
		v.pt[i] = 0
		s.m.put(pg)
		if v.left--; v.left == 0 {
			s.drop(v)
		}
	})
	if s.lazy == nil {
		return
	}
	s.split(va)
	s.split(end)
	s.within(va, end, func(a *area, _, _ VA) {
		s.clear(a, a.start, a.end)
		s.removeArea(a)
	})
}

// anyPresent reports whether a page of [va, end) is there.
func (s *Space) anyPresent(va, end VA) (found bool) {
	s.eachEager(va, end, func(*mapping, uint64) { found = true })
	return found || s.lazy != nil && s.lazy.pt.any(uint64(va)>>s.m.shift, uint64(end-1)>>s.m.shift, ptePresent)
}

// clear empties the entries of [from, to) in an area.
func (s *Space) clear(a *area, from, to VA) {
	last := uint64(to-1) >> s.m.shift
	for i := uint64(from) >> s.m.shift; ; {
		at, e, ok := s.lazy.pt.next(i, last)
		if !ok {
			return
		}
		va := VA(at << s.m.shift)
		if e.present() {
			s.leave(a, va, s.m.frameOf(e), 0)
		} else {
			s.lazy.pt.set(at, 0)
			s.m.lazy.swap.drop(e.page())
		}
		if i = at + 1; i > last {
			return
		}
	}
}

// zap is clear with the notifiers called before, when a page is there.
func (s *Space) zap(a *area, from, to VA) {
	if s.lazy.pt.any(uint64(from)>>s.m.shift, uint64(to-1)>>s.m.shift, ptePresent) {
		s.invalidate(from, uint64(to-from))
	}
	s.clear(a, from, to)
}

// protectLazily is Protect of a range in which something is mapped lazily. ENOMEM at the first
// hole: what lies before it has changed.
func (s *Space) protectLazily(va VA, n uint64, prot Prot) error {
	end, err := s.lazyRange("protect", va, n)
	if err != nil || n == 0 {
		return err
	}
	s.split(va)
	s.split(end)
	for at := va; at < end; {
		a := s.lazy.at(at)
		if a == nil {
			if s.entry(at) == nil {
				return errorf(syscall.ENOMEM, "protect %d B at %#x: %#x is not mapped", n, uint64(va), uint64(at))
			}
			s.invalidate(at, s.m.PageSize())
			e := s.entry(at)
			*e = makePTE(e.page(), prot)
			at += VA(s.m.PageSize())
			continue
		}
		at = a.end
		s.protectArea(a, prot&(Read|Write))
	}
	s.join(end)
	s.join(va)
	return nil
}

// protectArea changes the rights of an area and of the pages that are there. A right that comes is
// used with a fault.
func (s *Space) protectArea(a *area, prot Prot) {
	first, last := uint64(a.start)>>s.m.shift, uint64(a.end-1)>>s.m.shift
	if a.prot != prot && s.lazy.pt.any(first, last, ptePresent) {
		s.invalidate(a.start, uint64(a.end-a.start))
	}
	a.prot = prot
	if prot&Write != 0 {
		return
	}
	for i := first; i <= last; i++ {
		at, e, ok := s.lazy.pt.next(i, last)
		if !ok {
			return
		}
		if e.writable() {
			s.lazy.pt.set(at, e&^pte(Write))
		}
		i = at
	}
}

// releaseLazily is Release.
func (s *Space) releaseLazily() {
	for _, a := range slices.Clone(s.lazy.areas) {
		s.zap(a, a.start, a.end)
		s.removeArea(a)
	}
}
