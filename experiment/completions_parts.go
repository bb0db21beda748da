package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/workload"
)

// The points of the parts.
var (
	bursts      = []int{1, 2, 4, 8, 16, 32}
	turnarounds = []int{2000, 500, 200, 100, 50, 20, 5} // us
	connections = []int{1, 2, 4, 8}
	hosts       = [][2]int{{4, 100}, {16, 100}, {64, 400}} // cores, and the time that they take in percent
	batches     = []int{1, 4, 8, 16, 64}
	moderated   = []int{500, 50, 5}      // us
	pools       = []int{1, 2, 4, 8, 16}  // threads
	designLoads = []int{2000, 200, 5, 0} // us of turnaround; 0: a burst
	sharings    = []struct {             // of the CQs of connections
		name   string
		merged bool
		one    bool // vector
	}{{"each", false, false}, {"core", true, false}, {"one", true, true}}
	budgets = []struct {
		model         string
		softirq, work int
	}{{"softirq", 16, 0}, {"softirq", 64, 0}, {"softirq", 256, 0}, {"softirq", 4096, 0}, {"workqueue", 0, 64}, {"workqueue", 0, 1024}, {"workqueue", 0, 65536}}
)

// designs are legacy, the workqueue, and what others do.
func designs() []string { return append([]string{"legacy", "workqueue"}, workload.O2IBDesigns...) }

// point is the load that the parameters give.
func (x *completionRun) point(model string) completionPoint {
	p := completionPoint{model: model, cores: x.Int("cores"), slower: x.Int("slower_percent"), nodes: x.Int("nodes"), partitions: x.Int("partitions"),
		threads: x.Int("threads"), vectors: x.Int("vectors"), peers: x.Int("peers"), conns: x.Int("conns_per_peer"), credits: x.Int("credits"),
		turnaround: time.Duration(x.Int("turnaround_us")) * time.Microsecond, handler: time.Duration(x.Int("handler_ns")), same: x.String("same_vector") == "yes",
		merged: x.String("merged") == "yes", dim: x.String("dim") == "yes", idle: x.String("idle"), wake: x.Int("wake_percent"), batch: x.Int("batch"), budgetIRQ: x.Int("budget_softirq"),
		budgetWQ: x.Int("budget_workqueue"), background: x.Int("background"),
		duration: time.Duration(x.Int("duration_us")) * time.Microsecond, seed: x.Seed}
	if n := x.Int("unbound_cpus"); n > 0 {
		p.unbound = coresFrom(x.Int("unbound_first"), n)
	}
	return p
}

// coresFrom are n cores from the first on.
func coresFrom(first, n int) (cores []int) {
	for i := range n {
		cores = append(cores, first+i)
	}
	return cores
}

func (x *completionRun) bursts() error {
	for _, m := range x.models {
		for _, n := range bursts {
			if err := x.Next(fmt.Sprintf("%s, a burst of %d", m, n)); err != nil {
				return err
			}
			if err := x.burst("burst", m, n); err != nil {
				return err
			}
		}
	}
	x.Note("burst: all cores are idle, and so many completions of one connection arrive together. first_us and last_us are when the handler of the first one began, and when the last one ended. direct has a thread that polls all the time.")
	return nil
}

// burst runs a burst of n completions and emits its row.
func (x *completionRun) burst(part, m string, n int) error {
	p := x.point(m)
	p.peers, p.conns, p.credits, p.burst = 1, 1, n, true
	r, err := p.measure(x.Env)
	if err != nil {
		return err
	}
	var row table.Row
	row.Set("row", part).Set("model", m).Set("cores", p.cores).Set("completions", n).Set("first_us", r.first).Set("last_us", r.last)
	row.Set("wakeups", r.wakeups).Set("polls", r.polls).Set("interrupts", r.interrupts).Set("arms", r.arms)
	row.Set("context_switches", r.switches).Set("softirqs", r.softirqs).Set("locks", r.schedLocks).Set("pool_locks", r.poolLocks)
	x.Emit(row)
	return nil
}

