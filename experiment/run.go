package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
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
	started  []*workload.Started
	Results  []*workload.Result
	counters []reading // of the measured part: after minus before
	UARs     int       // UAR pages that the first load's posting process holds
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
	paging   []*useWatch // of loads whose pages come on demand, during their measured time
	device   *hca.Params // of the hosts
	row      *table.Row  // of completions, which are no loads
}

// outOfBand is the latency of the messages by which testers coordinate, outside of RDMA; none is part of a result.
const outOfBand = 20 * sim.Microsecond

// deadline bounds a scenario in virtual time, so that one that hangs ends.
const deadline = 1000 * time.Second

// run builds the testbed, runs all loads of the scenario at once, and reads the
// counters around them. rec may be nil; name is that of the run in its capture.
func (s *Scenario) run(ctx context.Context, seed uint64, prof *profile.Profile, rec *recorder, name string) (*Outcome, error) {
	return s.runUntil(ctx, seed, prof, rec, name, 0)
}

// Run runs the scenario with a profile. An error of what the run does is one of its loads, or of the simulator.
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
	cfg := testbed.Config{Seed: seed, Profile: prof, Switched: s.Link == "switch", NoTap: true, OutOfBand: outOfBand,
		Interrupt: func() bool { return ctx.Err() != nil }}
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
	tb, err := testbed.New(cfg)
	if err != nil {
		return nil, Usagef("%w", err)
	}
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
	if cerr := rec.finish(tb); err == nil {
		err = cerr
	}
	out.events = tb.Events()
	if cfg.Faults != nil {
		out.rules = cfg.Faults.Rules
		out.met, out.acted = tb.FaultsActed()
	}
	return out, err
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
	var threads [][]verbs.Thread
	for _, st := range out.started {
		threads = append(threads, st.Begin(t))
	}
	out.use.watch(t, tb, out.started)
	out.watchPaging(func(w *useWatch, i int) { w.watch(t, tb, out.started[i:i+1]) })
	for i, st := range out.started {
		r := st.Finish(t, threads[i])
		if r.Failed != nil && !tb.Breaks() && !harmful(tb.Config().Faults) {
			return r.Failed
		} else if r.Failed != nil {
			out.ended = append(out.ended, r.Failed.Error())
		}
		out.Results = append(out.Results, r)
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

// harmful says whether a script does something to frames or links: that a load ends in error is then a result.
func harmful(plan *fault.Plan) bool { return plan != nil && len(plan.Rules)+len(plan.Links) > 0 }

// unbuildable places the error of an object that load i needs, and that the simulated
// library, kernel or device refuses, in the file.
func (s *Scenario) unbuildable(i int, err error) error {
	if s.doc == nil || verbs.ErrnoOf(err) == 0 {
		return err
	}
	return &UsageError{s.doc.Errorf("traffic."+strconv.Itoa(i), "%v", err)}
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
		row.Set("spread_percent", spread).Set("measured_us", float64((r.End-r.Begin).Nanoseconds())/1000).Set("rate_ci95_percent", 100*r.Confidence)
		return row
	}
	var all []float64
	for i := range r.Threads {
		for _, d := range r.Threads[i].Latency {
			all = append(all, float64(d.Nanoseconds()))
		}
	}
	percentiles(&row, all)
	if r.Detection > 0 {
		row.Set("detection_ms", r.Detection.Seconds()*1e3)
	}
	return row
}

// steady is the widest confidence interval of a rate, as a share of the rate to either side, that
// needs no remark. Most published figures are compared with a tolerance of 5 to 10 %.
const steady = 0.05

