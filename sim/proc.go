package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
)

// Proc is a program: a coroutine with a local clock. It may run ahead of the
// queue over state that only it can see; before anything that another agent can
// see it calls Sync. Only the coroutine itself calls its methods, except Wake,
// Kill and the queries.
type Proc struct {
	eng    *Engine
	name   string
	id     uint64
	seq    uint64 // of what it did last: its number, and above all of devices
	local  Time
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	resume Handler
	why    string
	onExit []func()
	timer  timer

	parked  bool
	queued  bool // its resumption is in the queue
	spins   bool // in Spin
	started bool
	dying   bool // being unwound by Kill
	done    bool
	daemon  bool

	lockstep bool // Options.Lockstep
}

// The sequences of lanes, of other events of devices, and of what programs do: at the
// same instant they come in this order.
const (
	eventClass = 1 << 62
	procClass  = 1 << 63
)

// Killed is the panic value that unwinds a program which Kill ended.
type Killed struct{ Name string }

// ProgramPanic is the panic value with which Run passes on a panic in a program,
// whose own stack is gone by then.
type ProgramPanic struct {
	Program string
	At      Time
	Value   any
	Stack   []byte
}

// Error returns the message.
func (p *ProgramPanic) Error() string {
	return fmt.Sprintf("program %s at %v: panic: %v\n\n%s", p.Program, p.At, p.Value, p.Stack)
}

// Unwrap is the panic's value when it is an error.
func (p *ProgramPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Go starts a program at now; started by a program, at that one's local time. The
// body runs in its own coroutine. The program is over when the body has returned
// and its local time has come.
func (e *Engine) Go(name string, body func(p *Proc)) *Proc {
	p := &Proc{eng: e, name: name, id: uint64(len(e.procs)), local: e.queue.now, lockstep: e.opt.Lockstep}
	p.seq = procClass | p.id<<40
	p.timer.init(p)
	if e.cur != nil {
		p.local = max(p.local, e.cur.local)
	}
	e.procs = append(e.procs, p)
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield, p.started = yield, true
		defer func() {
			r := recover()
			if _, ok := r.(Killed); r != nil && !ok {
				if _, wrapped := r.(*ProgramPanic); !wrapped {
					r = &ProgramPanic{p.name, p.local, r, debug.Stack()}
				}
				p.exit()
				panic(r)
			}
			p.exit()
		}()
		body(p)
		p.Sync() // others see the end, and so it is in order
	})
	p.resume = func(uint64) {
		if p.done {
			return
		}
		p.queued, p.parked = false, false
		prev := e.cur
		e.cur = p
		p.next()
		e.cur = prev
	}
	p.schedule()
	return p
}

// exit marks the coroutine as ended and calls the OnExit functions, last first.
func (p *Proc) exit() {
	p.done = true
	for i := len(p.onExit) - 1; i >= 0; i-- {
		p.onExit[i]()
	}
	p.onExit = nil
}

func (p *Proc) key() uint64 {
	p.seq++
	return p.seq
}

func (p *Proc) schedule() {
	p.queued = true
	p.eng.queue.push(p.local, p.key(), p.resume, 0)
}

// Name is the name given to Go.
func (p *Proc) Name() string { return p.name }

// ID is the program's number: programs of one instant run in this order.
func (p *Proc) ID() int { return int(p.id) }

// Engine is the engine that runs the program.
func (p *Proc) Engine() *Engine { return p.eng }

// Runs reports whether this is the program that runs now.
func (p *Proc) Runs() bool { return p.eng.cur == p }

// Now is the program's local time, at or ahead of the engine's.
func (p *Proc) Now() Time { return p.local }

// Done reports whether the body has returned.
func (p *Proc) Done() bool { return p.done }

// OnExit has f called when the body returns or the program is killed.
func (p *Proc) OnExit(f func()) { p.onExit = append(p.onExit, f) }

// SetDaemon says that the program serves others and may wait for ever: it alone
// makes no deadlock.
func (p *Proc) SetDaemon() { p.daemon = true }

// Advance spends d of the program's own time on private work.
func (p *Proc) Advance(d Time) {
	if d < 0 {
		panic(fmt.Sprintf("sim: %s at %v advances by %v", p.name, p.local, d))
	}
	p.AdvanceTo(p.local + d)
}

// AdvanceTo is Advance by what is missing to t. A t before the local time is beyond
// the range of the clock.
func (p *Proc) AdvanceTo(t Time) {
	if t < p.local || t >= p.eng.limit {
		p.advance(t)
		return
	}
	p.local = t
}

// advance is AdvanceTo beyond the limit: in lockstep, over a barrier or the horizon, or beyond
// the clock.
func (p *Proc) advance(t Time) {
	if t < p.local || t == Never {
		p.eng.Fail(ErrTimeRange)
		p.block()
	}
	p.local = t
	p.eng.lift()
	if p.lockstep || t >= p.eng.barrier || t-p.eng.queue.now >= p.eng.horizon {
		p.Sync()
	}
}

