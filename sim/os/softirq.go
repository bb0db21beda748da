package os

import (
	"fmt"
	"math/bits"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Softirq is a kind of softirq, in the order in which they are served.
type Softirq uint8

// Those that completions meet.
const (
	IRQPoll Softirq = iota
	Tasklet
	softirqs
)

// RaiseSoftirq has a softirq of that kind run on the context's CPU: at the exit of the interrupt,
// or when the loop that runs looks again. A plain thread has ksoftirqd serve it.
func (c *Context) RaiseSoftirq(s Softirq) {
	c.cpu.softPending |= 1 << s
	if c.level == LevelThread && !c.cpu.inSoft && !c.thread.serving {
		c.cpu.handOver(c)
	}
}

// PollList is the slot in which the handlers of IRQPoll keep the list of the CPU.
func (c *Context) PollList() *any { return &c.cpu.pollList }

// softLoop is the loop at the exit of an interrupt.
func (c *CPU) softLoop(x *Context) {
	x.Run(c.m.par.SoftirqEntry)
	c.serve(x)
	x.Sync()
	c.inSoft = false
	c.span("softirq", c.softSince, c.m.eng.Now(), 0)
	c.leave()
}

// serve runs softirqs while there are, within the limits; what is left is ksoftirqd's.
func (c *CPU) serve(x *Context) {
	jiffy := c.m.par.Jiffy
	end := x.Now()/jiffy + sim.Time(c.m.par.SoftirqJiffies)
	for round := 1; c.softPending != 0; round++ {
		pending := c.softPending
		c.softPending = 0
		for pending != 0 {
			s := Softirq(bits.TrailingZeros32(pending))
			pending &= pending - 1
			c.m.Softirqs++
			c.m.handler[s](x)
			x.Sync()
		}
		over := x.Now()/jiffy >= end || c.resched || round >= c.m.par.SoftirqRounds
		if c.softPending != 0 && over && !c.m.broken.Has(rule.SoftirqsEnd) {
			if x.thread == nil {
				c.m.Ksoftirqd++
				c.handOver(x)
			}
			return
		}
	}
}

// handOver wakes ksoftirqd, which is made when it is needed first.
func (c *CPU) handOver(x *Context) {
	if c.ksoftirqd == nil {
		only := make(Set, len(c.m.cpus))
		only[c.id] = true
		c.ksoftirqd = c.m.newThread(fmt.Sprintf("ksoftirqd/%d", c.id), only, c.id, c.ksoftirq)
		c.ksoftirqd.proc.SetDaemon()
	}
	x.Wake(c.ksoftirqd)
}

func (c *CPU) ksoftirq(t *Thread) {
	for {
		for c.softPending != 0 {
			t.serving = true
			c.serve(&t.Context)
			t.serving = false
			t.Resched()
		}
		t.Prepare()
		t.Schedule("softirqs")
	}
}
