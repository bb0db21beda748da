package pcie

// PostNow is PostMMIO by an interrupt handler, which no program runs: the write leaves
// at the engine's now.
func (l *Link) PostNow(off uint64, b []byte) {
	for len(b) > 0 {
		n := min(len(b), mmioLine-int(off%mmioLine))
		i := l.mmio.slots.Get()
		s := l.mmio.slots.At(i)
		s.off, s.n = off, n
		copy(s.data[:], b[:n])
		l.e.After(l.p.PostedLatency, l.mmio.arrive, uint64(i))
		off, b = off+uint64(n), b[n:]
	}
}