// unsteady says why the rate of a load of a run means little, and what to do; "" if it means what it says.
func (out *Outcome) unsteady(i int) string {
	l, r := out.loads[i], out.Results[i]
	if l.Latency || r.Failed != nil {
		return ""
	}
	more := "give it a longer duration, or a longer warmup"
	if l.Duration == 0 {
		more = "give it more messages, or a longer warmup"
	}
	measured := r.End - r.Begin
	delivered := r.Rate() * measured.Seconds()
	if r.Confidence <= steady {
		alone := len(out.loads) == 1 && l.Threads*l.QPs == 1 // and meets no other queue pair
		if n := l.Outstanding(); l.FillsPackets() && l.Duration > 0 && !alone && delivered < float64(n) {
			return fmt.Sprintf("%.1f of its messages were delivered in the measured time of %v, and it keeps %d outstanding: how these fare is not in its rate; %s.", delivered, measured, n, more)
		}
		return cmp.Or(filling(l, r, more), draining(l, r, more), out.unsettled(i, more))
	}
	switch {
	case measured <= 0:
		return "all was delivered before the measured time began; give it more messages, or a shorter warmup."
	case r.Rate() == 0:
		return fmt.Sprintf("nothing was delivered in the measured time of %v; %s.", measured, more)
	case math.IsInf(r.Confidence, 1):
		return fmt.Sprintf("nothing was delivered in some quarter of the measured time of %v, so its rate says little; %s.", measured, more)
	}
	because := fmt.Sprintf("the quarters of the measured time of %v differ so much", measured)
	if r.Confidence-r.Bursts <= steady {
		because = fmt.Sprintf("its messages come in bursts, or with pauses, of up to %.0f %% of what was delivered in the measured time of %v, so", 100*r.Bursts, measured)
	}
	return fmt.Sprintf("its rate is not steady: %s that the 95 %% confidence interval of the rate is ±%.0f %%; %s.", because, 100*r.Confidence, more)
}

// filling says that the windows of a load were not full for more than a tenth of the measured time, however steady its
// rate was; "" if they were. A thread posts as long as it has room, and only then takes the time to poll.
func filling(l *workload.Load, r *workload.Result, more string) string {
	if l.Churn != "" || l.Spread > 0 {
		return ""
	}
	full := r.Begin
	for i := range r.Threads {
		if r.Threads[i].Full == 0 {
			full = r.End
		}
		full = max(full, min(r.Threads[i].Full, r.End))
	}
	measured := r.End - r.Begin
	if full-r.Begin <= measured/10 {
		return ""
	}
	return fmt.Sprintf("for %v of the measured time of %v its windows were not full: a thread with room only posts, and does not poll, so that the rate is higher than later; %s.", full-r.Begin, measured, more)
}

// draining says that more receives were used up in the measured time than the target posted, so that the rate lasts for as long as there are
// some of those that were posted before the load began; "" if not. A target polls 16 completions at a time.
func draining(l *workload.Load, r *workload.Result, more string) string {
	used, measured := r.Rate()*(r.End-r.Begin).Seconds()*l.Taking(), r.End-r.Begin
	lost := used - float64(r.Refilled)
	if l.Transport == workload.UC || l.Transport == workload.UD || lost <= used*steady || lost <= float64(16+l.Threads*l.QPs*max(1, l.RecvPostlist)) {
		return ""
	}
	return fmt.Sprintf("%.0f receives were used up in the measured time of %v, and its target posted only %d: the rate is higher than when those posted before have been used up; %s.", used, measured, r.Refilled, more)
}

// fewSamples says that a load's percentiles mean little, and what to do; "" if they do not: of
// fewer than 100 samples the 99 % point is the maximum.
func fewSamples(l *workload.Load, r *workload.Result) string {
	n := 0
	for i := range r.Threads {
		n += len(r.Threads[i].Latency)
	}
	if !l.Latency || r.Failed != nil || n >= 100 {
		return ""
	}
	more := "a longer duration"
	if l.Duration == 0 {
		more = "more messages"
	}
	if n == 0 {
		return fmt.Sprintf("no message began and ended in the measured time; give it %s, or a shorter warmup.", more)
	}
	samples := "one sample"
	if n > 1 {
		samples = fmt.Sprintf("%d samples", n)
	}
	return fmt.Sprintf("its percentiles are of %s, and the 99 %% point needs 100; give it %s.", samples, more)
}

