package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rdmasim/rdmasim/sim/rule"
)

// Handler is what an event calls: a function bound once, when its unit is made,
// and one word that says which of the unit's objects the event is about. A fresh
// closure per event would allocate.
type Handler func(arg uint64)

// ErrTimeRange is reported by a run in which an event was asked for beyond the
// range of Time. Units hold absolute times, so the clock is never rebased: a run
// that needs more must be cut into several.
var ErrTimeRange = errors.New("sim: time beyond the range of the clock (106 days)")

// ErrEventBudget is reported by a run that used up Options.MaxEvents.
var ErrEventBudget = errors.New("sim: event budget used up")

// Options of an engine.
type Options struct {
	Seed uint64 // root of every draw of the run
	// MaxEvents bounds the events and the synchronisations of programs; 0: no limit.
	MaxEvents uint64
	// Lockstep makes programs yield at every Advance instead of running ahead of
	// the queue over private state, and units take each step by an event of its own
	// instead of computing ahead. Results are the same, byte for byte; tests compare
	// the two.
	Lockstep bool
	// Broken are the rules that the units of the run break: none but in a mutant.
	Broken rule.Broken
	// Interrupt, when not nil, is called once every interruptEvery events; when it returns
	// true, the run ends early with ErrInterrupted. Nothing simulated depends on it.
	Interrupt func() bool
	// Horizon is how far a program may run ahead of the queue, less than that: whoever ends
	// others, or takes from them what they have for themselves, announces it by so much
	// (Engine.Barrier). 0: as far as it likes.
	Horizon Time
}

// ErrInterrupted is reported by a run that Options.Interrupt ended.
var ErrInterrupted = errors.New("sim: interrupted")

// interruptEvery is how many events pass between two calls of Options.Interrupt; a power of two.
const interruptEvery = 1 << 14

// Engine is the clock and the event queue of one run.
//
// Contract of order: events run by increasing (time, sequence). Events that
// device code schedules take their sequence at the moment of scheduling. Those of a
// Lane come before them at the same instant. What a program does (its resumptions and
// its Posts) comes after them, ordered by program number and then by the program's own
// count. So the order depends neither on how far a program ran ahead nor on how early
// a unit knew of an event.
type Engine struct {
	// What each event and each step of a program needs comes first, in few cache lines; the
	// queue ends with its wheel, which is large.
	steps uint64 // events, and synchronisations that needed none
	pause uint64 // steps at which Run looks further: 0 when it is to stop, else ask
	place uint64 // sequence of what is running
	seq   uint64 // of the event that was scheduled last
	// limit is min(barrier, now+reach) of some time up to now, and never positive in lockstep: a
	// program advances to a time before it without asking more.
	limit   Time
	until   Time // limit of the Run in progress
	cur     *Proc
	stop    bool
	running bool
	ask     uint64 // steps at which Run looks at the budget and asks Interrupt
	last    Time   // the latest Place that was reserved
	syncs   uint64 // of the steps, the synchronisations
	horizon Time   // programs are less ahead of now
	reach   Time   // horizon, if the sum with a time is not beyond the clock
	allow   Time   // barrier; 0 in lockstep
	barrier Time   // no program runs ahead to it or over it
	opt     Options
	queue   queue

	lanes    uint64
	barriers []Time // barrier and those behind it, in order
	procs    []*Proc
	err      error
	Spans    *Spans // nil when no timeline is recorded
	// Counters is the registry of what the units count.
	Counters Counters
}

// New makes an engine at time 0 with an empty queue.
func New(opt Options) *Engine {
	e := &Engine{opt: opt, seq: eventClass, barrier: Never}
	e.opt.MaxEvents = cmp.Or(e.opt.MaxEvents, math.MaxUint64)
	if e.horizon = opt.Horizon; e.horizon <= 0 {
		e.horizon = Never
	}
	e.reach = min(e.horizon, Never/2)
	e.queue.init()
	e.lift()
	return e
}

// Now is the time of the event that is running.
func (e *Engine) Now() Time { return e.queue.now }

// Current is the program that runs now, or nil in the handler of an event.
func (e *Engine) Current() *Proc { return e.cur }

// Events is how many events have run.
func (e *Engine) Events() uint64 { return e.steps - e.syncs }

// Pending is how many events are scheduled.
func (e *Engine) Pending() int { return e.queue.n() }

// Next is the time of the first scheduled event, Never when there is none: a caller that paces a
// run by another clock asks it.
func (e *Engine) Next() Time {
	if e.queue.empty() {
		return Never
	}
	t, _ := e.queue.min()
	return t
}

// Lockstep says whether the run takes every step by an event of its own.
func (e *Engine) Lockstep() bool { return e.opt.Lockstep }

// Broken are the rules that the run breaks; units take the set over when they are made.
func (e *Engine) Broken() rule.Broken { return e.opt.Broken }

// Seed is the run's root seed.
func (e *Engine) Seed() uint64 { return e.opt.Seed }

