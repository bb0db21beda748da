package studies

import (
	"fmt"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// uarFactorial varies separately what the graphs of uar-sharing vary together.
func uarFactorial() *experiment.Experiment {
	return &experiment.Experiment{
		Name:    "uar-factorial",
		Title:   "page shared or not, QP lock or not, context shared or not: each of the eight combinations",
		Profile: "connectx-4",
		Params: []experiment.Param{
			{Key: "mode", Default: "static", Allowed: []string{"static", "dynamic"}, Help: "bfreg rules: static (kernel 4.16, rdma-core 1eee3c83) or dynamic (today's)"},
			{Key: "threads", Default: "16", Min: 2, Max: 64, Help: "posting threads, with one QP, CQ and TD each; an even number"},
			{Key: "payload", Default: "2", Min: 1, Max: 1024, Help: "bytes of each inline RDMA write"},
			{Key: "window", Default: "128", Min: 2, Max: 4096, Help: "outstanding requests of a QP"},
			{Key: "signal", Default: "64", Min: 1, Max: 4096, Help: "signal every N-th write"},
			{Key: "duration_us", Default: "150", Min: 10, Max: 100000, Help: "virtual time that is counted for each cell, after as much warm-up, of at least 150 us; where the rate is not steady up to 8 times as long, at most 1.2 ms"},
		},
		Columns: []string{"page", "lock", "context", "rate_mps", experiment.LimitedBy, experiment.Confirmed, "lock_wait_ns_per_msg", "line_misses_per_msg", "bf_conflicts", "uars_allocated"},
		Plots: []chart.Plot{{File: "uar-factorial", Title: "Inline RDMA writes by page, QP lock and context", X: "page", Words: []string{"own", "shared"}, Y: "rate_mps",
			XLabel: "page", YLabel: "million messages/s", Series: "context", By: []string{"lock"}}},
		Many:     true,
		Confirms: true,
		Run:      runFactorial,
	}
}

func runFactorial(env *experiment.Env) error {
	threads := env.Int("threads")
	if threads%2 != 0 {
		return experiment.Usagef("--set threads=%d: an even number is needed, because threads share pages in pairs", threads)
	}
	if err := variesDomains(env, "see the columns page and lock"); err != nil {
		return err
	}
	var rates [8]float64
	for i := range 8 {
		page, lock, context := i&1, i>>1&1, i>>2&1
		s := series{td: "independent", postlist: 1, set: map[string]string{independentKey: "true", "provider.td_keeps_qp_lock": "false"}}
		way := 2
		var row table.Row
		pick := func(on int, a, b string) string {
			if on == 1 {
				return a
			}
			return b
		}
		if page == 1 {
			s.td = "per-thread"
		}
		if lock == 1 {
			s.set["provider.td_keeps_qp_lock"] = "true"
		}
		if context == 1 {
			way = threads
		}
		row.Set("page", pick(page, "shared", "own")).Set("lock", pick(lock, "QP lock", "none")).Set("context", pick(context, "shared by all", "shared by 2"))
		if err := env.Step(i, 8, fmt.Sprint(row.Get("page"), ", ", row.Get("lock"))); err != nil {
			return err
		}
		prof, err := profileWith(env, s.set)
		if err != nil {
			return err
		}
		sc := s.scenario(env, threads, way)
		cell := fmt.Sprintf("page %v, lock %v, context %v", row.Get("page"), row.Get("lock"), row.Get("context"))
		out, err := env.RunSteady(sc, prof, cell, cell, longest(env))
		if err != nil {
			return err
		}
		rate := out.Results[0].Rate() / 1e6
		rates[i] = rate
		row.Set("rate_mps", rate)
		t := out.LoadRow(0)
		row.Set(table.RateInterval, t.Get(table.RateInterval)).Set("measured_us", t.Get("measured_us"))
		postingCosts(out, &row, out.Results[0])
		resources(out, &row, out.Results[0], sc)
		if err := out.SetLimit(env, sc, prof, cell, &row); err != nil {
			return err
		}
		env.Emit(row)
	}
	for f, name := range []string{"sharing the page", "the QP lock", "one context for all"} {
		with, without := 0.0, 0.0
		for cell, r := range rates {
			if cell>>f&1 == 1 {
				with += r
			} else {
				without += r
			}
		}
		env.Note("Main effect of %s: %+.1f %%.", name, 100*(with-without)/without)
	}
	env.Out.Note("uar.bf_conflict=%s is a hypothesis.", env.Profile.Get("uar.bf_conflict"))
	return env.Step(8, 8, "done")
}
