package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// Outcome is the result of one run of a scenario.
type Outcome struct {
	loads    []*workload.Load
	names    []string // of the loads of the file that these are, or clients of
	started  []*workload.Started
	Results  []*workload.Result
	counters []reading          // of the measured part: after minus before
	sums     map[string]float64 // of counters by their short names, once one was asked for
	UARs     int                // UAR pages that the first load's posting process holds
	events   uint64
	Span     time.Duration // between the two readings of the counters
	ended    []string      // why loads ended early, in a run with events
	lossless bool          // flow control is on
	breaks   bool          // events take from programs what they need
	later    []*later      // of loads that were looked at behind their measured time
	rules    []fault.Rule  // of faults, how many frames each has met, and on how many it acted
	met      []int
	acted    []int
	use      useWatch    // of the units
	series   *series     // nil: nobody asked for it
	paging   []*useWatch // of loads whose pages come on demand, during their measured time
	device   *hca.Params // of the hosts
	row      *table.Row  // of completions, which are no loads
}

// outOfBand is the latency of the messages by which testers coordinate, outside of RDMA; none is
// part of a result.
const outOfBand = 20 * sim.Microsecond

// deadline bounds a scenario in virtual time, so that one that hangs ends.
const deadline = 1000 * time.Second

// run builds the testbed, runs all loads of the scenario at once, and reads the
// counters around them. rec may be nil; name is that of the run in its capture.
func (s *Scenario) run(ctx context.Context, seed uint64, prof *profile.Profile, rec *recorder, name string) (*Outcome, error) {
	return s.runUntil(ctx, seed, prof, rec, name, 0)
}

// Run runs the scenario with a profile. Its errors come from a load or from the simulator.
func (s *Scenario) Run(ctx context.Context, seed uint64, prof *profile.Profile) (*Outcome, error) {
	return s.run(ctx, seed, prof, nil, "")
}

// runUntil is run that ends at a time, unless that is 0, with what has been measured by then.
func (s *Scenario) runUntil(ctx context.Context, seed uint64, prof *profile.Profile, rec *recorder, name string, until time.Duration) (*Outcome, error) {
	if s.Completions != nil {
		p := s.completionPoint(seed)
		r, err := p.measure(&Env{Ctx: ctx, rec: &recorder{}})
		row := p.row("completions", r)
		return &Outcome{row: &row}, err
	}
	var tb *testbed.Testbed
	cfg := testbed.Config{Seed: seed, Profile: prof, Switched: s.Link == "switch", NoTap: true, OutOfBand: outOfBand, Interrupt: func() bool {
		if s.clock != nil {
			s.clock.tick(provider.Duration(tb.Engine().Now()))
		}
		return ctx.Err() != nil
	}}
	rec.attach(&cfg, name)
	if cfg.Faults == nil && len(s.Faults) > 0 {
		var err error
		if cfg.Faults, err = fault.NewPlan(s.doc, s.Faults); err != nil {
			return nil, err
		}
	}
	for i := range s.Hosts {
		cfg.Hosts = append(cfg.Hosts, testbed.HostConfig{Name: "host" + strconv.Itoa(i), Cores: s.Cores, Memory: 64 << 30, Devices: 1, GPUs: 1})
	}
	collect()
	var err error
	if tb, err = testbed.New(cfg); err != nil {
		return nil, Usagef("%w", err)
	}
	defer func() { backed.Add(tb.Backed()) }()
	out := &Outcome{lossless: prof.Link.PFC, breaks: tb.Breaks(), device: &prof.HCA}
	var failed error
	err = tb.Run(cmp.Or(until, s.deadline()), func(t verbs.Thread) { failed = s.body(t, tb, out) })
	ended := until > 0 && errors.Is(err, testbed.ErrDeadline)
	switch {
	case ended || errors.Is(err, sim.ErrInterrupted):
		// What the threads have measured so far stays; counters belong to a whole run.
		for _, st := range out.started[len(out.Results):] {
			out.Results = append(out.Results, st.SoFar(provider.Duration(tb.Engine().Now())))
		}
		if err = ErrInterrupted; ended {
			err = nil
		}
	case failed != nil:
		err = failed
	}
	err = cmp.Or(err, rec.finish(tb))
	out.events = tb.Events()
	if cfg.Faults != nil {
		out.rules = cfg.Faults.Rules
		out.met, out.acted = tb.FaultsActed()
	}
	return out, err
}

