package mem

import "syscall"

// Frame is a page of an address space as a device may use it. The zero value is absent.
type Frame struct {
	PA       PA // of the first byte of the page
	Present  bool
	Writable bool
	// Shift is log2 of the size of the page by which the process maps it, of which this is a part;
	// 0 where the host's own pages are mapped.
	Shift uint8
}

// RangeFlags say how Range looks for pages.
type RangeFlags uint8

// Flags of Range.
const (
	RangeWrite    RangeFlags = 1 << iota // the pages are needed for writing (HMM_PFN_REQ_WRITE)
	RangeSnapshot                        // only what is present counts: nothing is touched, and a hole is no error
)

// Range finds the pages from the one around va to the one that holds the last of n bytes, one Frame
// each, as hmm_range_fault does: out has room for them. What is mapped lazily is touched, with
// RangeWrite as by a write: then no page is one that others share by copy-on-write, or the page of
// zeroes. EFAULT: a page is not mapped, may not be read or lies behind the end of its object;
// EPERM: it is needed for writing and its mapping is read-only; ENOMEM.
//
// Until Range returns, no page of its answer is reclaimed. It may call notifiers, also those of the
// range.
func (s *Space) Range(va VA, n uint64, how RangeFlags, out []Frame) (err error) {
	if n == 0 || uint64(va)+n-1 < uint64(va) {
		return errorf(syscall.EINVAL, "range of %d B at %#x", n, uint64(va))
	}
	first, last := uint64(va)>>s.m.shift, (uint64(va)+n-1)>>s.m.shift
	if s.x != nil {
		return s.x.find(s.m, first, last, how, out)
	}
	var held []*frame
	for pg := first; pg <= last && err == nil; pg++ {
		f, at := &out[pg-first], VA(pg<<s.m.shift)
		if e := s.entry(at); e != nil || s.lazy == nil {
			err = s.atOnce(f, e, at, how)
		} else if how&RangeSnapshot != 0 {
			*f = s.snapshot(at)
		} else {
			var h *frame
			if h, err = s.rangePage(f, at, how); h != nil {
				s.m.hold(h)
				held = append(held, h)
			}
		}
	}
	for _, h := range held {
		s.m.letGo(h)
	}
	return err
}

// atOnce is the answer for a page that was mapped at once, or for none.
func (s *Space) atOnce(f *Frame, e *pte, at VA, how RangeFlags) error {
	*f = Frame{}
	if e != nil {
		*f = Frame{PA: PA(e.page() << s.m.shift), Present: e.prot()&Read != 0, Writable: e.prot()&Write != 0, Shift: s.find(at).shift}
	}
	switch {
	case how&RangeSnapshot != 0:
	case !f.Present:
		return errorf(syscall.EFAULT, "page %#x is not mapped", uint64(at))
	case how&RangeWrite != 0 && !f.Writable:
		return errorf(syscall.EPERM, "page %#x is read-only", uint64(at))
	}
	return nil
}

// snapshot is the answer for a page that may be mapped lazily, as it is.
func (s *Space) snapshot(at VA) Frame {
	a := s.lazy.at(at)
	if a == nil || a.prot&Read == 0 {
		return Frame{}
	}
	e := s.lazy.pt.get(s.index(a, at))
	if !e.present() {
		return Frame{}
	}
	return s.part(a, at, e)
}

// part is the page at an address of the one that e names.
func (s *Space) part(a *area, at VA, e pte) Frame {
	f := Frame{PA: PA(e.page()<<s.m.shift) + PA(at-a.unit(at)), Present: true, Writable: e.writable()}
	if a.shift != s.m.shift {
		f.Shift = uint8(a.shift)
	}
	return f
}

// rangePage touches a page that may be mapped lazily.
func (s *Space) rangePage(f *Frame, at VA, how RangeFlags) (*frame, error) {
	*f = Frame{}
	a, n := s.lazy.at(at), needRead
	switch {
	case a == nil || a.prot&Read == 0:
		return nil, errorf(syscall.EFAULT, "page %#x is not mapped, or may not be read", uint64(at))
	case how&RangeWrite != 0 && a.prot&Write == 0:
		return nil, errorf(syscall.EPERM, "page %#x is read-only", uint64(at))
	case how&RangeWrite != 0:
		n = needWrite
	}
	h, err := s.fault(a, at, n)
	if err == nil {
		*f = s.part(a, at, s.lazy.pt.get(s.index(a, at)))
	}
	return h, err
}
