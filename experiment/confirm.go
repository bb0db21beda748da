package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/workload"
)

// raise is how a resource is made better for a second run: times that are halved, and amounts that
// are doubled.
type raise struct {
	half, double []string
	// sections whose times are all halved
	sections []string
	set      []Setting
	what     string // in place of the keys
}

// raises are those of the resources. A lock is held for less time where what a thread does
// meanwhile takes less.
var raises = map[sim.Resource]raise{
	sim.CPU: {sections: []string{"cpu", "provider"}, what: "all times of cpu and provider halved"},
	sim.Lock: {half: []string{"cpu.lock_free", "cpu.lock_handover", "cpu.unlock", "cpu.line_transfer", "cpu.line_far", "cpu.store_fence", "cpu.dma_barrier",
		"cpu.uc_store", "cpu.wc_store", "cpu.wc_line", "cpu.wc_flush", "provider.build_wqe", "provider.build_segment", "provider.build_line",
		"provider.inline_copy", "provider.build_recv", "provider.doorbell_record", "provider.bookkeeping", "provider.bf_copy_line", "provider.consume_cqe"},
		what: "the times of locks, and of what is done under them, halved"},
	sim.Doorbell:   {half: []string{"uar.bf_busy", "uar.bf_conflict_cost"}, double: []string{"pcie.bandwidth", "pcie.posted_credits"}},
	sim.PU:         {half: []string{"hca.pu_service", "hca.pu_packet", "hca.pu_reliable", "hca.pu_read", "hca.pu_gather", "hca.wqe_miss"}},
	sim.SendEngine: {half: []string{"hca.issue_interval"}},
	sim.PCIeRead:   {double: []string{"pcie.bandwidth", "pcie.reads_in_flight"}},
	sim.PCIeWrite:  {double: []string{"pcie.bandwidth", "pcie.posted_credits"}},
	sim.PeerPath: {double: []string{"gpu.switch_write", "gpu.switch_read", "gpu.root_write", "gpu.root_read", "gpu.socket_write", "gpu.socket_read"},
		what: "the rates of all ways to the GPU doubled"},
	sim.TxBuffer:       {double: []string{"hca.tx_buffer"}},
	sim.Wire:           {double: []string{"link.bandwidth", "hca.wire_rate"}},
	sim.ReceiveEngine:  {half: []string{"hca.rx_interval", "hca.rx_scatter"}},
	sim.ResponseEngine: {half: []string{"hca.rx_ack_interval"}},
	sim.ReadEngine:     {half: []string{"hca.read_interval"}},
	sim.Atomics:        {half: []string{"hca.atomic_service", "hca.atomic_interval", "hca.atomic_on_chip"}, double: []string{"hca.atomics_per_slot"}},
	sim.Paging:         {half: []string{"odp.report", "odp.report_page", "odp.resume", "kernel.page_fault", "kernel.page_fault_page", "kernel.minor_fault", "kernel.major_fault"}, what: "the times of page faults halved"},
	sim.AckTimer:       {set: []Setting{{"hca.roce_adp_retrans_en", "false"}, {"hca.ack_timeout_floor", "0ps"}}, what: "ACK timeouts a 64th as long, and none adaptive"},
	sim.Caches:         {half: []string{"hca.qpc_miss", "hca.mpt_miss", "hca.mtt_miss"}},
}

// apply makes a profile with the resource raised, and says what has changed.
func (r *raise) apply(p *profile.Profile) (*profile.Profile, string, error) {
	raised := p.Clone()
	var changed []string
	change := func(v profile.Value, double bool) error {
		n, ok := v.Kind.Amount(v.Text)
		if !ok || n == 0 {
			return nil
		}
		if double {
			n *= 2
		} else if n /= 2; n == 0 {
			return nil
		}
		text := v.Kind.Format(n)
		if err := raised.Set(v.Key, text); err != nil {
			return fmt.Errorf("%s=%s: %w", v.Key, text, err)
		}
		changed = append(changed, fmt.Sprintf("%s %s -> %s", v.Key, v.Text, text))
		return nil
	}
	var errs error
	for _, list := range []struct {
		keys   []string
		double bool
	}{{r.half, false}, {r.double, true}} {
		for _, k := range list.keys {
			if v, ok := p.Lookup(k); ok {
				errs = errors.Join(errs, change(v, list.double))
			}
		}
	}
	for _, v := range p.Values() {
		for _, s := range r.sections {
			if v.Kind == profile.Time && strings.HasPrefix(v.Key, s+".") {
				errs = errors.Join(errs, change(v, false))
			}
		}
	}
	for _, s := range r.set {
		errs = errors.Join(errs, raised.Set(s.Key, s.Value))
		changed = append(changed, s.Key+"="+s.Value)
	}
	what := strings.Join(changed, ", ")
	if r.what != "" && len(changed) > 0 {
		what = r.what
	}
	return raised, what, errors.Join(errs, raised.Validate())
}

