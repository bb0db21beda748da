package experiment

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/workload"
)

// completionProfile is named in the output; nothing of it is used.
const completionProfile = "connectx-5"

func completionModels() *Experiment {
	return &Experiment{
		Name:    "completions",
		Title:   "how a kernel driver such as Lustre's o2iblnd should have its completions handled: its own threads, or ib_core's direct, softirq and workqueue polling",
		Profile: completionProfile,
		Params: []Param{
			{Key: "scenario", Default: "all", Allowed: []string{"burst", "load", "conns", "cores", "plan", "all"}, Help: "burst: completions that arrive together on an idle machine; load: from light to saturated; conns: one peer with more and more connections; cores: few fast to many slow ones; plan: the predictions, with their sensitivity"},
			{Key: "model", Default: "all", Allowed: append([]string{"all"}, workload.O2IBModels...), Help: "of burst, load, conns and cores; irq-inline is hypothetical: ib_core has no such context"},
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
			{Key: "idle", Default: "c1", Allowed: []string{"poll", "c1", "c6"}, Help: "what idle cores do"},
			{Key: "wake_percent", Default: "100", Min: 1, Max: 1000, Help: "cost of wake-ups and context switches, against the assumed ones"},
			{Key: "duration_us", Default: "4000", Min: 100, Max: 1_000_000, Help: "measured time of a run, after a quarter of it"},
		},
		Columns: []string{"row", "model", "cores", "conns_per_peer", "completions", "turnaround_us", "rate_kps", "latency_us_p50", "latency_us_p99", "interrupts_kps",
			"context_switches_kps", "cpu_us_per_wc", "busiest_percent", "lock_wait_percent", "first_us", "last_us", "wakeups", "polls",
			"prediction", "verdict", "value", "low", "high"},
		Plots: []Plot{
			{File: "completions-conns", Title: "One peer: completions against connections", X: "conns_per_peer", Y: "rate_kps", XLabel: "conns_per_peer", YLabel: "thousand completions/s", Series: "model", Only: map[string]any{"row": "conns"}, LogX: true},
			{File: "completions-load", Title: "Latency against rate", X: "rate_kps", Y: "latency_us_p99", XLabel: "thousand completions/s", YLabel: "99th percentile, us", Series: "model", Only: map[string]any{"row": "load"}, Least: true},
			{File: "completions-cpu", Title: "CPU time against rate", X: "rate_kps", Y: "cpu_us_per_wc", XLabel: "thousand completions/s", YLabel: "us of CPU a completion", Series: "model", Only: map[string]any{"row": "load"}, Least: true},
			{File: "completions-burst", Title: "A burst on an idle machine", X: "completions", Y: "last_us", XLabel: "completions", YLabel: "the last one has been handled, us", Series: "model", Only: map[string]any{"row": "burst"}, LogX: true, Least: true},
		},
		Many: true, Run: runCompletions, NoProfile: true, Costs: assumedCosts(),
		Brief: map[string]string{"duration_us": "1000"},
	}
}

// completionRun is a run of the experiment.
type completionRun struct {
	*Env
	models    []string
	step, all int
}

