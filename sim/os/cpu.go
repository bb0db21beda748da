package os

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// CPU is one CPU: the stack of its contexts, its run queue, and what is pending.
type CPU struct {
	Busy       [3]sim.Time // time spent, by level
	Interrupts uint64
	Switches   uint64

	m    *Machine
	id   int
	irq  *Context
	soft *Context
	cur  *Thread // the thread that has the CPU, nil: idle

	inIRQ, inSoft bool
	softPending   uint32
	pollList      any // of the handlers of IRQPoll

	irqs       []func(*Context) // interrupts that wait, by their handlers
	deliver    []func(*Context) // on their way to the CPU
	rq         []*Thread        // threads that can run, without cur
	incoming   int              // threads on their way by interprocessor interrupt
	resched    bool             // another thread should run
	idleSince  sim.Time
	exitUntil  sim.Time // an idle CPU is leaving its idle state until then
	ksoftirqd  *Thread
	started    sim.Time // of the segment that runs
	gen        uint64
	ahead      sim.Time // until when time is in Busy already
	onEnd      sim.Handler
	onIRQ      sim.Handler
	onIncoming sim.Handler
	onTick     sim.Handler
	ticks      bool // a tick is scheduled
	coming     []*Thread
	vtime      sim.Time // of the last update of the current thread's virtual time

	line                int32    // of the timeline
	irqSince, softSince sim.Time // when the interrupt or the softirq began
}

func newCPU(m *Machine, id int) *CPU {
	c := &CPU{m: m, id: id}
	c.onEnd, c.onIRQ, c.onIncoming, c.onTick = c.end, c.arrived, c.dispatchIncoming, c.tick
	c.irq = c.daemon("irq", LevelIRQ, c.irqLoop)
	c.soft = c.daemon("softirq", LevelSoftirq, c.softLoop)
	c.track()
	return c
}

// daemon makes a context of the CPU itself.
func (c *CPU) daemon(name string, l Level, body func(*Context)) *Context {
	x := &Context{m: c.m, cpu: c, level: l}
	x.proc = c.m.eng.Go(fmt.Sprintf("CPU %d %s", c.id, name), func(*sim.Proc) {
		for {
			x.rest()
			body(x)
		}
	})
	x.proc.SetDaemon()
	return x
}

// ID is the number of the CPU.
func (c *CPU) ID() int { return c.id }

// top is the context that has the CPU, nil when it is idle.
func (c *CPU) top() *Context {
	switch {
	case c.inIRQ:
		return c.irq
	case c.inSoft:
		return c.soft
	case c.cur != nil:
		return &c.cur.Context
	}
	return nil
}

// idle says whether the CPU has nothing to do but interrupts.
func (c *CPU) idle() bool { return c.cur == nil && len(c.rq) == 0 && c.incoming == 0 }

func (c *CPU) account(l Level, d sim.Time) { c.Busy[l] += d }

// start runs the segment of the context that has the CPU.
func (c *CPU) start() {
	x := c.top()
	if x == nil || x.state != runs {
		return
	}
	c.gen++
	c.started = c.m.eng.Now()
	c.m.eng.After(x.left, c.onEnd, c.gen)
}

// pause ends the segment that runs before its time.
func (c *CPU) pause() {
	x := c.top()
	if x == nil || x.state != runs {
		return
	}
	d := c.m.eng.Now() - c.started
	x.left -= d
	c.account(x.level, d)
	c.gen++
}

// end is the end of a segment, if it is still the one that runs.
func (c *CPU) end(gen uint64) {
	if gen != c.gen {
		return
	}
	c.gen++
	x := c.top()
	c.account(x.level, c.m.eng.Now()-c.started)
	x.left = 0
	x.resume()
}

// Interrupt sends the CPU an interrupt message now: handler runs in hard interrupt, once the CPU
// takes it.
func (c *CPU) Interrupt(handler func(*Context)) {
	c.deliver = append(c.deliver, handler)
	c.m.eng.After(c.m.par.InterruptLatency, c.onIRQ, 0)
}

func (c *CPU) arrived(uint64) {
	h := c.deliver[0]
	c.deliver = c.deliver[:copy(c.deliver, c.deliver[1:])]
	c.irqs = append(c.irqs, h)
	c.takeIRQ()
}

// takeIRQ enters the hard interrupt if one waits and the CPU can take it.
func (c *CPU) takeIRQ() {
	x := c.top()
	if len(c.irqs) == 0 || c.inIRQ || x != nil && x.irqOff > 0 {
		return
	}
	c.pause()
	c.irqSince = c.m.eng.Now()
	if x == nil {
		d := c.leaveIdle()
		c.irq.stall(d)
		c.span("idle exit", c.irqSince, c.irqSince+d, 0)
	}
	c.inIRQ = true
	c.irq.resume()
}

// leaveIdle is how long an idle CPU takes from now to its first instruction.
func (c *CPU) leaveIdle() sim.Time {
	now := c.m.eng.Now()
	if c.exitUntil > now {
		return c.exitUntil - now
	}
	p, d := &c.m.par, sim.Time(0)
	switch {
	case p.Idle == IdlePoll:
		d = p.PollExit
	case p.Idle == IdleC6 && now-c.idleSince >= p.C6Residency:
		d = p.C6Exit
	default:
		d = p.C1Exit
	}
	c.exitUntil = now + d
	return d
}

// irqLoop takes all interrupts that wait.
func (c *CPU) irqLoop(x *Context) {
	x.disableIRQs()
	for len(c.irqs) > 0 {
		h := c.irqs[0]
		c.irqs = c.irqs[:copy(c.irqs, c.irqs[1:])]
		c.m.Counts.Interrupts++
		c.Interrupts++
		x.Run(c.m.par.IRQEntry)
		h(x)
		x.Run(c.m.par.IRQExit)
	}
	x.irqOff--
	c.inIRQ = false
	c.span("interrupt", c.irqSince, c.m.eng.Now(), 0)
	if c.softPending != 0 && !c.inSoft && !c.inKsoftirqd() {
		c.inSoft, c.softSince = true, c.m.eng.Now()
		c.soft.resume()
		return
	}
	c.leave()
}

// leave goes on with what a context that has ended had interrupted.
func (c *CPU) leave() {
	if c.inIRQ {
		return // what has ended did so at the instant of an interrupt, which goes on with the rest
	}
	if c.inSoft {
		c.start()
		return
	}
	if c.cur != nil {
		if c.resched && c.cur.User && c.cur.state == runs && len(c.rq) > 0 {
			c.preempt()
			return
		}
		c.start()
		return
	}
	c.pick()
}

// inKsoftirqd says whether what an interrupt has come upon is a softirq in the thread ksoftirqd.
func (c *CPU) inKsoftirqd() bool { return c.cur != nil && c.cur == c.ksoftirqd && c.cur.serving }
