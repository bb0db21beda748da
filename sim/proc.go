package sim

import (
	"fmt"
	"iter"
	"strings"
)

// Proc is a program: a coroutine with a local clock. It may run ahead of the
// queue over state that only it can see; before anything that another agent can
// see it calls Sync. Only the coroutine itself calls its methods, except Wake.
type Proc struct {
	eng    *Engine
	name   string
	id     uint64
	seq    uint64
	local  Time
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	resume Handler
	parked bool
	done   bool
	queued bool
	why    string
	onExit []func()
}

// procClass sets what programs do behind what devices do at the same instant.
const procClass = 1 << 63

// Killed is the panic value that unwinds a program which Engine.Kill ended.
type Killed struct{ Name string }

// Go starts a program at now. The body runs in its own coroutine; a panic in it
// surfaces from Run.
func (e *Engine) Go(name string, body func(p *Proc)) *Proc {
	p := &Proc{eng: e, name: name, id: uint64(len(e.procs)), local: e.now}
	if e.cur != nil {
		p.local = max(p.local, e.cur.local)
	}
	e.procs = append(e.procs, p)
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		defer func() {
			p.done = true
			e.exited++
			for i := len(p.onExit) - 1; i >= 0; i-- {
				p.onExit[i]()
			}
			if r := recover(); r != nil {
				if _, ok := r.(Killed); !ok {
					panic(r)
				}
			}
		}()
		body(p)
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

func (p *Proc) key() uint64 {
	p.seq++
	return procClass | p.id<<40 | p.seq
}

func (p *Proc) schedule() {
	p.queued = true
	p.eng.queue.push(event{t: p.local, seq: p.key(), h: p.resume})
}

// Name is the name given to Go.
func (p *Proc) Name() string { return p.name }

// ID is the program's number: programs of one instant run in this order.
func (p *Proc) ID() int { return int(p.id) }

// Engine is the engine that runs the program.
func (p *Proc) Engine() *Engine { return p.eng }

// Now is the program's local time, at or ahead of the engine's.
func (p *Proc) Now() Time { return p.local }

// Done reports whether the body has returned.
func (p *Proc) Done() bool { return p.done }

// OnExit has f called when the body returns or the program is killed.
func (p *Proc) OnExit(f func()) { p.onExit = append(p.onExit, f) }

// Advance spends d of the program's own time on private work.
func (p *Proc) Advance(d Time) {
	if d < 0 {
		panic(fmt.Sprintf("sim: %s advances by %v", p.name, d))
	}
	t := p.local + d
	if t < p.local {
		p.eng.Fail(ErrTimeRange)
		p.block("time range")
	}
	p.local = t
	if p.eng.opt.Lockstep {
		p.Sync()
	}
}

// Sync waits until everything due before the program's local time has run, so
// that it sees, and is seen, in order. It costs a switch only if something is due.
func (p *Proc) Sync() {
	e := p.eng
	if p.local <= e.until && !e.stop && (!e.opt.Lockstep || p.local == e.now) {
		if e.queue.n() == 0 {
			e.now = p.local
			return
		}
		m := e.queue.min()
		if m.t > p.local || (m.t == p.local && m.seq > procClass|p.id<<40|p.seq) {
			e.now = p.local
			return
		}
	}
	p.schedule()
	p.block("")
}

// Sleep is Advance and Sync.
func (p *Proc) Sleep(d Time) {
	p.Advance(d)
	p.Sync()
}

// Park waits until Wake. The reason is what a deadlock report prints.
func (p *Proc) Park(why string) {
	p.parked, p.why = true, why
	p.block(why)
	p.why = ""
}

// Wake ends a Park at t, which is not before the engine's now. A program that is
// not parked, or has a wake-up coming, is left alone.
func (p *Proc) Wake(t Time) {
	if p.done || !p.parked || p.queued {
		return
	}
	p.local = max(p.local, t)
	p.schedule()
}

// Post schedules h(arg) at the program's local time plus d without waiting for
// it: a posted write leaves like this.
func (p *Proc) Post(d Time, h Handler, arg uint64) {
	t := p.local + d
	if t < p.local {
		p.eng.Fail(ErrTimeRange)
		return
	}
	p.eng.queue.push(event{t: t, seq: p.key(), h: h, arg: arg})
}

func (p *Proc) block(string) {
	if !p.yield(struct{}{}) {
		panic(Killed{p.name})
	}
}

// Kill ends the program where it waits: its deferred functions run, nothing else
// of it does. Killing a finished program, or the one that runs, does nothing.
func (p *Proc) Kill() {
	if p.done || p.eng.cur == p {
		return
	}
	p.stop()
	p.done = true
}

// Close ends every program that has not finished; a run that is over calls it.
func (e *Engine) Close() {
	for _, p := range e.procs {
		p.Kill()
	}
}

// Deadlock says that nothing is left to happen while programs wait.
type Deadlock struct{ Waiting []string }

func (d *Deadlock) Error() string {
	return "deadlock: nothing is scheduled, and these wait: " + strings.Join(d.Waiting, "; ")
}

func (e *Engine) deadlock() *Deadlock {
	var w []string
	for _, p := range e.procs {
		if !p.done && p.parked {
			w = append(w, p.name+" for "+p.why)
		}
	}
	if w == nil {
		return nil
	}
	return &Deadlock{Waiting: w}
}