// Rand makes the stream of draws of that name for this run.
func (e *Engine) Rand(name string) *Rand { return NewRand(e.opt.Seed, name) }

// Err is the first error of the run, or nil.
func (e *Engine) Err() error { return e.err }

// After schedules h(arg) d after now. A negative d is a bug of the caller and
// panics; a sum beyond the clock's range ends the run with ErrTimeRange. After
// Never nothing happens.
func (e *Engine) After(d Time, h Handler, arg uint64) {
	if d < 0 {
		panic(fmt.Sprintf("sim: at %v: event %v in the past", e.queue.now, d))
	}
	t := e.queue.now + d
	if t < e.queue.now {
		if d != Never {
			e.Fail(ErrTimeRange)
		}
		return
	}
	e.At(t, h, arg)
}

// At schedules h(arg) at t, which is not before now. An event at Never does not
// happen, and is not kept.
func (e *Engine) At(t Time, h Handler, arg uint64) {
	e.seq++
	e.queue.push(t, e.seq, h, arg)
}

// AtBarrier is At of an event that ends programs or changes under their hands what they
// need not synchronise for: until it has run, no program runs ahead to t or over it.
func (e *Engine) AtBarrier(t Time, h Handler, arg uint64) {
	e.At(t, h, arg)
	e.Barrier(t)
}

// Barrier has no program run ahead to t or over it. A program that means to do there what
// others need not synchronise for sets it, at least Options.Horizon before.
func (e *Engine) Barrier(t Time) {
	e.barriers = append(e.barriers, t)
	slices.Sort(e.barriers)
	e.lift()
}

// lift takes away the barriers that the run has passed.
func (e *Engine) lift() {
	n := 0
	for n < len(e.barriers) && e.barriers[n] < e.queue.now {
		n++
	}
	e.barrier = Never
	if e.barriers = e.barriers[n:]; len(e.barriers) > 0 {
		e.barrier = e.barriers[0]
	}
	if !e.opt.Lockstep {
		e.allow = e.barrier
	}
	e.setNow(e.queue.now)
}

// setNow sets the clock, and so how far programs may run ahead.
func (e *Engine) setNow(t Time) { e.queue.now, e.limit = t, min(e.allow, t+e.reach) }

// Fail ends the run with err after the event that is running.
func (e *Engine) Fail(err error) {
	e.err = cmp.Or(e.err, err)
	e.Stop()
}

// Stop ends Run after the event that is running; Run can be called again.
func (e *Engine) Stop() { e.stop, e.pause = true, 0 }

// Run runs events until the queue is empty, Stop or Fail is called, the event
// budget is used up, or the next event is later than until. It returns the first
// error of the run. An empty queue with programs that wait is a *Deadlock. A panic
// of a program surfaces as a *ProgramPanic. Events and programs may not call Run.
func (e *Engine) Run(until Time) error {
	if e.running {
		panic(fmt.Sprintf("sim: at %v: Run inside Run", e.queue.now))
	}
	e.running = true
	defer func() { e.running, e.cur = false, nil }()
	e.stop, e.pause, e.until = false, e.ask, until
	if e.err != nil {
		e.Stop()
	}
	e.queue.limitTo(until)
	for e.steps < e.pause || e.goesOn() {
		x := e.queue.cur
		if x.t < e.queue.bound { // queue.take, which is not inlined
			e.queue.drop(x)
		} else if x = e.queue.takeSlowly(); x == nil {
			e.idle(until)
			break
		}
		if x.t != e.queue.now || x.seq >= eventClass { // behind an event that scheduled it for this instant, one of a lane passes nothing
			e.place = x.seq
		}
		e.queue.now = x.t // limit may be of a time before: advance sees to it
		e.steps++
		x.h(x.arg)
	}
	return e.err
}

// goesOn says whether Run takes another event, if there is one, where it has to look.
//
//go:noinline
func (e *Engine) goesOn() bool { return !e.stop && (!e.due(e.until) || e.proceed()) }

// idle is the end of a Run in which nothing is due any more. What was put off counts as
// the events that it stands for.
func (e *Engine) idle(until Time) {
	e.place = math.MaxUint64
	if !e.queue.empty() || e.last > until {
		e.setNow(max(e.queue.now, until))
		return
	}
	e.setNow(max(e.queue.now, e.last))
	if d := e.deadlock(); d != nil {
		e.Fail(d)
	}
}

// proceed says whether the run may go on, and until which step it need not be asked.
func (e *Engine) proceed() bool {
	if e.steps >= e.opt.MaxEvents {
		e.Fail(ErrEventBudget)
		return false
	}
	e.ask = e.opt.MaxEvents
	if e.opt.Interrupt != nil {
		if e.opt.Interrupt() {
			e.Fail(ErrInterrupted)
			return false
		}
		e.ask = min(e.ask, e.steps+interruptEvery)
	}
	e.pause = e.ask
	return true
}

// due says whether an event is left that is not later than until.
func (e *Engine) due(until Time) bool {
	if e.queue.empty() {
		return false
	}
	t, _ := e.queue.min()
	return t <= until
}