func percentiles(row *table.Row, ns []float64) {
	sort.Float64s(ns)
	row.Set("samples", len(ns))
	if len(ns) == 0 {
		row.Set("latency_ns_p50", math.NaN())
		return
	}
	for _, p := range []struct {
		key string
		q   float64
	}{{"latency_ns_p50", 0.5}, {"latency_ns_p90", 0.9}, {"latency_ns_p99", 0.99}, {"latency_ns_p999", 0.999}} {
		row.Set(p.key, stat.Quantile(p.q, stat.Empirical, ns, nil))
	}
	row.Set("latency_ns_min", ns[0]).Set("latency_ns_max", ns[len(ns)-1]).Set("latency_ns_mean", stat.Mean(ns, nil))
}

// experiment wraps the scenario so that it runs as a named experiment does.
func (s *Scenario) experiment() *Experiment {
	x := &Experiment{Name: s.Name, Title: s.Title, Profile: s.Profile, scenario: s}
	x.Columns = []string{"row", "name", "thread", "mr_page", "mr_entries", "rate_mps", "gbps", "spread_percent", "latency_ns_p50", "latency_ns_p99",
		LimitedBy, limitPercent, Confirmed, raisedRate, "counter", "value"}
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
	out, err := s.run(env.Ctx, env.Seed, prof, env.rec, PointName(env.prefix))
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return err
	}
	if cerr := out.emit(env, s, prof); cerr != nil || err != nil {
		return cmp.Or(err, cerr)
	}
	return env.Step(1, 1, s.Name)
}

// noteOverlap names loads that ended so early that another one ran without them.
func (out *Outcome) noteOverlap(env *Env) {
	for i, r := range out.Results {
		if early := out.endedBefore(i); len(early) > 0 && r.Failed == nil {
			env.Note("Load %s was measured also when these had ended: %s. Loads of one duration and warmup run together to the end.", out.loads[i].Name, strings.Join(early, ", "))
		}
	}
}

// endedBefore are the loads without which load i was measured for more than a twentieth of its time, because they had ended.
func (out *Outcome) endedBefore(i int) (early []string) {
	r := out.Results[i]
	for j, other := range out.Results {
		if other.End < r.End-(r.End-r.Begin)/20 {
			early = append(early, out.loads[j].Name)
		}
	}
	return early
}

// neighbours are loads whose own rate is steady in the measured time beside loads whose is not: a load that has hardly begun, or waits for a
// timer, leaves a port or an engine to others that it takes from them later.
func (out *Outcome) neighbours() (still, moving []string) {
	for i, l := range out.loads {
		if r := out.Results[i]; r.Failed != nil || l.Latency || out.unsteady(i) != "" {
			continue
		}
		met := false
		for j, o := range out.loads {
			r := out.Results[j]
			if r.Failed != nil || out.unsteady(j) == "" || l.From != o.From && l.From != o.To && l.To != o.From && l.To != o.To {
				continue
			}
			met = true
			if !slices.Contains(moving, o.Name) {
				moving = append(moving, o.Name)
			}
		}
		if met {
			still = append(still, l.Name)
		}
	}
	return still, moving
}

// noteNeighbours names them.
func (out *Outcome) noteNeighbours(env *Env) {
	if still, moving := out.neighbours(); len(still) > 0 {
		env.Note("What loads without a steady rate take from others on their hosts later is not in the rates of these: %s beside %s. Give all of them a longer duration.", strings.Join(still, ", "), strings.Join(moving, ", "))
	}
}

// noteUnreliable names loads whose requests complete when they have been sent, and may be lost after that.
func (out *Outcome) noteUnreliable(env *Env) {
	var names []string
	for _, l := range out.loads {
		if l.Transport == workload.UC || l.Transport == workload.UD {
			names = append(names, l.Name)
		}
	}
	if len(names) > 0 {
		env.Note("Requests on uc and ud complete when they have been sent: the rates of these loads count all messages that were sent, whether they arrived or not: %s.", strings.Join(names, ", "))
	}
}

