package pcie

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// writeSide holds the device's posted writes that are not visible yet, oldest
// first: they become visible in order.
type writeSide struct {
	ring    []posted // power of two
	head, n uint32
	visible sim.Time // when the youngest becomes visible
	land    sim.Handler
	lazy    bool // writes that nobody waits for are held back
}

// posted is a DMA write, or an interrupt (vector >= 0).
type posted struct {
	at     sim.Time
	place  sim.Place // of the event that a write that is held back does without
	dst    []byte    // where a write that is held back goes; nil: it becomes visible by an event of its own, and all before it
	b      []byte    // staging, kept for reuse
	pa     mem.PA
	vector int
	done   sim.Handler
	arg    uint64
	landed bool // its bytes are there already
}

func (w *writeSide) bind(l *Link) { w.land, w.ring = l.land, make([]posted, 64) }

func (w *writeSide) full() bool { return int(w.n) == len(w.ring) }

// push returns the next free entry; there is one.
func (w *writeSide) push() *posted {
	x := &w.ring[(w.head+w.n)&uint32(len(w.ring)-1)]
	w.n++
	return x
}

//go:noinline
func (w *writeSide) grow() {
	ring := make([]posted, 2*len(w.ring))
	for i := range w.n {
		ring[i] = w.ring[(w.head+i)&uint32(len(w.ring)-1)]
	}
	w.ring, w.head = ring, 0
}

// WriteDMA implements Bus.
func (l *Link) WriteDMA(pa mem.PA, p []byte) {
	l.c.DMAWrites++
	l.c.DMAWriteBytes += uint64(len(p))
	l.send(pa, p, l.p.MemoryLatency, -1, nil, 0)
}

// WriteDMANotify implements Bus.
func (l *Link) WriteDMANotify(pa mem.PA, p []byte, done sim.Handler, arg uint64) {
	l.c.DMAWrites++
	l.c.DMAWriteBytes += uint64(len(p))
	l.send(pa, p, l.p.MemoryLatency, -1, done, arg)
}

// WriteBacklog implements Bus: the wire is busy, or there is no credit.
func (l *Link) WriteBacklog() sim.Time {
	free := l.tx.FreeAt()
	if len(l.tx.credit) > 0 {
		free = max(free, l.tx.credit[l.tx.next])
	}
	return max(0, free-l.e.Now())
}

// Interrupt implements Bus: MSI-X is a posted write of 4 bytes.
func (l *Link) Interrupt(vector int) {
	var msg [4]byte
	l.c.Interrupts++
	l.send(0, msg[:], 0, vector, nil, 0)
}

// send puts a posted write on the wire and schedules its effect, not before that
// of an earlier one. A write that nobody waits for needs no event: whoever looks at
// the bytes later settles first.
func (l *Link) send(pa mem.PA, p []byte, beyond sim.Time, vector int, done sim.Handler, arg uint64) {
	tlps := requests(uint64(pa), len(p), l.sizes.mps)
	bytes := len(p) + tlps*l.p.WriteHeader
	l.c.tx(tlps, bytes)
	dur := l.ser(bytes)
	if pa >= l.peerFrom {
		dur, beyond = l.peerWrite(len(p), dur, beyond)
	}
	start, waited := l.tx.post(l.e.Now(), dur, 2*l.p.PostedLatency, tlps)
	if waited {
		l.c.CreditWaits++
	}
	l.span(toHost, "write", start, dur, bytes)
	at := max(start+l.p.PostedLatency+beyond+max(0, dur-l.smallWrite), l.wr.visible)
	l.wr.visible = at
	if l.wr.full() {
		l.makeRoom()
	}
	x := l.wr.push()
	x.at, x.pa, x.b, x.landed, x.vector = at, pa, append(x.b[:0], p...), false, vector
	if l.wr.lazy && vector < 0 && done == nil {
		if x.dst = l.m.Unobserved(pa, len(p)); x.dst != nil {
			x.place = l.e.Reserve(at)
			l.m.HeldBack(1)
			return
		}
	}
	x.dst, x.done, x.arg = nil, done, arg
	l.e.At(at, l.wr.land, 0)
}

