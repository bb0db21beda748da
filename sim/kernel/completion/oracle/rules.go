package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel/completion"
	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// Probe checks rules of the models, and says what is wrong.
type Probe struct {
	Name  string
	Check func(broken rule.Broken) (wrong []string)
}

// Probes are all of them.
func Probes() []Probe {
	return []Probe{
		{"bursts", checkBursts}, {"direct", checkDirect}, {"budget of the softirq", checkSoftirqBudget}, {"budget of the workqueue", checkWorkBudget},
		{"missed events", checkMissed}, {"completion while the handler runs", checkRequeue}, {"a second event", checkSecondEvent},
		{"sleeping handlers", checkSleepers}, {"events in a queue", checkEQ}, {"LIFO", checkLIFO}, {"endless softirqs", checkHandOver},
	}
}

// differs says what two values of the same thing are, if they differ.
func differs(what string, got, want any) []string {
	if got == want {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v, want %v", what, got, want)}
}

// checkDirect: a Direct CQ takes no interrupt, and its owner polls in batches of 8.
func checkDirect(broken rule.Broken) (wrong []string) {
	for _, n := range []int{1, 7, 8, 20, 24} {
		r, s := NewRig(broken, 2, false), &Seen{}
		q := r.Alloc(kernel.CQAttr{Poll: kernel.Direct, Done: s.Handler(100)})
		for i := range n {
			q.Arrive(BurstAt, uint64(i))
		}
		got := 0
		must(r.A.Start("owner", 1, 1, func(k kernel.Thread) {
			k.Sleep(2 * BurstAt)
			got, _ = q.ProcessDirect(k, 256)
		}))
		wrong = append(wrong, r.Run(sim.Millisecond)...)
		r.E.Close()
		wrong = append(wrong, differs("interrupts", r.A.MSIs, uint64(0))...)
		wrong = append(wrong, differs("handled", got, n)...)
		wrong = append(wrong, differs("polls", r.A.Polls, uint64(n/8+1))...)
	}
	return wrong
}

// checkSoftirqBudget: two CQs on one CPU are polled in turn, 256 completions each time, and a CQ
// that used its budget up is not armed. The budget of the softirq is that of one CQ: it is raised
// again after each.
func checkSoftirqBudget(broken rule.Broken) (wrong []string) {
	r := NewRig(broken, 2, false)
	var runs []string
	for i := range 2 {
		name := fmt.Sprint(i)
		q := r.Alloc(kernel.CQAttr{Poll: kernel.Softirq, Done: func(k kernel.Context, wc *kernel.WC) {
			if len(runs) == 0 || !strings.HasPrefix(runs[len(runs)-1], name+" ") {
				runs = append(runs, name+" 0")
			}
			var n int
			fmt.Sscanf(runs[len(runs)-1], name+" %d", &n)
			runs[len(runs)-1] = fmt.Sprintf("%s %d", name, n+1)
			k.Work(10 * time.Nanosecond)
		}})
		for j := range 600 {
			q.Arrive(BurstAt, uint64(j))
		}
	}
	wrong = r.Run(50 * sim.Millisecond)
	r.E.Close()
	wrong = append(wrong, differs("runs", strings.Join(runs, ", "), "0 256, 1 256, 0 256, 1 256, 0 88, 1 88")...)
	return append(wrong, differs("arms", r.A.Arms, uint64(2))...)
}

// checkWorkBudget: a work function that has handled 65536 completions queues itself without arming.
func checkWorkBudget(broken rule.Broken) (wrong []string) {
	r, n := NewRig(broken, 2, false), 0
	q := r.Alloc(kernel.CQAttr{Poll: kernel.Workqueue, Size: 1 << 17, Done: func(kernel.Context, *kernel.WC) { n++ }})
	for i := range 65536 + 100 {
		q.Arrive(BurstAt, uint64(i))
	}
	wrong = r.Run(sim.Second)
	r.E.Close()
	wrong = append(wrong, differs("handled", n, 65536+100)...)
	wrong = append(wrong, differs("arms", r.A.Arms, uint64(1))...)
	return append(wrong, differs("interrupts", r.A.MSIs, uint64(1))...)
}

// checkMissed: no completion is left behind, whenever it comes, with a device that fires at once
// and with one that does not.
func checkMissed(broken rule.Broken) (wrong []string) {
	for _, p := range []kernel.PollContext{kernel.Interrupt, kernel.Softirq, kernel.Workqueue, kernel.UnboundWorkqueue} {
		for _, reports := range []bool{false, true} {
			// The second completion comes around the end of the first one's handler, so that some
			// come between the last poll and the arm.
			for late := time.Duration(0); late < 400; late += 20 {
				r, s := NewRig(broken, 2, reports), &Seen{}
				var q kernel.CQ
				h := s.Handler(500)
				q = r.Alloc(kernel.CQAttr{Poll: p, Done: func(k kernel.Context, wc *kernel.WC) {
					if wc.ID == 0 {
						q.Arrive(500+late, 1)
					}
					h(k, wc)
				}})
				q.Arrive(BurstAt, 0)
				wrong = append(wrong, r.Run(2*sim.Millisecond)...)
				r.E.Close()
				what := fmt.Sprintf("%v, reports %v, %v late: handled", p, reports, late)
				if wrong = append(wrong, differs(what, s.Handled, 2)...); len(wrong) > 5 {
					return wrong
				}
			}
		}
	}
	return wrong
}

// checkRequeue: an interrupt that comes while the work function runs queues the item again, which
// then runs without a wake-up, and the CQ is never polled by two at once.
func checkRequeue(broken rule.Broken) (wrong []string) {
	for _, p := range []kernel.PollContext{kernel.Workqueue, kernel.UnboundWorkqueue} {
		r, s := NewRig(broken, 4, false), &Seen{}
		work := &os.Work{Run: func(t *os.Thread) {
			s.Handled++
			s.running++
			s.Most = max(s.Most, s.running)
			t.Run(20 * us)
			s.running--
		}}
		pool := r.M.BoundPool(0)
		if p == kernel.UnboundWorkqueue {
			pool = r.M.UnboundPool(nil)
		}
		for i := range 3 {
			r.E.After(sim.Time(BurstAt)*ns+sim.Time(i)*10*us, func(uint64) {
				r.M.CPU(0).Interrupt(func(c *os.Context) { c.Queue(pool, work) })
			}, 0)
		}
		wrong = append(wrong, r.Run(2*sim.Millisecond)...)
		r.E.Close()
		wrong = append(wrong, differs(p.String()+": runs", s.Handled, 2)...)
		wrong = append(wrong, differs(p.String()+": at once", s.Most, 1)...)
	}
	return wrong
}

// checkSecondEvent: a CQ that is on the list of the softirq already is not put there twice.
func checkSecondEvent(broken rule.Broken) (wrong []string) {
	r, s := NewRig(broken, 2, false), &Seen{}
	q := r.Alloc(kernel.CQAttr{Poll: kernel.Softirq, Done: s.Handler(time.Microsecond)}).(*completion.CQ)
	for i := range 3 {
		q.Arrive(BurstAt, uint64(i))
	}
	r.M.CPU(0).Interrupt(func(c *os.Context) {
		q.Event(c)
		q.Event(c)
	})
	wrong = r.Run(2 * sim.Millisecond)
	r.E.Close()
	wrong = append(wrong, differs("handled", s.Handled, 3)...)
	// One poll for each time that it was scheduled: by hand, and by its event.
	return append(wrong, differs("polls", r.A.Polls, uint64(2))...)
}

// checkSleepers: while a handler sleeps another worker of the CPU takes the next CQ, and the pool
// makes as many workers as it needs.
func checkSleepers(broken rule.Broken) (wrong []string) {
	const cqs = 6
	r, most, at, n := NewRig(broken, 2, false), 0, 0, 0
	for range cqs {
		q := r.Alloc(kernel.CQAttr{Poll: kernel.Workqueue, Done: func(k kernel.Context, _ *kernel.WC) {
			at++
			most = max(most, at)
			k.(kernel.Thread).Sleep(time.Millisecond)
			at--
			n++
		}})
		q.Arrive(BurstAt, 0)
	}
	wrong = r.Run(20 * sim.Millisecond)
	r.E.Close()
	wrong = append(wrong, differs("handled", n, cqs)...)
	return append(wrong, differs("handlers that sleep at once", most, cqs)...)
}

// checkEQ: an interrupt takes 128 events at most, and the rest raises another one. Each CQ is
// handled once.
func checkEQ(broken rule.Broken) (wrong []string) {
	const cqs = 300
	r, s := NewRig(broken, 2, false), &Seen{}
	for i := range cqs {
		q := r.Alloc(kernel.CQAttr{Poll: kernel.Workqueue, Done: s.Handler(100), Size: 16})
		q.Arrive(BurstAt, uint64(i))
	}
	wrong = r.Run(5 * sim.Millisecond)
	r.E.Close()
	wrong = append(wrong, differs("handled", s.Handled, cqs)...)
	wrong = append(wrong, differs("events", r.A.EQEs, uint64(cqs))...)
	wrong = append(wrong, differs("interrupts", r.A.MSIs, uint64(3))...)
	// The bound workqueue runs where the interrupt was.
	return append(wrong, differs("time of threads on CPU 1", r.M.CPU(1).Busy[os.LevelThread], sim.Time(0))...)
}

// checkLIFO: single items that come one by one all run on the worker that became idle last.
func checkLIFO(broken rule.Broken) (wrong []string) {
	r := NewRig(broken, 8, false)
	var cpus []int
	q := r.Alloc(kernel.CQAttr{Poll: kernel.UnboundWorkqueue, Done: func(k kernel.Context, _ *kernel.WC) { cpus = append(cpus, k.CPU()) }})
	for i := range 8 {
		q.Arrive(BurstAt*time.Duration(i+1), uint64(i))
	}
	wrong = r.Run(5 * sim.Millisecond)
	r.E.Close()
	wrong = append(wrong, differs("handled", len(cpus), 8)...)
	return append(wrong, differs("CPUs", len(slices.Compact(cpus)), 1)...)
}

// checkHandOver: a softirq that never has nothing to do goes to ksoftirqd, beside which a thread
// gets its turn.
func checkHandOver(broken rule.Broken) (wrong []string) {
	r, ran := NewRig(broken, 2, false), false
	var q kernel.CQ
	q = r.Alloc(kernel.CQAttr{Poll: kernel.Softirq, Done: func(k kernel.Context, wc *kernel.WC) {
		k.Work(time.Microsecond)
		q.Arrive(0, wc.ID)
	}})
	for i := range 1000 {
		q.Arrive(BurstAt, uint64(i))
	}
	must(r.A.Start("thread", 0, 1, func(k kernel.Thread) {
		k.Sleep(2 * BurstAt)
		ran = true
	}))
	wrong = r.Run(100 * sim.Millisecond)
	r.E.Close()
	wrong = append(wrong, differs("handed over to ksoftirqd", r.M.Ksoftirqd > 0, true)...)
	return append(wrong, differs("the thread ran", ran, true)...)
}