// backed is how much memory of hosts has been behind runs since collect ran. The collector takes it
// as used, though a run touches a little of it here and there, and does not come again before as
// much has been allocated anew.
var backed atomic.Uint64

// muchBacked is the memory from which collect is worth the time.
const muchBacked = 2 << 30

// collect gives the memory of earlier runs back.
func collect() {
	if backed.Load() >= muchBacked {
		backed.Store(0)
		debug.FreeOSMemory()
	}
}

// deadline bounds the scenario in virtual time: a load may give up a request later than others end.
func (s *Scenario) deadline() time.Duration {
	longest := time.Duration(0)
	for i := range s.Traffic {
		longest = max(longest, s.Traffic[i].load().Patience())
	}
	return deadline + longest
}

func (s *Scenario) body(t verbs.Thread, tb *testbed.Testbed, out *Outcome) error {
	for i := range s.Traffic {
		l := s.Traffic[i].load()
		l.Seed = tb.Config().Seed
		st, err := workload.Build(t, tb, l)
		if err != nil {
			if tb.Breaks() {
				return err // an event caused it, not the scenario
			}
			return s.unbuildable(i, err)
		}
		out.started = append(out.started, st)
		out.loads = append(out.loads, l)
		out.names = append(out.names, cmp.Or(s.Traffic[i].group, l.Name))
	}
	if plan := tb.Config().Faults; plan != nil {
		if err := plan.CheckProcesses(tb.Processes()); err != nil {
			return err
		}
	}
	before := tb.Counters()
	for _, c := range before {
		if c.Unit == fmt.Sprintf("host%d/mlx5_0/resources", s.Traffic[0].From) && c.Name == "uar" {
			out.UARs = int(c.Value)
		}
	}
	began := t.Now()
	for _, st := range out.started {
		st.Prepare(t)
	}
	out.use.before = tb.Usage()
	if s.clock != nil {
		s.clock.began = t.Now()
	}
	var threads [][]verbs.Thread
	for _, st := range out.started {
		threads = append(threads, st.Begin(t))
	}
	out.use.watch(t, tb, out.started)
	if s.every > 0 {
		out.series = &series{every: s.every}
		out.series.sample(t, tb, out)
	}
	out.watchPaging(func(w *useWatch, i int) { w.watch(t, tb, out.started[i:i+1]) })
	for i, st := range out.started {
		r := st.Finish(t, threads[i])
		if r.Failed != nil && !tb.Breaks() && !harmful(tb.Config().Faults) && !drops(before, tb) {
			return r.Failed
		} else if r.Failed != nil {
			out.ended = append(out.ended, r.Failed.Error())
		}
		out.Results = append(out.Results, r)
	}
	if out.series != nil {
		out.series.end(t, tb, out)
	}
	out.use.finish(tb, out.Results)
	for i, w := range out.paging {
		if w != nil {
			w.finish(tb, out.Results[i:i+1])
		}
	}
	// Posted writes and acknowledgements that are still under way belong to the run.
	t.Sleep(settle)
	out.Span = t.Now() - began
	out.counters = growth(before, tb.Counters())
	return nil
}

// harmful says whether a script does something to frames or links: that a load ends in error is
// then a result.
func harmful(plan *fault.Plan) bool { return plan != nil && len(plan.Rules)+len(plan.Links) > 0 }

// drops says whether a switch has dropped packets: that a load ends in error is then a result too.
func drops(before []testbed.Reading, tb *testbed.Testbed) bool {
	out := Outcome{counters: growth(before, tb.Counters())}
	n, _ := out.Counter("switch.tx_discards_phy")
	return n > 0
}

