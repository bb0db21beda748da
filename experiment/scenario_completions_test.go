package experiment

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
)

// scenarioOf writes a scenario and runs it.
func scenarioOf(t *testing.T, text string, req Request) (*Result, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := OpenScenario(t.Context(), path)
	if err != nil {
		return nil, err
	}
	req.Seed = 1
	return x.Execute(t.Context(), req, nil)
}

// A disk with two places and a service of 100 us gives 20,000 completions per second and no more,
// whatever the cores could do; and its interrupts fall where connections share the CQ of a vector.
func TestScenarioOfADisk(t *testing.T) {
	const text = `name: disk
cores: 8
completions: {model: softirq, vectors: 2, affinity: [6, 7], peers: 32, pool: true, disk: {mean: 100us, distribution: exponential}, disk_queues: 2, duration: 50ms}
`
	for _, pool := range []string{"true", "false"} {
		res, err := scenarioOf(t, text, Request{Set: []string{"completions.pool=" + pool}})
		if err != nil {
			t.Fatal(err)
		}
		if rate := numberIn(t, &res.Rows[0], "rate_kps"); rate < 18.5 || rate > 21.5 {
			t.Errorf("%v", res.Rows[0])
		}
		busy := strings.Fields(res.Rows[0].Get("cpu_percent").(string))
		if len(busy) != 8 || busy[0] != "0.0" || busy[6] == "0.0" || busy[7] == "0.0" {
			t.Errorf("busy cores %v: the vectors are on 6 and 7", busy)
		}
	}
}

// Workers of the unbound workqueue keep to its cpumask: no core is busy but those, and that of the
// interrupts.
func TestScenarioOfACPUMask(t *testing.T) {
	const text = `name: mask
cores: 8
completions: {model: unbound, vectors: 1, affinity: [1], peers: 16, unbound_cpus: [4, 6], handler: {mean: 2us}, turnaround: {mean: 100us}}
`
	res, err := scenarioOf(t, text, Request{})
	if err != nil {
		t.Fatal(err)
	}
	busy := strings.Fields(res.Rows[0].Get("cpu_percent").(string))
	for i, b := range busy {
		if in := i == 1 || i == 4 || i == 6; in == (b == "0.0") {
			t.Errorf("busy cores %v: the vector is on 1 and the workers on 4 and 6", busy)
		}
	}
}

// Times have their mean, within three standard deviations of 20,000 draws, and their shape.
func TestServiceTimes(t *testing.T) {
	for _, c := range []struct {
		s          Service
		mean, tail float64 // us; share above twice the mean
	}{
		{Service{Mean: 10_000_000, Distribution: "fixed"}, 10, 0}, {Service{Mean: 10_000_000}, 10, 0},
		{Service{Mean: 10_000_000, Distribution: "exponential"}, 10, 0.1353}, {Service{Mean: 10_000_000, Distribution: "two", Rare: 10, Long: 1_000_000_000}, 109, 0.1},
	} {
		r, draw, sum, above := sim.NewRand(1, "service"), c.s.draw(), 0.0, 0
		const n = 20_000
		for range n {
			d := draw(r)
			sum += float64(d) / 1e3
			if d > 20*time.Microsecond {
				above++
			}
		}
		if mean := sum / n; mean < c.mean*0.94 || mean > c.mean*1.06 {
			t.Errorf("%+v: mean %.2f us, want %.2f", c.s, mean, c.mean)
		}
		if share := float64(above) / n; share < c.tail-0.01 || share > c.tail+0.01 {
			t.Errorf("%+v: %.4f above twice the mean, want %.4f", c.s, share, c.tail)
		}
	}
}

