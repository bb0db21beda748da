package experiment

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/workload"
)

// completionRows runs the experiment with settings.
func completionRows(t *testing.T, set ...string) *Result {
	t.Helper()
	x, err := Find("completions")
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Execute(t.Context(), Request{Set: set, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// The counts of a burst that follow from the source of o2iblnd: one interrupt and one arm; N+2 polls, of which the two last find
// nothing and lie about the arm; two wake-ups for one completion, and N+1 at most. Those of ib_core: N/16+1 polls, and one wake-up of
// a worker or none.
func TestBurstCounts(t *testing.T) {
	for _, r := range completionRows(t, "scenario=burst").kind("burst") {
		n, wakeups, polls := value(t, &r, "completions"), value(t, &r, "wakeups"), value(t, &r, "polls")
		interrupts, arms, softirqs := 1.0, 1.0, 1.0
		ok := false
		switch r.Get("model") {
		case "legacy":
			ok = polls == n+2 && wakeups >= 2 && wakeups <= min(n+1, 5) // four threads: each is woken, and the first perhaps again
		case "direct":
			ok, interrupts, arms, softirqs = wakeups == 0 && polls > n, 0, 0, 0
		case "irq-inline":
			ok = wakeups == 0 && polls == float64(int(n)/16+1)
		case "softirq":
			ok, softirqs = wakeups == 0 && polls == float64(int(n)/16+1), 2
		case "workqueue", "unbound":
			ok = wakeups == 1 && polls == float64(int(n)/16+1)
		}
		if !ok || value(t, &r, "interrupts") != interrupts || value(t, &r, "arms") != arms || value(t, &r, "softirqs") != softirqs {
			t.Errorf("%v", r.vals)
		}
	}
}

// Estimates by hand with handlers of 2.5 us. Saturated, legacy has 4 threads and takes 0.35 us beside the handler: 1.4 million/s; a
// core of the workqueue has 0.39 million/s, so one connection has that, and four with a vector each have four times as much.
// An isolated burst of two ends after 11 us with legacy, 8.4 with the workqueue and 9.8 unbound, each and the exit from C1.
func TestCompletionEstimates(t *testing.T) {
	about := func(what string, got, want, within float64) {
		if got < want*(1-within) || got > want*(1+within) {
			t.Errorf("%s: %.2f, estimated %.2f", what, got, want)
		}
	}
	res := completionRows(t, "scenario=conns", "credits=64", "turnaround_us=5")
	rate := func(model string, conns int) float64 {
		for _, r := range res.kind("conns") {
			if r.Get("model") == model && r.Get("conns_per_peer") == conns {
				return value(t, &r, "rate_kps")
			}
		}
		t.Fatalf("no row of %s with %d connections", model, conns)
		return 0
	}
	// The estimate leaves out that a thread which meets the only connection in another one's hands goes to sleep, and has to be woken.
	if r := rate("legacy", 1); r < 1000 || r > 1400 {
		t.Errorf("legacy, one connection: %.0f, estimated 1400 without sleepers", r)
	}
	about("legacy, eight", rate("legacy", 8), 1400, 0.05)
	about("workqueue, one connection", rate("workqueue", 1), 390, 0.05)
	about("workqueue, four", rate("workqueue", 4), 1550, 0.05)
	for _, r := range completionRows(t, "scenario=burst").kind("burst") {
		if want := map[any]float64{"legacy": 12, "workqueue": 9.4, "unbound": 10.8, "softirq": 7.3, "irq-inline": 7.1}[r.Get("model")]; want != 0 && r.Get("completions") == 2 {
			about(fmt.Sprint(r.Get("model"), ", two at once"), value(t, &r, "last_us"), want, 0.06)
		}
	}
}

// Within a connection only legacy handles completions out of order; and a run with the same seed is the same.
func TestCompletionOrder(t *testing.T) {
	res := completionRows(t, "scenario=load", "duration_us=1000")
	sum := map[any]float64{}
	for _, r := range res.kind("load") {
		sum[r.Get("model")] += value(t, &r, "inversions")
	}
	for _, m := range workload.O2IBModels {
		if (sum[m] > 0) != (m == "legacy") {
			t.Errorf("%s: %v completions out of order", m, sum[m])
		}
	}
}

// What cannot be is refused before anything runs.
func TestImpossibleCompletions(t *testing.T) {
	x, err := Find("completions")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, want string }{
		{"cores=4 threads=5 model=legacy", "5 threads in each CPU partition of 4 CPUs: want 1 to 4"}, {"cores=4 vectors=5", "5 completion vectors: the device has 1 to 4"},
		{"cores=6 partitions=4", "4 CPU partitions of 6 CPUs"}, {"cores=6 nodes=4", "6 CPUs on 4 NUMA nodes"},
		{"merged=yes", "give --set model="}, {"model=direct dim=yes", "direct has none"}, {"peers=1024 conns_per_peer=16 handler_ns=1000001", "handler_ns"},
	} {
		_, err := x.Execute(t.Context(), Request{Set: strings.Fields(c.set), Seed: 1}, nil)
		if u := (*UsageError)(nil); !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// Each model does at least half a million completions in a second of CPU time on 16 cores: completions/s says how many.
func BenchmarkCompletions(b *testing.B) {
	for _, m := range workload.O2IBModels {
		b.Run(m, func(b *testing.B) {
			x := &completionRun{Env: &Env{Ctx: b.Context(), rec: &recorder{}, Seed: 1}}
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
			for to := sim.Time(0); bed.a.Completions < uint64(b.N); to += 100 * sim.Microsecond {
				if err := bed.e.Run(to); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(bed.a.Completions)/b.Elapsed().Seconds(), "completions/s")
		})
	}
}

// No core is busy for longer than the measured time, however long a handler is beside it.
func TestNoCoreIsBusyForLongerThanTheRun(t *testing.T) {
	for _, handler := range []string{"2500", "100000"} {
		for _, r := range completionRows(t, "scenario=load", "duration_us=100", "handler_ns="+handler, "cores=2", "threads=2", "peers=2").kind("load") {
			if busiest := value(t, &r, "busiest_percent"); busiest > 100.0001 {
				t.Errorf("handlers of %s ns, %s: the busiest core %.2f %%", handler, r.Get("model"), busiest)
			}
		}
	}
}
