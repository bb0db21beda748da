package calibrate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// LeftOut is a figure as it is predicted by a fit without its check.
type LeftOut struct {
	ID        string  `json:"id"`
	Name      string  `json:"figure"`
	Expected  float64 `json:"expected"`
	Predicted float64 `json:"predicted"`
	// Error is the distance in percent of the published value; of a figure whose published value is
	// 0, in its unit.
	Error  float64 `json:"error_percent"`
	Unit   string  `json:"unit"`
	Within bool    `json:"within_tolerance"`
	// Kind is that of the whole fit: a figure that values were fitted to, or one that is predicted
	// in any case.
	Kind string `json:"kind"`
	// Refitted are the values that the figure's check decides, and what they are without it.
	Refitted []string `json:"refitted,omitempty"`
}

// NotPredicted is a figure of which nothing is left to predict it from: what it decides is no value
// that a fit finds.
type NotPredicted struct {
	ID     string `json:"id"`
	Name   string `json:"figure"`
	Reason string `json:"reason"`
}

// LeaveOneOut is the table of errors of figures, each predicted without its check.
type LeaveOneOut struct {
	Version  string            `json:"version"`
	Seed     uint64            `json:"seed"`
	Profiles map[string]string `json:"profiles"` // name to hash
	Runs     int               `json:"runs"`     // different simulations that it rests on
	// Median is that of the errors of all figures that have a published value other than 0, and
	// MedianFitted that of those to which the whole fit fits a value.
	Median       float64        `json:"median_error_percent"`
	MedianFitted float64        `json:"median_error_percent_of_fitted"`
	Within       int            `json:"within_tolerance"`
	Checks       []LeftOut      `json:"checks"`
	NotPredicted []NotPredicted `json:"not_predicted"`
}

// leaveOneOutFile is the table that comes with the program; make leave-one-out writes it.
const leaveOneOutFile = "calibration/leave-one-out.json"

// StoredLeaveOneOut is the table that comes with the program.
func StoredLeaveOneOut() (*LeaveOneOut, error) { return stored[LeaveOneOut](leaveOneOutFile) }

// stored is what a file of JSON that comes with the program holds.
func stored[T any](file string) (*T, error) {
	src, err := fixtures.Read(file)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(src, v); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return v, nil
}

