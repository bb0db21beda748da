package hca

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// atomicRig is queue pairs of one host that add to words of one region.
type atomicRig struct {
	h        *host
	from, to []*tQP
	r        *mr
}

func newAtomicRig(t *testing.T, p Params, pairs int) *atomicRig {
	h := newHost(t, sim.New(sim.Options{MaxEvents: 1 << 24}), p, 1)
	g := &atomicRig{h: h, r: h.newMR(1<<16, rightsAll)}
	for range pairs {
		a, b := h.newQP(h.newCQ(7, 64), h.newCQ(7, 64)), h.newQP(h.newCQ(7, 64), h.newCQ(7, 64))
		a.connect(b, defaults())
		b.connect(a, defaults())
		g.from, g.to = append(g.from, a), append(g.to, b)
	}
	return g
}

// add has queue pair i add 1 to the word at an offset; old values land behind the words.
func (g *atomicRig) add(i int, at uint64) {
	g.from[i].post(wr{op: prm.WQEOpAtomicFA, swap: 1, raddr: g.r.va + at, rkey: g.r.rkey, sges: []sge{g.r.sge(40000+8*i, 8)}})
}

// done polls n completions of each queue pair.
func (g *atomicRig) done(n int) {
	g.h.t.Helper()
	for _, q := range g.from {
		for range n {
			q.scq.expect(prm.CQEReq)
		}
	}
}

func (g *atomicRig) word(at uint64) uint64 { return host64(g.r.bytes(int(at), 8)) }

// TestAtomicsAddUp: whatever share a slot, however few it holds, however far apart they begin, and
// whether the slot is free before memory has answered or after, each atomic happens once and sees
// all before it.
func TestAtomicsAddUp(t *testing.T) {
	for _, service := range []sim.Time{0, 100 * sim.Nanosecond, 2 * sim.Microsecond} {
		for _, room := range []int{0, 1, 2} {
			for _, slots := range []int{1, 4096} {
				t.Run(fmt.Sprintf("%v %d slots of %d", service, slots, room), func(t *testing.T) {
					p := testParams()
					p.AtomicService, p.AtomicsPerSlot, p.AtomicSlots, p.AtomicInterval = service, room, slots, sim.Time(room)*40*sim.Nanosecond
					g := newAtomicRig(t, p, 12)
					const each = 9
					for n := range each {
						for i := range g.from {
							g.add(i, uint64(8*((i+n)%3)))
						}
					}
					run(t, g.h.e, sim.Millisecond)
					g.done(each)
					if a, b, c := g.word(0), g.word(8), g.word(16); a != 36 || b != 36 || c != 36 {
						t.Errorf("12 queue pairs added 9 each to three words: %d, %d, %d", a, b, c)
					}
					if u := &g.h.d.atomics; u.inFlight != 0 || u.entry.Len() != 0 {
						t.Errorf("the unit is not empty: %d under way, %d wait", u.inFlight, u.entry.Len())
					}
				})
			}
		}
	}
}

// span is how long n atomics of each queue pair take.
func (g *atomicRig) span(n int, at func(i int) uint64) sim.Time {
	began := g.h.e.Now()
	for range n {
		for i := range g.from {
			g.add(i, at(i))
		}
	}
	for g.sum() < n*len(g.from) {
		run(g.h.t, g.h.e, 100*sim.Nanosecond)
	}
	return g.h.e.Now() - began
}

// sum adds up the words of the region that atomics change.
func (g *atomicRig) sum() (sum int) {
	for at := uint64(0); at < 36000; at += 8 {
		sum += int(g.word(at))
	}
	return sum
}

// TestAtomicSlots: addresses that are equal in the low 12 bits are served one after the other by
// one index, and side by side by the other; distinct ones begin no closer together than the unit's
// entry lets them.
func TestAtomicSlots(t *testing.T) {
	apart := func(i int) uint64 { return uint64(i) * 4096 }
	near := func(i int) uint64 { return uint64(i) * 8 }
	for _, c := range []struct {
		name       string
		index      AtomicIndex
		interval   sim.Time
		at         func(int) uint64
		least, max sim.Time
	}{
		{"low 12 bits equal, index of bytes", IndexBytes, 0, apart, 28 * sim.Microsecond, 33 * sim.Microsecond},
		{"low 12 bits equal, index of words", IndexWords, 0, apart, 3 * sim.Microsecond, 15 * sim.Microsecond},
		{"neighbours", IndexBytes, 0, near, 3 * sim.Microsecond, 15 * sim.Microsecond},
		{"neighbours, one in 400 ns", IndexBytes, 400 * sim.Nanosecond, near, 25 * sim.Microsecond, 28 * sim.Microsecond},
	} {
		p := testParams()
		p.AtomicIndex, p.AtomicInterval, p.AtomicService = c.index, c.interval, 450*sim.Nanosecond
		if d := newAtomicRig(t, p, 8).span(8, c.at); d < c.least || d > c.max {
			t.Errorf("%s: 64 atomics took %v, want %v to %v", c.name, d, c.least, c.max)
		}
	}
}

