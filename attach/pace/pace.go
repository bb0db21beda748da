// Package pace ties the virtual time of a simulation that real software drives to the wall clock,
// as far as it must: the work of a device takes no real time beyond the simulator's own computing,
// but the pauses between are waited out, so that the software can do what the device waits for.
package pace

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/sim"
)

// Gap is the pause in the device's work that virtual time jumps over. A longer one is
// a timer (of retransmission, of receiver-not-ready), and is waited out in real time,
// in which the programs do what the timer waits for.
const Gap = 50 * sim.Microsecond

// lagLimit bounds how far behind real time a throttled run may fall and catch up, and how far ahead
// of it another may be and wait.
const lagLimit = sim.Millisecond

// Clock paces an engine. It is used by whoever may use the engine.
type Clock struct {
	eng *sim.Engine
	// throttle keeps virtual time from running more than lead ahead of real time.
	throttle bool
	lead     sim.Time
	err      error
	// Before is told of each time at which the device does something by itself, before it does.
	// Nil: nobody.
	Before func(sim.Time)
	// Virtual time virtual was at real time wall: pauses count from there.
	virtual sim.Time
	wall    time.Time
	worked  sim.Time
}

// New is a clock whose virtual time begins to pass now.
func New(e *sim.Engine, throttle bool) *Clock {
	return &Clock{eng: e, throttle: throttle, virtual: e.Now(), wall: time.Now()}
}

// Bound keeps virtual time from running more than lead ahead of real time: somebody outside
// answers, whose time is real. The caller calls Keep before each Advance of a device that is not
// idle, and PassIdle while it is.
func (c *Clock) Bound(lead sim.Time) { c.throttle, c.lead = true, lead }

// Keep has real time count from now where the simulator has fallen behind it by more than a lag:
// what a busy device waits for next, it waits for from now.
func (c *Clock) Keep() {
	if c.Real()-c.eng.Now() > keepLag {
		c.virtual, c.wall = c.eng.Now(), time.Now()
	}
}

// PassIdle lets virtual time pass to real time, but not over what is due: first somebody looks for
// what has come meanwhile, such as the answer that a timer waits for, and Advance carries it out.
// Where the simulator itself had no processor for longer than a stall, only the first timer is due,
// and the others count from now: nobody could answer what was sent in between.
func (c *Clock) PassIdle() {
	now, next := c.Real(), c.eng.Next()
	if next <= now {
		if now-next > stall {
			c.virtual, c.wall = next, time.Now()
		}
		now = next - 1
	}
	if now > c.eng.Now() {
		c.Pass(now)
	}
}

// stall is more than a simulator that has a processor is late for a timer.
const stall = 2 * sim.Millisecond

// keepLag bounds by how much a timer of a bounded clock may be early since the simulator was busy
// when it was set.
const keepLag = 100 * sim.Microsecond

// Err is the failure that ended the simulation early, or nil.
func (c *Clock) Err() error { return c.err }

// Rest notes that the device is idle from now on. What it has just done in no real time, such as a
// sweep of the subnet manager, is part of the pause that follows, so that many such pieces of work
// do not bring a long timer on.
func (c *Clock) Rest() {
	lag := c.Real() - c.eng.Now()
	if c.throttle && lag < lagLimit || lag < 0 && lag > -lagLimit {
		return
	}
	c.virtual, c.wall = c.eng.Now(), time.Now()
}

// Real is what virtual time is if it has run as real time since the device was idle.
func (c *Clock) Real() sim.Time {
	return c.virtual + sim.Time(time.Since(c.wall))*sim.Nanosecond
}

// Since somebody waits for CatchUp, it ends after chase of real time, which it looks at after each
// slice. A few slices are no such amount of work: where they take that long another program has had
// the processor.
const (
	chase     = 2 * time.Millisecond
	slice     = sim.Microsecond
	fewSlices = 64
)

// CatchUp runs what fell due in the pause that ends now. A device that had so much to do that the
// simulator cannot follow has had no pause: it goes on later from where it is then. So does one
// that has nothing to do: a timer that it sets next does not count the pause.
func (c *Clock) CatchUp() {
	if c.eng.Next() == sim.Never {
		c.Rest()
		return
	}
	until, begin := max(c.eng.Now(), c.Real()), time.Now()
	slices := 0
	for next := c.eng.Next(); next < until && c.err == nil; next = c.eng.Next() {
		c.tell(next)
		c.run(min(next+slice, until))
		if slices++; slices > fewSlices && time.Since(begin) > chase {
			c.Rest()
			return
		}
	}
	c.run(until)
}

// Pass lets virtual time pass to t even when nothing happens until then.
func (c *Clock) Pass(t sim.Time) {
	if c.eng.Next() > t {
		c.eng.At(t, func(uint64) {}, 0)
	}
	c.run(t)
}

func (c *Clock) tell(t sim.Time) {
	if c.Before != nil {
		c.Before(t)
	}
}

func (c *Clock) run(t sim.Time) {
	if err := c.eng.Run(t); err != nil && c.err == nil {
		c.err = fmt.Errorf("the simulator: %w", err)
	}
}

// Advance runs the work of the device, up to a number of instants of virtual time, and reports
// whether there was any. With busy even a long pause is jumped over: somebody waits for the device,
// and not it for him.
func (c *Clock) Advance(instants int, busy bool) bool {
	for n := range instants {
		next := c.eng.Next()
		if next == sim.Never || c.err != nil {
			return n > 0
		}
		if (c.throttle || next-c.eng.Now() > Gap && !busy) && next > c.Real()+c.lead {
			return n > 0
		}
		before := c.eng.Now()
		c.tell(next)
		c.run(next)
		c.worked += min(c.eng.Now()-before, longestStep)
	}
	return true
}

// longestStep is the most that one step of a device's work takes, such as a page fault. Where no
// event comes for longer, a timer was waited for.
const longestStep = sim.Millisecond

// Worked is how much virtual time has passed while the device had something to do. Pauses do not
// count, nor what falls due in one that software ends; of the wait for a timer longestStep does.
// The software's own time is not in it.
func (c *Clock) Worked() sim.Time { return c.worked }

// Wait is how much real time passes until the device has something to do by itself, 0 when it has
// now; false, when it has nothing to do.
func (c *Clock) Wait() (time.Duration, bool) {
	next := c.eng.Next()
	if next == sim.Never || c.err != nil {
		return 0, false
	}
	return max(0, time.Duration((next-c.Real())/sim.Nanosecond)), true
}
