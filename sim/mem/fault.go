package mem

import "syscall"

// Faults count the page faults of a process, of its threads and of devices on its behalf.
type Faults struct {
	Minor uint64 // the page was made, or was in memory
	Major uint64 // it was read from swap or from a file
	COW   uint64 // pages that were copied because they were shared, each counted as a fault too
}

// Faults counts the page faults of lazy mappings.
func (s *Space) Faults() Faults {
	if s.lazy == nil {
		return Faults{}
	}
	return s.lazy.faults
}

// need says what a page must be when it is there.
type need uint8

const (
	needRead  need = iota
	needWrite      // for writing: no page that others share, and not the page of zeroes
	needOwn        // for pins: no copy is ever made of it, whoever writes
)

// fault puts a page behind va, which lies in a. EFAULT behind the end of the object, ENOMEM. The
// rights of the area are the caller's to check.
func (s *Space) fault(a *area, va VA, n need) (*frame, error) {
	if a.obj != nil && s.objectPage(a, va) >= s.m.pages(a.obj.size) {
		return nil, errorf(syscall.EFAULT, "page %#x is behind the end of an object of %d B", uint64(a.unit(va)), a.obj.size)
	}
	e := s.lazy.pt.get(s.index(a, va))
	switch {
	case e.present():
		return s.present(a, va, s.m.frameOf(e), n, e)
	case e.swapped():
		return s.swapIn(a, va, e)
	case a.obj == nil:
		return s.fresh(a, va, n)
	}
	return s.show(a, va, n)
}

// present makes of a page that is there what n asks for.
func (s *Space) present(a *area, va VA, f *frame, n need, e pte) (*frame, error) {
	own := f.obj == nil && f != s.m.lazy.zero && len(f.maps) == 1
	switch {
	case n == needRead || e.writable() || n == needOwn && (own || !a.private):
		s.m.lazy.use(f)
		return f, nil
	case own || !a.private:
		s.lazy.faults.Minor++
		s.lazy.pt.set(s.index(a, va), e|pte(Write))
		s.m.lazy.use(f)
		return f, nil
	}
	s.lazy.faults.Minor++
	return s.breakCOW(a, va, f)
}

// breakCOW replaces a shared page by a copy.
func (s *Space) breakCOW(a *area, va VA, f *frame) (*frame, error) {
	s.m.hold(f)
	defer s.m.letGo(f)
	c, err := s.m.newFrame(f.n)
	if err != nil {
		return nil, err
	}
	s.invalidate(a.unit(va), f.n<<s.m.shift)
	if f != s.m.lazy.zero {
		s.m.fillFrame(c, s.m.content(f))
	}
	s.lazy.faults.COW++
	s.leave(a, va, f, 0)
	s.enter(a, va, c, a.prot&Write != 0)
	return c, nil
}

// swapIn brings back a page of private memory. It is nobody else's, even where the slot was shared.
func (s *Space) swapIn(a *area, va VA, e pte) (*frame, error) {
	f, err := s.m.swapIn(e.page())
	if err != nil {
		return nil, err
	}
	s.lazy.faults.Major++
	s.enter(a, va, f, a.prot&Write != 0)
	return f, nil
}

// fresh is the first touch of anonymous memory.
func (s *Space) fresh(a *area, va VA, n need) (f *frame, err error) {
	pages := uint64(1) << (a.shift - s.m.shift)
	shared := n == needRead && pages == 1
	if shared {
		f, err = s.m.zeroFrame()
	} else {
		f, err = s.m.newFrame(pages)
	}
	if err != nil {
		return nil, err
	}
	s.lazy.faults.Minor++
	s.enter(a, va, f, !shared && a.prot&Write != 0)
	return f, nil
}

// show is the first touch of an object's page.
func (s *Space) show(a *area, va VA, n need) (*frame, error) {
	f, major, err := a.obj.load(s.objectPage(a, va))
	if err != nil {
		return nil, err
	}
	if major {
		s.lazy.faults.Major++
	} else {
		s.lazy.faults.Minor++
	}
	if !a.private || n == needRead {
		s.enter(a, va, f, !a.private && a.prot&Write != 0)
		return f, nil
	}
	s.m.hold(f)
	defer s.m.letGo(f)
	c, err := s.m.newFrame(1)
	if err != nil {
		return nil, err
	}
	s.m.fillFrame(c, s.m.content(f))
	s.lazy.faults.COW++
	s.enter(a, va, c, a.prot&Write != 0)
	return c, nil
}

// touch finds the bytes at va for whom prot allows, where a core or a pin reaches them. EFAULT.
func (s *Space) touch(va VA, prot Prot, n need) (PA, *frame, error) {
	if e := s.entry(va); e != nil && e.prot()&prot == prot {
		return PA(e.page()<<s.m.shift) + PA(va)&PA(s.m.PageSize()-1), nil, nil
	}
	a := s.lazy.at(va)
	if a == nil || a.prot&prot != prot {
		return 0, nil, errorf(syscall.EFAULT, "page %#x is not mapped with the rights", uint64(va)&^(s.m.PageSize()-1))
	}
	f, err := s.fault(a, va, n)
	if err != nil {
		return 0, nil, err
	}
	return PA(f.pg<<s.m.shift) + PA(va-a.unit(va)), f, nil
}

// populate touches every page of an area.
func (s *Space) populate(a *area) error {
	n := needRead
	if a.prot&Write != 0 {
		n = needWrite
	}
	for va := a.start; va < a.end; va += 1 << a.shift {
		if a.obj != nil && s.objectPage(a, va) >= s.m.pages(a.obj.size) {
			return nil
		}
		if _, err := s.fault(a, va, n); err != nil {
			return err
		}
	}
	return nil
}
