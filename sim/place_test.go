package sim

import (
	"errors"
	"slices"
	"testing"
)

// A place that is reserved stands where the event would: behind what was scheduled for the
// instant before, in front of what was scheduled after, and of programs.
func TestPlaceStandsForItsEvent(t *testing.T) {
	e := New(Options{})
	var p Place
	var passed []bool
	look := func(uint64) { passed = append(passed, e.Passed(p)) }
	e.At(5, look, 0)
	e.At(7, look, 0)
	p = e.Reserve(7)
	e.At(7, look, 0)
	e.At(7, func(uint64) { e.At(7, look, 0) }, 0)
	e.Go("late", func(q *Proc) { q.Sleep(7); look(0) })
	if err := e.Run(Never); err != nil {
		t.Fatal(err)
	}
	if want := []bool{false, false, true, true, true}; !slices.Equal(passed, want) {
		t.Errorf("passed %v, want %v", passed, want)
	}
}

// AtPlace puts the event where it would have been.
func TestAtPlace(t *testing.T) {
	e := New(Options{})
	var got []uint64
	h := func(x uint64) { got = append(got, x) }
	e.At(7, h, 1)
	p := e.Reserve(7)
	e.At(7, h, 3)
	e.At(3, func(uint64) { e.AtPlace(p, h, 2) }, 0)
	if err := e.Run(Never); err != nil || !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Errorf("%v: order %v", err, got)
	}
}

// Events of a lane come first, and their order does not depend on when they were scheduled.
func TestLaneOrder(t *testing.T) {
	for _, early := range []bool{false, true} {
		e := New(Options{})
		a, b := e.NewLane(), e.NewLane()
		var got []uint64
		h := func(x uint64) { got = append(got, x) }
		set := func(uint64) {
			b.At(9, h, 3)
			a.At(9, h, 1)
			a.At(9, h, 2)
		}
		e.At(9, h, 4)
		if early {
			set(0)
		} else {
			e.At(8, set, 0)
		}
		if err := e.Run(Never); err != nil || !slices.Equal(got, []uint64{1, 2, 3, 4}) {
			t.Errorf("scheduled early %v: %v: order %v", early, err, got)
		}
	}
}

// An event of a lane that another event of the same instant schedules does not take back
// what has passed.
func TestLaneBehindAnEvent(t *testing.T) {
	e := New(Options{})
	l := e.NewLane()
	var p Place
	seen := false
	p = e.Reserve(4)
	e.At(4, func(uint64) { l.At(4, func(uint64) { seen = e.Passed(p) }, 0) }, 0)
	if err := e.Run(Never); err != nil || !seen {
		t.Errorf("%v: the place has passed: %v", err, seen)
	}
}

// No program runs ahead over a barrier: what the event does to it, it does before.
func TestBarrier(t *testing.T) {
	for _, lockstep := range []bool{false, true} {
		e := New(Options{Lockstep: lockstep})
		steps := 0
		victim := e.Go("victim", func(p *Proc) {
			for range 10 {
				p.Advance(10)
				steps++
			}
		})
		for _, at := range []Time{60, 35} {
			e.AtBarrier(at, func(uint64) { victim.Kill() }, 0)
		}
		if err := e.Run(Never); err != nil || steps != 3 {
			t.Errorf("lockstep %v: %v: %d steps before it was killed, want 3", lockstep, err, steps)
		}
	}
}

// A run that only has places left ends as if they were events.
func TestPlacesEndARun(t *testing.T) {
	e := New(Options{})
	e.Go("waits", func(p *Proc) { p.Park("nothing") })
	e.Reserve(20)
	if err := e.Run(10); err != nil || e.Now() != 10 {
		t.Errorf("%v at %v, want no error at 10ps", err, e.Now())
	}
	var d *Deadlock
	if err := e.Run(Never - 1); !errors.As(err, &d) || d.At != 20 {
		t.Errorf("%v, want a deadlock at 20ps", err)
	}
}
