package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Reach is what the published figures say of loads that none of them is of: each figure with the
// places of its loads, and how far off the simulator is where the figure's whole check is left out
// of the fit.
type Reach struct {
	Version string             `json:"version"`
	Titles  map[int]string     `json:"checks"`
	Loads   []experiment.Place `json:"loads"`
	Figures []Reached          `json:"figures"`
	// Held is how many of the figures lie in the interval that those of the other checks give, and
	// Factor the median of these intervals' factors. Far is a distance that nine in ten figures
	// have to the nearest one of another check, or less.
	Held   int     `json:"held"`
	Factor float64 `json:"median_factor"`
	Far    float64 `json:"far"`
	// Beyond is how many of the figures go farther than those of other checks.
	Beyond int `json:"beyond"`
}

// Reached is a figure.
type Reached struct {
	ID    string `json:"id"`
	Check int    `json:"check"`
	// Error is the factor between the published value and the predicted one, 1 or more.
	Error float64 `json:"error_factor"`
	// Distance of its loads to the nearest of a figure of another check.
	Distance float64 `json:"distance"`
	// Beyond says that its loads go farther than all of other checks.
	Beyond bool  `json:"beyond,omitempty"`
	Loads  []int `json:"loads"`
}

// reachFile is the reach that comes with the program.
const reachFile = "calibration/reach.json"

// An interval is the wider one of two: within it were the errors of a share nominal of the figures
// with the nearest loads, and of figures that were as far from those of other checks, or that went
// beyond them where the loads do. The wider one of such intervals holds more, a share holds of the
// figures that were left out, as summarize counts.
const (
	nearFigures = 16
	likeFigures = 64
	nominal     = 0.75
	holds       = 0.80
)

// StoredReach is that which comes with the program.
func StoredReach() (*Reach, error) { return stored[Reach](reachFile) }

// NewReach puts together the loads of checks and the errors of their figures. Figures without a
// ratio to the published value, of 0, are left out.
func NewReach(all []*Validation, errors *LeaveOneOut) (*Reach, error) {
	r := &Reach{Version: errors.Version, Titles: map[int]string{}}
	at := map[string]*LeftOut{}
	for i := range errors.Checks {
		at[errors.Checks[i].ID] = &errors.Checks[i]
	}
	for _, v := range all {
		for i := range v.Figures {
			f := &v.Figures[i]
			e := at[f.ID]
			if e == nil || e.Expected <= 0 || e.Predicted <= 0 {
				continue
			}
			g := Reached{ID: f.ID, Check: v.Check, Error: table.Rounded(max(e.Predicted/e.Expected, e.Expected/e.Predicted))}
			err := Names(f.Value, func(run, _ string) error {
				s, err := v.run(run)
				if err != nil {
					return err
				}
				for _, p := range s.Places() {
					n := slices.IndexFunc(r.Loads, func(q experiment.Place) bool { return p.Distance(q) == 0 })
					if n < 0 {
						n = len(r.Loads)
						r.Loads = append(r.Loads, p)
					}
					if !slices.Contains(g.Loads, n) {
						g.Loads = append(g.Loads, n)
					}
				}
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("check %d: %w", v.Check, err)
			}
			if len(g.Loads) > 0 {
				r.Figures = append(r.Figures, g)
				r.Titles[v.Check] = v.Title
			}
		}
	}
	r.summarize()
	return r, nil
}

// near are the figures by their distance to loads, each load to the nearest one of the figure;
// without those of a check.
func (r *Reach) near(loads []experiment.Place, without int) (all []neighbour) {
	for i := range r.Figures {
		f := &r.Figures[i]
		if f.Check == without {
			continue
		}
		n := neighbour{figure: f}
		for _, p := range loads {
			d := math.Inf(1)
			var with experiment.Place
			for _, l := range f.Loads {
				if e := p.Distance(r.Loads[l]); e < d {
					d, with = e, r.Loads[l]
				}
			}
			if d >= n.distance {
				n.distance, n.load, n.with = d, p, with
			}
		}
		all = append(all, n)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].distance < all[j].distance })
	return all
}

// neighbour is a figure with its distance to loads: that of load, which is the farthest, to with.
type neighbour struct {
	figure     *Reached
	distance   float64
	load, with experiment.Place
}

