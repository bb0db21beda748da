package experiment

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/os"
)

// warnings names what had no turn in the measured time that began at from: connections beside
// others that had theirs, threads beside interrupts, and handlers that have not ended. before is
// the time that each CPU had spent in interrupts by then.
func (p completionPoint) warnings(b *completionBed, from time.Duration, before []sim.Time) (all []string) {
	if p.burst {
		return nil
	}
	now := time.Duration(b.e.Now() / sim.Nanosecond)
	measured := now - from
	st := &b.o.Stats
	var starved []string
	for i, n := range st.ByConn {
		if n == 0 {
			starved = append(starved, fmt.Sprint(i))
		}
	}
	// Whether a connection should have had a turn: many times what all that is under way takes on
	// one core.
	fair := 10 * (p.turnaround + time.Duration(p.peers*p.conns*p.credits)*p.handler*time.Duration(p.slower)/100)
	if c, began, ok := b.o.Stuck(from); ok {
		all = append(all, fmt.Sprintf("a handler of connection %d began at %v and has not ended at %v: no other completion that its context has to handle has its turn", c, began, now))
	} else if n := len(starved); n > 0 && measured >= fair && st.Handled > 0 {
		all = append(all, fmt.Sprintf("starvation: %d of %d connections had no completion handled in %v, while the others had %d: %s%s", n, len(st.ByConn), measured, st.Handled,
			strings.Join(starved[:min(n, 8)], ", "), p.why()))
	} else if st.Handled == 0 {
		all = append(all, fmt.Sprintf("no completion was handled in %v: give a duration above the turnaround and a handler", measured))
	}
	for _, w := range b.m.Waiting(sim.Time(measured) * sim.Nanosecond * 9 / 10) {
		all = append(all, "starvation: "+w)
	}
	for i := range b.m.CPUs() {
		c := b.m.CPU(i)
		in := c.Busy[os.LevelIRQ] + c.Busy[os.LevelSoftirq] - before[i]
		if share := float64(in) / float64(sim.Time(measured)*sim.Nanosecond) * 100; share >= livelocked && c.Wants() != "" {
			all = append(all, fmt.Sprintf("livelock: interrupts and softirqs take %.1f %% of CPU %d, and leave nothing to thread %s", share, i, c.Wants()))
		}
	}
	return all
}

// livelocked is the share of a CPU's time, in percent, from which on interrupts leave its threads
// nothing.
const livelocked = 97

// inInterrupts is the time of each CPU in interrupts and softirqs.
func (b *completionBed) inInterrupts() []sim.Time {
	all := make([]sim.Time, b.m.CPUs())
	for i := range all {
		all[i] = b.m.CPU(i).Busy[os.LevelIRQ] + b.m.CPU(i).Busy[os.LevelSoftirq]
	}
	return all
}

// why is the rule by which a model starves connections.
func (p completionPoint) why() string {
	switch p.model {
	case "workqueue", "unbound":
		return " (a worker drains up to 65536 completions of a CQ before it takes the next CQ)"
	case "irq-inline":
		return " (an interrupt drains its CQ before it takes the next one)"
	case "direct":
		return " (a thread polls its CQs in turn, each up to 256 completions)"
	}
	return ""
}