// What cannot be is refused where the file says it, with what is allowed.
func TestImpossibleScenariosOfCompletions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"completions: {model: softirq, vectors: 17}", "17 completion vectors: the device has 1 to 16"},
		{"completions: {model: softirq, vectors: 2, affinity: [0, 16]}", "vector 1 on core 16: the host has cores 0 to 15"},
		{"completions: {model: softirq, vectors: 2, affinity: [0]}", "an affinity of 1 vectors, and there are 2"},
		{"cores: 4\ncompletions: {model: legacy, threads: 5}", "threads=5 in each CPU partition of 4 CPUs: want 1 to 4"},
		{"completions: {model: workqueue, handler: {mean: 1ms}}", "a handler of 1.5ms hardly ends"},
		{"completions: {model: workqueue, handler: {mean: 1ms, distribution: two}}", "distribution two needs long"},
		{"completions: {model: workqueue, handler: {mean: 2s}}", "2s is above 1s"},
		{"completions: {model: legacy, pool: true}", "both belong to ib_core's models"},
		{"completions: {model: best}", "best"}, {"completions: {peers: 4}", "model"},
		{"cores: 4\ncompletions: {model: unbound, unbound_cpus: [3, 4]}", "core 4 in the cpumask: the host has cores 0 to 3"},
		{"completions: {model: unbound, unbound_cpus: [-1]}", "core -1 in the cpumask"},
		{"completions: {model: unbound, unbound_cpus: [1, 1]}", "core 1 is twice in the cpumask"},
		{"completions: {model: workqueue, unbound_cpus: [1]}", "only the unbound workqueue has a cpumask, and the model is workqueue"},
		{"completions: {model: softirq, background: 17}", "17 programs in the background of 16 cores"},
		{"link: switch\ncompletions: {model: softirq}", "so no link"}, {"title: nothing", "traffic has no load"},
	} {
		_, err := scenarioOf(t, "name: bad\n"+c.text+"\n", Request{})
		if u := (*UsageError)(nil); !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// What has no turn is named, and the run ends.
func TestStarvationIsNamed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// Two connections of one core: the worker never has its first one empty.
		{"completions: {model: workqueue, vectors: 1, peers: 2, credits: 64, turnaround: {mean: 5us}}", "starvation: 1 of 2 connections had no completion handled in 4ms"},
		{"completions: {model: irq-inline, vectors: 1, peers: 1, credits: 64, turnaround: {mean: 5us}, background: 1}", "leave nothing to thread program 0"},
		{"completions: {model: irq-inline, vectors: 1, peers: 2, credits: 64, turnaround: {mean: 5us}}", "starvation: 1 of 2 connections"},
		{"completions: {model: softirq, vectors: 1, peers: 1, handler: {mean: 2us, distribution: two, rare: 1000, long: 400us}, turnaround: {mean: 5ms}, duration: 5ms}", ""},
	} {
		res, err := scenarioOf(t, "name: starved\n"+c.text+"\n", Request{})
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(res.Notes, "\n")
		if !strings.Contains(notes, c.want) || c.want == "" && (strings.Contains(notes, "starvation") || strings.Contains(notes, "livelock")) {
			t.Errorf("%s:\n%s", c.text, notes)
		}
	}
}

// A handler that has not ended when the run does is named.
func TestHandlerWithoutEnd(t *testing.T) {
	p := completionPoint{model: "workqueue", cores: 4, slower: 100, nodes: 1, partitions: 1, threads: 1, peers: 4, conns: 1, credits: 8, turnaround: heavy,
		handler: 2500, idle: "c1", wake: 100, seed: 1, duration: 4 * time.Millisecond}
	p.handles = func(*sim.Rand) time.Duration { return time.Hour }
	r, err := p.measure(&Env{Ctx: t.Context(), rec: &recorder{}})
	if err != nil || len(r.warnings) == 0 || !strings.Contains(r.warnings[0], "has not ended at 5ms") {
		t.Errorf("%v: %q", err, r.warnings)
	}
}

// The timeline of a scenario is written, and the same every time.
func TestTimelineOfCompletions(t *testing.T) {
	var all [2]string
	for i := range all {
		path := filepath.Join(t.TempDir(), "t.json")
		if _, err := scenarioOf(t, "name: t\ncompletions: {model: legacy, peers: 2, warmup: 10us, duration: 50us, handler: {mean: 1us}}\n", Request{Trace: path}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = string(text)
	}
	if all[0] != all[1] || !strings.Contains(all[0], `"kiblnd_sd_00_00"`) || !strings.Contains(all[0], `"handler"`) {
		t.Errorf("%.300s", all[0])
	}
}

// Where no completion was handled there is no latency and nothing for each completion, and a note
// says so.
func TestNoCompletionHasNoLatency(t *testing.T) {
	const text = `name: late
completions: {model: softirq, duration: 200us, disk: {mean: 10ms}}
`
	res, err := scenarioOf(t, text, Request{})
	if err != nil {
		t.Fatal(err)
	}
	row := &res.Rows[0]
	if rate, ok := row.Float("rate_kps"); !ok || rate != 0 {
		t.Errorf("rate %v", row.Get("rate_kps"))
	}
	for _, k := range []string{"latency_us_p50", "latency_us_p99", "cpu_us_per_wc", "fairness", "locks_per_wc"} {
		if v, ok := row.Float(k); ok && !math.IsNaN(v) {
			t.Errorf("%s is %v", k, v)
		}
	}
	if !strings.Contains(strings.Join(res.Notes, "\n"), "no completion was handled in 200µs") {
		t.Errorf("%q", res.Notes)
	}
}
