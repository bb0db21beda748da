package experiment

import (
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/workload"
)

// completionProfile is named in the output; nothing of it is used.
const completionProfile = "connectx-5"

// CompletionModels returns the experiment completions. It is here and not in studies because a
// scenario with completions is one of its runs.
func CompletionModels() *Experiment {
	return &Experiment{
		Name:    "completions",
		Title:   "how a kernel driver such as Lustre's o2iblnd should have its completions handled: its own threads, or ib_core's direct, softirq and workqueue polling",
		Profile: completionProfile,
		Params: []Param{
			{Key: "scenario", Default: "all", Allowed: []string{"burst", "load", "conns", "cores", "cqs", "batch", "budget", "dim", "locks", "designs", "sequence", "plan", "all"}, Help: "burst: completions that arrive together on an idle machine; load: from light to saturated; conns: one peer with more and more connections; cores: few fast to many slow ones; cqs: a CQ for each connection, each core, or all; batch, budget: other numbers than ib_core's; dim: adaptive moderation; locks: more and more threads of legacy; designs: other designs than legacy and ib_core's; sequence: two completions, drawn; plan: the predictions, with their sensitivity"},
			{Key: "model", Default: "all", Allowed: slices.Concat([]string{"all"}, workload.O2IBModels, workload.O2IBDesigns), Help: "of burst, load, conns, cores and sequence; all: the first six; irq-inline is hypothetical: ib_core has no such context; legacy-16, fanout: as Lustre's efalnd and kfilnd; softirq-threads: a softirq that hands completions to legacy's threads"},
			{Key: "cores", Default: "16", Min: 1, Max: 256, Help: "cores of the host"},
			{Key: "slower_percent", Default: "100", Min: 10, Max: 1000, Help: "time that a core takes for instructions; 400: a core of a Xeon Phi (assumed)"},
			{Key: "nodes", Default: "1", Min: 1, Max: 8, Help: "NUMA nodes"},
			{Key: "partitions", Default: "1", Min: 1, Max: 64, Help: "CPU partitions of Lustre: each has its list of connections, and its threads"},
			{Key: "threads", Default: "4", Min: 1, Max: 256, Help: "scheduler threads of each partition (legacy), or polling threads (direct)"},
			{Key: "vectors", Default: "0", Min: 0, Max: 256, Help: "completion vectors; 0: one for each core"},
			{Key: "peers", Default: "16", Min: 1, Max: 1024, Help: "load, cores: peers"},
			{Key: "conns_per_peer", Default: "1", Min: 1, Max: 16, Help: "load, cores: connections to each peer"},
			{Key: "credits", Default: "8", Min: 1, Max: 256, Help: "messages of a connection that are under way"},
			{Key: "turnaround_us", Default: "20", Min: 0, Max: 100_000, Help: "conns, cores: from the end of a handler until the next completion of its message's successor arrives"},
			{Key: "handler_ns", Default: "2500", Min: 0, Max: 1_000_000, Help: "CPU time of a completion, half of it to one and a half (assumed)", Assumed: true},
			{Key: "same_vector", Default: "no", Allowed: []string{"no", "yes"}, Help: "all connections of a peer have one completion vector, as before Lustre 2.16"},
			{Key: "merged", Default: "no", Allowed: []string{"no", "yes"}, Help: "connections of a vector share a CQ (ib_cq_pool_get); not for legacy"},
			{Key: "dim", Default: "no", Allowed: []string{"no", "yes"}, Help: "adaptive moderation, which ib_core has on by default; not for legacy and direct"},
			{Key: "batch", Default: "16", Min: 1, Max: 4096, Help: "completions that ib_core takes in a poll, but for direct"},
			{Key: "budget_softirq", Default: "256", Min: 1, Max: 65536, Help: "completions of a CQ that the softirq handles before the next CQ has its turn"},
			{Key: "budget_workqueue", Default: "65536", Min: 1, Max: 65536, Help: "and a worker"},
			{Key: "unbound_first", Default: "0", Min: 0, Max: 255, Help: "first core of the cpumask of the unbound workqueue"},
			{Key: "unbound_cpus", Default: "0", Min: 0, Max: 256, Help: "and how many cores it has; 0: the workers run on all cores"},
			{Key: "background", Default: "0", Min: 0, Max: 256, Help: "programs that use their cores all the time, one on each of the first cores"},
			{Key: "idle", Default: "c1", Allowed: []string{"poll", "c1", "c6"}, Help: "what idle cores do"},
			{Key: "wake_percent", Default: "100", Min: 1, Max: 1000, Help: "cost of wake-ups and context switches, against the assumed ones"},
			{Key: "duration_us", Default: "4000", Min: 100, Max: 1_000_000, Help: "measured time of a run, after a quarter of it"},
		},
		Columns: []string{"row", "model", "cores", "conns_per_peer", "completions", "turnaround_us", "rate_kps", LimitedBy, "latency_us_p50", "latency_us_p99", "interrupts_kps",
			"context_switches_kps", "cpu_us_per_wc", "busiest_percent", "lock_wait_percent", "fairness", "first_us", "last_us", "wakeups", "polls",
			"prediction", "verdict", "value", "low", "high"},
		Plots: []chart.Plot{
			{File: "completions-conns", Title: "One peer: completions against connections", X: "conns_per_peer", Y: "rate_kps", XLabel: "conns_per_peer", YLabel: "thousand completions/s", Series: "model", Only: map[string]any{"row": "conns"}, LogX: true},
			{File: "completions-load", Title: "Latency against rate", X: "rate_kps", Y: "latency_us_p99", XLabel: "thousand completions/s", YLabel: "99th percentile, us", Series: "model", Only: map[string]any{"row": "load"}, Least: true},
			{File: "completions-cpu", Title: "CPU time against rate", X: "rate_kps", Y: "cpu_us_per_wc", XLabel: "thousand completions/s", YLabel: "us of CPU a completion", Series: "model", Only: map[string]any{"row": "load"}, Least: true},
			{File: "completions-burst", Title: "A burst on an idle machine", X: "completions", Y: "last_us", XLabel: "completions", YLabel: "the last one has been handled, us", Series: "model", Only: map[string]any{"row": "burst"}, LogX: true, Least: true},
		},
		More: More{Kinds: []string{"load", "conns", "cores", "cqs", "batch", "budget", "dim", "locks", "designs"},
			Lead:    []string{"row", "model", "threads", "vectors", "peers", "cqs", "batch", "budget", "dim"},
			Columns: []string{"locks_per_wc", "lock_waits_per_wc", "lock_lines_per_wc", "pool_locks_per_wc", "polls_per_wc", "wakeups_kps", "ksoftirqd_kps", "inversions"}},
		Drawings: sequenceFiles(), Many: true, Timeline: true, Run: runCompletions, NoProfile: true, Costs: assumedCosts(),
		Brief: map[string]string{"duration_us": "1000"},
	}
}