// unbuildable places the error of an object that load i needs, and that the simulated
// library, kernel or device refuses, in the file.
func (s *Scenario) unbuildable(i int, err error) error {
	if s.doc == nil || verbs.ErrnoOf(err) == 0 {
		return err
	}
	return &UsageError{s.doc.Errorf("traffic."+strconv.Itoa(s.Traffic[i].at), "%v", err)}
}

// settle is how long a run waits before the counters are read.
const settle = 20 * time.Microsecond

// trafficRow is the result of one load as a row.
func trafficRow(l *workload.Load, r *workload.Result) table.Row {
	var row table.Row
	rate := r.Rate()
	row.Set("row", "traffic").Set("name", l.Name).Set("threads", l.Threads)
	if r.MREntries > 0 {
		row.Set("mr_page", input.FormatSize(r.MRPage)).Set("mr_entries", r.MREntries)
	}
	if !l.Latency {
		var per []float64
		var all uint64
		delivered := 0.0
		for i := range r.Threads {
			per = append(per, r.Threads[i].Rate()/1e6)
			delivered += r.Threads[i].Delivered
			all += r.Threads[i].Completed
		}
		sort.Float64s(per)
		row.Set("rate_mps", rate/1e6)
		if l.Churn == "" {
			row.Set("gbps", rate*float64(l.Payload)*8/1e9)
		}
		row.Set("messages", delivered).Set("messages_all", all)
		row.Set("thread_rate_mps_min", per[0]).Set("thread_rate_mps_max", per[len(per)-1])
		spread := 0.0
		if mean := stat.Mean(per, nil); mean > 0 {
			spread = 100 * (per[len(per)-1] - per[0]) / mean
		}
		row.Set("spread_percent", spread).Set("measured_us", float64((r.End-r.Begin).Nanoseconds())/1000).Set(table.RateInterval, 100*r.Confidence)
		flowTimes(&row, flows(l, r))
		if l.Timed {
			var all samples
			all.addAll(r)
			percentiles(&row, &all)
		}
		return row
	}
	var all samples
	all.addAll(r)
	percentiles(&row, &all)
	if r.Detection > 0 {
		row.Set("detection_ms", r.Detection.Seconds()*1e3)
	}
	return row
}

// experiment wraps the scenario so that it runs as a named experiment does.
func (s *Scenario) experiment() *Experiment {
	x := &Experiment{Name: s.Name, Title: s.Title, Profile: s.Profile, scenario: s}
	x.Columns = []string{"row", "name", "thread", "clients", "mr_page", "mr_entries", "rate_mps", "gbps", "spread_percent", "client_gbps_min", "client_gbps_max", "jain",
		"flow_us_p50", "flow_us_p99", "flow_us_max", "flow_us", "latency_ns_p50", "latency_ns_p99", "latency_ns_p999", LimitedBy, limitPercent, Confirmed, raisedRate, "counter", "value"}
	x.Details = []string{"client", "thread"}
	x.Confirms = true
	if s.Completions != nil {
		x.Columns = completionColumns
	}
	return x
}

func (s *Scenario) emit(env *Env) error {
	if err := env.Step(0, 1, s.Name); err != nil {
		return err
	}
	if s.Completions != nil {
		return errors.Join(s.runCompletions(env), env.Step(1, 1, s.Name))
	}
	prof, err := s.LoadProfile()
	if err != nil {
		return err
	}
	out, err := s.run(env.Ctx, env.Seed, prof, env.rec, "")
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return err
	}
	if cerr := out.emit(env, s, prof); cerr != nil || err != nil {
		return cmp.Or(err, cerr)
	}
	return env.Step(1, 1, s.Name)
}

// Run runs a scenario, whose missing keys get their defaults. name is the name of the run in
// captures; a single run needs none.
func (e *Env) Run(s *Scenario, prof *profile.Profile, name string) (*Outcome, error) {
	s.defaults()
	e.Out.ran = append(e.Out.ran, Placed{name, s.places(prof.Name)})
	return s.run(e.Ctx, e.Seed, prof, e.rec, name)
}

// SetLimit adds to a row what limited the run of one load and, with --confirm, whether more of that
// raises the rate.
func (out *Outcome) SetLimit(env *Env, s *Scenario, prof *profile.Profile, run string, row *table.Row) error {
	out.setLimit(row)
	return out.confirmLimit(env, s, prof, run, run, row)
}

