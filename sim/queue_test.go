package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The queue gives events out by (t, seq), whichever tier they were in, for pushes
// that are never before the last pop.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		q.init()
		var model []event
		now, seq := Time(0), uint64(0)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0, 1, 2:
				d := rapid.OneOf(
					rapid.Just(Time(0)),
					rapid.Map(rapid.Int64Range(0, 1<<tickShift), func(v int64) Time { return Time(v) }),
					rapid.Map(rapid.Int64Range(0, wheelSize<<tickShift), func(v int64) Time { return Time(v) }),
					rapid.Map(rapid.Int64Range(0, 1<<40), func(v int64) Time { return Time(v) }),
				).Draw(t, "delay")
				for range rapid.IntRange(1, 40).Draw(t, "burst") {
					seq++
					x := event{t: now + d, seq: seq, arg: seq}
					if rapid.Bool().Draw(t, "program") {
						x.seq |= procClass
					}
					q.push(x.t, x.seq, x.h, x.arg)
					model = append(model, x)
				}
			case 3:
				if q.n() > 0 {
					slices.SortFunc(model, compareEvents)
					if at, seq := q.min(); seq != model[0].seq {
						t.Fatalf("min is %v/%d, want %v/%d", at, seq, model[0].t, model[0].seq)
					}
				}
			default:
				for range rapid.IntRange(1, 60).Draw(t, "pops") {
					if q.n() == 0 {
						break
					}
					slices.SortFunc(model, compareEvents)
					q.limitTo(model[0].t - 1)
					if x := q.take(); x != nil {
						t.Fatalf("took an event before %v", model[0].t)
					}
					q.limitTo(model[0].t)
					x := q.take()
					if x == nil || x.t != model[0].t || x.arg != model[0].arg {
						t.Fatalf("took %v, want %v/%d", x, model[0].t, model[0].arg)
					}
					now = x.t
					model = model[1:]
				}
			}
			if q.n() != len(model) {
				t.Fatalf("%d events, want %d", q.n(), len(model))
			}
		}
	})
}

func compareEvents(a, b event) int {
	if a.before(&b) {
		return -1
	}
	return 1
}

// A steady run allocates nothing, whatever tiers its delays use.
func TestEventsDoNotAllocate(t *testing.T) {
	e := New(Options{})
	i := 0
	var h Handler
	h = func(arg uint64) {
		i++
		e.After(delays[i&1023], h, arg)
	}
	for k := range 1000 {
		e.After(delays[k], h, 0)
	}
	until := 200 * Microsecond
	if err := e.Run(until); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		until += 20 * Microsecond
		if err := e.Run(until); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // a table may still grow once in a while
		t.Errorf("%v allocations for each 20us", n)
	}
}
