package mem

import "syscall"

// PageTables is a Foreign that can tell what the page tables of its process hold, so that its
// memory can be paged on demand. Who changes its mappings calls Invalidate before.
type PageTables interface {
	Foreign
	// Touch makes [va, va+n), whole pages, present as an access to each of them does, with write as
	// a store that changes nothing. It calls f for each part, in order of addresses, with log2 of
	// the size of the huge pages by which the process maps it, or 0. EFAULT: a page is not mapped,
	// or may not be read; EPERM: write, and the mapping is read-only.
	Touch(va VA, n uint64, write bool, f func(va VA, n uint64, shift uint8)) error
	// Resident calls f for each page of [va, va+n) that is present and may be read; writable says
	// that a store would not fault. It touches nothing, and tells of nothing where the process has
	// ended.
	Resident(va VA, n uint64, f func(va VA, writable bool, shift uint8))
	// Watch tells that there are notifiers for the space from now on, or none any more.
	Watch(on bool)
}

// HasPageTables reports whether Range and Present find pages: in every simulated space, and in a
// foreign one that can tell.
func (s *Space) HasPageTables() bool { return s.x == nil || s.x.tables != nil }

// Invalidate tells the notifiers that [va, va+n) of a foreign space is about to change. From then
// on until the process has changed it a device may find it as it was.
func (s *Space) Invalidate(va VA, n uint64) {
	if s.x == nil || va >= 1<<foreignBits {
		return
	}
	s.invalidate(va, min(n, uint64(1<<foreignBits-va)))
}

// Watched reports whether there are notifiers for any of the space.
func (s *Space) Watched() bool { return len(s.obs) > 0 }

// watch tells the process of its first notifier, and of the end of its last. What notifiers cover a
// device may reach without a pin: an address that it still has shows the process's bytes as they
// are, or nothing.
func (x *foreign) watch(obs []*observer) {
	was := len(x.obs) > 0
	x.obs, x.lastObs = obs, nil
	if on := len(obs) > 0; on != was && x.tables != nil {
		x.tables.Watch(on)
	}
}

// watched reports whether notifiers cover [va, end).
func (x *foreign) watched(va, end VA) bool {
	for va < end {
		o := x.observer(va)
		if o == nil {
			return false
		}
		va = o.end
	}
	return true
}

func (x *foreign) observer(va VA) *observer {
	if o := x.lastObs; o != nil && o.start <= va && va < o.end {
		return o
	}
	for _, o := range x.obs {
		if o.start <= va && va < o.end {
			x.lastObs = o
			return o
		}
	}
	return nil
}

// find is Range of a foreign space, for whole pages.
func (x *foreign) find(m *Memory, first, last uint64, how RangeFlags, out []Frame) error {
	va, n := VA(first<<m.shift), (last-first+1)<<m.shift
	if last >= 1<<foreignBits>>m.shift || x.tables == nil || x.gone {
		return errorf(syscall.EFAULT, "pages %#x to %#x are not a program's", first<<m.shift, last<<m.shift)
	}
	clear(out[:last-first+1])
	if how&RangeSnapshot != 0 {
		x.tables.Resident(va, n, func(at VA, writable bool, shift uint8) {
			out[(at-va)>>m.shift] = Frame{PA: x.pa(at), Present: true, Writable: writable, Shift: shift}
		})
		return nil
	}
	write := how&RangeWrite != 0
	return x.tables.Touch(va, n, write, func(at VA, n uint64, shift uint8) {
		for i := range VA(n >> m.shift) {
			out[(at-va)>>m.shift+i] = Frame{PA: x.pa(at + i<<m.shift), Present: true, Writable: write, Shift: shift}
		}
	})
}

// presentPages is Present of a foreign space.
func (x *foreign) presentPages(m *Memory, va, end VA, f func(at VA, fr Frame)) {
	end = min(end, 1<<foreignBits)
	if x.tables == nil || x.gone || va >= end {
		return
	}
	x.tables.Resident(va, uint64(end-va), func(at VA, writable bool, shift uint8) {
		f(at, Frame{PA: x.pa(at), Present: true, Writable: writable, Shift: shift})
	})
}
