package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Write prints the answer as table, json, csv or jsonl.
func (a *Answer) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return a.writeJSON(w)
	case "csv":
		return a.rows.writeCSV(w)
	case "jsonl":
		return a.writeJSONL(w)
	}
	return a.Result.Write(w, "table")
}

// writeJSON writes the answer as a run writes its result, row by row.
func (a *Answer) writeJSON(w io.Writer) error {
	if a.Whole {
		return a.Result.Write(w, "json")
	}
	w = plain.NewWriter(w)
	var frame bytes.Buffer
	if err := table.WriteJSON(&frame, a.Result); err != nil {
		return err
	}
	const empty = `"rows": null`
	head, tail, _ := bytes.Cut(frame.Bytes(), []byte(empty))
	if _, err := w.Write(append(head, `"rows": [`...)); err != nil {
		return err
	}
	sep := "\n"
	for row, err := range a.rows.all() {
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(row, "  ", " ")
		if err != nil {
			return err
		}
		if _, err := w.Write(append([]byte(sep+"  "), text...)); err != nil {
			return err
		}
		sep = ",\n"
	}
	_, err := w.Write(append([]byte("\n ]"), tail...))
	return err
}

// output is a file of an answer.
type output struct {
	ending string
	fill   func(io.Writer) error
}

func (a *Answer) outputs() []output {
	all := []output{{".json", a.writeJSON}, {".csv", a.rows.writeCSV}, {".jsonl", a.writeJSONL}, {".parquet", a.rows.writeParquet}}
	if a.r.Seeds > 1 {
		all = append(all, output{"-runs.csv", a.runs.writeCSV}, output{"-runs.jsonl", func(w io.Writer) error { return a.runs.writeJSONL(w, nil) }}, output{"-runs.parquet", a.runs.writeParquet})
	}
	return all
}

// Endings are those of the files that an answer may have, behind the name of the experiment.
var Endings = []string{".json", ".csv", ".jsonl", ".parquet", "-runs.csv", "-runs.jsonl", "-runs.parquet"}

// WriteFolder writes the answer to a folder, with its pictures, and returns the names of the files
// that are there now. A file that cannot be written does not keep others from their place.
func (a *Answer) WriteFolder(ctx context.Context, dir string) ([]string, error) {
	defer outfile.LockFolder(ctx, dir)()
	var names []string
	var lost []error
	put := func(name string, fill func(io.Writer) error) {
		f, err := outfile.Create(ctx, filepath.Join(dir, name))
		if err == nil {
			err = f.Commit(fill)
		}
		if err == nil {
			names = append(names, name)
		}
		lost = append(lost, err)
	}
	for _, o := range a.outputs() {
		put(a.Result.Name+o.ending, o.fill)
	}
	for _, p := range a.pictures() {
		png, svg, err := p.draw(a.Result.Rows, a.Result.Caption())
		if err != nil {
			continue // no row belongs to it
		}
		for _, f := range []struct {
			ending string
			text   []byte
		}{{".png", png}, {".svg", svg}} {
			put(p.file+f.ending, func(w io.Writer) error { _, err := w.Write(f.text); return err })
		}
	}
	return names, errors.Join(lost...)
}
