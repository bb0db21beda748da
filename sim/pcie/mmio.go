package pcie

import "github.com/rdmasim/rdmasim/sim"

// mmioLine is the largest MMIO TLP that a core makes: a cache line.
const mmioLine = 64

// mmioSide holds the MMIO requests that are under way.
type mmioSide struct {
	slots   sim.Slab[mmioSlot]
	arrive  sim.Handler
	deliver sim.Handler
	reply   sim.Handler
	held    int // TLPs with a deliver event
}

// mmioSlot is one MMIO transaction; a read has a program that waits.
type mmioSlot struct {
	off  uint64
	n    int
	rd   *sim.Proc
	b    []byte // of the reader
	data [mmioLine]byte
}

func (s *mmioSide) bind(l *Link) {
	s.arrive, s.deliver, s.reply = l.mmioArrive(), l.mmioHeld, l.mmioReply
}

// put gives back the slot of a read; that of a write names no program.
func (s *mmioSide) put(i uint32) {
	x := s.slots.At(i)
	x.rd, x.b = nil, nil
	s.slots.Put(i)
}

// PostMMIO makes a posted write leave the core's side at p's local time. More than
// 64 bytes leave as TLPs of aligned 64-byte lines. It does not yield.
//
// The event is put at the time of arrival on an idle link, in the order of the
// programs' local times however far they run ahead; the time on the wire is
// computed there, and an idle link needs no second event.
func (l *Link) PostMMIO(p *sim.Proc, off uint64, b []byte) {
	if len(b) == mmioLine && off%mmioLine == 0 { // the rule
		i := l.mmio.slots.Get()
		s := l.mmio.slots.At(i)
		s.off, s.n, s.data = off, mmioLine, [mmioLine]byte(b)
		p.Post(l.p.PostedLatency, l.mmio.arrive, uint64(i))
		return
	}
	l.postPieces(p, off, b)
}

//go:noinline
func (l *Link) postPieces(p *sim.Proc, off uint64, b []byte) {
	for len(b) > 0 {
		n := min(len(b), mmioLine-int(off%mmioLine))
		i := l.mmio.slots.Get()
		s := l.mmio.slots.At(i)
		s.off, s.n = off, n
		copy(s.data[:], b[:n])
		p.Post(l.p.PostedLatency, l.mmio.arrive, uint64(i))
		off, b = off+uint64(n), b[n:]
	}
}

// ReadMMIO is a non-posted read by p, which waits for it. It arrives behind p's
// earlier posted writes, and its completion behind the device's earlier DMA writes.
// Reads of more than 64 bytes or of an address outside BAR 0 give ones.
func (l *Link) ReadMMIO(p *sim.Proc, off uint64, b []byte) {
	p.Sync()
	i := l.mmio.slots.Get()
	s := l.mmio.slots.At(i)
	s.off, s.n, s.rd, s.b = off, len(b), p, b
	p.Post(l.p.PostedLatency, l.mmio.arrive, uint64(i))
	p.Park("MMIO read")
}

// mmioArrive runs when a TLP would arrive on an idle link.
//
//go:noinline
func (l *Link) mmioArrive() sim.Handler {
	return func(i uint64) {
		s := l.mmio.slots.At(uint32(i))
		now := l.e.Now()
		var start sim.Time
		if s.rd != nil {
			l.c.rx(1, l.p.ReadHeader)
			start = l.rx.take(now, l.ser(l.p.ReadHeader))
		} else {
			bytes := s.n + l.p.WriteHeader
			dur := l.ser(bytes)
			l.c.rx(1, bytes)
			l.c.MMIOWrites++
			l.c.MMIOBytes += uint64(s.n)
			var waited bool
			start, waited = l.rx.post(now, dur, 2*l.p.PostedLatency, 1)
			l.span(toDevice, "MMIO write", start, dur, bytes)
			if waited {
				l.c.CreditWaits++
			}
		}
		if start == now {
			l.mmioDeliver(i)
			return
		}
		place := l.e.Reserve(start)
		if l.mmio.held == 0 && s.rd == nil && l.ahead != nil && l.inBAR(s) && l.ahead.MMIOWriteAt(place, s.off, s.data[:s.n]) {
			l.mmio.slots.Put(uint32(i))
			return
		}
		l.mmio.held++
		l.e.AtPlace(place, l.mmio.deliver, i)
	}
}

// mmioHeld delivers a TLP that waited for the link.
func (l *Link) mmioHeld(i uint64) {
	l.mmio.held--
	l.mmioDeliver(i)
}

// inBAR says whether the request is for the function's register window.
func (l *Link) inBAR(s *mmioSlot) bool {
	return s.off+uint64(s.n) <= l.bar && s.off+uint64(s.n) >= s.off
}

// mmioDeliver gives the TLP to the function.
func (l *Link) mmioDeliver(i uint64) {
	s := l.mmio.slots.At(uint32(i))
	ok := l.f != nil && l.inBAR(s)
	if !ok {
		l.c.Unsupported++
	}
	if s.rd == nil {
		// The slot is given back after the call: its bytes are the TLP until then.
		if ok {
			l.f.MMIOWrite(s.off, s.data[:s.n])
		}
		l.mmio.slots.Put(uint32(i))
		return
	}
	l.c.MMIOReads++
	for k := range s.b {
		s.b[k] = 0xff
	}
	if ok && s.n <= mmioLine {
		l.f.MMIORead(s.off, s.b)
	}
	bytes := s.n + l.p.CplHeader
	l.c.tx(1, bytes)
	start := l.tx.take(l.e.Now(), l.ser(bytes))
	l.e.At(max(start+l.p.PostedLatency, l.wr.visible), l.mmio.reply, i)
}

// mmioReply wakes the reader.
func (l *Link) mmioReply(i uint64) {
	p := l.mmio.slots.At(uint32(i)).rd
	l.mmio.put(uint32(i))
	p.Wake(l.e.Now())
}
