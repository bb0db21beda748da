package pace

import (
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
)

// TestGaps: short pauses take no real time, long ones are waited out.
func TestGaps(t *testing.T) {
	e := sim.New(sim.Options{})
	c := New(e, false)
	n := 0
	count := func(uint64) { n++ }
	e.At(10*sim.Microsecond, count, 0)
	e.At(50*sim.Microsecond, count, 0)
	e.At(sim.Time(time.Hour)*sim.Nanosecond, count, 0)
	for c.Advance(16, false) {
	}
	if n != 2 || e.Now() != 50*sim.Microsecond {
		t.Errorf("%d events, at %v", n, e.Now())
	}
	c.Rest()
	if d, ok := c.Wait(); !ok || d < 59*time.Minute || d > time.Hour {
		t.Errorf("wait of %v, %v", d, ok)
	}
	if !c.Advance(16, true) || n != 3 || c.Advance(16, true) {
		t.Errorf("%d events", n)
	}
	if _, ok := c.Wait(); ok {
		t.Error("there is something left")
	}
}

// TestCatchUp: a pause passes in virtual time, and what falls due in it happens.
func TestCatchUp(t *testing.T) {
	e := sim.New(sim.Options{})
	c := New(e, false)
	n := 0
	e.At(sim.Millisecond, func(uint64) { n++ }, 0)
	c.wall = c.wall.Add(-time.Second)
	c.CatchUp()
	if n != 1 || e.Now() < sim.Millisecond {
		t.Errorf("%d events, at %v", n, e.Now())
	}
	c.Pass(2 * sim.Second)
	if e.Now() != 2*sim.Second {
		t.Errorf("at %v", e.Now())
	}
	c.Rest()
	if r := c.Real(); r < 2*sim.Second {
		t.Errorf("real time %v", r)
	}
}

// TestPauseOfAnIdleDevice: a timer that is set after a pause without anything to do counts from
// then, also where the program comes back before the device is idle again.
func TestPauseOfAnIdleDevice(t *testing.T) {
	e := sim.New(sim.Options{})
	c := New(e, false)
	c.wall = c.wall.Add(-100 * time.Millisecond)
	c.CatchUp()
	begin := e.Now()
	e.At(begin+sim.Second, func(uint64) {}, 0)
	c.CatchUp()
	if d, ok := c.Wait(); !ok || d < 950*time.Millisecond {
		t.Errorf("a timer of 1 s expires %v after it was set", d)
	}
}

// TestWorkInPausesBringsNoTimerOn: a device that does something now and then by itself, which takes
// no real time, does not run ahead of real time by the sum of that.
func TestWorkInPausesBringsNoTimerOn(t *testing.T) {
	const period, steps, pauses = 10 * sim.Millisecond, 10, 100
	e := sim.New(sim.Options{})
	begin := time.Now()
	c := New(e, false)
	var work func(uint64)
	work = func(left uint64) {
		if left == 0 {
			e.After(period, work, steps)
			return
		}
		e.After(Gap-sim.Microsecond, work, left-1)
	}
	e.At(period, work, steps)
	for range pauses {
		c.wall = c.wall.Add(-time.Duration(period / sim.Nanosecond))
		for c.Advance(16, false) {
		}
		c.Rest()
	}
	if real := pauses*period + sim.Time(time.Since(begin))*sim.Nanosecond; e.Now() > real+lagLimit {
		t.Errorf("at %v after %v of real time", e.Now(), real)
	}
}

// TestThrottle: virtual time does not run ahead.
func TestThrottle(t *testing.T) {
	e := sim.New(sim.Options{})
	c := New(e, true)
	n := 0
	e.At(sim.Time(time.Hour)*sim.Nanosecond, func(uint64) { n++ }, 0)
	if c.Advance(16, true) || n != 0 {
		t.Error("it ran ahead")
	}
	e.Fail(sim.ErrTimeRange)
	c.CatchUp()
	if c.Err() == nil || c.Advance(16, false) {
		t.Error("the failure is not kept")
	}
}

// TestCatchUpOfAStarvedMachine: where little was due and other programs had the processor
// meanwhile, the pause passes all the same.
func TestCatchUpOfAStarvedMachine(t *testing.T) {
	e := sim.New(sim.Options{})
	c := New(e, false)
	for i := range 4 {
		e.At(sim.Time(i+1)*sim.Millisecond, func(uint64) { time.Sleep(2 * chase) }, 0)
	}
	e.At(sim.Time(time.Hour)*sim.Nanosecond, func(uint64) {}, 0)
	c.wall = c.wall.Add(-time.Minute)
	c.CatchUp()
	if e.Now() < 60*sim.Second {
		t.Errorf("at %v", e.Now())
	}
}

// TestCatchUpEnds: a pause in which the device is found to have had more to do than the simulator
// can follow is given up, since programs wait meanwhile.
func TestCatchUpEnds(t *testing.T) {
	const step, all = 100 * sim.Nanosecond, 20_000
	for _, throttle := range []bool{false, true} {
		e := sim.New(sim.Options{})
		c := New(e, throttle)
		n := 0
		var busy func(uint64)
		busy = func(uint64) {
			if n++; n < all {
				for begin := time.Now(); time.Since(begin) < 20*time.Microsecond; {
				}
				e.After(step, busy, 0)
			}
		}
		e.At(0, busy, 0)
		c.wall = c.wall.Add(-time.Second)
		c.CatchUp()
		if n == 0 || n > all/2 {
			t.Errorf("throttled %v: %d steps of the device", throttle, n)
		}
		if c.virtual != e.Now() {
			t.Errorf("throttled %v: pauses count from %v, and it is %v", throttle, c.virtual, e.Now())
		}
	}
}

// TestBound: virtual time runs ahead of real time by no more than the lead, and what a busy device
// waits for, it waits for from when it has been found busy.
func TestBound(t *testing.T) {
	e := sim.New(sim.Options{})
	c := New(e, false)
	c.Bound(40 * sim.Microsecond)
	n := 0
	count := func(uint64) { n++ }
	for _, at := range []sim.Time{10 * sim.Microsecond, 30 * sim.Microsecond, sim.Second, sim.Second + 30*sim.Microsecond} {
		e.At(at, count, 0)
	}
	for c.Advance(16, false) {
	}
	if n != 2 {
		t.Errorf("%d events", n)
	}
	c.Keep() // not behind: nothing changes
	c.wall = c.wall.Add(-10 * time.Second)
	c.Keep() // the simulator was busy for 10 s
	if c.Advance(16, false) || n != 2 {
		t.Error("a timer ran off while the simulator was busy")
	}
	c.wall = c.wall.Add(-2 * time.Second)
	c.PassIdle() // the simulator had no processor for 2 s: one timer is due, and nothing behind its lead
	e.At(sim.Second+50*sim.Millisecond, count, 0)
	if n != 2 || e.Now() != sim.Second-1 {
		t.Errorf("%d events, at %v", n, e.Now())
	}
	for c.Advance(16, false) {
	}
	if n != 4 || e.Now() != sim.Second+30*sim.Microsecond {
		t.Errorf("%d events, at %v", n, e.Now())
	}
	if d, ok := c.Wait(); !ok || d < 30*time.Millisecond || d > 50*time.Millisecond {
		t.Errorf("wait of %v", d)
	}
	c.wall = c.wall.Add(-time.Millisecond)
	if c.PassIdle(); e.Now() < sim.Second+sim.Millisecond {
		t.Errorf("at %v", e.Now())
	}
}
