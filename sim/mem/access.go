package mem

import "syscall"

// Pin holds the pages of [va, va+n) so that Unmap does not free them, and returns
// the physical pages, page-aligned. EFAULT, and nothing is pinned, when a page is
// missing or lacks a right of prot; EINVAL for n of 0 or a range that wraps
// (ib_umem_get).
func (s *Space) Pin(va VA, n uint64, prot Prot) ([]PA, error) {
	if n == 0 || uint64(va)+n < uint64(va) {
		return nil, errorf(syscall.EINVAL, "pin %d B at %#x", n, uint64(va))
	}
	if s.x != nil {
		pages, err := s.x.pin(s.m, va, n, prot)
		s.Pinned += uint64(len(pages))
		return pages, err
	}
	first, last := uint64(va)>>s.m.shift, (uint64(va)+n-1)>>s.m.shift
	for pg := first; pg <= last; pg++ {
		e := s.entry(VA(pg << s.m.shift))
		if e == nil || e.prot()&prot != prot {
			if s.lazy != nil {
				return s.pinLazily(va, n, prot)
			}
			return nil, errorf(syscall.EFAULT, "pin %d B at %#x: page %#x", n, uint64(va), pg<<s.m.shift)
		}
	}
	pages := make([]PA, 0, last-first+1)
	for pg := first; pg <= last; pg++ {
		frame := s.entry(VA(pg << s.m.shift)).page()
		s.m.get(frame)
		pages = append(pages, PA(frame<<s.m.shift))
	}
	s.Pinned += uint64(len(pages))
	return pages, nil
}

// Unpin releases what Pin returned. It works after the space was released.
func (s *Space) Unpin(pages []PA) {
	if s.x != nil {
		s.Pinned -= uint64(len(pages))
		s.x.unpin(s.m, pages)
		return
	}
	for _, pa := range pages {
		s.m.put(uint64(pa) >> s.m.shift)
	}
	s.Pinned -= uint64(len(pages))
}

// Mapped reports whether all of [va, va+n) is mapped with the rights of prot. It touches nothing.
func (s *Space) Mapped(va VA, n uint64, prot Prot) bool {
	if n == 0 {
		return true
	}
	if uint64(va)+n-1 < uint64(va) {
		return false
	}
	if s.x != nil {
		return s.x.probe(s.m, uint64(va)>>s.m.shift, (uint64(va)+n-1)>>s.m.shift, prot) == nil
	}
	return s.mappedAtOnce(va, n, prot) || s.lazy != nil && s.mappedLazily(va, n, prot)
}

// mappedAtOnce is Mapped of pages that were there from the beginning.
func (s *Space) mappedAtOnce(va VA, n uint64, prot Prot) bool {
	if n == 0 {
		return true
	}
	if uint64(va)+n-1 < uint64(va) {
		return false
	}
	for pg, last := uint64(va)>>s.m.shift, (uint64(va)+n-1)>>s.m.shift; pg <= last; pg++ {
		if e := s.entry(VA(pg << s.m.shift)); e == nil || e.prot()&prot != prot {
			return false
		}
	}
	return true
}

// Window is [va, va+n) as a slice into the memory itself, or nil when it is not
// mapped with prot or not contiguous. It stays valid until the range is unmapped
// or protected: who keeps it registers a Notifier.
func (s *Space) Window(va VA, n int, prot Prot) []byte {
	pa, contiguous, p, ok := s.translate(va)
	if !ok && s.lazy != nil {
		return s.windowLazily(va, n, prot)
	}
	if !ok || n < 0 || contiguous < uint64(n) || p&prot != prot {
		return nil
	}
	return s.m.Window(pa, n)
}

// ReadAt copies through the page tables; EFAULT, with p untouched, when a page is
// unmapped or not readable. ENOMEM: a page that is touched finds no memory; p may then hold a part.
func (s *Space) ReadAt(p []byte, va VA) error {
	if s.x != nil {
		return s.x.f.ReadAt(va, p)
	}
	if !s.mappedAtOnce(va, uint64(len(p)), Read) {
		if s.lazy != nil {
			return s.access("read", p, va, Read)
		}
		return errorf(syscall.EFAULT, "read %d B at %#x", len(p), uint64(va))
	}
	s.each(p, va, func(pa PA, b []byte) { s.m.Read(pa, b) })
	return nil
}

// WriteAt copies through the page tables; EFAULT, with nothing written, when a
// page is unmapped or not writable. ENOMEM as in ReadAt.
func (s *Space) WriteAt(p []byte, va VA) error {
	if s.x != nil {
		return s.x.f.WriteAt(va, p)
	}
	if !s.mappedAtOnce(va, uint64(len(p)), Write) {
		if s.lazy != nil {
			return s.access("write", p, va, Write)
		}
		return errorf(syscall.EFAULT, "write %d B at %#x", len(p), uint64(va))
	}
	s.each(p, va, func(pa PA, b []byte) { s.m.Write(pa, b) })
	return nil
}

// each calls f for the part of p in each page of a mapped range.
func (s *Space) each(p []byte, va VA, f func(pa PA, b []byte)) {
	ps := s.m.PageSize()
	for len(p) > 0 {
		off := uint64(va) & (ps - 1)
		n := min(uint64(len(p)), ps-off)
		f(PA(s.entry(va).page()<<s.m.shift+off), p[:n])
		p, va = p[n:], va+VA(n)
	}
}
