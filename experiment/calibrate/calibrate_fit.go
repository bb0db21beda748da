package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/optimize"
)

// Fit is what calibrate found for one value.
type Fit struct {
	Parameter string   `json:"parameter"`
	Low       string   `json:"low"`
	High      string   `json:"high"`
	Stored    string   `json:"stored,omitempty"` // what the profile or scenario has
	Value     string   `json:"value"`
	Figures   []string `json:"figures"` // that it was fitted to; none: it is the prior
}

// FittedFigure is a figure that values were fitted to.
type FittedFigure struct {
	ID        string  `json:"id"`
	Name      string  `json:"figure"`
	Expected  float64 `json:"expected"`
	Got       float64 `json:"got"`
	Unit      string  `json:"unit"`
	Tolerance string  `json:"tolerance"`
	Pass      bool    `json:"pass"`
}

// fitAll fits all groups in order.
func (e *evaluator) fitAll(ctx context.Context) (set []setting, fits []Fit, err error) {
	for g := range e.c.Groups {
		group := &e.c.Groups[g]
		mine, figures, err := e.fitGroup(ctx, group, 0, set, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("group %s: %w", group.Name, err)
		}
		for i, s := range mine {
			f := Fit{Parameter: s.p.Name(), Low: s.p.Low, High: s.p.High, Value: s.p.text(s.v), Figures: figures[i]}
			if s.p.Profile != "" {
				if f.Stored, err = e.c.storedValue(s.p); err != nil {
					return nil, nil, err
				}
			}
			fits = append(fits, f)
		}
		set = append(set, mine...)
	}
	return set, fits, nil
}

// refit is the fit without the figures of a check. Groups that have some of them are fitted again,
// in order, and so are those whose figures move when values before them are others than in the
// whole fit: what was fitted beside a value knows of it. The other groups keep the values of the
// whole fit.
func (e *evaluator) refit(ctx context.Context, whole []setting, without int) (set []setting, refitted []string, err error) {
	set = slices.Clone(whole)
	at := 0
	for g := range e.c.Groups {
		group := &e.c.Groups[g]
		n := len(group.Parameters)
		var near []setting // where the fit of a group that has all its figures begins
		again := slices.ContainsFunc(group.Parameters, func(p Parameter) bool { return len(e.c.left(p.Figures, without)) < len(p.Figures) })
		if !again {
			if again, err = e.moves(ctx, group, whole[:at+n], set[:at+n], without); err != nil {
				return nil, nil, fmt.Errorf("group %s: %w", group.Name, err)
			}
			near = whole[at : at+n]
		}
		if again {
			mine, _, err := e.fitGroup(ctx, group, without, set[:at], near)
			if err != nil {
				return nil, nil, fmt.Errorf("group %s: %w", group.Name, err)
			}
			copy(set[at:at+n], mine)
		}
		at += n
	}
	for i, s := range set {
		if s.v != whole[i].v {
			refitted = append(refitted, s.p.Name()+"="+s.p.text(s.v))
		}
	}
	return set, refitted, nil
}

// moved is by how much of its tolerance a figure moves that is worth a fit.
const moved = 0.25

// moves reports whether the figures of a group are others under one set of values than under the
// other.
func (e *evaluator) moves(ctx context.Context, g *FitGroup, a, b []setting, without int) (bool, error) {
	if slices.Equal(a, b) {
		return false, nil
	}
	var ids []string
	for i := range g.Parameters {
		ids = append(ids, e.c.left(g.Parameters[i].Figures, without)...)
	}
	before, err := e.figures(ctx, ids, a)
	if err != nil {
		return false, err
	}
	after, err := e.figures(ctx, ids, b)
	if err != nil {
		return false, err
	}
	for i, id := range ids {
		if math.Abs(after[i]-before[i]) > moved*allowance(e.c.at[id].figure()) {
			return true, nil
		}
	}
	return false, nil
}

