package experiment

import (
	"fmt"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// uarFactorial varies separately what the graphs of uar-sharing vary together.
func uarFactorial() *Experiment {
	return &Experiment{
		Name:    "uar-factorial",
		Title:   "page shared or not, QP lock or not, context shared or not: each of the eight combinations",
		Profile: "connectx-4",
		Params: []Param{
			{Key: "mode", Default: "static", Allowed: []string{"static", "dynamic"}, Help: "bfreg rules: static (kernel 4.16, rdma-core 1eee3c83) or dynamic (today's)"},
			{Key: "threads", Default: "16", Min: 2, Max: 64, Help: "posting threads, with one QP, CQ and TD each; an even number"},
			{Key: "payload", Default: "2", Min: 1, Max: 1024, Help: "bytes of each inline RDMA write"},
			{Key: "window", Default: "128", Min: 2, Max: 4096, Help: "outstanding requests of a QP"},
			{Key: "signal", Default: "64", Min: 1, Max: 4096, Help: "signal every N-th write"},
			{Key: "duration_us", Default: "150", Min: 10, Max: 100000, Help: "virtual time that is counted for each cell, after 150 us of warm-up"},
		},
		Columns: []string{"page", "lock", "context", "rate_mps", limitedBy, confirmed, "lock_wait_ns_per_msg", "line_misses_per_msg", "bf_conflicts", "uars_allocated"},
		Plots: []chart.Plot{{File: "uar-factorial", Title: "Inline RDMA writes by page, QP lock and context", X: "page", Words: []string{"own", "shared"}, Y: "rate_mps",
			XLabel: "page", YLabel: "million messages/s", Series: "context", By: []string{"lock"}}},
		Many:     true,
		Confirms: true,
		Run:      runFactorial,
	}
}

func runFactorial(env *Env) error {
	threads := env.Int("threads")
	if threads%2 != 0 {
		return usage("--set threads=%d: an even number is needed, because threads share pages in pairs", threads)
	}
	if err := env.variesDomains("see the columns page and lock"); err != nil {
		return err
	}
	var rates [8]float64
	for cell := range 8 {
		page, lock, context := cell&1, cell>>1&1, cell>>2&1
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
		if err := env.Step(cell, 8, fmt.Sprint(row.Get("page"), ", ", row.Get("lock"))); err != nil {
			return err
		}
		prof, err := env.profileWith(s.set)
		if err != nil {
			return err
		}
		sc := s.scenario(env, threads, way)
		out, err := sc.run(env.Ctx, env.Seed, prof, env.rec, env.runName("page %v, lock %v, context %v", row.Get("page"), row.Get("lock"), row.Get("context")))
		if err != nil {
			return err
		}
		if err := sc.lookAhead(env.Ctx, env.Seed, prof, env.rec, out); err != nil {
			return err
		}
		out.noteUnsteady(env, fmt.Sprintf("page %v, lock %v, context %v", row.Get("page"), row.Get("lock"), row.Get("context")))
		rate := out.results[0].Rate() / 1e6
		rates[cell] = rate
		row.Set("rate_mps", rate)
		out.costs(&row, out.results[0])
		out.resources(&row, out.results[0], sc)
		out.setLimit(&row)
		cell := fmt.Sprintf("page %v, lock %v, context %v", row.Get("page"), row.Get("lock"), row.Get("context"))
		if err := out.confirmLimit(env, sc, prof, env.runName("%s", cell), cell, &row); err != nil {
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