func sequenceFiles() (names []string) {
	for _, m := range slices.Concat(workload.O2IBModels, workload.O2IBDesigns) {
		names = append(names, sequenceFile(m))
	}
	return names
}

// completionRun is a run of the experiment.
type completionRun struct {
	Parts
	models []string
}

func runCompletions(env *Env) error {
	if env.rec.capture != nil || env.rec.faults != nil {
		return Usagef("completions has no wire: its completions arrive by schedule: leave out --pcap and --fault")
	}
	if plain, err := profile.Load(completionProfile); err != nil || plain.Hash() != env.Profile.Hash() {
		return Usagef("completions has no device behind its queues, and no value of a profile reaches it: leave out --profile, and --set of keys with a dot (rdmasim list shows its own)")
	}
	x := &completionRun{Parts: Parts{Env: env}, models: workload.O2IBModels}
	if m := x.String("model"); m != "all" {
		x.models = []string{m}
	}
	if err := x.check(); err != nil {
		return err
	}
	if env.rec.timeline != nil && x.String("scenario") != "sequence" {
		return Usagef("--trace records the two completions of each model: give --set scenario=sequence")
	}
	n := len(x.models)
	if err := x.Do([]Part{
		{"burst", n * len(bursts), nil, x.bursts}, {"load", n * len(turnarounds), nil, x.load}, {"conns", n * len(connections), nil, x.conns},
		{"cores", n * len(hosts), nil, x.cores}, {"cqs", 3 * len(sharings), nil, x.cqs}, {"batch", 2 * len(batches), nil, x.batches},
		{"budget", len(budgets), nil, x.budgets}, {"dim", 2 * 2 * len(moderated), nil, x.dims}, {"locks", 3 * len(pools), nil, x.locks},
		{"designs", len(designs()) * len(designLoads), nil, x.designs}, {"sequence", n, nil, x.sequences}, {"plan", len(predictions), nil, x.plan},
	}, nil); err != nil {
		return err
	}
	x.noteCosts()
	return nil
}

// check refuses what the options of models exclude, before anything runs.
func (x *completionRun) check() error {
	if x.String("merged") == "yes" || x.String("dim") == "yes" {
		for _, m := range x.models {
			if m == "legacy" || m == "direct" && x.String("dim") == "yes" {
				return Usagef("merged and dim belong to ib_core's CQs with events, and %s has none: give --set model=softirq, workqueue, unbound or irq-inline", m)
			}
		}
	}
	first, n, cores := x.Int("unbound_first"), x.Int("unbound_cpus"), x.Int("cores")
	switch {
	case n == 0 && first != 0:
		return Usagef("unbound_first=%d without a cpumask: give unbound_cpus, the number of its cores", first)
	case first+n > cores:
		return Usagef("a cpumask of cores %d to %d for the unbound workqueue: the host has cores 0 to %d", first, first+n-1, cores-1)
	case n != 0 && !slices.Contains(x.models, "unbound"):
		return Usagef("only the unbound workqueue has a cpumask, and the model is %s: give --set model=unbound", x.models[0])
	case n != 0 && !slices.Contains(maskable, x.String("scenario")):
		return Usagef("scenario=%s sets the cores that its workers run on: give unbound_cpus with one of %s", x.String("scenario"), strings.Join(maskable, ", "))
	}
	_, err := x.point(x.models[0]).build(x.Env)
	return err
}

// maskable are the parts that have the host of the parameters and the model unbound.
var maskable = []string{"burst", "load", "conns", "cqs", "sequence"}