// LoadRow returns the result of load i as a row.
func (out *Outcome) LoadRow(i int) table.Row { return trafficRow(out.loads[i], out.Results[i]) }

// emit adds the rows of an outcome: loads, threads, and counters that changed.
func (out *Outcome) emit(env *Env, s *Scenario, prof *profile.Profile) error {
	rows := make([]*table.Row, len(out.Results))
	for i, r := range out.Results {
		row := trafficRow(out.loads[i], r)
		out.setLimit(&row)
		rows[i] = &row
	}
	if err := s.lookAhead(env.Ctx, env.Seed, prof, env.rec, out); err != nil && !errors.Is(err, ErrInterrupted) {
		return err
	}
	if out.use.after != nil {
		if err := out.confirmLimit(env, s, prof, "", "", rows...); err != nil {
			return err
		}
	}
	sets := out.sets(s)
	for _, g := range sets {
		env.Emit(out.rowOf("traffic", g, rows))
		out.noteClients(env, g)
	}
	if len(out.Results) > 1 {
		env.Emit(out.rowOf("total", set{"all", 0, len(out.Results)}, rows))
	}
	for _, g := range sets {
		for i := g.first; g.end-g.first > 1 && i < g.end; i++ {
			rows[i].Set("row", "client")
			env.Emit(*rows[i])
		}
	}
	out.noteNeighbours(env)
	out.noteUnreliable(env)
	out.noteOverlap(env)
	if !env.brief {
		out.noteLosses(env)
	}
	out.noteCongestion(env)
	out.noteUnmarked(env, s, prof)
	out.noteRare(env, "")
	for _, why := range out.ended {
		env.Note("%s", why)
	}
	for i, r := range out.Results {
		for j := range r.Threads {
			env.Emit(threadRow(out.loads[i], &r.Threads[j], out.loads[i].Flow(r, j)))
		}
	}
	if out.series != nil {
		out.series.emit(env, sets)
	}
	if env.histogram {
		out.emitHistograms(env, sets)
	}
	for i := 0; env.counters && i < len(out.counters); i++ {
		if c := &out.counters[i]; c.Value != 0 {
			var row table.Row
			env.Emit(*row.Set("row", "counter").Set("counter", c.full()).Set("value", c.grown()))
		}
	}
	return nil
}

// flows are the completion times, in microseconds, of the threads of a load.
func flows(l *workload.Load, r *workload.Result) (us []float64) {
	for i := range r.Threads {
		if d := l.Flow(r, i); d > 0 {
			us = append(us, d.Seconds()*1e6)
		}
	}
	return us
}

// flowTimes adds to a row when the flows of its threads were complete; each thread is one.
func flowTimes(row *table.Row, us []float64) {
	if len(us) == 0 {
		return
	}
	sort.Float64s(us)
	row.Set("flow_us_p50", stat.Quantile(0.5, stat.Empirical, us, nil)).Set("flow_us_p99", stat.Quantile(0.99, stat.Empirical, us, nil)).Set("flow_us_max", us[len(us)-1])
}

func threadRow(l *workload.Load, r *workload.ThreadResult, flow time.Duration) table.Row {
	var row table.Row
	row.Set("row", "thread").Set("name", l.Name).Set("thread", r.Thread)
	if l.Latency || l.Timed {
		var own samples
		own.add(r.Latency)
		percentiles(&row, &own)
	}
	if !l.Latency {
		row.Set("rate_mps", r.Rate()/1e6).Set("messages", r.Delivered).Set("messages_all", r.Completed)
	}
	if us := flow.Seconds() * 1e6; us > 0 {
		row.Set("flow_us", us)
	}
	if r.HasRegister {
		row.Set("uar_page", int(r.Register.UARPage)).Set("bfreg", r.Register.Index).Set("class", r.Register.Class)
	}
	row.Set("lock_waits", r.Locks.Waits).Set("lock_wait_ns", float64(r.Locks.WaitTime.Nanoseconds()))
	return row
}