// Current returns an error if profiles have changed since the table was made.
func (r *LeaveOneOut) Current() error {
	var changed []string
	for _, name := range keysOf(r.Profiles) {
		if h, err := profileHash(name); err != nil || h != r.Profiles[name] {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("the table was made with other values of %s: run make leave-one-out", strings.Join(changed, ", "))
}

// LeaveOut fits without each check in turn, and predicts it. Runs are kept in the folder cache,
// unless it is "", so that one that is interrupted goes on where it was.
func LeaveOut(ctx context.Context, seed uint64, only []int, cache string, progress func(done, total int, what string)) (*LeaveOneOut, error) {
	c, err := LoadCalibration(ctx)
	if err != nil {
		return nil, err
	}
	numbers := c.numbers()
	for _, n := range only {
		if !slices.Contains(numbers, n) {
			return nil, experiment.Usagef("there is no check %d with figures; checks are %v", n, numbers)
		}
	}
	if len(only) > 0 {
		numbers = only
	}
	known, err := openRunCache(ctx, cache)
	if err != nil {
		return nil, err
	}
	defer known.close()
	e := newEvaluator(c, seed, known)
	rep := &LeaveOneOut{Version: experiment.Version(), Seed: seed, Profiles: map[string]string{}, Checks: []LeftOut{}, NotPredicted: []NotPredicted{}}
	if progress != nil {
		progress(0, len(numbers), "the whole fit")
	}
	whole, _, err := e.fitAll(ctx)
	if err != nil {
		return nil, err
	}
	for i, n := range numbers {
		if progress != nil {
			progress(i, len(numbers), fmt.Sprintf("without check %d", n))
		}
		if err := e.leaveOut(ctx, whole, n, rep); err != nil {
			return nil, err
		}
	}
	if progress != nil {
		progress(len(numbers), len(numbers), "done")
	}
	rep.Runs = len(e.asked)
	for name := range e.used {
		if rep.Profiles[name], err = profileHash(name); err != nil {
			return nil, err
		}
	}
	rep.summarize()
	return rep, known.unkept()
}

func (e *evaluator) leaveOut(ctx context.Context, whole []setting, n int, rep *LeaveOneOut) error {
	set, refitted, err := e.refit(ctx, whole, n)
	if err != nil {
		return fmt.Errorf("without check %d: %w", n, err)
	}
	ids := e.c.of(n)
	got, err := e.figures(ctx, ids, set)
	if err != nil {
		return fmt.Errorf("without check %d: %w", n, err)
	}
	for i, id := range ids {
		f := e.c.at[id].figure()
		if f.Kind == "fitted" && !slices.ContainsFunc(set, func(s setting) bool { return slices.Contains(s.p.Figures, id) }) {
			rep.NotPredicted = append(rep.NotPredicted, NotPredicted{id, f.Name, f.Fitted + " was read off it, and is not fitted"})
			continue
		}
		if f.Kind == "described" {
			rep.NotPredicted = append(rep.NotPredicted, NotPredicted{id, f.Name, "a rule of the model was chosen with it in view"})
			continue
		}
		rep.Checks = append(rep.Checks, LeftOut{ID: id, Name: f.Name, Expected: f.Expected, Predicted: got[i], Error: deviation(f.Expected, got[i]),
			Unit: f.Unit, Within: within(got[i], f.Expected, f.Tolerance), Kind: f.Kind, Refitted: refitted})
	}
	return nil
}

func deviation(expected, got float64) float64 {
	d := math.Abs(got - expected)
	if expected != 0 {
		d *= 100 / math.Abs(expected)
	}
	return table.Rounded(d)
}

func (r *LeaveOneOut) summarize() {
	var all, fitted []float64
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Within {
			r.Within++
		}
		if c.Expected == 0 {
			continue
		}
		if all = append(all, c.Error); c.Kind == "fitted" {
			fitted = append(fitted, c.Error)
		}
	}
	r.Median, r.MedianFitted = median(all), median(fitted)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return table.Rounded((v[(len(v)-1)/2] + v[len(v)/2]) / 2)
}

// Write prints the report in one of Formats.
func (r *LeaveOneOut) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return table.WriteJSON(w, r)
	case "csv":
		rows := [][]string{{"id", "figure", "expected", "predicted", "error_percent", "unit", "within_tolerance", "kind"}}
		for _, c := range r.Checks {
			rows = append(rows, []string{c.ID, c.Name, table.Text(c.Expected), table.Text(c.Predicted), table.Text(c.Error), c.Unit, strconv.FormatBool(c.Within), c.Kind})
		}
		return writeCells(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "check\tfigure\tpublished\tpredicted\tunit\terror\tin the whole fit")
	for _, c := range r.Checks {
		e := table.Short(c.Error) + " %"
		if c.Expected == 0 {
			e = table.Short(c.Error) + " " + c.Unit
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Name, table.Short(c.Expected), table.Short(c.Predicted), c.Unit, e, c.Kind)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, n := range r.NotPredicted {
		fmt.Fprintf(w, "%s: %s: not predicted: %s\n", n.ID, n.Name, n.Reason)
	}
	_, err := fmt.Fprintf(w, "%s, each predicted without its check: median error %s %%, of those that values are fitted to %s %%; %d within tolerance. rdmasim %s, seed %d\n",
		plain.Count(len(r.Checks), "figure"), table.Short(r.Median), table.Short(r.MedianFitted), r.Within, r.Version, r.Seed)
	return err
}