// beyond says in what loads go farther than those of all figures but for a check's.
func (r *Reach) beyond(loads []experiment.Place, without int) (all []string) {
	var others []experiment.Place
	for i := range r.Figures {
		if f := &r.Figures[i]; f.Check != without {
			for _, l := range f.Loads {
				others = append(others, r.Loads[l])
			}
		}
	}
	for _, p := range loads {
		for _, text := range p.Beyond(others) {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// factor is that within which most figures near to loads were predicted, of those that go beyond
// others as the loads do, or do not; without a check, as near. 0: there are none.
func (r *Reach) factor(near []neighbour, beyond bool, without int) float64 {
	d := near[0].distance
	near = slices.DeleteFunc(slices.Clone(near), func(x neighbour) bool { return x.figure.Beyond != beyond })
	n := min(nearFigures, len(near))
	for n > 0 && n < len(near) && near[n].distance == near[n-1].distance {
		n++
	}
	var alike []*Reached
	for i := range r.Figures {
		if f := &r.Figures[i]; f.Check != without && f.Beyond == beyond {
			alike = append(alike, f)
		}
	}
	if len(alike) == 0 {
		return 0
	}
	sort.SliceStable(alike, func(i, j int) bool { return math.Abs(alike[i].Distance-d) < math.Abs(alike[j].Distance-d) })
	var errors, others []float64
	for _, x := range near[:n] {
		errors = append(errors, x.figure.Error)
	}
	for _, f := range alike[:min(likeFigures, len(alike))] {
		others = append(others, f.Error)
	}
	return max(quantile(errors), quantile(others))
}

// quantile is the error that a share nominal of errors does not exceed.
func quantile(errors []float64) float64 {
	slices.Sort(errors)
	return errors[min(len(errors)-1, int(math.Ceil(nominal*float64(len(errors)+1)))-1)]
}

func (r *Reach) summarize() {
	if len(r.Figures) < likeFigures {
		return
	}
	near := make([][]neighbour, len(r.Figures))
	var factors, distances []float64
	for i := range r.Figures {
		f := &r.Figures[i]
		var loads []experiment.Place
		for _, l := range f.Loads {
			loads = append(loads, r.Loads[l])
		}
		near[i] = r.near(loads, f.Check)
		if f.Beyond = len(r.beyond(loads, f.Check)) > 0; f.Beyond {
			r.Beyond++
		}
		f.Distance = near[i][0].distance
		distances = append(distances, f.Distance)
	}
	for i := range r.Figures {
		g := r.factor(near[i], r.Figures[i].Beyond, r.Figures[i].Check)
		if factors = append(factors, g); r.Figures[i].Error <= g {
			r.Held++
		}
	}
	slices.Sort(distances)
	r.Factor, r.Far = median(factors), distances[len(distances)*9/10]
}

// Says is what the figures say of loads that run together, of a point of a sweep by its name. It is
// nil if there are no loads.
func (r *Reach) Says(point string, loads []experiment.Place) *experiment.Validity {
	if len(loads) == 0 || len(r.Figures) < likeFigures {
		return nil
	}
	near := r.near(loads, 0)
	v := &experiment.Validity{Point: point, Share: holds, Check: near[0].figure.Check, Title: r.Titles[near[0].figure.Check], Distance: near[0].distance,
		Differs: near[0].load.Differs(near[0].with), Beyond: r.beyond(loads, 0)}
	if near[0].distance <= r.Far {
		v.Factor = table.Rounded(r.factor(near, len(v.Beyond) > 0, 0))
	}
	return v
}

// WriteReach prints how many left-out figures lie in the interval that rdmasim run would have given
// them.
func WriteReach(ctx context.Context, w io.Writer, errors *LeaveOneOut) error {
	all, err := loadValidations(ctx, nil)
	if err != nil {
		return err
	}
	r, err := NewReach(all, errors)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "The %.0f %% intervals of rdmasim run, each from other checks only, hold %d of %d figures (%.0f %%); their median factor is %.2f. %d figures go beyond those of other checks.\n",
		100*holds, r.Held, len(r.Figures), 100*float64(r.Held)/float64(max(len(r.Figures), 1)), r.Factor, r.Beyond)
	return err
}

// Judge adds to a result how far published figures say that it can be trusted. Of several points
// the least trustworthy decides.
func (r *Reach) Judge(res *experiment.Result, points []experiment.Placed) {
	var worst *experiment.Validity
	for _, p := range points {
		v := r.Says(p.Name, p.Places)
		if v == nil {
			continue
		}
		if worst == nil || cmp.Or(rank(v.Factor, worst.Factor), cmp.Compare(v.Distance, worst.Distance)) > 0 {
			worst = v
		}
	}
	if worst != nil {
		worst.Points = len(points)
		if worst.Uncalibrated = slices.Contains(res.Hypotheses, profile.TimingNotCalibrated); worst.Uncalibrated {
			worst.Factor = 0
		}
	}
	res.Validity = worst
}

// rank compares two factors, of which 0 is the worst.
func rank(a, b float64) int {
	if (a == 0) != (b == 0) {
		return map[bool]int{true: 1, false: -1}[a == 0]
	}
	return cmp.Compare(a, b)
}
