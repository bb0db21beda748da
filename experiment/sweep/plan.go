// Package sweep runs an experiment or a scenario over many settings and seeds: points are run by
// worker processes, on this machine or on a cluster, their results are kept by content, and the
// answer is put together from there. Its bytes do not depend on how many workers there were, on
// their order, or on the machine.
package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
	"github.com/rdmasim/rdmasim/experiment/sweep/grid"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// MostSeeds bounds the seeds of a point.
const MostSeeds = 1_000_000

// Flags are what a command line says of a sweep.
type Flags struct {
	Sweep  []string
	Seeds  int // 0: not given
	Sample string
}

// Plan is all that decides the points of a sweep and their results. A worker on another machine
// needs nothing else.
type Plan struct {
	Name string `json:"name"` // of the experiment, or the file of the scenario
	// Scenario is the text of the file.
	Scenario []byte             `json:"scenario,omitempty"`
	Request  experiment.Request `json:"request"`
	Grid     grid.Grid          `json:"grid"`
	Seeds    int                `json:"seeds"`
}

func usage(format string, args ...any) error {
	return &experiment.UsageError{Err: fmt.Errorf(format, args...)}
}

// NewPlan makes the plan of a command line. It is nil if nothing is swept.
func NewPlan(ctx context.Context, name string, x *experiment.Experiment, req experiment.Request, f Flags) (*Plan, error) {
	p := &Plan{Name: name, Request: req, Seeds: max(f.Seeds, 1)}
	given := f
	if sc := x.OfScenario(); sc != nil {
		var err error
		if p.Scenario, err = scenarioText(ctx, name); err != nil {
			return nil, err
		}
		if own := sc.Sweep; own != nil {
			if err := p.add(ctx, own.Over, filepath.Dir(name), "sweep.over: "); err != nil {
				return nil, err
			}
			if f.Seeds == 0 {
				p.Seeds, given.Seeds = max(own.Seeds, 1), own.Seeds
			}
			if f.Sample == "" {
				given.Sample = own.Sample
			}
		}
	}
	if err := p.add(ctx, f.Sweep, "", "--sweep "); err != nil {
		return nil, err
	}
	if len(p.Grid.Axes) == 0 && given.Seeds == 0 {
		if given.Sample != "" {
			return nil, usage("--sample %s: there is no grid to sample: add --sweep key=values", given.Sample)
		}
		return nil, nil
	}
	if err := p.checkKeys(); err != nil {
		return nil, err
	}
	if given.Sample != "" {
		kind, n, err := grid.ParseSample(given.Sample)
		if err != nil {
			return nil, usage("--sample: %w", err)
		}
		if len(p.Grid.Axes) == 0 {
			return nil, usage("--sample %s: there is no grid to sample: add --sweep key=values", given.Sample)
		}
		p.Grid.Draw(kind, n, req.Seed)
	}
	if p.Seeds < 1 || p.Seeds > MostSeeds {
		return nil, usage("--seeds %d: a number of seeds from 1 to %d is needed", p.Seeds, MostSeeds)
	}
	if p.Request.Seed+uint64(p.Seeds-1) < p.Request.Seed {
		return nil, usage("--seed %d --seeds %d: the last seed is above %d", p.Request.Seed, p.Seeds, uint64(math.MaxUint64))
	}
	_, err := p.Points()
	return p, err
}

// add adds axes. One of the same keys as an earlier one takes its place.
func (p *Plan) add(ctx context.Context, texts []string, dir, where string) error {
	var added []grid.Axis
	for _, text := range texts {
		a, err := grid.Parse(ctx, text, dir)
		if err != nil {
			return usage("%s%s: %w", where, text, err)
		}
		for _, k := range a.Keys {
			if slices.ContainsFunc(added, func(b grid.Axis) bool { return has(b, k) }) {
				return usage("%s%s is swept twice: give all its values at once, as in %s=v1,v2,...", where, grid.OneKey(k), grid.OneKey(k))
			}
		}
		added = append(added, a)
	}
	for _, a := range added {
		i := slices.IndexFunc(p.Grid.Axes, func(b grid.Axis) bool { return slices.ContainsFunc(a.Keys, func(k string) bool { return has(b, k) }) })
		switch {
		case i < 0:
			p.Grid.Axes = append(p.Grid.Axes, a)
		case p.Grid.Axes[i].Name() == a.Name():
			p.Grid.Axes[i] = a
		default:
			return usage("%s%s: the file of the scenario sweeps %s: give values for the same keys", where, a.Name(), p.Grid.Axes[i].Name())
		}
	}
	return nil
}

func has(a grid.Axis, key string) bool {
	return slices.ContainsFunc(a.Keys, func(k string) bool { return grid.OneKey(k) == grid.OneKey(key) })
}

