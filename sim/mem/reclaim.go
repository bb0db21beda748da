package mem

import "syscall"

// reclaimBatch is how many pages are reclaimed at once (SWAP_CLUSTER_MAX).
const reclaimBatch = 32

const noLimit = ^uint64(0)

// swap holds the contents of pages that were taken from anonymous and shared memory.
type swap struct {
	limit uint64 // pages
	slots []swapSlot
	free  []uint64
}

type swapSlot struct {
	refs int
	b    []byte // nil: zeroes
}

// used is how many slots are taken.
func (w *swap) used() uint64 { return uint64(len(w.slots) - len(w.free)) }

// put stores the content of a page that refs entries name.
func (w *swap) put(b []byte, refs int) (slot uint64) {
	if n := len(w.free); n > 0 {
		slot, w.free = w.free[n-1], w.free[:n-1]
	} else {
		slot, w.slots = uint64(len(w.slots)), append(w.slots, swapSlot{})
	}
	w.slots[slot] = swapSlot{refs, b}
	return slot
}

// drop gives back one entry's part of a slot.
func (w *swap) drop(slot uint64) {
	x := &w.slots[slot]
	if x.refs--; x.refs == 0 {
		x.b = nil
		w.free = append(w.free, slot)
	}
}

// SetPaging bounds the physical memory of lazy mappings (0: only by the size of the memory) and the
// swap, in bytes. Without a call there is swap without end. What is resident above the limit is
// reclaimed with the next fault.
func (m *Memory) SetPaging(resident, swap uint64) {
	m.needPaging()
	m.lazy.limit, m.lazy.swap.limit = m.pages(resident), swap>>m.shift
}

// Swapped is how many bytes of pages are in swap.
func (m *Memory) Swapped() uint64 {
	if m.lazy == nil {
		return 0
	}
	return m.lazy.swap.used() << m.shift
}

// obtain takes n contiguous pages for a lazy mapping, aligned to their size. Pages of others are
// reclaimed for them.
func (m *Memory) obtain(n uint64) (start uint64, err error) {
	p := m.lazy
	if p.limit > 0 && p.resident+n > p.limit {
		m.reclaim(p.resident + n - p.limit)
	}
	if p.limit == 0 || p.resident+n <= p.limit {
		for {
			if start, ok := m.take(n, n); ok {
				return start, nil
			}
			if m.reclaim(max(n, reclaimBatch)) == 0 {
				break
			}
		}
	}
	return 0, errorf(syscall.ENOMEM, "a page of %d B: %d are resident, %d in swap", n<<m.shift, m.Resident(), m.Swapped())
}

// makeFree reclaims until n pages are free, for what is mapped at once. It may end before.
func (m *Memory) makeFree(n uint64) {
	if m.lazy == nil {
		return
	}
	free := uint64(0)
	for _, x := range m.free {
		free += x.n
	}
	if n > free {
		m.reclaim(n - free)
	}
}

// reclaim takes up to n pages from those who used them longest ago, and returns how many.
func (m *Memory) reclaim(n uint64) (got uint64) {
	p := m.lazy
	for f, end := p.oldest, p.newest; f != nil && got < n; {
		next, last := f.newer, f == end
		if m.evict(f) {
			got++
		} else if f.listed {
			p.use(f) // what is pinned is not looked at again soon
		}
		if f = next; last || f != nil && !f.listed {
			break
		}
	}
	return got
}

// evict takes a frame's page: its content goes to swap or, of a file's page, into the file. The
// notifiers are called first, so that no device writes to it any more when its content is taken. It
// reports false, and nothing has changed, when the page is pinned or swap is full.
func (m *Memory) evict(f *frame) bool {
	p := m.lazy
	file := f.obj != nil && f.obj.file
	if m.pinned(f) || !file && p.swap.used() >= p.swap.limit {
		return false
	}
	for i := 0; i < len(f.maps); i++ {
		f.maps[i].s.invalidate(f.maps[i].va, f.n<<m.shift)
	}
	if m.pinned(f) { // by a notifier
		return false
	}
	b := m.content(f)
	e := pte(0)
	switch {
	case file:
		f.obj.save(f.index, b)
		f.obj.pages.set(f.index, 0)
		p.stats.WrittenBack++
	case f.obj != nil:
		f.obj.pages.set(f.index, swapPTE(p.swap.put(b, 1)))
		p.stats.SwappedOut++
	default:
		e = swapPTE(p.swap.put(b, len(f.maps)))
		p.stats.SwappedOut++
	}
	p.stats.Reclaimed++
	for _, r := range f.maps {
		r.s.lazy.rss -= f.n
		r.s.lazy.pt.set(r.s.index(r.s.lazy.at(r.va), r.va), e)
	}
	f.maps, f.obj = nil, nil
	m.dropFrame(f)
	return true
}

// swapIn takes the content of an entry's slot into a new frame, which nothing names yet.
func (m *Memory) swapIn(slot uint64) (*frame, error) {
	f, err := m.newFrame(1)
	if err != nil {
		return nil, err
	}
	p := m.lazy
	m.fillFrame(f, p.swap.slots[slot].b)
	p.swap.drop(slot)
	p.stats.SwappedIn++
	return f, nil
}