// TestAtomicsWaitAtTheEntry: an atomic that finds no room in its slot holds up those behind it, for
// whatever slot. Of four, the first is done at once.
func TestAtomicsWaitAtTheEntry(t *testing.T) {
	for _, c := range []struct {
		room      int
		overtakes bool
	}{{0, true}, {3, true}, {2, false}, {1, false}} {
		p := testParams()
		p.AtomicsPerSlot, p.AtomicService = c.room, 3*sim.Microsecond
		g := newAtomicRig(t, p, 5)
		for i := range 4 {
			g.add(i, 0)
		}
		run(t, g.h.e, 200*sim.Nanosecond) // they come first
		g.add(4, 8)
		run(t, g.h.e, 2500*sim.Nanosecond)
		if first, other := g.word(0), g.word(8); first != 1 || (other == 1) != c.overtakes {
			t.Errorf("slots of %d: %d of four atomics of one word done, and %d of another; overtaken: want %v", c.room, first, other, c.overtakes)
		}
		run(t, g.h.e, 20*sim.Microsecond)
		if first, other := g.word(0), g.word(8); first != 4 || other != 1 {
			t.Errorf("slots of %d: in the end %d and %d atomics, want 4 and 1", c.room, first, other)
		}
	}
}

// TestReadsBehindAtomics: a READ waits behind atomics that find no place, if the parameters say so.
func TestReadsBehindAtomics(t *testing.T) {
	for _, hold := range []bool{false, true} {
		p := testParams()
		p.AtomicsPerSlot, p.AtomicsHoldReads = 1, hold
		g := newAtomicRig(t, p, 10)
		for i := range 9 {
			g.add(i, 0)
		}
		q := g.from[9]
		q.post(wr{op: prm.WQEOpRDMARead, raddr: g.r.va + 8, rkey: g.r.rkey, sges: []sge{g.r.sge(50000, 8)}})
		run(t, g.h.e, 3*sim.Microsecond)
		if waits := q.scq.poll() == nil; waits != hold {
			t.Errorf("READs wait behind atomics: %v, want %v", waits, hold)
		}
		run(t, g.h.e, 20*sim.Microsecond)
		if n := g.h.d.c.ReadsBehindAtomics; (n > 0) != hold {
			t.Errorf("hold %v: %d READs waited", hold, n)
		}
		if n := g.word(0); n != 9 {
			t.Errorf("%d atomics", n)
		}
	}
}

// TestAtomicsOfQueuesThatAreReset: what waits for a queue pair that goes away is dropped, and the
// others go on.
func TestAtomicsOfQueuesThatAreReset(t *testing.T) {
	for at := sim.Time(0); at < 4*sim.Microsecond; at += 130 * sim.Nanosecond {
		p := testParams()
		p.AtomicsPerSlot, p.AtomicSlots, p.AtomicInterval = 3, 1, 90*sim.Nanosecond
		g := newAtomicRig(t, p, 6)
		for range 4 {
			for i := range g.from {
				g.add(i, 0)
			}
		}
		run(t, g.h.e, at)
		g.to[0].modify2(prm.Op2RstQP)
		g.to[2].modify2(prm.Op2ErrQP)
		run(t, g.h.e, 40*sim.Microsecond)
		for _, i := range []int{1, 3, 4, 5} {
			for range 4 {
				g.from[i].scq.expect(prm.CQEReq)
			}
		}
		if n := g.word(0); n < 16 || n > 24 {
			t.Errorf("after %v: %d atomics, want 16 to 24", at, n)
		}
		if u := &g.h.d.atomics; u.inFlight != 0 || u.entry.Len() != 0 {
			t.Errorf("after %v: %d under way, %d wait", at, u.inFlight, u.entry.Len())
		}
	}
}
