package odp

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// TestTimesOfFaults: the stages of a fault add up to what the queue has waited, and a fault that
// was dropped is not in them.
func TestTimesOfFaults(t *testing.T) {
	b := newBed(t)
	token := b.u.Raise(Fault{Queue: 1, Side: GatherSide, WQE: true})
	b.u.Raise(Fault{Queue: 2, Side: GatherSide, WQE: true})
	b.u.Drop(b.u.Raise(Fault{Queue: 1, Side: LandingSide, WQE: true}))
	b.u.Raise(Fault{Queue: 1, Side: ReadSide})
	b.e.After(17*sim.Microsecond, func(uint64) { b.answer(token, false) }, 0) // the event came after 10
	b.run(t, 27*sim.Microsecond)
	c := b.u.Counters
	if c.Reporting != 10*sim.Microsecond || c.Answering != 7*sim.Microsecond || c.Resuming != 5*sim.Microsecond {
		t.Errorf("reporting %v, answering %v, resuming %v", c.Reporting, c.Answering, c.Resuming)
	}
	if c.MostOfQueue != 2 {
		t.Errorf("a queue had %d faults out", c.MostOfQueue)
	}
}

// TestLearning: requesters whose responses wait for pages learn of the answers one after the other,
// in the order of the answers; who waits for anything else does not wait for them.
func TestLearning(t *testing.T) {
	b := newBed(t)
	b.u.p.Learn = 100 * sim.Microsecond
	var tokens []Token
	for queue, side := range []Side{LandingSide, LandingSide, GatherSide, LandingSide} {
		tokens = append(tokens, b.u.Raise(Fault{Queue: uint64(queue), Side: side, WQE: true}))
	}
	b.run(t, 10*sim.Microsecond)
	b.answer(tokens[1], false)
	b.answer(tokens[0], false)
	b.answer(tokens[2], false)
	b.answer(tokens[3], true)
	for i, c := range []struct {
		at    sim.Time // since the answers, with the 5 us in which a queue goes on
		queue uint64
	}{{5, 2}, {105, 1}, {205, 0}, {305, 3}} {
		b.run(t, 10*sim.Microsecond+c.at*sim.Microsecond-1-b.e.Now())
		if len(b.resumed) != i {
			t.Fatalf("%d queues went on before %v us", len(b.resumed), int64(c.at))
		}
		b.run(t, 1)
		if len(b.resumed) != i+1 || b.resumed[i].Queue != c.queue {
			t.Fatalf("after %v us: %+v", int64(c.at), b.resumed)
		}
	}
	if b.failed != 1 || b.u.Resuming != (5+105+205+305)*sim.Microsecond {
		t.Errorf("%d failed, resuming took %v", b.failed, b.u.Resuming)
	}
	b.answer(b.u.Raise(Fault{Queue: 9, Side: LandingSide}), false) // too early, and stale
	late := b.u.Raise(Fault{Queue: 9, Side: LandingSide})
	b.run(t, 10*sim.Microsecond)
	b.answer(late, false)
	b.u.Reset()
	late = b.u.Raise(Fault{Queue: 10, Side: LandingSide})
	b.run(t, 10*sim.Microsecond)
	b.answer(late, false)
	b.run(t, 105*sim.Microsecond)
	if n := len(b.resumed); n != 5 || b.resumed[4].Queue != 10 {
		t.Errorf("after a reset: %+v", b.resumed[4:])
	}
}