// fitGroup fits the values of one group under what is set already. A value for which no figure is
// left has its prior. The search begins at near, or if that is nil at the priors.
func (e *evaluator) fitGroup(ctx context.Context, g *FitGroup, without int, set, near []setting) (fitted []setting, figures [][]string, err error) {
	var free []int
	var ids []string
	for i := range g.Parameters {
		p := &g.Parameters[i]
		own := e.c.left(p.Figures, without)
		if len(own) == 0 {
			own = e.c.left(p.Otherwise, without)
		}
		fitted, figures = append(fitted, setting{p, p.prior}), append(figures, own)
		if len(own) == 0 {
			continue
		}
		free = append(free, i)
		for _, id := range own {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(free) == 0 {
		return fitted, figures, nil
	}
	x0 := make([]float64, len(free))
	for k, i := range free {
		x0[k] = fitted[i].p.position(fitted[i].v)
		if near != nil {
			x0[k] = near[i].p.position(near[i].v)
		}
	}
	best, err := e.minimize(ctx, fitted, free, ids, x0, set, near != nil)
	if err != nil {
		return nil, nil, err
	}
	for k, i := range free {
		fitted[i].v = fitted[i].p.value(best[k])
	}
	return fitted, figures, nil
}

// left are the figures that do not belong to a check.
func (c *Calibration) left(ids []string, without int) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return c.at[id].v.Check == without })
}

// What ends a fit: evaluations for each value, a sum of squares (in tolerances) that is as good as
// none, and a size of the simplex, in which a value moves by less than what is printed of it.
const (
	fitEvaluations = 16
	fitGoodEnough  = 1e-3
	fitSimplex     = 0.04
)

// minimize finds the place with the least sum of squares of the figures' errors in tolerances. It
// looks everywhere between the bounds, unless x0 is known to be near.
func (e *evaluator) minimize(ctx context.Context, fitted []setting, free []int, ids []string, x0 []float64, set []setting, near bool) ([]float64, error) {
	var failed error
	least, best := math.Inf(1), slices.Clone(x0)
	var signed float64 // the last figure's error in tolerances
	try := slices.Clone(fitted)
	cost := func(x []float64) float64 {
		outside := 0.0
		for k, i := range free {
			try[i].v = try[i].p.value(x[k])
			outside += max(0, -x[k], x[k]-1)
		}
		got, err := e.figures(ctx, ids, slices.Concat(set, try))
		if signed = math.NaN(); impossible(err) {
			return math.Inf(1)
		}
		if err != nil {
			failed = err
			return math.Inf(1)
		}
		sum := 100 * outside
		for i, id := range ids {
			f := e.c.at[id].figure()
			signed = (got[i] - f.Expected) / allowance(f)
			sum += signed * signed
		}
		if sum < least {
			least = sum
			copy(best, x)
		}
		return sum
	}
	if len(free) == 1 && len(ids) == 1 {
		error := func(x float64) (float64, error) {
			cost([]float64{x})
			return signed, failed
		}
		first := places
		switch x := x0[0]; {
		case e.monotone:
			first = []float64{0, 1}
		case near:
			first = []float64{max(0, x-0.05), min(1, x+0.05), max(0, x-0.2), min(1, x+0.2), 0, 1}
		}
		done, err := bracket(error, x0[0], first, math.Sqrt(fitGoodEnough))
		if done || err != nil || e.monotone {
			return best, err
		}
	}
	first, evaluations := places, fitEvaluations
	if near {
		first, evaluations = nil, fitEvaluations/2
	}
	x0 = scan(cost, x0, first, fitGoodEnough*float64(len(ids)))
	problem := optimize.Problem{Func: cost, Status: func() (optimize.Status, error) {
		switch {
		case failed != nil:
			return optimize.Failure, failed
		case least < fitGoodEnough*float64(len(ids)):
			return optimize.FunctionThreshold, nil
		}
		return optimize.NotTerminated, nil
	}}
	_, err := optimize.Minimize(problem, x0, &optimize.Settings{FuncEvaluations: evaluations * len(free),
		Converger: &optimize.FunctionConverge{Absolute: 1e-4, Iterations: 10}}, &optimize.NelderMead{SimplexSize: fitSimplex})
	return best, cmp.Or(failed, err)
}

// places are where a fit looks first, between the bounds.
var places = []float64{0.1, 0.3, 0.5, 0.7, 0.9}