// Sync waits until everything due before the program's local time has run, so
// that it sees, and is seen, in order. It costs a switch only if something is due.
func (p *Proc) Sync() {
	e := p.eng
	switch x := e.queue.cur; {
	case p.dying:
	case x.t < p.local: // due before, if not the next
		p.schedule()
		p.block()
	case p.local < x.t && (x != e.queue.end || e.queue.nonEmptyWords == 0) && p.local < e.queue.bound && p.local < e.limit && e.steps < e.pause:
		p.pass() // the next one is later, for sure
	default:
		p.syncSlowly()
	}
}

//go:noinline
func (p *Proc) syncSlowly() {
	e := p.eng
	if p.local <= e.until && !e.stop && e.steps < e.opt.MaxEvents &&
		(!e.opt.Lockstep || p.local == e.queue.now) {
		if e.queue.empty() || p.first(e.queue.min()) {
			p.pass()
			return
		}
	}
	p.schedule()
	p.block()
}

// pass is a synchronisation for which nothing has to run.
func (p *Proc) pass() {
	e := p.eng
	e.steps++
	e.syncs++
	e.setNow(p.local)
	e.place = p.seq
}

// first reports whether the program goes on before the event of a key.
func (p *Proc) first(t Time, seq uint64) bool {
	return t > p.local || t == p.local && seq > p.seq
}

// Sleep is Advance and Sync.
func (p *Proc) Sleep(d Time) {
	p.Advance(d)
	p.Sync()
}

// Park waits until Wake. The reason is what a deadlock report prints.
func (p *Proc) Park(why string) {
	p.parked, p.why = true, why
	p.block()
	p.why = ""
}

// Spin is Park by a program that keeps its core busy while it waits, for what another program
// does. That one may be ahead of the queue and wake it before: so it is never Idle meanwhile.
func (p *Proc) Spin(why string) {
	p.spins = true
	p.Park(why)
	p.spins = false
}

// ParkUntil is Park with a deadline, not before the local time; it reports whether
// the deadline passed first. What happens at the instant of the deadline by the
// hand of a device is still in time. Never: no deadline.
func (p *Proc) ParkUntil(why string, deadline Time) (timedOut bool) {
	p.timer.set(deadline)
	p.Park(why)
	return p.timer.clear()
}

// Parked reports whether the program waits in Park with no wake-up under way.
func (p *Proc) Parked() bool { return p.parked && !p.queued }

// Idle reports, to a program that has synchronised, whether this one is itself, has ended, or
// waits in Park since before: it is not ahead of the queue. That depends on what is in order
// alone, and not on how far ahead of the queue any program is.
func (p *Proc) Idle() bool {
	e := p.eng
	before := p.local < e.queue.now || p.local == e.queue.now && (e.cur == nil || p.id < e.cur.id)
	return p.done || p == e.cur || p.Parked() && !p.spins && before
}

// Wake ends a Park at t, which is not before the engine's now. A program that is
// not parked, or has a wake-up coming, is left alone.
func (p *Proc) Wake(t Time) {
	if p.done || !p.parked || p.queued {
		return
	}
	if t < p.eng.queue.now {
		panic(fmt.Sprintf("sim: at %v: %s woken at %v, in the past", p.eng.queue.now, p.name, t))
	}
	p.local = max(p.local, t)
	p.schedule()
}

// Post schedules h(arg) at the program's local time plus d without waiting for
// it: a posted write leaves like this.
func (p *Proc) Post(d Time, h Handler, arg uint64) {
	t := p.local + d
	if d < 0 {
		panic(fmt.Sprintf("sim: %s at %v posts %v in the past", p.name, p.local, d))
	}
	if t < p.local || t == Never {
		p.eng.Fail(ErrTimeRange)
		return
	}
	p.eng.queue.push(t, p.key(), h, arg)
}

// block gives the thread back to the engine.
func (p *Proc) block() {
	if !p.yield(struct{}{}) {
		p.dying = true
		panic(Killed{p.name})
	}
}

// Kill ends the program where it waits: its deferred functions run, nothing else
// of it does, and no time passes for it. A program that has not started never
// does. Killing a finished program, or the one that runs, does nothing.
func (p *Proc) Kill() {
	if p.done || p.dying || p.eng.cur == p {
		return
	}
	prev := p.eng.cur
	p.eng.cur, p.dying = p, true
	p.stop()
	if !p.started {
		p.exit()
	}
	p.done = true
	p.eng.cur = prev
}

// Close ends every program that has not finished; a run that is over calls it.
func (e *Engine) Close() {
	for _, p := range e.procs {
		p.Kill()
	}
}

// Deadlock says that nothing is left to happen while programs wait.
type Deadlock struct {
	At      Time
	Waiting []string // "program for reason", by program number
}

// Error returns the message.
func (d *Deadlock) Error() string {
	return fmt.Sprintf("deadlock at %v: nothing is scheduled, and these wait: %s", d.At, strings.Join(d.Waiting, "; "))
}

// deadlock lists the programs that wait; nil when only daemons do.
func (e *Engine) deadlock() error {
	stuck := func(p *Proc) bool { return !p.done && p.parked }
	if !slices.ContainsFunc(e.procs, func(p *Proc) bool { return stuck(p) && !p.daemon }) {
		return nil
	}
	var w []string
	for _, p := range e.procs {
		if stuck(p) {
			w = append(w, p.name+" for "+p.why)
		}
	}
	return &Deadlock{At: e.queue.now, Waiting: w}
}
