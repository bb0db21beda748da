package os

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Waiting names the threads that have waited in a run queue for d or longer, and what has their
// CPU.
func (m *Machine) Waiting(d sim.Time) (all []string) {
	for _, c := range m.cpus {
		for _, t := range c.rq {
			if w := m.eng.Now() - t.queued; w >= d {
				all = append(all, fmt.Sprintf("thread %s has waited %v for CPU %d, which %s", t.name, w, c.id, c.does()))
			}
		}
	}
	return all
}

// Wants is the thread that has the CPU but for interrupts and softirqs, or waits first in its
// queue; empty: none.
func (c *CPU) Wants() string {
	switch {
	case c.cur != nil:
		return c.cur.name
	case len(c.rq) > 0:
		return c.rq[0].name
	}
	return ""
}

// does says what the CPU is in.
func (c *CPU) does() string {
	switch {
	case c.inIRQ:
		return "is in a hard interrupt"
	case c.inSoft:
		return "is in a softirq"
	case c.cur != nil:
		return "runs " + c.cur.name
	}
	return "is idle"
}
