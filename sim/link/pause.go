package link

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// lossless is the part of a port that has priority flow control (IEEE 802.1Qbb). A frame
// is then put on the line when it is its turn, not when it is handed over, so that a pause
// holds those behind it. The highest class that is not paused goes first.
type lossless struct {
	queues [roce.Classes]backlog
	queued int                    // bytes in them
	until  [roce.Classes]sim.Time // paused by the other end
	wakeAt sim.Time               // an event is set for it
	joined []waiting              // frames that a switch has not decided on yet, by slot
	vacant []uint32

	held    [roce.Classes]int  // bytes that arrived here and are still buffered behind the port
	pausing [roce.Classes]bool // the other end
	pool    roce.Pool

	drain, join, refresh sim.Handler
}

// waiting is a frame that waits for the line.
type waiting struct {
	f    *roce.Frame
	tail sim.Time
	bad  bool
	from *Port // of a switch: where it came in, and is counted
}

// backlog is a queue that reuses its memory.
type backlog struct {
	q    []waiting
	head int
}

func (b *backlog) empty() bool { return b.head == len(b.q) }

func (b *backlog) push(w waiting) { b.q = append(b.q, w) }

func (b *backlog) pop() waiting {
	w := b.q[b.head]
	b.q[b.head] = waiting{}
	b.head++
	switch {
	case b.head == len(b.q):
		b.q, b.head = b.q[:0], 0
	case b.head >= 64 && 2*b.head >= len(b.q):
		b.q = b.q[:copy(b.q, b.q[b.head:])]
		b.head = 0
	}
	return w
}

func newLossless(p *Port) *lossless {
	l := &lossless{wakeAt: -1}
	l.drain = func(uint64) { l.wakeAt = -1; p.drain() }
	l.join = p.onJoin
	l.refresh = func(class uint64) {
		if l.pausing[class] {
			p.sendPause(uint8(class), p.p.PFCTime)
		}
	}
	return l
}

// Lossless are the classes under priority flow control, a bit each: if there are any, whoever is
// attached reports what it buffers.
func (p *Port) Lossless() uint8 {
	if p.pfc == nil {
		return 0
	}
	return p.p.PFCClasses
}

// Queued is the bytes of frames that wait for the line.
func (p *Port) Queued() int {
	if p.pfc == nil {
		return 0
	}
	return p.pfc.queued
}

// Backlog is the bytes of frames that wait for the line by now, or are on it, of a port on
// Ethernet.
func (p *Port) Backlog() int {
	if p.pfc != nil {
		return p.pfc.queued
	}
	hi, lo := bits.Mul64(uint64(max(0, p.free-p.e.Now())), p.p.Bandwidth)
	n, _ := bits.Div64(hi, lo, 8*uint64(sim.Second))
	return int(n)
}

// Buffered counts bytes of a class that arrived here into the buffer behind the port, or,
// negative, out of it. Above the upper threshold the other end is paused, until the lower
// one is reached.
func (p *Port) Buffered(class uint8, bytes int) {
	l := p.pfc
	if l == nil {
		return
	}
	l.held[class] += bytes
	if p.p.PFCClasses>>class&1 == 0 {
		return
	}
	switch {
	case !l.pausing[class] && l.held[class] > p.p.PFCXoff:
		l.pausing[class] = true
		p.sendPause(class, p.p.PFCTime)
	case l.pausing[class] && l.held[class] <= p.p.PFCXon:
		l.pausing[class] = false
		p.sendPause(class, 0)
	}
}

// sendPause sends a pause frame, ahead of all that waits. One that ends a pause is sent once;
// the others again and again, halfway to their end.
func (p *Port) sendPause(class uint8, quanta int) {
	if !p.cable.up {
		return
	}
	p.C.TxPause[class]++
	f := roce.NewPFC(&p.pfc.pool, p.mac, class, uint16(quanta))
	p.emit(f, max(p.e.Now(), p.free), p.measure(len(f.B)), false)
	if quanta > 0 {
		p.e.After(p.quanta(quanta)/2, p.pfc.refresh, uint64(class))
	}
}

// quanta is how long n units of pause are.
func (p *Port) quanta(n int) sim.Time { return p.p.bytesTime(n * roce.PFCQuantumBits / 8) }

// paused takes a frame of the other end's MAC. It reports false for any other frame.
func (p *Port) paused(f *roce.Frame) bool {
	pause, ok := roce.ParsePFC(f.B)
	if !ok {
		return false
	}
	for class := range roce.Classes {
		if quanta, ok := pause.Time(class); ok {
			p.C.RxPause[class]++
			p.pfc.until[class] = p.e.Now() + p.quanta(int(quanta))
		}
	}
	p.drain()
	return true
}

// enqueue is send for a port with priority flow control.
func (p *Port) enqueue(w waiting, earliest sim.Time) {
	l := p.pfc
	if !p.cable.up || p.limit > 0 && p.p.bytesTime(l.queued) > p.limit {
		p.C.TxDiscards++
		p.forget(w)
		w.f.Release()
		return
	}
	l.queued += len(w.f.B)
	if earliest <= p.e.Now() {
		p.enter(w)
		return
	}
	var slot uint32
	if n := len(l.vacant); n > 0 {
		slot = l.vacant[n-1]
		l.vacant = l.vacant[:n-1]
		l.joined[slot] = w
	} else {
		slot = uint32(len(l.joined))
		l.joined = append(l.joined, w)
	}
	p.e.At(earliest, l.join, uint64(slot))
}

func (p *Port) onJoin(slot uint64) {
	l := p.pfc
	w := l.joined[slot]
	l.joined[slot] = waiting{}
	l.vacant = append(l.vacant, uint32(slot))
	p.enter(w)
}

// enter puts a frame at the end of its class's queue.
func (p *Port) enter(w waiting) {
	p.pfc.queues[roce.ClassOf(w.f.B)].push(w)
	p.drain()
}

// forget takes a frame out of the buffer that it came in by.
func (p *Port) forget(w waiting) {
	if w.from != nil {
		w.from.Buffered(roce.ClassOf(w.f.B), -len(w.f.B))
	}
}

// drain puts the next frame on the line, or sees to it that this happens in time.
func (p *Port) drain() {
	l := p.pfc
	now := p.e.Now()
	next := sim.Never
	for class := roce.Classes - 1; class >= 0; class-- {
		q := &l.queues[class]
		if q.empty() {
			continue
		}
		if now < p.free {
			next = p.free
			break
		}
		if now < l.until[class] {
			next = min(next, l.until[class])
			continue
		}
		w := q.pop()
		l.queued -= len(w.f.B)
		if !p.cable.up {
			p.C.TxDiscards++
			p.forget(w)
			w.f.Release()
		} else {
			p.forget(w)
			m := p.measure(len(w.f.B))
			p.emit(w.f, max(now, w.tail-m.bits), m, w.bad)
		}
		if p.sender != nil {
			p.sender.Relieved()
		}
		class++ // it may have another
	}
	if next != sim.Never && (l.wakeAt < 0 || next < l.wakeAt) {
		l.wakeAt = next
		p.e.At(next, l.drain, 0)
	}
}
