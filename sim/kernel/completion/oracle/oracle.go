// Package oracle checks the models of completions against what follows from the kernel's source:
// how many interrupts, arms, polls, wake-ups and softirqs a burst takes on a machine without noise,
// and rules of budgets, missed events and worker pools. Tests run it, and so does "conform
// mutants", for which a kernel that breaks a rule must fail here.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel/completion"
	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

const ns, us = sim.Nanosecond, sim.Microsecond

// OSCosts and Costs are those of a Skylake server by which the estimates were made that the tests
// are compared with: assumed, or of the sources that rdmasim run completions prints. No count
// depends on them.
var (
	OSCosts = os.Params{InterruptLatency: 350 * ns, IRQEntry: 250 * ns, IRQExit: 250 * ns, SoftirqEntry: 200 * ns, Tasklet: 150 * ns,
		Jiffy: 4 * sim.Millisecond, SoftirqJiffies: 1, SoftirqRounds: 10, Wake: 700 * ns, WakeIdle: 800 * ns, IPI: 600 * ns, Switch: 1200 * ns,
		Migrated: 2 * us, MigratedNode: 5 * us, PollExit: 100 * ns, C1Exit: us, C6Exit: 133 * us, C6Residency: 600 * us, Idle: os.IdleC1,
		Lock: 15 * ns, LockHandover: 30 * ns, LineTransfer: 50 * ns, LineTransferNode: 130 * ns, WorkerCreation: 50 * us, WorkItem: 20 * ns,
		Slice: 2800 * us}
	Costs = completion.Params{EQHandler: 150 * ns, EQE: 100 * ns, PollCall: 60 * ns, PollCQE: 70 * ns, Arm: 150 * ns, ArmLatency: 200 * ns,
		Dispatch: 20 * ns, ModifyCQ: 30 * us, ModifyCQCPU: 3 * us}
)

// Rig is a machine with an adapter.
type Rig struct {
	E *sim.Engine
	M *os.Machine
	A *completion.Adapter
}

// mostEvents bounds a run: one that a broken rule keeps from ending fails.
const mostEvents = 3_000_000

// NewRig makes a machine of so many CPUs, each with a vector. missed: the driver reports missed
// events, and the device does not fire for them.
func NewRig(broken rule.Broken, cpus int, missed bool) *Rig {
	return newRig(sim.Options{Seed: 1, Broken: broken, MaxEvents: mostEvents}, cpus, missed)
}

// NewLockstepRig makes one whose programs yield at each step.
func NewLockstepRig(cpus int) *Rig {
	return newRig(sim.Options{Seed: 1, Lockstep: true, MaxEvents: mostEvents}, cpus, false)
}

func newRig(opt sim.Options, cpus int, missed bool) *Rig {
	e := sim.New(opt)
	m, err := os.New(e, os.Config{Params: OSCosts, CPUs: cpus})
	must(err)
	a, err := completion.New(m, completion.Config{Params: Costs, Vectors: cpus, ReportsMissed: missed})
	must(err)
	return &Rig{e, m, a}
}

// must is for what the package itself gets wrong: no input reaches it.
func must(err error) {
	if err != nil {
		panic("oracle: " + err.Error())
	}
}

// Alloc makes a CQ, of 4096 entries unless a says.
func (r *Rig) Alloc(a kernel.CQAttr) kernel.CQ {
	a.Size = cmp.Or(a.Size, 4096)
	q, err := r.A.AllocCQ(a)
	must(err)
	return q
}

// Run runs to a time. A run that does not end by itself is one of the answers.
func (r *Rig) Run(until sim.Time) []string {
	if err := r.E.Run(until); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// Seen is what the handlers of a burst saw.
type Seen struct {
	Handled, Most int // handlers that ended, and that ran at once
	First, Last   time.Duration
	Order         []uint64

	running int
}

// Handler is a handler that takes d.
func (s *Seen) Handler(d time.Duration) func(kernel.Context, *kernel.WC) {
	return func(k kernel.Context, wc *kernel.WC) {
		if s.Handled == 0 {
			s.First = k.Now()
		}
		s.Handled++
		s.Order = append(s.Order, wc.ID)
		s.running++
		s.Most = max(s.Most, s.running)
		k.Work(d)
		s.running--
		s.Last = k.Now()
	}
}

// BurstAt is when a burst arrives: all threads sleep by then.
const BurstAt = 100 * time.Microsecond

// Burst is a CQ on an idle machine of 8 CPUs, on which n completions arrive at once.
func Burst(broken rule.Broken, model kernel.PollContext, n int, handle time.Duration) (*Rig, *Seen, []string) {
	r, s := NewRig(broken, 8, false), &Seen{}
	q := r.Alloc(kernel.CQAttr{Size: 1024, Poll: model, Done: s.Handler(handle)})
	for i := range n {
		q.Arrive(BurstAt, uint64(i))
	}
	wrong := r.Run(5 * sim.Millisecond)
	r.E.Close()
	return r, s, wrong
}

// counted is what the table of counts has a line for.
type counted struct {
	MSI, EQE, Arm, Polls, Wakeups, Softirqs, MMIO, AtOnce, Handled uint64
	PoolLocks                                                      bool // 1 in the interrupt, and about 3 of the worker
}

func count(r *Rig, s *Seen) counted {
	c := counted{r.A.MSIs, r.A.EQEs, r.A.Arms, r.A.Polls, r.M.Wakeups, r.M.Softirqs, r.A.MMIO, uint64(s.Most), uint64(s.Handled), false}
	c.PoolLocks = r.M.LocksOfPools >= 3 && r.M.LocksOfPools <= 5
	return c
}

// checkBursts holds the models of ib_core to what follows from its source for n completions that
// are visible when the interrupt comes, and says what differs.
func checkBursts(broken rule.Broken) (wrong []string) {
	for _, model := range []kernel.PollContext{kernel.Interrupt, kernel.Softirq, kernel.Workqueue, kernel.UnboundWorkqueue} {
		for _, n := range []int{1, 2, 15, 16, 17, 48, 100, 255} {
			r, s, failed := Burst(broken, model, n, 500*time.Nanosecond)
			wrong = append(wrong, failed...)
			want := counted{MSI: 1, EQE: 1, Arm: 1, Polls: uint64(n/16 + 1), Softirqs: 1, MMIO: 2, AtOnce: 1, Handled: uint64(n)}
			switch model {
			case kernel.Softirq:
				want.Softirqs = 2
			case kernel.Workqueue, kernel.UnboundWorkqueue:
				want.Wakeups, want.PoolLocks = 1, true
			}
			if got := count(r, s); got != want {
				wrong = append(wrong, fmt.Sprintf("%s, %d completions: %+v, want %+v", model, n, got, want))
			}
			if !slices.IsSorted(s.Order) {
				wrong = append(wrong, fmt.Sprintf("%s, %d completions: out of order: %v", model, n, s.Order))
			}
		}
	}
	return wrong
}