// Raise returns a copy of a profile with more of a resource, and says what has changed; an
// InfiniBand wire gets twice the lanes.
func Raise(r sim.Resource, p *profile.Profile) (*profile.Profile, string, error) {
	up := raises[r]
	if r == sim.Wire && p.Resolved().Link.InfiniBand {
		up = raise{double: []string{"ib.width"}}
	}
	return up.apply(p)
}

// sooner is the scenario with ACK timeouts a 64th as long.
func (s *Scenario) sooner() *Scenario {
	c := *s
	c.Traffic = append([]Traffic(nil), s.Traffic...)
	for i := range c.Traffic {
		code := workload.AckTimeout
		if t := c.Traffic[i].AckTimeout; t != nil {
			code = *t
		}
		if code > 0 {
			code = max(1, code-6)
		}
		c.Traffic[i].AckTimeout = &code
	}
	return &c
}

// wider is the scenario with twice as many requests outstanding, and what that takes of the
// profile. It reports what changed, "" if nothing can.
func (s *Scenario) wider(p *profile.Profile) (*Scenario, *profile.Profile, string) {
	c, raised := *s, p.Clone()
	c.Traffic = append([]Traffic(nil), s.Traffic...)
	var changed []string
	double := func(i int, name string, n *int, most int) {
		if *n > 0 && *n < most {
			was := *n
			*n = min(2**n, most)
			changed = append(changed, fmt.Sprintf("traffic.%d.%s %d -> %d", i, name, was, *n))
		}
	}
	for i := range c.Traffic {
		t := &c.Traffic[i]
		if t.Measure == "latency" || t.Churn != "" {
			continue
		}
		double(i, "window", &t.Window, 32768)
		double(i, "spread", &t.Spread, 32768)
		double(i, "rd_atomic", &t.RdAtomic, 128)
		t.RecvDepth = min(2*t.RecvDepth, 32768)
	}
	for _, k := range []string{"hca.log_max_ra_req", "hca.log_max_ra_res"} {
		if v, ok := p.Lookup(k); ok && len(changed) > 0 {
			if n, ok := v.Kind.Amount(v.Text); ok && n < 7 {
				_ = raised.Set(k, v.Kind.Format(n+1)) // it is far from what a byte holds
			}
		}
	}
	return &c, raised, strings.Join(changed, ", ")
}

// rose is by how much the rate must be higher for a limit to count as confirmed.
const rose = 0.05

// rises is that for twice as many threads that wait for nothing but their own requests, whose rate
// doubles: half of it.
const rises = 0.5

// twice is the scenario with twice the threads, the new ones on cores that no load uses.
func (s *Scenario) twice() *Scenario {
	c := *s
	c.Traffic = append([]Traffic(nil), s.Traffic...)
	free := 0
	for i := range c.Traffic {
		t := &c.Traffic[i]
		if len(t.Cores) == 0 {
			free = max(free, t.Threads)
		}
		for _, core := range t.Cores {
			free = max(free, core+1)
		}
	}
	for i := range c.Traffic {
		t := &c.Traffic[i]
		cores := make([]int, 0, 2*t.Threads)
		for k := range t.Threads {
			if len(t.Cores) > 0 {
				k = t.Cores[k%len(t.Cores)]
			}
			cores = append(cores, k)
		}
		for range t.Threads {
			cores = append(cores, free)
			free++
		}
		t.Threads, t.Cores = 2*t.Threads, cores
		t.MRs = max(t.MRs, t.regions())
	}
	c.Cores = max(c.Cores, free)
	return &c
}

// Confirmation is the outcome of a second run with more of the limiting resource.
type Confirmation struct {
	What          string // was raised
	Unit          string // of the rates; empty: M/s
	Before, After float64
	each          []float64 // rates of the loads
	rise          float64   // by how much the rate must be higher; 0: rose
	Then          string    // what limits the second run
	Why           string    // there was no second run
	Parts         string    // what a latency consists of, where that is the limit
}