func runCompletions(env *Env) error {
	if env.rec.capture != nil || env.rec.faults != nil {
		return usage("completions has no wire: its completions arrive by schedule: leave out --pcap and --fault")
	}
	if plain, err := profile.Load(completionProfile); err != nil || plain.Hash() != env.Profile.Hash() {
		return usage("completions has no device behind its queues, and no value of a profile reaches it: leave out --profile, and --set of keys with a dot (rdmasim list shows its own)")
	}
	x := &completionRun{Env: env, models: workload.O2IBModels}
	if m := x.String("model"); m != "all" {
		x.models = []string{m}
	}
	if err := x.check(); err != nil {
		return err
	}
	name := x.String("scenario")
	n := len(x.models)
	for _, part := range []struct {
		name string
		runs int
		run  func() error
	}{
		{"burst", n * len(bursts), x.bursts}, {"load", n * len(turnarounds), x.load}, {"conns", n * len(connections), x.conns},
		{"cores", n * len(hosts), x.cores}, {"plan", len(predictions), x.plan},
	} {
		if name != "all" && name != part.name {
			continue
		}
		x.step, x.all = 0, part.runs
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	x.noteCosts()
	return env.Step(x.all, x.all, "done")
}

// check refuses what the options of models exclude, before anything runs.
func (x *completionRun) check() error {
	if x.String("merged") == "yes" || x.String("dim") == "yes" {
		for _, m := range x.models {
			if m == "legacy" || m == "direct" && x.String("dim") == "yes" {
				return usage("merged and dim belong to ib_core's CQs with events, and %s has none: give --set model=softirq, workqueue, unbound or irq-inline", m)
			}
		}
	}
	_, err := x.point(x.models[0]).build(x.Env)
	return err
}

func (x *completionRun) next(what string) error {
	x.step++
	return x.Step(x.step-1, x.all, what)
}

// The points of the parts.
var (
	bursts      = []int{1, 2, 4, 8, 16, 32}
	turnarounds = []int{2000, 500, 200, 100, 50, 20, 5} // us
	connections = []int{1, 2, 4, 8}
	hosts       = [][2]int{{4, 100}, {16, 100}, {64, 400}} // cores, and the time that they take in percent
)

// point is the load that the parameters give.
func (x *completionRun) point(model string) completionPoint {
	return completionPoint{model: model, cores: x.Int("cores"), slower: x.Int("slower_percent"), nodes: x.Int("nodes"), partitions: x.Int("partitions"),
		threads: x.Int("threads"), vectors: x.Int("vectors"), peers: x.Int("peers"), conns: x.Int("conns_per_peer"), credits: x.Int("credits"),
		turnaround: time.Duration(x.Int("turnaround_us")) * time.Microsecond, handler: time.Duration(x.Int("handler_ns")), same: x.String("same_vector") == "yes",
		merged: x.String("merged") == "yes", dim: x.String("dim") == "yes", idle: x.String("idle"), wake: x.Int("wake_percent"),
		duration: time.Duration(x.Int("duration_us")) * time.Microsecond, seed: x.Seed}
}

func (x *completionRun) bursts() error {
	for _, m := range x.models {
		for _, n := range bursts {
			if err := x.next(fmt.Sprintf("%s, a burst of %d", m, n)); err != nil {
				return err
			}
			p := x.point(m)
			p.peers, p.conns, p.credits, p.burst = 1, 1, n, true
			r, err := p.measure(x.Env)
			if err != nil {
				return err
			}
			var row Row
			row.Set("row", "burst").Set("model", m).Set("cores", p.cores).Set("completions", n).Set("first_us", r.first).Set("last_us", r.last)
			row.Set("wakeups", r.wakeups).Set("polls", r.polls).Set("interrupts", r.interrupts).Set("arms", r.arms)
			row.Set("context_switches", r.switches).Set("softirqs", r.softirqs)
			x.Emit(row)
		}
	}
	x.Note("burst: all cores are idle, and so many completions of one connection arrive together. first_us and last_us are when the handler of the first one began, and when the last one ended. direct has a thread that polls all the time.")
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

// emit runs a point and emits its row.
func (x *completionRun) emit(part string, p completionPoint) error {
	if err := x.next(part + ": " + p.model); err != nil {
		return err
	}
	r, err := p.measure(x.Env)
	if err != nil {
		return err
	}
	var row Row
	row.Set("row", part).Set("model", p.model).Set("cores", p.cores).Set("slower_percent", p.slower).Set("peers", p.peers).Set("conns_per_peer", p.conns)
	row.Set("turnaround_us", strconv.FormatFloat(p.turnaround.Seconds()*1e6, 'f', -1, 64))
	row.Set("rate_kps", r.rate).Set("latency_us_p50", r.p50).Set("latency_us_p99", r.p99).Set("interrupts_kps", r.interrupts/r.ms).Set("context_switches_kps", r.switches/r.ms)
	row.Set("cpu_us_per_wc", r.cpu).Set("busiest_percent", r.busiest).Set("lock_wait_percent", r.lockWait).Set("fairness", r.fairness)
	row.Set("inversions", r.inversions).Set("lines_moved_kps", r.lines/r.ms).Set("wakeups_kps", r.wakeups/r.ms).Set("polls_kps", r.polls/r.ms)
	x.Emit(row)
	return nil
}
