package completion

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

const ns, us = sim.Nanosecond, sim.Microsecond

// The costs of a Skylake server by the estimates that the tests are compared with.
var osCosts = os.Params{InterruptLatency: 350 * ns, IRQEntry: 250 * ns, IRQExit: 250 * ns, SoftirqEntry: 200 * ns, Tasklet: 150 * ns,
	Jiffy: 4 * sim.Millisecond, SoftirqJiffies: 1, SoftirqRounds: 10, Wake: 700 * ns, WakeIdle: 800 * ns, IPI: 600 * ns, Switch: 1200 * ns,
	Migrated: 2 * us, MigratedNode: 5 * us, PollExit: 100 * ns, C1Exit: us, C6Exit: 133 * us, C6Residency: 600 * us, Idle: os.IdleC1,
	Lock: 15 * ns, LockHandover: 30 * ns, LineTransfer: 50 * ns, LineTransferNode: 130 * ns, WorkerCreation: 50 * us, WorkItem: 20 * ns,
	Slice: 2800 * us}

var costs = Params{EQHandler: 150 * ns, EQE: 100 * ns, PollCall: 60 * ns, PollCQE: 70 * ns, Arm: 150 * ns, ArmLatency: 200 * ns,
	Dispatch: 20 * ns, ModifyCQ: 30 * us, ModifyCQCPU: 3 * us}

// rig is a machine with an adapter.
type rig struct {
	e *sim.Engine
	m *os.Machine
	a *Adapter
}

func newRig(t testing.TB, broken rule.Broken, cpus int, missed bool) *rig {
	t.Helper()
	e := sim.New(sim.Options{Seed: 1, Broken: broken, MaxEvents: 3_000_000})
	m, err := os.New(e, os.Config{Params: osCosts, CPUs: cpus})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(m, Config{Params: costs, Vectors: cpus, ReportsMissed: missed})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{e, m, a}
}

// seen is what the handlers of a burst saw.
type seen struct {
	handled, running, most int
	first, last            time.Duration
	order                  []uint64
}

// burst is a CQ on an idle machine of 8 CPUs, on which n completions arrive at once.
func burst(t testing.TB, broken rule.Broken, model kernel.PollContext, n int, handle time.Duration) (*rig, *seen) {
	t.Helper()
	r, s := newRig(t, broken, 8, false), &seen{}
	q, err := r.a.AllocCQ(kernel.CQAttr{Size: 1024, Poll: model, Done: s.handler(handle)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		q.Arrive(burstAt, uint64(i))
	}
	if err := r.e.Run(5 * sim.Millisecond); err != nil {
		t.Fatal(err)
	}
	r.e.Close()
	return r, s
}

const burstAt = 100 * time.Microsecond

func (s *seen) handler(d time.Duration) func(kernel.Context, *kernel.WC) {
	return func(k kernel.Context, wc *kernel.WC) {
		if s.handled == 0 {
			s.first = k.Now()
		}
		s.handled++
		s.order = append(s.order, wc.ID)
		s.running++
		s.most = max(s.most, s.running)
		k.Work(d)
		s.running--
		s.last = k.Now()
	}
}

// counted is what the table of counts has a line for.
type counted struct{ msi, eqe, arm, polls, wakeups, softirqs, mmio, most, handled uint64 }

func count(r *rig, s *seen) counted {
	return counted{r.a.MSIs, r.a.EQEs, r.a.Arms, r.a.Polls, r.m.Wakeups, r.m.Softirqs, r.a.MMIO, uint64(s.most), uint64(s.handled)}
}

// checkBursts holds the models of ib_core to what follows from its source for n completions that are visible when the interrupt
// comes, and says what differs.
func checkBursts(t testing.TB, broken rule.Broken) (wrong []string) {
	for _, model := range []kernel.PollContext{kernel.Interrupt, kernel.Softirq, kernel.Workqueue, kernel.UnboundWorkqueue} {
		for _, n := range []int{1, 2, 15, 16, 17, 48, 100, 255} {
			r, o := burst(t, broken, model, n, 500*time.Nanosecond)
			want := counted{1, 1, 1, uint64(n/16 + 1), 0, 1, 2, 1, uint64(n)}
			switch model {
			case kernel.Softirq:
				want.softirqs = 2
			case kernel.Workqueue, kernel.UnboundWorkqueue:
				want.wakeups = 1
			}
			if got := count(r, o); got != want {
				wrong = append(wrong, fmt.Sprintf("%s, %d completions: %+v, want %+v", model, n, got, want))
			}
			if !slices.IsSorted(o.order) {
				wrong = append(wrong, fmt.Sprintf("%s, %d completions: out of order: %v", model, n, o.order))
			}
		}
	}
	return wrong
}

func TestBurstsAreCounted(t *testing.T) {
	for _, w := range checkBursts(t, rule.Broken{}) {
		t.Error(w)
	}
}

// Estimates by hand, in microseconds from the instant at which the interrupted CPU has left its idle state: when the first handler starts,
// and when the last one of n has ended, for handlers of 2.5 us. The estimates add rounded costs.
func TestEstimates(t *testing.T) {
	for _, c := range []struct {
		model       kernel.PollContext
		n           int
		first, last float64
	}{
		{kernel.Interrupt, 2, 1.1, 6.1}, {kernel.Softirq, 2, 1.3, 6.3}, {kernel.Workqueue, 2, 3.4, 8.4}, {kernel.UnboundWorkqueue, 2, 4.8, 9.8},
		{kernel.Interrupt, 16, 1.1, 41.1}, {kernel.Softirq, 16, 1.3, 41.3}, {kernel.Workqueue, 16, 3.4, 43.4}, {kernel.UnboundWorkqueue, 16, 4.8, 44.8},
	} {
		_, s := burst(t, rule.Broken{}, c.model, c.n, 2500*time.Nanosecond)
		// The estimates take 0.2 us for the poll, and nothing for the exit of the interrupt and the calls of handlers.
		zero := burstAt + dur(osCosts.C1Exit)
		polled := float64(c.n-2) * 0.07
		first, last := float64(s.first-zero)/1e3-polled, float64(s.last-zero)/1e3-polled-float64(c.n)*0.02
		if math.Abs(first-c.first) > 0.35 || math.Abs(last-c.last) > 0.5 {
			t.Errorf("%v, %d completions: %.2f and %.2f us, estimated %.1f and %.1f", c.model, c.n, first, last, c.first, c.last)
		}
	}
}
