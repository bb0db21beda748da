package experiment

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// Bed is the testbed of an experiment that calls verbs itself instead of running a scenario.
type Bed struct {
	TB  *testbed.Testbed
	use useWatch
}

// Build makes a testbed of hosts with the profile and the seed of e, runs body on it and closes it.
// change may alter its configuration, and may be nil. The run ends after limit of virtual time (0:
// 1000 s). name is the name of the run in captures and errors; a single run needs none.
func (e *Env) Build(limit time.Duration, name string, hosts []testbed.HostConfig, change func(*testbed.Config), body func(t verbs.Thread, b *Bed) error) error {
	cfg := testbed.Config{Seed: e.Seed, Profile: e.Profile, OutOfBand: outOfBand, NoTap: true, Interrupt: func() bool { return e.Ctx.Err() != nil }}
	for i, h := range hosts {
		h.Name, h.Cores, h.Memory, h.Devices = fmt.Sprintf("host%d", i), cmp.Or(h.Cores, 4), 64<<30, 1
		cfg.Hosts = append(cfg.Hosts, h)
	}
	if change != nil {
		change(&cfg)
	}
	e.rec.attach(&cfg, name)
	tb, err := testbed.New(cfg)
	if err != nil {
		return Usagef("%w", err)
	}
	b := &Bed{TB: tb}
	var failed error
	err = tb.Run(cmp.Or(limit, deadline), func(t verbs.Thread) { failed = body(t, b) })
	err = cmp.Or(err, e.rec.finish(tb))
	if e.Ctx.Err() != nil {
		return ErrInterrupted
	}
	if failed != nil {
		err = failed
	}
	if err != nil && name != "" {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// Grown returns by how much the counters of the testbed have grown since before; a counter created
// in between counts from zero.
func (b *Bed) Grown(before []testbed.Reading) (all []testbed.Reading) {
	for _, r := range growth(before, b.TB.Counters()) {
		all = append(all, r.Reading)
	}
	return all
}
