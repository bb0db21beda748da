package mem

import "syscall"

// Frame is a page of an address space as a device may use it. The zero value is absent.
type Frame struct {
	PA       PA // of the first byte of the page
	Present  bool
	Writable bool
}

// RangeFlags say how Range looks for pages.
type RangeFlags uint8

// Flags of Range.
const (
	RangeWrite    RangeFlags = 1 << iota // the pages are needed for writing (HMM_PFN_REQ_WRITE)
	RangeSnapshot                        // only what is present counts, and a hole is no error
)

// Range finds the pages from the one around va to the one that holds the last of n bytes, one Frame each, as hmm_range_fault
// does: out has room for them. EFAULT: a page is not mapped; EPERM: it is needed for writing and its mapping is read-only.
func (s *Space) Range(va VA, n uint64, how RangeFlags, out []Frame) error {
	if n == 0 || uint64(va)+n-1 < uint64(va) {
		return errorf(syscall.EINVAL, "range of %d bytes at %#x", n, uint64(va))
	}
	first, last := uint64(va)>>s.m.shift, (uint64(va)+n-1)>>s.m.shift
	for pg := first; pg <= last; pg++ {
		f := &out[pg-first]
		e := s.entry(VA(pg << s.m.shift))
		switch {
		case e != nil:
			*f = Frame{PA: PA(e.page() << s.m.shift), Present: e.prot()&Read != 0, Writable: e.prot()&Write != 0}
		default:
			*f = Frame{}
		}
		switch {
		case how&RangeSnapshot != 0:
		case !f.Present:
			return errorf(syscall.EFAULT, "page %#x is not mapped", pg<<s.m.shift)
		case how&RangeWrite != 0 && !f.Writable:
			return errorf(syscall.EPERM, "page %#x is read-only", pg<<s.m.shift)
		}
	}
	return nil
}
