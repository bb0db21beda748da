package mem

// Fill writes a pattern over [pa, pa+n) over and over, as a Write of n bytes would: what a
// driver does to a queue before it gives it to the device. An allocation that is filled as a
// whole, and was never written to, remembers the pattern instead. pa is a multiple of the
// length of the pattern, which divides the page size and n. It reports false, and nothing is
// written, when part of the range is not allocated.
func (m *Memory) Fill(pa PA, n int, pattern []byte) bool {
	m.settle()
	if len(pattern) == 0 || m.PageSize()%uint64(len(pattern)) != 0 || uint64(pa)%uint64(len(pattern)) != 0 || n%len(pattern) != 0 {
		panic("mem: a pattern that does not fit the range")
	}
	if !m.present(pa, uint64(n)) {
		return false
	}
	for n > 0 {
		x := m.chunkAt(pa).backing(m.page(pa))
		k := x.n
		if x.b == nil && pa == x.start && k <= n && m.holds(x, pa, k) {
			x.fill = append([]byte(nil), pattern...)
		} else {
			k = min(n, m.left(pa))
			repeat(x.bytes()[pa-x.start:][:k], pattern)
		}
		pa, n = pa+PA(k), n-k
	}
	return true
}