// makeRoom makes room for a posted write.
//
//go:noinline
func (l *Link) makeRoom() {
	if l.Settle(); l.wr.full() {
		l.wr.grow()
	}
}

// HoldBack has the link hold back posted writes for which nobody waits (mem.Late). It
// must be the only link of its memory, and all who look at the bytes must do so by
// calls of the memory: a real process that shares the bytes does not.
func (l *Link) HoldBack() {
	if l.e.Lockstep() {
		return
	}
	l.wr.lazy = true
	l.m.SetLate(l)
}

// Settle implements mem.Late.
func (l *Link) Settle() {
	w := &l.wr
	for w.n > 0 {
		x := &w.ring[w.head]
		if x.dst == nil || !l.e.Passed(x.place) {
			return
		}
		w.pop()
		l.m.HeldBack(-1)
		if !x.landed {
			copy(x.dst, x.b)
		}
	}
}

// Hurry implements mem.Late. The events come in the order of the writes.
func (l *Link) Hurry() {
	w := &l.wr
	for i := range w.n {
		if x := &w.ring[(w.head+i)&uint32(len(w.ring)-1)]; x.dst != nil {
			x.dst, x.done = nil, nil
			l.m.HeldBack(-1)
			l.e.AtPlace(x.place, w.land, 0)
		}
	}
}

// pop takes the oldest entry out.
func (w *writeSide) pop() {
	w.head = (w.head + 1) & uint32(len(w.ring)-1)
	w.n--
}

// land makes the oldest posted write with an event visible, and all before it.
func (l *Link) land(uint64) {
	l.Settle()
	w := &l.wr
	x := &w.ring[w.head]
	w.pop()
	done, arg, vector := x.done, x.arg, x.vector
	switch {
	case vector >= 0:
		if l.intr != nil {
			l.intr(vector)
		}
		return
	case !x.landed && !l.m.DMAStore(x.pa, x.b):
		l.c.Unsupported++
	}
	if done != nil {
		done(arg)
	}
}

// Drain moves the bytes of all that is under way now: posted writes in order, then
// reads. What follows from them, and interrupts, keep their time. It is for callers
// outside virtual time: the answer to a command comes behind everything that the device
// wrote before, and memory that it gave up is used no more.
func (l *Link) Drain() {
	w := &l.wr
	for i := range w.n {
		x := &w.ring[(w.head+i)&uint32(len(w.ring)-1)]
		if x.vector < 0 && !x.landed {
			x.landed = true
			if !l.m.DMAStore(x.pa, x.b) {
				l.c.Unsupported++
			}
		}
	}
	for i := range uint32(l.rd.slots.Len()) {
		if s := l.rd.slots.At(i); s.tags > 0 {
			l.read(s)
		}
	}
}

// conflict is when the last posted write that overlaps [pa, pa+n) becomes visible.
func (w *writeSide) conflict(pa mem.PA, n int) sim.Time {
	for i := w.n; i > 0; i-- {
		x := &w.ring[(w.head+i-1)&uint32(len(w.ring)-1)]
		if x.vector < 0 && x.pa < pa+mem.PA(n) && pa < x.pa+mem.PA(len(x.b)) {
			return x.at
		}
	}
	return 0
}

// readSide holds the device's reads: those with tags, and those that wait for tags
// in order of arrival.
type readSide struct {
	slots   sim.Slab[readSlot]
	tags    int // in use
	waiting sim.FIFO[uint32]
	short   sim.Waiting // something waits for tags
	sample  sim.Handler
	finish  sim.Handler
}

type readSlot struct {
	pa      mem.PA
	p       []byte
	done    sim.Handler
	arg     uint64
	tags    int
	visible sim.Time // of the writes ahead of it
	read    bool     // its bytes are there
	peer    bool     // another device has answered
}

func (r *readSide) bind(l *Link) { r.sample, r.finish = l.sample(), l.finishRead() }

