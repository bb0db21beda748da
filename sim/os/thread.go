package os

import (
	"slices"

	"github.com/rdmasim/rdmasim/sim"
)

// Thread is a thread of the kernel, or with User one that stands for a program.
type Thread struct {
	Context
	// User: an interrupt may preempt it.
	User    bool
	Wakeups uint64

	name    string
	allowed Set
	asleep  bool // it is in no run queue
	waking  bool // on its way to a run queue
	prepare bool // it is about to sleep
	serving bool // ksoftirqd serves softirqs
	ran     int  // CPU on which it ran last
	fair    fair
	worker  *Worker // nil for others
	timed   sim.Handler
	since   sim.Time // when it was switched to
	queued  sim.Time // when it came into the run queue
}

// Name is the name of the thread.
func (t *Thread) Name() string { return t.name }

// NewThread makes a thread that runs body, sleeps until the first Wake, and may run on the CPUs of
// a set (nil: all). It has run on the CPU last before. The affinity is not empty: CPUSet sees to
// it.
func (m *Machine) NewThread(name string, allowed Set, last int, body func(*Thread)) *Thread {
	return m.newThread(name, allowed, last, body)
}

func (m *Machine) newThread(name string, allowed Set, last int, body func(*Thread)) *Thread {
	t := &Thread{name: name, allowed: allowed, asleep: true, ran: last, fair: fair{weight: niceWeight(0)}}
	t.Context = Context{m: m, cpu: m.cpus[last], level: LevelThread, thread: t, state: sleeping}
	t.timed = func(uint64) { m.arrive(t, t.choose(nil)) }
	t.proc = m.eng.Go(name, func(p *sim.Proc) {
		if t.state != ready { // its turn may have come before its coroutine began
			p.Park("its start")
		}
		body(t)
		t.Sync()
		t.leave("end")
	})
	return t
}

// SetNice gives the thread the weight of a nice value, -20 to 19.
func (t *Thread) SetNice(n int) { t.fair.weight = niceWeight(n) }

// SetDaemon says that the thread serves others and may sleep for ever.
func (t *Thread) SetDaemon() { t.proc.SetDaemon() }

// Start makes a new thread runnable, at no cost.
func (t *Thread) Start() {
	if t.asleep && !t.waking {
		t.m.arrive(t, t.choose(nil))
	}
}

// Prepare is what comes before a sleep: a Wake from here on ends or prevents the sleep.
func (t *Thread) Prepare() { t.prepare = true }

// Running takes Prepare back.
func (t *Thread) Running() { t.prepare = false }

// Schedule sleeps, unless a Wake has come since Prepare.
func (t *Thread) Schedule(why string) {
	t.Sync()
	if !t.prepare {
		return
	}
	t.prepare = false
	if t.worker != nil {
		t.worker.blocks()
	}
	t.leave(why)
	if t.worker != nil {
		t.worker.unblocks()
	}
}

// Delay sleeps for d.
func (t *Thread) Delay(d sim.Time) {
	t.Sync()
	t.m.eng.After(d, t.timed, 0)
	if t.worker != nil {
		t.worker.blocks()
	}
	t.leave("a timer")
	if t.worker != nil {
		t.worker.unblocks()
	}
}

// leave gives the CPU away.
func (t *Thread) leave(why string) {
	c := t.cpu
	c.update()
	t.fair.sleep(c.average())
	t.asleep, t.state = true, sleeping
	c.yields(t)
	c.pick()
	if why != "end" {
		t.proc.Park(why)
		t.Sync()
	}
}

// NeedResched says whether another thread should run instead of this one (need_resched).
func (t *Thread) NeedResched() bool {
	t.Sync()
	if len(t.cpu.rq) == 0 {
		return false
	}
	t.cpu.update()
	return t.cpu.resched
}

// Resched gives the CPU to another thread if one should run (cond_resched).
func (t *Thread) Resched() {
	if !t.NeedResched() {
		return
	}
	c := t.cpu
	c.yields(t)
	t.state = ready
	t.queued = c.m.eng.Now()
	c.rq = append(c.rq, t)
	c.pick()
	if c.cur == t {
		return
	}
	t.left, t.state = 0, runs
	t.proc.Park("its turn")
	t.Sync()
}

// yields takes the CPU from its thread.
func (c *CPU) yields(t *Thread) {
	c.cur = nil
	c.span(t.name, t.since, c.m.eng.Now(), 0)
}

// preempt takes the CPU away from the current thread, whose segment has been paused.
func (c *CPU) preempt() {
	t := c.cur
	c.update()
	c.yields(t)
	t.queued = c.m.eng.Now()
	c.rq = append(c.rq, t)
	c.pick()
}

// pick gives a free CPU to the thread that is next.
func (c *CPU) pick() {
	if c.inIRQ || c.inSoft {
		return // the end of the interrupt does it
	}
	c.resched = false
	if len(c.rq) == 0 {
		c.idleSince = c.m.eng.Now()
		return
	}
	i := c.next()
	t := c.rq[i]
	c.rq = slices.Delete(c.rq, i, i+1)
	c.run(t, 0)
}

