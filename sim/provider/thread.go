package provider

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// ErrWrongThread is what a call panics with when the thread it is given is not the
// one that makes it.
var ErrWrongThread = errors.New("verbs call with another thread's value")

// Thread is a simulated thread: a program pinned on a core. It implements
// verbs.Thread, and is the only implementation that the provider accepts.
type Thread struct {
	P    *sim.Proc
	Core *cpu.Core

	proc   verbs.Process
	name   string
	joiner *Thread // that waits in Join
	ended  bool
	caller kernel.Caller
	signal kernel.Signal

	clock   func() time.Duration // of Now; nil: virtual time
	waiting bool                 // in ParkUntil
	unspent sim.Time             // cost of what a poll did, to be spent at its end
	spin    spin                 // in PollWait
	spans   *sim.Spans           // nil: no timeline
	track   int32
}

// NewThread makes a thread, which Bind gives its program.
func NewThread(proc verbs.Process, name string) *Thread { return &Thread{proc: proc, name: name} }

// Bind gives the thread its program and core, before the program has run.
func (t *Thread) Bind(p *sim.Proc, core *cpu.Core) {
	t.P, t.Core = p, core
	t.caller = kernel.Caller{P: p, Core: core, Signal: &t.signal}
	if e := p.Engine(); e.Spans != nil {
		t.spans, t.track = e.Spans, e.Spans.Track(p.Name())
	}
	p.OnExit(func() {
		t.ended = true
		if j := t.joiner; j != nil {
			j.Wake(max(p.Now(), p.Engine().Now())) // one that was killed may have stopped before
		}
	})
}

// span records a call of the library in the timeline, from start to now.
func (t *Thread) span(name string, start sim.Time, arg uint64) {
	if t.spans != nil {
		t.spans.Span(t.track, name, start, t.P.Now(), arg)
	}
}

// Of is the simulated thread behind t. It panics with ErrWrongThread unless t is the
// program that runs now.
func Of(t verbs.Thread) *Thread {
	s, ok := t.(*Thread)
	if !ok || s.P == nil || !s.P.Runs() {
		refuse(t)
	}
	return s
}

func refuse(t verbs.Thread) { panic(wrongThread(t)) }

func wrongThread(t verbs.Thread) error {
	if s, ok := t.(*Thread); ok && s != nil {
		return fmt.Errorf("thread %q: %w", s.name, ErrWrongThread)
	}
	return fmt.Errorf("a %T that is no thread of this testbed: %w", t, ErrWrongThread)
}

// Process is the process of the thread.
func (t *Thread) Process() verbs.Process { return t.proc }

// Name is the name given to Start.
func (t *Thread) Name() string { return t.name }

// Now is the thread's clock in nanoseconds of virtual time, or that of SetClock.
func (t *Thread) Now() time.Duration {
	if t.clock != nil {
		return t.clock()
	}
	return Duration(t.P.Now())
}

// SetClock has Now read another clock: the thread talks to somebody whose time is not virtual.
func (t *Thread) SetClock(now func() time.Duration) { t.clock = now }

// Sleep gives the core away for d.
func (t *Thread) Sleep(d time.Duration) {
	Of(t)
	t.P.Sleep(FromDuration(d))
}

// Work spends d of CPU time.
func (t *Thread) Work(d time.Duration) {
	Of(t)
	t.Core.Run(t.P, FromDuration(d))
}

// Join waits for other to end.
func (t *Thread) Join(other verbs.Thread) {
	Of(t)
	o, ok := other.(*Thread)
	if !ok {
		panic(wrongThread(other))
	}
	t.P.Sync()
	for !o.ended {
		prev := o.joiner
		o.joiner = t
		t.ParkUntil("thread "+o.name, sim.Never)
		if prev != nil && !prev.ended {
			prev.Wake(t.P.Now())
		}
	}
}

// Interrupt sends other a signal. A thread of another process cannot be reached so:
// ESRCH.
func (t *Thread) Interrupt(other verbs.Thread) error {
	Of(t)
	o, ok := other.(*Thread)
	if !ok {
		panic(wrongThread(other))
	}
	t.P.Sync()
	if o.proc != t.proc || o.ended {
		return fmt.Errorf("thread %q signals %q: %w", t.name, o.name, syscall.ESRCH)
	}
	o.signal.Raise()
	return nil
}

// Duration is t rounded down to the nanoseconds of time.Duration.
func Duration(t sim.Time) time.Duration { return time.Duration(t / sim.Nanosecond) }

// FromDuration is d as simulated time; longer than the clock's range is Never.
func FromDuration(d time.Duration) sim.Time {
	if d < 0 {
		return 0
	}
	if t := sim.Time(d); t < sim.Never/sim.Nanosecond {
		return t * sim.Nanosecond
	}
	return sim.Never
}

// until is the deadline of a wait of d from now.
func (t *Thread) until(d time.Duration) sim.Time {
	w := FromDuration(d)
	if w == sim.Never || t.P.Now() > sim.Never-w {
		return sim.Never
	}
	return t.P.Now() + w
}

// ParkUntil waits for wake or for the deadline. It reports whether it was woken. The
// caller has looked at what it waits for with no yield in between.
func (t *Thread) ParkUntil(why string, deadline sim.Time) bool {
	t.waiting = true
	timedOut := t.P.ParkUntil(why, max(deadline, t.P.Now()))
	t.waiting = false
	return !timedOut
}

// Wake ends a ParkUntil at the given time, not in the past.
func (t *Thread) Wake(at sim.Time) {
	if t.waiting {
		t.P.Wake(at)
	}
}

// Abort is what a thread panics with when the library ends its process, as libmlx5
// does with abort(3). The testbed kills the process and keeps the text.
type Abort struct{ Text string }

// Error returns the message.
func (a Abort) Error() string { return a.Text }

// breaks says whether the run breaks a rule of the library, to see whether that is
// noticed (sim/mutant).
func (t *Thread) breaks(r rule.Rule) bool { return rule.Mutants && t.P.Engine().Broken().Has(r) }

// answers changes what a call returns, in a run whose calls say the wrong reason.
func (t *Thread) answers(err *error) {
	if rule.Mutants {
		*err = t.P.Engine().Broken().Answer(*err)
	}
}

// store64 stores v at a register in network order.
func (t *Thread) store64(m *cpu.Mapping, off, v uint64) {
	var b [prm.DoorbellSize]byte
	for i := range b {
		b[i] = byte(v >> (56 - 8*i))
	}
	t.Core.Store(t.P, m, off, b[:])
}

// neverDeadline waits as long as it takes.
const neverDeadline = sim.Never

// spin is a thread's loop in PollWait. Its next look at the CQ is at phase plus a whole
// number of turns.
type spin struct {
	phase sim.Time
	turn  sim.Time
	next  sim.Time // the look that will find something; 0: nothing has come
}
