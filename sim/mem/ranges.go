package mem

import (
	"slices"
	"syscall"
)

// foreignRange is physical memory whose bytes are not simulated: that of a virtual machine, which
// has addresses of its own choice.
type foreignRange struct {
	start, end PA
	prot       Prot
	f          Foreign
}

// ranges are those of a memory, by address.
type ranges struct {
	list []foreignRange
	last int // of the last access
}

// MapForeign puts the bytes of f at the physical addresses [pa, pa+n); the addresses that f sees
// count from the beginning of the range. What prot does not allow fails, as an access to an address
// that nobody claims. EINVAL when the range is empty, reaches into the simulated memory or too far
// up; EEXIST when it overlaps another.
func (m *Memory) MapForeign(pa PA, n uint64, prot Prot, f Foreign) error {
	end := pa + PA(n)
	if n == 0 || end < pa || end > foreignPA || uint64(pa) < m.size {
		return errorf(syscall.EINVAL, "map %d foreign bytes at %#x", n, uint64(pa))
	}
	i := m.ranges.search(pa)
	if i < len(m.ranges.list) && m.ranges.list[i].start < end {
		return errorf(syscall.EEXIST, "map %d foreign bytes at %#x: there are others at %#x", n, uint64(pa), uint64(m.ranges.list[i].start))
	}
	m.ranges.list = slices.Insert(m.ranges.list, i, foreignRange{pa, end, prot, f})
	return nil
}

// UnmapForeign takes the range back that begins at pa: from now on nothing touches its bytes.
// ENOENT when there is none.
func (m *Memory) UnmapForeign(pa PA) error {
	i := m.ranges.search(pa)
	if i == len(m.ranges.list) || m.ranges.list[i].start != pa {
		return errorf(syscall.ENOENT, "unmap foreign bytes at %#x", uint64(pa))
	}
	m.ranges.list = slices.Delete(m.ranges.list, i, i+1)
	return nil
}

// search is the number of ranges that end at or before pa.
func (r *ranges) search(pa PA) int {
	lo, hi := 0, len(r.list)
	for lo < hi {
		if i := (lo + hi) / 2; r.list[i].end <= pa {
			lo = i + 1
		} else {
			hi = i
		}
	}
	return lo
}

// at is the range around pa, or nil.
func (r *ranges) at(pa PA) *foreignRange {
	if r.last < len(r.list) {
		if x := &r.list[r.last]; x.start <= pa && pa < x.end {
			return x
		}
	}
	i := r.search(pa)
	if i == len(r.list) || pa < r.list[i].start {
		return nil
	}
	r.last = i
	return &r.list[i]
}

// allow reports whether ranges with the rights of prot cover [pa, pa+n).
func (r *ranges) allow(pa PA, n uint64, prot Prot) bool {
	end := pa + PA(n)
	for pa < end {
		x := r.at(pa)
		if x == nil || x.prot&prot != prot {
			return false
		}
		pa = x.end
	}
	return true
}

// move copies all of p from or to ranges; it reports false, with nothing moved, when they do not
// cover it, and when one fails, after which p or the memory may hold a part.
func (r *ranges) move(pa PA, p []byte, prot Prot) bool {
	if pa+PA(len(p)) < pa || !r.allow(pa, uint64(len(p)), prot) {
		return false
	}
	for len(p) > 0 {
		x := r.at(pa)
		n := min(uint64(len(p)), uint64(x.end-pa))
		var err error
		if prot == Write {
			err = x.f.WriteAt(VA(pa-x.start), p[:n])
		} else {
			err = x.f.ReadAt(VA(pa-x.start), p[:n])
		}
		if err != nil {
			return false
		}
		p, pa = p[n:], pa+PA(n)
	}
	return true
}