// ReadDMA implements Bus.
func (l *Link) ReadDMA(pa mem.PA, p []byte, done sim.Handler, arg uint64) {
	r := &l.rd
	i := r.slots.Get()
	l.c.DMAReads++
	l.c.DMAReadBytes += uint64(len(p))
	s := r.slots.At(i)
	s.pa, s.p, s.done, s.arg, s.tags = pa, p, done, arg, requests(uint64(pa), len(p), l.sizes.mrrs)
	if r.waiting.Len() > 0 || !l.issue(s, i) {
		l.c.TagWaits++
		r.waiting.Push(i)
		r.short.Set(l.e.Now(), true)
	}
}

// PeekDMA reads at once, for firmware.
func (l *Link) PeekDMA(pa mem.PA, p []byte) {
	l.c.DMAReads++
	l.c.DMAReadBytes += uint64(len(p))
	l.load(pa, p)
}

// issue sends the read requests of slot i when there are tags for them. A read of
// more requests than there are tags takes them all.
func (l *Link) issue(s *readSlot, i uint32) bool {
	r := &l.rd
	need := min(s.tags, l.p.ReadsInFlight)
	if r.tags+need > l.p.ReadsInFlight {
		return false
	}
	r.tags += need
	bytes := s.tags * l.p.ReadHeader
	l.c.tx(s.tags, bytes)
	dur := l.ser(bytes)
	start := l.tx.take(l.e.Now(), dur)
	l.span(toHost, "read request", start, dur, bytes)
	s.visible = l.wr.visible
	l.Settle() // fewer to compare with
	l.e.At(max(start+l.p.PostedLatency, l.wr.conflict(s.pa, len(s.p))), r.sample, uint64(i))
	return true
}

// issueWaiting sends what waits, in order, as far as there are tags.
func (l *Link) issueWaiting() {
	r := &l.rd
	for r.waiting.Len() > 0 && l.issue(r.slots.At(*r.waiting.Front()), *r.waiting.Front()) {
		r.waiting.Pop()
	}
	if r.waiting.Len() == 0 {
		r.short.Set(l.e.Now(), false)
	}
}

// sample runs when the request reaches memory. What is left of ReadLatency is the
// way back; the part of the completions beyond a small one comes on top.
//
//go:noinline
func (l *Link) sample() sim.Handler {
	return func(i uint64) {
		s := l.rd.slots.At(uint32(i))
		l.read(s)
		if s.pa >= l.peerFrom && !s.peer {
			l.peerRead(s, i)
			return
		}
		cpls := l.sizes.completions(uint64(s.pa), len(s.p))
		bytes := len(s.p) + cpls*l.p.CplHeader
		l.c.rx(cpls, bytes)
		dur := l.ser(bytes)
		start := l.rx.take(l.e.Now(), dur)
		l.span(toDevice, "completion", start, dur, bytes)
		at := start + l.p.ReadLatency - l.p.PostedLatency + max(0, dur-l.smallCpl)
		l.e.At(max(at, s.visible), l.rd.finish, i)
	}
}

// read takes the bytes, once.
func (l *Link) read(s *readSlot) {
	if s.read {
		return
	}
	s.read = true
	l.load(s.pa, s.p)
}

// load reads memory; what nobody claims reads as ones.
func (l *Link) load(pa mem.PA, p []byte) {
	if l.m.Read(pa, p) {
		return
	}
	l.c.Unsupported++
	for k := range p {
		p[k] = 0xff
	}
}

// finishRead frees the tags, starts the reads that wait, and calls the device.
//
//go:noinline
func (l *Link) finishRead() sim.Handler {
	return func(i uint64) {
		r := &l.rd
		s := r.slots.At(uint32(i))
		done, arg := s.done, s.arg
		r.tags -= min(s.tags, l.p.ReadsInFlight)
		s.p, s.done, s.tags, s.read, s.peer = nil, nil, 0, false, false
		r.slots.Put(uint32(i))
		if r.waiting.Len() > 0 {
			l.issueWaiting()
		}
		if done != nil {
			done(arg)
		}
	}
}
