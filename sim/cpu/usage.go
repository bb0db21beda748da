package cpu

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// mostContended bounds the locks that a host keeps an eye on: those of queues that are made and
// destroyed again and again are kept for the run.
const mostContended = 4096

// list has the host measure a lock for which a thread waits.
func (l *Spinlock) list(h *Host) {
	if l.listed = true; len(h.contended) < mostContended {
		h.contended = append(h.contended, l)
	}
}

// heldBy is how long the lock has been held by now.
func (l *Spinlock) heldBy(now sim.Time) sim.Time {
	if l.holder != nil {
		return l.held + max(0, now-l.since)
	}
	return l.held - max(0, l.freeAt-now)
}

// Meters are the use of the cores and of the locks for which threads have waited. The name is that
// of the host.
func (h *Host) Meters(name string, now sim.Time) (all []sim.Meter) {
	for i := range h.cores {
		if c := &h.cores[i]; c.srv.Served > 0 {
			all = append(all, sim.Meter{Resource: sim.CPU, Unit: name, Index: i, Busy: c.srv.BusyBy(now)})
		}
	}
	for i, l := range h.contended {
		all = append(all, sim.Meter{Resource: sim.Lock, Unit: fmt.Sprintf("%s, lock %d", name, i), Busy: l.heldBy(now)})
	}
	return all
}
