package mem

import (
	"fmt"
	"math/bits"
	"slices"
	"syscall"
)

// Alloc takes n physically contiguous bytes, in whole pages, aligned to align (a
// power of two; 0 is a page), zeroed. ENOMEM when there is no such run, EINVAL for
// n of 0 or a wrong alignment.
func (m *Memory) Alloc(n, align uint64) (PA, error) {
	if n == 0 || bits.OnesCount64(align) > 1 {
		return 0, errorf(syscall.EINVAL, "allocate %d B aligned to %d", n, align)
	}
	pages := m.pages(n)
	start, ok := m.take(pages, max(align>>m.shift, 1))
	if !ok && m.lazy != nil {
		m.makeFree(pages)
		start, ok = m.take(pages, max(align>>m.shift, 1))
	}
	if !ok {
		return 0, errorf(syscall.ENOMEM, "allocate %d B aligned to %d", n, align)
	}
	return PA(start << m.shift), nil
}

// Free drops the reference that Alloc made on each page of the run.
func (m *Memory) Free(pa PA, n uint64) {
	for pg, end := uint64(pa)>>m.shift, uint64(pa)>>m.shift+m.pages(n); pg < end; pg++ {
		m.put(pg)
	}
}

// pages is how many pages n bytes take. It cannot overflow.
func (m *Memory) pages(n uint64) uint64 {
	k := n >> m.shift
	if n&(1<<m.shift-1) != 0 {
		k++
	}
	return k
}

// take finds n free pages by first fit, gives each one reference, and zeroes them.
func (m *Memory) take(n, align uint64) (start uint64, ok bool) {
	if start, ok = m.takeFrom(&m.free, n, align); ok {
		m.used += n
	}
	return start, ok
}

func (m *Memory) takeFrom(free *[]extent, n, align uint64) (start uint64, ok bool) {
	for i, x := range *free {
		if x.n < n {
			continue
		}
		if start, ok = m.fit(x, n, align); ok {
			*free = carve(*free, i, start, n)
			m.claim(start, n)
			return start, true
		}
	}
	return 0, false
}

// fit finds the first place in an extent where n pages are aligned. What would reach into
// another chunk begins with a chunk, so that large buffers have pages of 2 MiB.
func (m *Memory) fit(x extent, n, align uint64) (uint64, bool) {
	perChunk := uint64(chunkSize) >> m.shift
	start := alignUp(x.start, align)
	if start%perChunk+n > perChunk && n<<m.shift <= MaxWindow {
		start = alignUp(start, max(perChunk, align))
	}
	return start, start < x.start+x.n && x.start+x.n-start >= n
}

// claim makes the chunks of a run, references its pages and gives them new backings.
func (m *Memory) claim(start, n uint64) {
	pa, end := start<<m.shift, (start+n)<<m.shift
	for uint64(len(m.chunks))<<chunkShift < end {
		m.chunks = append(m.chunks, chunk{})
	}
	for pg := start; pg < start+n; pg++ {
		c := &m.chunks[pg<<m.shift>>chunkShift]
		if c.refs == nil {
			c.refs = make([]int32, chunkSize>>m.shift)
		}
		c.refs[m.index(pg)] = 1
	}
	for pa < end {
		next := end
		if n<<m.shift > MaxWindow {
			next = min(end, pa&^chunkMask+chunkSize)
		}
		m.support(&backing{m: m, start: PA(pa), n: int(next - pa)})
		pa = next
	}
}

// carve removes n pages at start from extent i.
func carve(free []extent, i int, start, n uint64) []extent {
	x := free[i]
	head, tail := extent{x.start, start - x.start}, extent{start + n, x.start + x.n - start - n}
	switch {
	case head.n == 0 && tail.n == 0:
		return slices.Delete(free, i, i+1)
	case head.n == 0:
		free[i] = tail
	case tail.n == 0:
		free[i] = head
	default:
		free[i] = head
		return slices.Insert(free, i+1, tail)
	}
	return free
}

// get adds a reference to an allocated page.
func (m *Memory) get(pg uint64) {
	m.chunks[pg<<m.shift>>chunkShift].refs[m.index(pg)]++
}

// put drops a reference; the last one frees the page.
func (m *Memory) put(pg uint64) {
	pa := PA(pg << m.shift)
	c := m.chunkAt(pa)
	if c == nil || c.refs == nil || c.refs[m.index(pg)] == 0 {
		panic(fmt.Sprintf("mem: page %#x freed twice", uint64(pa)))
	}
	r := &c.refs[m.index(pg)]
	if *r > 1 {
		*r--
		return
	}
	m.forceLate(pa, 1)
	*r = 0
	if c.window != nil {
		c.window[m.index(pg)] = false
	}
	if b := m.bankOf(pg); b != nil {
		b.used--
		b.free = release(b.free, pg)
		return
	}
	m.used--
	m.free = release(m.free, pg)
}

// release puts a page back among the free extents and joins neighbours.
func release(free []extent, pg uint64) []extent {
	i, _ := slices.BinarySearchFunc(free, pg, func(x extent, pg uint64) int {
		if x.start < pg {
			return -1
		}
		return 1
	})
	left := i > 0 && free[i-1].start+free[i-1].n == pg
	right := i < len(free) && free[i].start == pg+1
	switch {
	case left && right:
		free[i-1].n += 1 + free[i].n
		return slices.Delete(free, i, i+1)
	case left:
		free[i-1].n++
	case right:
		free[i] = extent{pg, free[i].n + 1}
	default:
		return slices.Insert(free, i, extent{pg, 1})
	}
	return free
}

func alignUp(x, a uint64) uint64 { return (x + a - 1) &^ (a - 1) }
