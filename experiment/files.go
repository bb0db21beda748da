package experiment

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// CheckWritable returns an error, before a run starts, if path could not be written at its end. It
// creates a folder.
func CheckWritable(ctx context.Context, path string, folder bool) error {
	if folder && !filepath.IsAbs(path) {
		if err := outfile.CheckFolder(); err != nil {
			return Usagef("cannot make the output folder %s: %w", path, err)
		}
	}
	if folder {
		if err := os.MkdirAll(path, 0o755); err != nil {
			if to, lerr := os.Readlink(path); lerr == nil {
				return Usagef("cannot make the output folder: %s is a link to %s, which is not there", path, to)
			}
			return Usagef("cannot make the output folder: %w", err)
		}
		path = filepath.Join(path, ".probe")
	}
	if err := outfile.Check(ctx, path); err != nil {
		return &UsageError{err}
	}
	return nil
}

// writeFile puts what fill writes at path, whole or not at all.
func writeFile(ctx context.Context, path string, fill func(io.Writer) error) error {
	f, err := outfile.Create(ctx, path)
	if err != nil {
		return err
	}
	return f.Commit(fill)
}

func bytesTo(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// Files returns the names that WriteFolder may give to files of a result.
func (x *Experiment) Files() []string {
	names := []string{x.Name + ".json", x.Name + ".csv"}
	plots := x.Plots
	if x.scenario != nil { // those of a sweep
		plots = slices.Concat(ScenarioPlots(x.Name, []string{""}, nil, nil, 1), seriesPlots(x.Name), histogramPlots(x.Name))
		for _, m := range chart.MapKinds {
			for i := range chart.MostMaps {
				plots = append(plots, chart.Plot{File: chart.MapFile(x.Name, m.Name, i+1)})
			}
		}
	}
	for i := range plots {
		names = append(names, plots[i].File+".png", plots[i].File+".svg")
	}
	for _, d := range x.Drawings {
		names = append(names, d+".svg")
	}
	return names
}

// WriteFolder writes the result as JSON and CSV, and its plots as SVG and PNG, to a folder, and
// returns the names of the files that are in place; a file that cannot be written does not stop the
// others. Files of two runs that end at once do not mix.
func (r *Result) WriteFolder(ctx context.Context, dir string) ([]string, error) {
	defer outfile.LockFolder(ctx, dir)()
	var names []string
	var lost []error
	put := func(name string, fill func(io.Writer) error) {
		err := writeFile(ctx, filepath.Join(dir, name), fill)
		if err == nil {
			names = append(names, name)
		}
		lost = append(lost, err)
	}
	for _, f := range []string{"json", "csv"} {
		put(r.Name+"."+f, func(w io.Writer) error { return r.Write(w, f) })
	}
	for _, p := range slices.Concat(r.Plots, r.Inside) {
		png, svg, err := p.Draw(r.Rows, r.Caption())
		if err != nil {
			continue // no row belongs to this plot; the JSON and CSV files have all rows
		}
		put(p.File+".png", bytesTo(png))
		put(p.File+".svg", bytesTo(svg))
	}
	for _, d := range r.Drawings {
		svg, err := d.Draw(r.Caption())
		if err != nil {
			lost = append(lost, err)
			continue
		}
		put(d.File+".svg", bytesTo(svg))
	}
	return names, errors.Join(lost...)
}

// Draw calls f for each picture of the result, as SVG. The error is of a picture that cannot be
// drawn; the others are drawn.
func (r *Result) Draw(f func(title string, svg []byte)) error {
	for _, p := range slices.Concat(r.Plots, r.Inside) {
		if svg, err := p.SVG(r.Rows, r.Caption()); err == nil { // else no row belongs to it
			f(p.Title, svg)
		}
	}
	var lost []error
	for _, d := range r.Drawings {
		svg, err := d.Draw(r.Caption())
		if lost = append(lost, err); err == nil {
			f(d.File, svg)
		}
	}
	return errors.Join(lost...)
}