// noteDropped says that flow control has not kept a switch from dropping packets: the counters that show it are not printed
// unless somebody asks.
func (out *Outcome) noteDropped(env *Env) {
	if n, _ := out.Counter("switch.tx_discards_phy"); out.lossless && n > 0 {
		env.Note("The switch has dropped %.0f packets although link.pfc is on: before it pauses a sender, that one may fill link.pfc_xoff of switch.buffer. With fewer senders to a port, a smaller link.pfc_xoff or a larger switch.buffer there is room for all.", n)
	}
}

// Run runs a scenario; what it leaves out gets its default. name is that of the run in captures; a single run needs none.
func (e *Env) Run(s *Scenario, prof *profile.Profile, name string) (*Outcome, error) {
	s.defaults()
	return s.run(e.Ctx, e.Seed, prof, e.rec, e.runName(name))
}

// NoteUnsteady names the loads whose rate means little, or does not last behind the measured time, for which it runs the scenario
// once more. run is what to call the run.
func (out *Outcome) NoteUnsteady(env *Env, s *Scenario, prof *profile.Profile, run string) error {
	if err := s.lookAhead(env.Ctx, env.Seed, prof, env.rec, out); err != nil {
		return err
	}
	for i := range out.Results {
		if why := out.why(i); why != "" {
			env.Note("%s: %s", run, why)
		}
	}
	out.noteRare(env, run+": ")
	return nil
}

// SetLimit says in a row what the run of one load was limited by and, with --confirm, whether more of that raises the rate.
func (out *Outcome) SetLimit(env *Env, s *Scenario, prof *profile.Profile, run string, row *table.Row) error {
	out.setLimit(row)
	return out.confirmLimit(env, s, prof, run, run, row)
}

// LoadRow is the result of load i as a row.
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
		if err := out.confirmLimit(env, s, prof, PointName(env.prefix), "", rows...); err != nil {
			return err
		}
	}
	for i, r := range out.Results {
		env.Emit(*rows[i])
		if why := out.why(i); why != "" {
			env.Note("Load %s: %s", out.loads[i].Name, why)
		}
		if why := fewSamples(out.loads[i], r); why != "" {
			env.Note("Load %s: %s", out.loads[i].Name, why)
		}
	}
	out.noteNeighbours(env)
	out.noteUnreliable(env)
	out.noteOverlap(env)
	out.noteDropped(env)
	out.noteRare(env, "")
	for _, why := range out.ended {
		env.Note("%s", why)
	}
	for i, r := range out.Results {
		for j := range r.Threads {
			env.Emit(threadRow(out.loads[i], &r.Threads[j]))
		}
	}
	for i := 0; env.counters && i < len(out.counters); i++ {
		if c := &out.counters[i]; c.Value != 0 {
			var row table.Row
			env.Emit(*row.Set("row", "counter").Set("counter", c.full()).Set("value", c.grown()))
		}
	}
	return nil
}

func threadRow(l *workload.Load, r *workload.ThreadResult) table.Row {
	var row table.Row
	row.Set("row", "thread").Set("name", l.Name).Set("thread", r.Thread)
	if l.Latency {
		var ns []float64
		for _, d := range r.Latency {
			ns = append(ns, float64(d.Nanoseconds()))
		}
		percentiles(&row, ns)
	} else {
		row.Set("rate_mps", r.Rate()/1e6).Set("messages", r.Delivered).Set("messages_all", r.Completed)
	}
	if r.HasRegister {
		row.Set("uar_page", int(r.Register.UARPage)).Set("bfreg", r.Register.Index).Set("class", r.Register.Class)
	}
	row.Set("lock_waits", r.Locks.Waits).Set("lock_wait_ns", float64(r.Locks.WaitTime.Nanoseconds()))
	return row
}
