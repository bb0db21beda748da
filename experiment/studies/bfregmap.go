package studies

import (
	"fmt"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

func bfregMap() *experiment.Experiment {
	return &experiment.Experiment{
		Name:    "bfreg-map",
		Title:   "which QP rings which BlueFlame register, on which UAR page, under which lock",
		Profile: "connectx-5",
		Params: []experiment.Param{
			{Key: "mode", Default: "dynamic", Allowed: []string{"static", "dynamic"}, Help: "bfreg rules: static (kernel 4.16, rdma-core 1eee3c83) or dynamic (today's)"},
			{Key: "qps", Default: "20", Min: 1, Max: 4096, Help: "QPs created on one context, one after the other"},
			{Key: "tds", Default: "0", Min: 0, Max: 1024, Help: "how many of them, from the first, have a thread domain of their own"},
			{Key: "independent", Default: "false", Allowed: []string{"true", "false"}, Help: "make the thread domains independent"},
			{Key: "total_uuars", Default: "", Min: 1, Max: 512, Help: "MLX5_TOTAL_UUARS of the process (default of the library: 16)"},
			{Key: "low_lat_uuars", Default: "", Min: 0, Max: 511, Help: "MLX5_NUM_LOW_LAT_UUARS of the process (default of the library: 4)"},
		},
		Columns: []string{"qp", "td", "bfreg", "uar_page", "offset", "class", "lock"},
		Run:     runBFRegMap,
	}
}

func runBFRegMap(env *experiment.Env) error {
	if err := varies(env, independentKey, "give --set independent="); err != nil {
		return err
	}
	prof, err := profileWith(env, map[string]string{independentKey: env.String("independent")})
	if err != nil {
		return err
	}
	if tds, qps := env.Int("tds"), env.Int("qps"); tds > qps {
		return experiment.Usagef("tds=%d of qps=%d queue pairs cannot have thread domains: give fewer tds or more qps", tds, qps)
	}
	vars := map[string]string{}
	for key, name := range map[string]string{"total_uuars": "MLX5_TOTAL_UUARS", "low_lat_uuars": "MLX5_NUM_LOW_LAT_UUARS"} {
		if v := env.String(key); v != "" {
			vars[name] = v
		}
	}
	static := hasTable(prof)
	change := func(c *testbed.Config) { c.Profile, c.NoTap = prof, false }
	err = env.Build(0, "", []testbed.HostConfig{{Cores: 1}}, change, func(t verbs.Thread, b *experiment.Bed) error { return mapQPs(t, b.TB, env, vars, static) })
	if err != nil {
		return err
	}
	if static {
		env.Out.Note("Static: bfreg is the number in the context's table, uar_page the slot in it (two bfregs a page); dynamic bfregs of thread domains follow the static ones.")
	} else {
		env.Out.Note("Dynamic: bfreg is the register of its page (0 or 1); uar_page numbers the pages in the order in which QPs use them.")
	}
	return nil
}

// hasTable reports whether QPs have bfregs of the kernel's static table: the library or the kernel
// knows nothing else.
func hasTable(p *profile.Profile) bool {
	return p.Kernel.Generation == kernel.Static || p.Provider.Generation == kernel.Static
}

func mapQPs(t verbs.Thread, tb verbs.Testbed, env *experiment.Env, vars map[string]string, static bool) error {
	proc, err := tb.Hosts()[0].NewProcess(t, vars)
	if err != nil {
		return err
	}
	var failed error
	th := proc.Start(t, "map", 0, func(t verbs.Thread) { failed = mapInProcess(t, proc, env, static) })
	t.Join(th)
	return failed
}

func mapInProcess(t verbs.Thread, proc verbs.Process, env *experiment.Env, static bool) error {
	devs, err := proc.Devices(t)
	if err != nil {
		return err
	}
	ctx, err := devs[0].Open(t)
	if err != nil && (env.String("total_uuars") != "" || env.String("low_lat_uuars") != "") {
		return experiment.Usagef("total_uuars=%s low_lat_uuars=%s: %w", env.String("total_uuars"), env.String("low_lat_uuars"), err)
	}
	if err != nil {
		return fmt.Errorf("open device: %w", err)
	}
	pd, err := ctx.AllocPD(t)
	if err != nil {
		return fmt.Errorf("alloc PD: %w", err)
	}
	cq, err := ctx.CreateCQ(t, verbs.CQAttr{CQE: 16})
	if err != nil {
		return fmt.Errorf("create CQ: %w", err)
	}
	seen := map[uint32]int{}
	for i := range env.Int("qps") {
		dom, td := pd, any(nil)
		if i < env.Int("tds") {
			if dom, err = mapDomain(t, ctx, pd, env.String("independent") == "true"); err != nil {
				return fmt.Errorf("QP %d: %w", i+1, err)
			}
			td = i + 1
		}
		qp, err := dom.CreateQP(t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq,
			Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
		if err != nil {
			return fmt.Errorf("create QP %d: %w", i+1, err)
		}
		reg := qp.(verbs.Mlx5QP).BFReg()
		page, ok := seen[reg.UARPage]
		if !ok {
			page = len(seen)
			seen[reg.UARPage] = page
		}
		if static {
			page = reg.Index / 2
		}
		var row table.Row
		row.Set("qp", i+1).Set("td", td).Set("bfreg", reg.Index).Set("uar_page", page).Set("offset", fmt.Sprintf("%#x", reg.Offset))
		row.Set("class", reg.Class).Set("lock", reg.NeedLock).Set("uar_index", int(reg.UARPage))
		env.Emit(row)
	}
	return nil
}

func mapDomain(t verbs.Thread, ctx verbs.Context, pd verbs.PD, independent bool) (verbs.PD, error) {
	var attr verbs.TDInitAttr
	if independent {
		attr = verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1}
	}
	td, err := ctx.AllocTD(t, attr)
	if err != nil {
		return nil, fmt.Errorf("alloc TD: %w", err)
	}
	dom, err := ctx.AllocParentDomain(t, verbs.ParentDomainAttr{PD: pd, TD: td})
	if err != nil {
		return nil, fmt.Errorf("alloc parent domain: %w", err)
	}
	return dom, nil
}