// checkKeys refuses keys that have a value already.
func (p *Plan) checkKeys() error {
	for _, k := range p.Grid.Keys() {
		one := grid.OneKey(k)
		if i := slices.IndexFunc(p.Request.Set, func(kv string) bool { return strings.HasPrefix(grid.OneKey(kv), one+"=") }); i >= 0 {
			return usage("--sweep gives %s its values: leave out --set %s", k, p.Request.Set[i])
		}
		if k == "profile" && p.Request.Profile != "" {
			return usage("--sweep gives the profiles: leave out --profile %s", p.Request.Profile)
		}
		if k == "seed" {
			return usage("--sweep %s: --seeds N runs each point with N seeds, from --seed up", k)
		}
	}
	return nil
}

// scenarioText is the text of a scenario file: one of the user's, or one that comes with the
// program.
func scenarioText(ctx context.Context, name string) ([]byte, error) {
	text, err := input.ReadFile(ctx, name)
	if err != nil && filepath.Base(name) == name {
		if own, oerr := fixtures.Read("scenarios/" + name); oerr == nil {
			return own, nil
		}
	}
	if err != nil {
		return nil, usage("cannot read the scenario: %w", err)
	}
	return text, nil
}

// Points is the number of runs: points of the grid times seeds.
func (p *Plan) Points() (int, error) {
	n, err := p.Grid.Len()
	if err == nil && n > 1<<61/p.Seeds {
		err = grid.ErrMany
	}
	if err != nil {
		return 0, usage("--sweep: %w", err)
	}
	return n * p.Seeds, nil
}

// prepared is a plan with its experiment.
type prepared struct {
	*Plan
	x     *experiment.Experiment
	prep  *experiment.Prepared
	model string
	n     int // points
}

func (p *Plan) prepare() (*prepared, error) {
	r := &prepared{Plan: p}
	var err error
	if r.n, err = p.Points(); err != nil {
		return nil, err
	}
	if p.Scenario != nil {
		sc, err := experiment.ParseScenario(p.Name, p.Scenario)
		if err != nil {
			return nil, &experiment.UsageError{Err: err}
		}
		r.x = sc.Experiment()
	} else if r.x, err = studies.Find(p.Name); err != nil {
		return nil, err
	}
	if r.prep, err = r.x.Prepare(p.Request); err != nil {
		return nil, err
	}
	r.model, err = Model()
	return r, err
}

// point is the settings and the seed of a run. The seed changes fastest.
func (p *Plan) point(i int) ([]experiment.Setting, uint64) {
	at := p.Grid.At(i / p.Seeds)
	pt := make([]experiment.Setting, len(at))
	for k, s := range at {
		pt[k] = experiment.Setting(s)
	}
	return pt, p.Request.Seed + uint64(i%p.Seeds)
}

// address is where the result of a run is kept.
func (r *prepared) address(i int) (store.Address, *experiment.Identity, error) {
	pt, seed := r.point(i)
	id, err := r.prep.Identity(pt, seed)
	if err != nil {
		return store.Address{}, nil, err
	}
	text, err := json.Marshal(id)
	return store.AddressOf(r.model, text), id, err
}

// name is how messages call a run.
func (r *prepared) pointName(i int) string {
	pt, seed := r.point(i)
	name := experiment.PointName(pt)
	if r.Seeds > 1 {
		name = strings.TrimSpace(fmt.Sprintf("%s seed=%d", name, seed))
	}
	return name
}

// mostChecked bounds the runs whose settings are checked before the first begins: the others are
// checked when it is their turn.
const mostChecked = 2000

// check checks the settings of points before the first one runs: all of a sweep that is not large,
// otherwise points from all over it. Two values of one key that make the same run are refused.
func (r *prepared) check() error {
	cells := r.n / r.Seeds
	for k := range min(cells, mostChecked) {
		i := k
		if cells > mostChecked {
			i = int(float64(k) / (mostChecked - 1) * float64(cells-1))
		}
		if _, _, err := r.address(i * r.Seeds); err != nil {
			pt, _ := r.point(i * r.Seeds)
			if name := experiment.PointName(pt); name != "" && !slices.ContainsFunc(pt, func(s experiment.Setting) bool { return strings.HasPrefix(err.Error(), s.Key) }) {
				return usage("--sweep: %s: %w", name, err)
			}
			return usage("--sweep: %w", err)
		}
	}
	return r.checkTwice()
}

func (r *prepared) checkTwice() error {
	if r.Grid.Sample != nil || len(r.Grid.Axes) == 0 {
		return nil
	}
	stride := r.n
	for _, a := range r.Grid.Axes {
		stride /= len(a.Values)
		seen := map[store.Address]int{}
		for v := range min(len(a.Values), mostChecked) {
			at, _, err := r.address(v * stride)
			if err != nil {
				continue // its turn will say so
			}
			if first, ok := seen[at]; ok {
				return usage("--sweep %s: %s and %s are one value, which is given twice", a.Name(), strings.Join(a.Values[first], ":"), strings.Join(a.Values[v], ":"))
			}
			seen[at] = v
		}
	}
	return nil
}
