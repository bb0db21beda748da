package os

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// mark is a part of a context's code that has a name in the timeline.
type mark struct {
	name  string
	id    uint64
	start sim.Time
}

// Begin names what the context does up to End in the timeline; it nests. Without a timeline it does
// nothing.
func (c *Context) Begin(name string, id uint64) {
	if c.m.eng.Spans != nil {
		c.marks = append(c.marks, mark{name, id, c.Now()})
	}
}

// End ends what Begin has begun. Of a thread that has slept meanwhile the timeline has what came
// after.
func (c *Context) End() {
	if n := len(c.marks); n > 0 {
		k := c.marks[n-1]
		c.marks = c.marks[:n-1]
		start := k.start
		if c.thread != nil {
			start = max(start, c.thread.since)
		}
		c.cpu.span(k.name, start, c.Now(), k.id)
	}
}

// track makes the CPU's line of the timeline, if there is one.
func (c *CPU) track() {
	if s := c.m.eng.Spans; s != nil {
		c.line = s.Track(fmt.Sprintf("CPUs/CPU %d", c.id))
	}
}

// span adds to the line of the CPU.
func (c *CPU) span(name string, start, end sim.Time, id uint64) {
	if s := c.m.eng.Spans; s != nil && end >= start {
		s.Span(c.line, name, start, end, id)
	}
}

// EndTimeline adds to the timeline what has begun and not ended by now.
func (m *Machine) EndTimeline() {
	for _, c := range m.cpus {
		now := m.eng.Now()
		if c.inIRQ {
			c.span("interrupt", c.irqSince, now, 0)
		}
		if c.inSoft {
			c.span("softirq", c.softSince, now, 0)
		}
		if c.cur != nil {
			c.span(c.cur.name, c.cur.since, now, 0)
		}
	}
}
