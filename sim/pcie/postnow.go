package pcie

// PostNow is PostMMIO by a caller that no program runs, such as an interrupt handler: the write
// leaves at the engine's now.
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

// ReadNow is ReadMMIO by a caller outside virtual time, for whom it takes none. The caller has seen
// to it that earlier writes have arrived. What the device wrote before is visible afterwards
// (Drain).
func (l *Link) ReadNow(off uint64, b []byte) {
	l.c.rx(1, l.p.ReadHeader)
	l.c.MMIOReads++
	for k := range b {
		b[k] = 0xff
	}
	if n := uint64(len(b)); l.f == nil || off+n > l.bar || off+n < off {
		l.c.Unsupported++
	} else if n <= mmioLine {
		l.f.MMIORead(off, b)
	}
	l.c.tx(1, len(b)+l.p.CplHeader)
	l.Drain()
}
