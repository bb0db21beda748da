package mem

// Fill writes a pattern over [pa, pa+n) over and over, as a Write of n bytes would: what a
// driver does to a queue before it gives it to the device. A chunk of the range that has no
// backing yet gets none: it remembers the pattern. pa is a multiple of the length of the
// pattern, which divides the page size and n. It reports false, and nothing is written, when
// part of the range is not allocated.
func (m *Memory) Fill(pa PA, n int, pattern []byte) bool {
	m.settle()
	if len(pattern) == 0 || m.PageSize()%uint64(len(pattern)) != 0 || uint64(pa)%uint64(len(pattern)) != 0 || n%len(pattern) != 0 {
		panic("mem: a pattern that does not fit the range")
	}
	if !m.present(pa, uint64(n)) {
		return false
	}
	var own []byte
	for n > 0 {
		c, off := m.chunkAt(pa), int(pa&chunkMask)
		k := min(n, chunkSize-off)
		if k == chunkSize && c.b == nil {
			if own == nil {
				own = append(own, pattern...)
			}
			c.fill = own
		} else {
			repeat(m.back(c)[off:off+k], pattern)
		}
		pa, n = pa+PA(k), n-k
	}
	return true
}

// written reports whether the chunk has been written to. Where later allocations lie
// depends on it, and not on whether the chunk remembers what was written.
func (c *chunk) written() bool { return c.b != nil || c.fill != nil }

// unfill has chunks that were filled, and of which n pages at start are given out again,
// forget the pattern: pages are given out zeroed.
func (m *Memory) unfill(start, n uint64) {
	first, end := start<<m.shift, (start+n)<<m.shift
	for i := first >> chunkShift; i <= (end-1)>>chunkShift; i++ {
		c := &m.chunks[i]
		if c.fill == nil {
			continue
		}
		if i<<chunkShift >= first && (i+1)<<chunkShift <= end {
			c.fill = nil
		} else {
			m.back(c)
		}
	}
}

// repeat fills b with a pattern.
func repeat(b, pattern []byte) {
	for n := copy(b, pattern); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