// run switches to a thread, once the CPU has left its idle state in exit.
func (c *CPU) run(t *Thread, exit sim.Time) {
	c.cur, c.vtime, t.since = t, c.m.eng.Now(), c.m.eng.Now()
	if t.state == ready {
		return // it has only asked
	}
	c.m.Counts.Switches++
	c.Switches++
	d := c.m.par.Switch
	if t.ran != c.id {
		if d += c.m.par.Migrated; c.m.Node(t.ran) != c.m.Node(c.id) {
			d += c.m.par.MigratedNode - c.m.par.Migrated
		}
	}
	t.cpu, t.ran = c, c.id
	if t.state != runs {
		t.left = 0
	}
	t.left += exit + d*c.m.slower/100
	if exit > 0 {
		c.span("idle exit", c.vtime, c.vtime+exit, 0)
	}
	c.span("switch", c.vtime+exit, c.vtime+exit+d*c.m.slower/100, 0)
	t.state = runs
	c.start()
}

// Wake makes a sleeping thread runnable; the context pays. One that runs or has been woken is left
// alone.
func (c *Context) Wake(t *Thread) {
	c.Sync()
	if t.prepare {
		t.prepare = false
		c.Run(c.m.par.Lock)
		return
	}
	if !t.asleep || t.waking {
		return
	}
	c.Begin("wake-up", 0)
	defer c.End()
	t.waking = true
	t.Wakeups++
	c.m.Wakeups++
	target := t.choose(c)
	if target == c.cpu {
		c.Run(c.m.par.Wake)
		c.m.arrive(t, target)
		return
	}
	if !target.idle() || c.m.par.Idle == IdlePoll {
		// The waker takes the lock of the run queue, or stores a flag that the idle CPU polls.
		target.incoming++
		c.Run(c.m.par.Wake)
		target.incoming--
		c.m.arrive(t, target)
		return
	}
	target.incoming++
	c.Run(c.m.par.WakeIdle)
	c.m.IPIs++
	target.coming = append(target.coming, t)
	c.m.eng.After(c.m.par.IPI, target.onIncoming, 0)
}

// dispatchIncoming is the arrival of an interprocessor interrupt: all threads that wait for one
// come with it.
func (c *CPU) dispatchIncoming(uint64) {
	for len(c.coming) > 0 {
		t := c.coming[0]
		c.coming = c.coming[:copy(c.coming, c.coming[1:])]
		c.incoming--
		c.m.arrive(t, c)
	}
}

// arrive puts a woken thread into a run queue.
func (m *Machine) arrive(t *Thread, c *CPU) {
	t.waking, t.asleep = false, false
	c.update()
	t.fair.place(c.average(), c.m.par.Slice)
	if c.top() == nil && len(c.rq) == 0 {
		c.run(t, c.leaveIdle())
		return
	}
	t.queued = c.m.eng.Now()
	c.rq = append(c.rq, t)
	if c.cur == nil {
		c.resched = true // in an interrupt on an idle CPU
		return
	}
	c.resched = c.resched || c.preempts(t)
	c.giveWay()
}

// giveWay preempts a user thread that is to, or looks again at the next tick.
func (c *CPU) giveWay() {
	if c.resched && c.cur.User && c.top() == &c.cur.Context && c.cur.state == runs {
		c.pause()
		c.preempt()
	}
	if !c.ticks && len(c.rq) > 0 {
		c.ticks = true
		jiffy := c.m.par.Jiffy
		c.m.eng.At((c.m.eng.Now()/jiffy+1)*jiffy, c.onTick, 0)
	}
}

// tick ends slices while threads wait.
func (c *CPU) tick(uint64) {
	c.ticks = false
	if c.cur == nil || len(c.rq) == 0 {
		return
	}
	c.update()
	c.giveWay()
}

// choose is the CPU on which a woken thread is to run (select_task_rq_fair); waker is nil for a
// timer.
func (t *Thread) choose(waker *Context) *CPU {
	m := t.m
	prev := m.cpus[t.ran]
	target := prev
	if waker != nil {
		here := waker.cpu
		near := m.Node(here.id) == m.Node(prev.id)
		switch {
		case here.cur == nil && near: // an interrupt on an idle CPU
			if !prev.idle() {
				target = here
			}
		case near && !prev.idle() && len(here.rq) < len(prev.rq):
			target = here
		}
		// A kernel thread of this CPU wakes one that ran here, and nothing else does: completion of
		// a work item.
		if waker.thread != nil && waker.thread.worker != nil && waker.thread.worker.pool.cpu >= 0 && prev == here && len(here.rq) == 0 && t.allowed.has(here.id) {
			return here
		}
	}
	if !t.allowed.has(target.id) {
		target = m.cpus[slices.Index(t.allowed, true)]
		if t.allowed.has(prev.id) {
			target = prev
		}
	}
	if target.idle() {
		return target
	}
	if prev.idle() && t.allowed.has(prev.id) && m.Node(prev.id) == m.Node(target.id) {
		return prev
	}
	first := m.Node(target.id) * m.perNode
	for i := range m.perNode { // the CPUs of the last-level cache, from the target on
		c := m.cpus[first+(target.id-first+i)%m.perNode]
		if t.allowed.has(c.id) && c.idle() {
			return c
		}
	}
	return target
}
