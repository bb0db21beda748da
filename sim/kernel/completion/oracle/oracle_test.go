package oracle

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

func TestProbes(t *testing.T) {
	for _, p := range Probes() {
		if wrong := p.Check(rule.Broken{}); len(wrong) > 0 {
			t.Errorf("%s: %s", p.Name, strings.Join(wrong, "\n"))
		}
	}
}

// Estimates by hand, in microseconds from the instant at which the interrupted CPU has left its
// idle state: when the first handler starts, and when the last one of n has ended, for handlers of
// 2.5 us. The estimates add rounded costs.
func TestEstimates(t *testing.T) {
	for _, c := range []struct {
		model       kernel.PollContext
		n           int
		first, last float64
	}{
		{kernel.Interrupt, 2, 1.1, 6.1}, {kernel.Softirq, 2, 1.3, 6.3}, {kernel.Workqueue, 2, 3.4, 8.4}, {kernel.UnboundWorkqueue, 2, 4.8, 9.8},
		{kernel.Interrupt, 16, 1.1, 41.1}, {kernel.Softirq, 16, 1.3, 41.3}, {kernel.Workqueue, 16, 3.4, 43.4}, {kernel.UnboundWorkqueue, 16, 4.8, 44.8},
	} {
		_, s, _ := Burst(rule.Broken{}, c.model, c.n, 2500*time.Nanosecond)
		// The estimates take 0.2 us for the poll, and nothing for the exit of the interrupt and the
		// calls of handlers.
		zero := BurstAt + time.Duration(OSCosts.C1Exit/sim.Nanosecond)
		polled := float64(c.n-2) * 0.07
		first, last := float64(s.First-zero)/1e3-polled, float64(s.Last-zero)/1e3-polled-float64(c.n)*0.02
		if math.Abs(first-c.first) > 0.35 || math.Abs(last-c.last) > 0.5 {
			t.Errorf("%v, %d completions: %.2f and %.2f us, estimated %.1f and %.1f", c.model, c.n, first, last, c.first, c.last)
		}
	}
}
