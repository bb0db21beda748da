package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/workload"
)

// completionRows runs the experiment with settings.
func completionRows(t *testing.T, set ...string) *Result {
	t.Helper()
	res, err := CompletionModels().Execute(t.Context(), Request{Set: set, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// ofKind are the rows of a kind.
func ofKind(res *Result, kind string) (all []table.Row) {
	for _, r := range res.Rows {
		if r.Get("row") == kind {
			all = append(all, r)
		}
	}
	return all
}

// numberIn is a number of a row that has it.
func numberIn(t *testing.T, r *table.Row, key string) float64 {
	t.Helper()
	v, ok := r.Float(key)
	if !ok {
		t.Errorf("%v: no %s", r.Get("model"), key)
	}
	return v
}

// The counts of a burst that follow from the source of o2iblnd and of ib_core, for 1 to 40
// completions on an idle machine.
//   - legacy: one interrupt and one arm; n+2 polls, of which the last two find nothing and lie
//     about the arm; two wake-ups for one completion, up to n+1, and no more than each of the four
//     threads and one that slept again; the lock is taken in the interrupt, twice for each
//     completion, once for the empty pass, and once by each thread that wakes;
//   - ib_core's models: n/16+1 polls; one wake-up of a worker or none; the lock of its pool in the
//     interrupt, and twice by the worker;
//   - softirq-threads: ib_core's polls, and a wake-up for each completion while threads sleep.
func TestTableOfCounts(t *testing.T) {
	x := &completionRun{Parts: Parts{Env: &Env{Ctx: t.Context(), rec: &recorder{}, Seed: 1}}}
	for _, model := range slices.Concat(workload.O2IBModels, []string{"softirq-threads"}) {
		for n := 1; n <= 40; n++ {
			p := completionPoint{model: model, cores: 16, slower: 100, nodes: 1, partitions: 1, threads: 4, peers: 1, conns: 1, credits: n,
				handler: 2500, idle: "c1", wake: 100, seed: 1, burst: true}
			r, err := p.measure(x.Env)
			if err != nil {
				t.Fatal(err)
			}
			f := float64(n)
			interrupts, softirqs, polls, wakes, locks, pool, most := 1.0, 1.0, float64(n/16+1), 0.0, 0.0, 0.0, 1
			ordered := true
			switch model {
			case "legacy":
				polls, wakes, locks = f+2, r.wakeups, 2*f+2+r.wakeups
				if r.wakeups < 2 || r.wakeups > min(f+1, 5) || n == 1 && r.wakeups != 2 {
					t.Errorf("legacy, %d completions: %v wake-ups", n, r.wakeups)
				}
				most, ordered = r.most, r.most <= min(n, 4)
			case "softirq-threads":
				wakes, locks, softirqs = r.wakeups, r.schedLocks, 2
				if r.wakeups < min(f, 4) || r.wakeups > f || r.schedLocks < 2*f {
					t.Errorf("softirq-threads, %d completions: %v wake-ups, %v acquisitions of the lock", n, r.wakeups, r.schedLocks)
				}
				most, ordered = r.most, r.most <= min(n, 4)
			case "direct":
				interrupts, softirqs, polls = 0, 0, r.polls // its thread polls all the time
			case "softirq":
				softirqs = 2 // irq_poll and the tasklet, in one pass
			case "workqueue", "unbound":
				wakes, pool = 1, 3
			}
			if r.interrupts != interrupts || r.arms != interrupts || r.softirqs != softirqs || r.polls != polls || r.wakeups != wakes || r.schedLocks != locks ||
				r.poolLocks != pool || r.most != most || !ordered || model != "legacy" && model != "softirq-threads" && r.inversions > 0 {
				t.Errorf("%s, %d completions: %+v", model, n, r)
			}
		}
	}
}

// Estimates by hand with handlers of 2.5 us. Saturated, legacy has 4 threads and takes 0.35 us
// beside the handler: 1.4 million/s; a core of the workqueue has 0.39 million/s, so one connection
// has that, and four with a vector each have four times as much. An isolated burst of two ends
// after 11 us with legacy, 8.4 with the workqueue and 9.8 unbound, each and the exit from C1.
func TestCompletionEstimates(t *testing.T) {
	about := func(what string, got, want, within float64) {
		if got < want*(1-within) || got > want*(1+within) {
			t.Errorf("%s: %.2f, estimated %.2f", what, got, want)
		}
	}
	res := completionRows(t, "scenario=conns", "credits=64", "turnaround_us=5")
	rate := func(model string, conns int) float64 {
		for _, r := range ofKind(res, "conns") {
			if r.Get("model") == model && r.Get("conns_per_peer") == conns {
				return numberIn(t, &r, "rate_kps")
			}
		}
		t.Fatalf("no row of %s with %d connections", model, conns)
		return 0
	}
	about("legacy, one connection, in spite of sleepers", rate("legacy", 1), 1050, 0.05)
	about("legacy, eight", rate("legacy", 8), 1400, 0.05)
	about("workqueue, one connection", rate("workqueue", 1), 390, 0.05)
	about("workqueue, four", rate("workqueue", 4), 1550, 0.05)
	for _, r := range ofKind(completionRows(t, "scenario=burst"), "burst") {
		if want := map[any]float64{"legacy": 12, "workqueue": 9.4, "unbound": 10.8, "softirq": 7.3, "irq-inline": 7.1}[r.Get("model")]; want != 0 && r.Get("completions") == 2 {
			about(fmt.Sprint(r.Get("model"), ", two at once"), numberIn(t, &r, "last_us"), want, 0.06)
		}
	}
}

// TestLimitOfCompletions: a light load is limited by what comes between messages, and a saturated
// one by the cores.
func TestLimitOfCompletions(t *testing.T) {
	for _, c := range []struct {
		r    completionResult
		want string
	}{
		{completionResult{busiest: 20, busy: []float64{3, 20}}, "window"}, {completionResult{busiest: 99, busy: []float64{99, 20}}, "CPU"},
		{completionResult{busiest: 99, busy: []float64{99, 20}, lockWait: 60}, "lock"}, {completionResult{busiest: 20, busy: []float64{20}, lockWait: 60}, "window"},
	} {
		var row table.Row
		if c.r.setLimit(&row); row.Get(LimitedBy) != c.want {
			t.Errorf("%+v: %v", c.r, row.Get(LimitedBy))
		}
	}
}

// One connection of legacy is estimated at 4 threads/(handler and 0.35 us) = 1.4 million/s "without
// sleepers", and has 1.03. A thread that meets the only connection in another one's hands finds the
// list empty and sleeps at once, as kiblnd_scheduler does, so that a wake-up of 2.8 us and more
// comes for every fourth completion. Where wake-ups cost nothing, and where handlers take long
// beside them, the estimate holds.
func TestLegacySleepsWithOneConnection(t *testing.T) {
	run := func(set ...string) (rate, switches float64) {
		rows := ofKind(completionRows(t, append([]string{"scenario=conns", "model=legacy", "credits=64", "turnaround_us=5"}, set...)...), "conns")
		return numberIn(t, &rows[0], "rate_kps"), numberIn(t, &rows[0], "context_switches_kps")
	}
	if rate, switches := run(); rate > 1100 || switches/rate < 0.2 {
		t.Errorf("%.0f kps with %.0f context switches", rate, switches)
	}
	if rate, _ := run("wake_percent=1", "idle=poll"); math.Abs(rate/1403-1) > 0.03 {
		t.Errorf("with free wake-ups %.0f kps, estimated 1403", rate)
	}
	if rate, _ := run("handler_ns=10000"); math.Abs(rate/386.5-1) > 0.03 {
		t.Errorf("with handlers of 10 us %.0f kps, estimated 386.5", rate)
	}
}

// Handlers for which four threads beat one worker with n completions at once: estimated at 5.2 us
// for 2, 2.8 for 4, and 1.0 for 16.
func TestCrossovers(t *testing.T) {
	x := &completionRun{Parts: Parts{Env: &Env{Ctx: t.Context(), rec: &recorder{}, Seed: 1}}}
	for _, c := range []struct {
		n    int
		want float64
	}{{2, 5200}, {4, 2800}, {16, 1000}} {
		got := 0.0
		for h := 100; h < 20_000 && got == 0; h += 100 {
			var last [2]float64
			for i, model := range []string{"legacy", "workqueue"} {
				p := completionPoint{model: model, cores: 16, slower: 100, nodes: 1, partitions: 1, threads: 4, peers: 1, conns: 1, credits: c.n,
					handler: time.Duration(h), idle: "c1", wake: 100, seed: 1, burst: true}
				r, err := p.measure(x.Env)
				if err != nil {
					t.Fatal(err)
				}
				last[i] = r.last
			}
			if last[0] < last[1] {
				got = float64(h)
			}
		}
		t.Logf("%d at once: from handlers of %.0f ns on", c.n, got)
		if got < c.want*0.6 || got > c.want*1.4 {
			t.Errorf("%d at once: legacy ends first from handlers of %.0f ns on, estimated %.0f", c.n, got, c.want)
		}
	}
}

// Within a connection only legacy handles completions out of order; and a run with the same seed is
// the same.
func TestCompletionOrder(t *testing.T) {
	res := completionRows(t, "scenario=load", "duration_us=1000")
	sum := map[any]float64{}
	for _, r := range ofKind(res, "load") {
		sum[r.Get("model")] += numberIn(t, &r, "inversions")
	}
	for _, m := range workload.O2IBModels {
		if (sum[m] > 0) != (m == "legacy") {
			t.Errorf("%s: %v completions out of order", m, sum[m])
		}
	}
}

// What cannot be is refused before anything runs.
func TestImpossibleCompletions(t *testing.T) {
	x := CompletionModels()
	for _, c := range []struct{ set, want string }{
		{"cores=4 threads=5 model=legacy", "threads=5 in each CPU partition of 4 CPUs: want 1 to 4"}, {"cores=4 vectors=5", "5 completion vectors: the device has 1 to 4"},
		{"cores=6 partitions=4", "partitions=4 of 6 CPUs"}, {"cores=6 nodes=4", "6 CPUs on 4 NUMA nodes"},
		{"scenario=load model=unbound unbound_first=10 unbound_cpus=7", "cores 10 to 16 for the unbound workqueue: the host has cores 0 to 15"},
		{"model=softirq unbound_cpus=4", "only the unbound workqueue has a cpumask, and the model is softirq: give --set model=unbound"}, {"unbound_first=4", "give unbound_cpus"}, {"scenario=cores unbound_cpus=4", "one of burst, load"},
		{"merged=yes", "give --set model="}, {"model=direct dim=yes", "direct has none"}, {"peers=1024 conns_per_peer=16 handler_ns=1000001", "handler_ns"},
	} {
		_, err := x.Execute(t.Context(), Request{Set: strings.Fields(c.set), Seed: 1}, nil)
		if u := (*UsageError)(nil); !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// cpuTime is what the process has used so far, which other programs of the machine do not change.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Each model does at least half a million completions in a second of CPU time on 16 cores:
// completions/cpu-s says how many.
func BenchmarkCompletions(b *testing.B) {
	for _, m := range slices.Concat(workload.O2IBModels, workload.O2IBDesigns) {
		b.Run(m, func(b *testing.B) {
			x := &completionRun{Parts: Parts{Env: &Env{Ctx: b.Context(), rec: &recorder{}, Seed: 1}}}
			p := completionPoint{model: m, cores: 16, slower: 100, nodes: 1, partitions: 1, threads: 4, peers: 16, conns: 1, credits: 8, turnaround: heavy,
				handler: 2500, idle: "c1", wake: 100, seed: 1}
			bed, err := p.build(x.Env)
			if err != nil {
				b.Fatal(err)
			}
			defer bed.e.Close()
			bed.o.Stop = 1 << 60
			b.ReportAllocs()
			b.ResetTimer()
			began := cpuTime(b)
			for to := sim.Time(0); bed.a.Completions < uint64(b.N); to += 100 * sim.Microsecond {
				if err := bed.e.Run(to); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(bed.a.Completions)/(cpuTime(b)-began).Seconds(), "completions/cpu-s")
		})
	}
}

// No core is busy for longer than the measured time, however long a handler is beside it.
func TestNoCoreIsBusyForLongerThanTheRun(t *testing.T) {
	for _, handler := range []string{"2500", "100000"} {
		for _, r := range ofKind(completionRows(t, "scenario=load", "duration_us=100", "handler_ns="+handler, "cores=2", "threads=2", "peers=2"), "load") {
			if busiest := numberIn(t, &r, "busiest_percent"); busiest > 100.0001 {
				t.Errorf("handlers of %s ns, %s: the busiest core %.2f %%", handler, r.Get("model"), busiest)
			}
		}
	}
}

// An experiment's own costs are those that others name.
func TestCostsOfCompletions(t *testing.T) {
	plain, slow := hostCosts(nil), hostCosts(map[string]string{"wake-up": "5us"})
	if slow.Wake != 5*sim.Microsecond || plain.Wake == slow.Wake {
		t.Errorf("wake-up %v, %v", plain.Wake, slow.Wake)
	}
	slow.Wake = plain.Wake
	if slow != plain {
		t.Error("another cost changed too")
	}
	if n := len(assumedCosts()); n < 10 {
		t.Errorf("%d assumed costs", n)
	}
	for _, c := range assumedCosts() {
		if d, err := input.ParseTime(c.Value); err != nil || d <= 0 {
			t.Errorf("%s: %q, %v", c.Name, c.Value, err)
		}
	}
}
