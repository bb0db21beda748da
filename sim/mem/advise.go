package mem

import "syscall"

// What programs tell the kernel of memory (madvise), and ask about it (mincore). What was mapped at
// once is as if it were locked: it stays.

// Discard is MADV_DONTNEED: the pages of [va, va+n) are given up, and the next touch of private
// memory finds zeroes, or the object's page. ENOMEM when a part is not mapped, though the rest is
// done; EINVAL for what was mapped at once.
func (s *Space) Discard(va VA, n uint64) error {
	return s.advise("discard", va, n, func(a *area, from, to VA) error {
		s.zap(a, from, to)
		return nil
	})
}

// PageOut is MADV_PAGEOUT: the pages are reclaimed, but for those that are pinned or that others
// map too, and as far as swap has room. Errors are those of Discard.
func (s *Space) PageOut(va VA, n uint64) error {
	return s.advise("page out", va, n, func(a *area, from, to VA) error {
		last := uint64(to-1) >> s.m.shift
		for i := uint64(from) >> s.m.shift; i <= last; i++ {
			at, e, ok := s.lazy.pt.next(i, last)
			if !ok {
				return nil
			}
			if f := s.pageOf(e); f != nil && f.listed && len(f.maps) == 1 {
				s.m.evict(f)
			}
			i = at
		}
		return nil
	})
}

// pageOf is the frame that an entry names, or nil.
func (s *Space) pageOf(e pte) *frame {
	if !e.present() {
		return nil
	}
	return s.m.frameOf(e)
}

// Populate is MADV_POPULATE_READ and, with write, MADV_POPULATE_WRITE: page after page is touched
// until one fails. EINVAL where the rights do not allow it, EFAULT behind the end of an object,
// ENOMEM for holes and for want of memory.
func (s *Space) Populate(va VA, n uint64, write bool) error {
	prot, how := Read, needRead
	if write {
		prot, how = Write, needWrite
	}
	end, err := s.lazyRange("populate", va, n)
	for at := va; at < end && err == nil; {
		at, err = s.populateUnit(at, prot, how)
	}
	return err
}

// populateUnit touches the page at an address, and returns that of the next.
func (s *Space) populateUnit(at VA, prot Prot, how need) (next VA, err error) {
	if e := s.entry(at); e != nil && e.prot()&prot != 0 {
		return at + VA(s.m.PageSize()), nil
	}
	if !s.Lazy(at) {
		return 0, errorf(syscall.ENOMEM, "populate: %#x is not mapped", uint64(at))
	}
	a := s.lazy.at(at)
	if a.prot&prot == 0 {
		return 0, errorf(syscall.EINVAL, "populate: %#x has not the rights", uint64(at))
	}
	_, err = s.fault(a, at, how)
	return a.unit(at) + 1<<a.shift, err
}

// advise calls f for the lazy mappings in a range, until one fails.
func (s *Space) advise(what string, va VA, n uint64, f func(a *area, from, to VA) error) error {
	end, err := s.lazyRange(what, va, n)
	if err != nil || n == 0 {
		return err
	}
	eager := false
	s.eachEager(va, end, func(*mapping, uint64) { eager = true })
	if eager {
		return errorf(syscall.EINVAL, "%s %d B at %#x: they were not mapped lazily", what, n, uint64(va))
	}
	whole := s.lazy != nil && s.within(va, end, func(a *area, from, to VA) {
		if err == nil {
			err = f(a, from, to)
		}
	})
	if err == nil && !whole {
		err = errorf(syscall.ENOMEM, "%s %d B at %#x: a part is not mapped", what, n, uint64(va))
	}
	return err
}

// Resident is mincore: for each page whether a touch of it would find it in memory. EINVAL for an
// address that is no page's, ENOMEM when a part is not mapped.
func (s *Space) Resident(va VA, n uint64) ([]bool, error) {
	ps := s.m.PageSize()
	if uint64(va)&(ps-1) != 0 || uint64(va)+n < uint64(va) {
		return nil, errorf(syscall.EINVAL, "residency of %d B at %#x", n, uint64(va))
	}
	if !s.Mapped(va, n, 0) && !s.mappedSomehow(va, n) {
		return nil, errorf(syscall.ENOMEM, "residency of %d B at %#x: a part is not mapped", n, uint64(va))
	}
	out := make([]bool, s.m.pages(n))
	for i := range out {
		at := va + VA(uint64(i)*ps)
		if s.entry(at) != nil {
			out[i] = true
			continue
		}
		a := s.lazy.at(at)
		e := s.lazy.pt.get(s.index(a, at))
		out[i] = e.present() || e == 0 && a.obj != nil && a.obj.cached(s.objectPage(a, at))
	}
	return out, nil
}

// RSS is how many bytes of the process are in memory (VmRSS), the page of zeroes apart.
func (s *Space) RSS() uint64 {
	pages := uint64(0)
	for _, v := range s.maps {
		pages += uint64(v.left)
	}
	if s.lazy != nil {
		pages += s.lazy.rss
	}
	return pages << s.m.shift
}

// mappedSomehow reports whether there are mappings all over a range, also behind the end of an
// object.
func (s *Space) mappedSomehow(va VA, n uint64) bool {
	for end := va + VA(n); va < end; {
		if s.entry(va) != nil {
			va += VA(s.m.PageSize())
		} else if s.lazy == nil || s.lazy.at(va) == nil {
			return false
		} else {
			va = s.lazy.at(va).end
		}
	}
	return true
}