func (x *completionRun) load() error {
	for _, m := range x.models {
		for _, us := range turnarounds {
			p := x.point(m)
			p.turnaround = time.Duration(us) * time.Microsecond
			if err := x.emit("load", p); err != nil {
				return err
			}
		}
	}
	x.Note("load: %d peers with %d messages under way on each connection; the time until the next message's completion goes from %d to %d us.", x.Int("peers"), x.Int("credits"), turnarounds[0], turnarounds[len(turnarounds)-1])
	return nil
}

func (x *completionRun) conns() error {
	for _, m := range x.models {
		for _, n := range connections {
			p := x.point(m)
			p.peers, p.conns = 1, n
			if err := x.emit("conns", p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *completionRun) cores() error {
	for _, m := range x.models {
		for _, h := range hosts {
			p := x.point(m)
			p.cores, p.slower, p.vectors = h[0], h[1], 0
			if err := x.emit("cores", p); err != nil {
				return err
			}
		}
	}
	x.Note("cores: 4 and 16 cores, and 64 that take four times as long for each instruction.")
	return nil
}

// cqs has a CQ for each connection, one for each core, and one for all.
func (x *completionRun) cqs() error {
	for _, m := range []string{"softirq", "workqueue", "unbound"} {
		for _, how := range sharings {
			p := x.point(m)
			p.peers, p.turnaround, p.merged, p.shares = 4*p.cores, middle, how.merged, how.name
			if how.one {
				p.vectors = 1
			}
			if err := x.emit("cqs", p); err != nil {
				return err
			}
		}
	}
	x.Note("cqs: %d connections, a completion of each message %v after the last one: each has a CQ, those of a core share one of ib_cq_pool_get (core), or all do (one).", 4*x.Int("cores"), middle)
	return nil
}

func (x *completionRun) batches() error {
	for _, m := range []string{"softirq", "workqueue"} {
		for _, n := range batches {
			p := x.point(m)
			p.turnaround, p.credits, p.batch = heavy, 64, n
			if err := x.emit("batch", p); err != nil {
				return err
			}
		}
	}
	x.Note("batch: saturated, 64 messages under way on each connection; ib_core takes 16 completions in a poll.")
	return nil
}

// budgets has two connections on each core, so that one waits while the other one uses its budget
// up.
func (x *completionRun) budgets() error {
	for _, b := range budgets {
		p := x.point(b.model)
		p.peers, p.turnaround, p.credits, p.budgetIRQ, p.budgetWQ = 2*p.cores, heavy, 256, b.softirq, b.work
		if err := x.emit("budget", p); err != nil {
			return err
		}
	}
	x.Note("budget: saturated, two connections on each core with 256 messages under way; ib_core lets a CQ have 256 completions in softirq before the next one has its turn, and 65536 in a worker.")
	return nil
}

func (x *completionRun) dims() error {
	for _, m := range []string{"softirq", "workqueue"} {
		for _, us := range moderated {
			for _, dim := range []bool{false, true} {
				p := x.point(m)
				p.turnaround, p.dim, p.duration = time.Duration(us)*time.Microsecond, dim, 4*p.duration
				if err := x.emit("dim", p); err != nil {
					return err
				}
			}
		}
	}
	x.Note("dim: ib_core moderates the interrupts of its CQs by DIM unless an administrator switches it off; the other parts have it off, so that models are compared with equal moderation. Runs are four times as long, since it takes time to settle.")
	return nil
}

func (x *completionRun) locks() error {
	for _, m := range []string{"legacy", "legacy-16", "softirq-threads"} {
		for _, n := range pools {
			p := x.point(m)
			if p.turnaround, p.threads = heavy, n; n*p.partitions > p.cores {
				continue
			}
			if err := x.emit("locks", p); err != nil {
				return err
			}
		}
	}
	x.Note("locks: saturated, with more and more threads for one list and its lock.")
	return nil
}

func (x *completionRun) designs() error {
	for _, m := range designs() {
		for _, us := range designLoads {
			if us == 0 {
				if err := errors.Join(x.Next("designs: a burst of "+m), x.burst("designs", m, 16)); err != nil {
					return err
				}
				continue
			}
			p := x.point(m)
			p.turnaround = time.Duration(us) * time.Microsecond
			if err := x.emit("designs", p); err != nil {
				return err
			}
		}
	}
	x.Note("designs: legacy-16 takes up to 16 completions and wakes no other thread for the rest, as Lustre's efalnd; softirq-threads has a softirq hand each completion to legacy's threads, as the first plan for o2iblnd; fanout queues a work item on each core of the partition for every event, as Lustre's kfilnd.")
	return nil
}

// emit runs a point and emits its row.
func (x *completionRun) emit(part string, p completionPoint) error {
	if err := x.Next(part + ": " + p.model); err != nil {
		return err
	}
	r, err := p.measure(x.Env)
	if err != nil {
		return err
	}
	for _, w := range r.warnings {
		x.Note("%s: %s: %s.", part, p.model, w)
	}
	x.Emit(p.row(part, r))
	return nil
}

// row is the row of a run.
func (p completionPoint) row(part string, r completionResult) table.Row {
	handled := r.rate * r.ms
	if handled == 0 { // then there is no latency, and nothing for each completion
		nothing := math.NaN()
		handled, r.p50, r.p99, r.cpu, r.fairness = nothing, nothing, nothing, nothing, nothing
	}
	var row table.Row
	row.Set("row", part).Set("model", p.model).Set("cores", p.cores).Set("slower_percent", p.slower).Set("peers", p.peers).Set("conns_per_peer", p.conns)
	row.Set("threads", p.threads).Set("vectors", p.vectorCount()).Set("cqs", p.cqs()).Set("dim", yesNo(p.dim))
	row.Set("turnaround_us", strconv.FormatFloat(p.turnaround.Seconds()*1e6, 'f', -1, 64))
	row.Set("rate_kps", r.rate).Set("latency_us_p50", r.p50).Set("latency_us_p99", r.p99).Set("interrupts_kps", r.interrupts/r.ms).Set("context_switches_kps", r.switches/r.ms)
	row.Set("cpu_us_per_wc", r.cpu).Set("busiest_percent", r.busiest).Set("lock_wait_percent", r.lockWait).Set("fairness", r.fairness)
	r.setLimit(&row)
	row.Set("batch", p.batch).Set("budget", p.budget()).Set("unbound_cpus", len(p.unbound))
	row.Set("locks_per_wc", r.schedLocks/handled).Set("lock_waits_per_wc", r.schedWaits/handled).Set("lock_lines_per_wc", r.schedLines/handled).Set("pool_locks_per_wc", r.poolLocks/handled)
	row.Set("starved", len(r.warnings)).Set("cpu_percent", percents(r.busy))
	row.Set("inversions", r.inversions).Set("lines_moved_kps", r.lines/r.ms).Set("wakeups_kps", r.wakeups/r.ms).Set("polls_kps", r.polls/r.ms)
	row.Set("polls_per_wc", r.polls/handled).Set("ksoftirqd_kps", r.ksoftirqd/r.ms)
	return row
}

// vectorCount is how many completion vectors there are.
func (p completionPoint) vectorCount() int {
	return cmp.Or(p.vectors, p.cores)
}

// cqs says who shares a CQ.
func (p completionPoint) cqs() string {
	switch {
	case p.shares != "":
		return p.shares
	case p.merged:
		return "vector"
	}
	return "each"
}

// budget is how many completions of a CQ the model handles before others have their turn; 0: it has
// none.
func (p completionPoint) budget() int {
	switch p.model {
	case "softirq", "softirq-threads":
		return cmp.Or(p.budgetIRQ, 256)
	case "workqueue", "unbound", "irq-inline":
		return cmp.Or(p.budgetWQ, 65536)
	}
	return 0
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// percents are shares in one text.
func percents(all []float64) string {
	var text []string
	for _, v := range all {
		text = append(text, strconv.FormatFloat(v, 'f', 1, 64))
	}
	return strings.Join(text, " ")
}
