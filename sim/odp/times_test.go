package odp

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// TestTimesOfFaults: the stages of a fault add up to what the queue has waited, and a fault that was dropped is not in them.
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