// bracket looks for a place at which an error is as good as none, by false position between places
// where it has opposite signs. It reports whether it found one; if not, the error does not cross
// zero, or in a step.
func bracket(f func(float64) (float64, error), x0 float64, first []float64, enough float64) (bool, error) {
	xs := append([]float64{x0}, first...)
	slices.SortStableFunc(xs[1:], func(a, b float64) int { return cmp.Compare(math.Abs(a-x0), math.Abs(b-x0)) })
	type point struct{ x, y float64 }
	var seen []point
	var lo, hi point
	found := false
	for _, x := range xs {
		y, err := f(x)
		if err != nil || math.Abs(y) < enough {
			return err == nil, err
		}
		if math.IsNaN(y) { // impossible with the other values: as far as they allow
			if x, y, err = edge(f, x0, x); err != nil || math.Abs(y) < enough {
				return err == nil, err
			}
		}
		if math.IsNaN(y) {
			continue
		}
		p := point{x, y}
		near := func(a, b point) int { return cmp.Compare(math.Abs(a.x-x), math.Abs(b.x-x)) }
		slices.SortFunc(seen, near)
		if i := slices.IndexFunc(seen, func(q point) bool { return q.y*y < 0 }); i >= 0 {
			lo, hi, found = seen[i], p, true
			break
		}
		seen = append(seen, p)
	}
	for range bracketSteps {
		if !found {
			break
		}
		x := lo.x - lo.y*(hi.x-lo.x)/(hi.y-lo.y)
		y, err := f(x)
		if err != nil || math.Abs(y) < enough {
			return err == nil, err
		}
		// The end that stays counts half, so that both ends come closer.
		if y*hi.y < 0 {
			lo, hi = hi, point{x, y}
		} else {
			lo.y, hi = lo.y/2, point{x, y}
		}
	}
	return false, nil
}

// edge is the place nearest to x, from x0 on, that is not impossible, by halves.
func edge(f func(float64) (float64, error), x0, x float64) (at, y float64, err error) {
	at = x0
	if y, err = f(x0); err != nil || math.IsNaN(y) {
		return at, y, err
	}
	for range 6 {
		mid := (at + x) / 2
		v, err := f(mid)
		switch {
		case err != nil:
			return at, y, err
		case math.IsNaN(v):
			x = mid
		default:
			at, y = mid, v
		}
	}
	return at, y, nil
}

// bracketSteps is after how many steps a figure is one that jumps.
const bracketSteps = 12

// scan moves one value after another to the best of the first places between its bounds, and then
// by smaller and smaller steps: sums of squares have plateaus, on which a simplex ends. It stops at
// a sum that is as good as none.
func scan(cost func([]float64) float64, x0, first []float64, enough float64) []float64 {
	best, least := slices.Clone(x0), cost(x0)
	try := func(k int, at float64) {
		if least < enough {
			return
		}
		x := slices.Clone(best)
		x[k] = at
		if c := cost(x); c < least {
			least, best[k] = c, at
		}
	}
	for k := range best {
		for _, at := range first {
			try(k, at)
		}
	}
	for _, step := range []float64{0.1, 0.05, 0.02} {
		for k := range best {
			from := best[k]
			try(k, min(1, from+step))
			try(k, max(0, from-step))
		}
	}
	return best
}

// allowance is the tolerance of a figure in its unit.
func allowance(f *Figure) float64 {
	kind, v, _ := tolerance(f.Tolerance) // checked when the file was read
	if kind == '%' {
		v *= math.Abs(f.Expected) / 100
	}
	return max(v, 1e-9)
}

// numbers are the checks that have figures, in order.
func (c *Calibration) numbers() []int {
	var ns []int
	for _, at := range c.at {
		if n := at.v.Check; n > 0 && !slices.Contains(ns, n) {
			ns = append(ns, n)
		}
	}
	sort.Ints(ns)
	return ns
}

// of are the figures of a check, in the order of their IDs' letters.
func (c *Calibration) of(check int) []string {
	var ids []string
	for id, at := range c.at {
		if at.v.Check == check {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return ids
}
