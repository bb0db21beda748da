package calibrate

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// CalibrationReport is what calibrate prints: the values that it fitted, with the figures that they
// were fitted to.
type CalibrationReport struct {
	Version    string         `json:"version"`
	Seed       uint64         `json:"seed"`
	Runs       int            `json:"runs"` // different simulations that it rests on
	Parameters []Fit          `json:"parameters"`
	Figures    []FittedFigure `json:"figures"`
}

// Calibrate fits all values to their figures. Runs are kept in the folder cache, unless it is "";
// with a report the error is that some could not be kept.
func Calibrate(ctx context.Context, seed uint64, cache string) (*CalibrationReport, error) {
	c, err := LoadCalibration(ctx)
	if err != nil {
		return nil, err
	}
	known, err := openRunCache(ctx, cache)
	if err != nil {
		return nil, err
	}
	defer known.close()
	e := newEvaluator(c, seed, known)
	set, fits, err := e.fitAll(ctx)
	if err != nil {
		return nil, err
	}
	rep := &CalibrationReport{Version: experiment.Version(), Seed: seed, Parameters: fits}
	var ids []string
	for _, f := range fits {
		for _, id := range f.Figures {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	got, err := e.figures(ctx, ids, set)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		f := c.at[id].figure()
		rep.Figures = append(rep.Figures, FittedFigure{id, f.Name, f.Expected, got[i], f.Unit, f.Tolerance, within(got[i], f.Expected, f.Tolerance)})
	}
	rep.Runs = len(e.asked)
	return rep, known.unkept()
}

// Pass reports whether every figure that was fitted to is within its tolerance.
func (r *CalibrationReport) Pass() bool {
	return !slices.ContainsFunc(r.Figures, func(f FittedFigure) bool { return !f.Pass })
}

// Write prints the report in one of Formats.
func (r *CalibrationReport) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return table.WriteJSON(w, r)
	case "csv":
		rows := [][]string{{"parameter", "low", "high", "stored", "fitted", "figures"}}
		for _, f := range r.Parameters {
			rows = append(rows, []string{f.Parameter, f.Low, f.High, f.Stored, f.Value, strings.Join(f.Figures, " ")})
		}
		return writeCells(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "parameter\tlow\thigh\tstored\tfitted\tfigures")
	for _, f := range r.Parameters {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Parameter, f.Low, f.High, f.Stored, f.Value, strings.Join(f.Figures, " "))
	}
	fmt.Fprintln(tw, "\nfigure\tname\tpublished\tours\tunit\ttolerance")
	for _, f := range r.Figures {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", f.ID, f.Name, table.Short(f.Expected), table.Short(f.Got), f.Unit, f.Tolerance)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s fitted to %s in %s. rdmasim %s, seed %d\n", plain.Count(len(r.Parameters), "value"),
		plain.Count(len(r.Figures), "figure"), plain.Count(r.Runs, "run"), r.Version, r.Seed)
	return err
}

// writeCells writes CSV.
func writeCells(w io.Writer, rows [][]string) error {
	c := csv.NewWriter(w)
	var err error
	for _, cells := range rows {
		for i := range cells {
			cells[i] = plain.Cell(cells[i])
		}
		err = errors.Join(err, c.Write(cells))
	}
	c.Flush()
	return errors.Join(err, c.Error())
}