// confirm runs the scenario again with the resource raised that its first run was limited by.
func (s *Scenario) confirm(ctx context.Context, seed uint64, p *profile.Profile, rec *recorder, out *Outcome, name string) (*Confirmation, error) {
	l, ok := out.use.limit()
	c := &Confirmation{Before: totalRate(out.Results) / 1e6}
	switch {
	case !ok:
		c.Why = "the run was too short to tell what limits it"
	case c.Before == 0:
		c.Why = "there is no rate to compare"
	}
	if c.Why != "" {
		return c, nil
	}
	again, raised, err := s, p, error(nil)
	latency := out.isLatency(l)
	if latency {
		c.rise = rises
		again, c.What = s.twice(), "twice the threads, on cores of their own"
	} else if l.Resource == sim.Window {
		again, raised, c.What = s.wider(p)
	} else {
		raised, c.What, err = Raise(l.Resource, p)
	}
	if l.Resource == sim.AckTimer {
		again = s.sooner()
	}
	if err != nil {
		c.Why = fmt.Sprintf("the profile does not allow more of it: %v", err)
		return c, nil
	}
	if c.What == "" {
		c.Why = "nothing of the profile or the scenario raises it"
		return c, nil
	}
	second, err := again.run(ctx, seed, raised, rec.silent(), name)
	if err != nil {
		return nil, fmt.Errorf("--confirm, with %s: %w", c.What, err)
	}
	c.After = totalRate(second.Results) / 1e6
	if l, ok := second.use.limit(); ok {
		c.Then = ", where the limit is " + second.limitWord(l)
	}
	if latency {
		if c.Parts, err = s.latencyParts(ctx, seed, p, rec, name, c.Before); err != nil {
			return nil, fmt.Errorf("--confirm: %w", err)
		}
	}
	for _, r := range second.Results {
		c.each = append(c.each, r.Rate()/1e6)
	}
	return c, nil
}

func totalRate(results []*workload.Result) (sum float64) {
	for _, r := range results {
		sum += r.Rate()
	}
	return sum
}

// holds says whether the rate rose.
func (c *Confirmation) holds() bool {
	return c.Why == "" && c.After > c.Before*(1+cmp.Or(c.rise, rose))
}

// verdict is the word of a row.
func (c *Confirmation) verdict() string {
	switch {
	case c.Why != "":
		return "not tried"
	case c.holds():
		return "yes"
	}
	return "no"
}

// String returns the outcome in a sentence.
func (c *Confirmation) String() string {
	switch {
	case c.Why != "":
		return "not confirmed: " + c.Why
	case c.holds():
		return fmt.Sprintf("confirmed: %s -> %s %s with %s%s%s", table.Short(c.Before), table.Short(c.After), cmp.Or(c.Unit, "M/s"), c.What, c.Then, c.Parts)
	}
	return fmt.Sprintf("refuted: %s -> %s %s with %s%s", table.Short(c.Before), table.Short(c.After), cmp.Or(c.Unit, "M/s"), c.What, c.Then)
}

// Confirmed adds to a row with a limit what a second run says about that limit, and notes it. name
// is the name of the run in the note.
func (e *Env) Confirmed(row *table.Row, name string, c *Confirmation) {
	row.Set(Confirmed, c.verdict())
	busy, _ := row.Float(limitPercent)
	e.Note("%s: limited by %v (%v, %s %% busy); %s.", name, row.Get(LimitedBy), row.Get(limitUnit), table.Short(busy), c)
}

// confirmLimit adds to rows, one for each load, what a second run says about the limit, and notes
// it. run is what to call the run.
func (out *Outcome) confirmLimit(env *Env, s *Scenario, p *profile.Profile, name, run string, rows ...*table.Row) error {
	if !env.Confirm || len(rows) == 0 {
		return nil
	}
	c, err := s.confirm(env.Ctx, env.Seed, p, env.rec, out, name)
	if err != nil {
		return err
	}
	for i, row := range rows {
		row.Set(Confirmed, c.verdict())
		if i < len(c.each) {
			row.Set(raisedRate, c.each[i])
		}
	}
	l, _ := out.use.limit()
	if run != "" {
		run += ": "
	}
	unit := fmt.Sprintf("%s, %s %% busy", l.Unit, table.Short(float64(l.PerMille)/10))
	if out.isLatency(l) {
		unit = oneOutstanding
	}
	env.Note("%slimited by %s (%s); %s.", run, out.limitWord(l), unit, c)
	return nil
}
