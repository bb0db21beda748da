package os

import (
	"github.com/rdmasim/rdmasim/sim"
)

// Level is the kind of a context. A higher one interrupts a lower one on the same CPU.
type Level uint8

// The levels.
const (
	LevelThread Level = iota
	LevelSoftirq
	LevelIRQ
)

// Context is what code runs in: a thread, or the softirq or hard interrupt of a CPU. Only its own
// code calls its methods.
type Context struct {
	m      *Machine
	cpu    *CPU
	proc   *sim.Proc
	level  Level
	thread *Thread  // nil in interrupts
	debt   sim.Time // spent, and not yet run
	left   sim.Time // of the run in progress
	state  state
	irqOff int
	marks  []mark // of the timeline, the innermost last
}

type state uint8

const (
	ready    state = iota // its code runs at this instant, or is about to
	runs                  // it spends CPU time
	spins                 // it waits for a spinlock, and keeps its CPU
	sleeping              // it has no work
)

// Now is the time.
func (c *Context) Now() sim.Time { return c.m.eng.Now() + c.debt }

// CPU is the number of the CPU on which the context is.
func (c *Context) CPU() int { return c.cpu.id }

// Level is the kind of the context.
func (c *Context) Level() Level { return c.level }

// Thread is the thread of the context; nil in an interrupt.
func (c *Context) Thread() *Thread { return c.thread }

// Spend uses CPU time for private work: others see nothing of the context before the next Sync.
func (c *Context) Spend(d sim.Time) { c.debt += d * c.m.slower / 100 }

// stall uses time that does not depend on the speed of the CPU.
func (c *Context) stall(d sim.Time) { c.debt += d }

// Run is Spend and Sync.
func (c *Context) Run(d sim.Time) {
	c.Spend(d)
	c.Sync()
}

// Sync lets the time pass that was spent, and that interrupts take meanwhile. The context has its
// CPU afterwards: an interrupt that comes at the very instant goes first.
func (c *Context) Sync() {
	d := c.debt
	c.debt = 0
	if d > 0 && c.cpu.top() == c && c.m.eng.Next() > c.m.eng.Now()+d {
		c.cpu.account(c.level, d)
		c.cpu.ahead = c.m.eng.Now() + d
		c.proc.Sleep(d)
		return
	}
	for d > 0 || c.cpu.top() != c {
		c.left, c.state, d = d, runs, 0
		if c.cpu.top() == c {
			c.cpu.start()
		}
		c.proc.Park("CPU time")
	}
}

// resume goes on with the code of the context at this instant.
func (c *Context) resume() {
	c.state = ready
	c.proc.Wake(c.m.eng.Now())
}

// rest waits for work.
func (c *Context) rest() {
	c.state = sleeping
	c.proc.Park("work")
}

// disableIRQs keeps interrupts away from the CPU.
func (c *Context) disableIRQs() { c.irqOff++ }

// enableIRQs takes those that have come meanwhile.
func (c *Context) enableIRQs() {
	if c.irqOff--; c.irqOff == 0 {
		c.cpu.takeIRQ()
		c.Sync()
	}
}
