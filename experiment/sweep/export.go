package sweep

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep/grid"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// ReadEntry reads a result of a store.
func ReadEntry(e *store.Entry) (*Kept, error) {
	text, err := e.Read()
	if err != nil {
		return nil, err
	}
	r, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Path, err)
	}
	return (*Kept)(r), nil
}

// Kept is a result in a store.
type Kept result

// CommandLine is a command line that gives the result.
func (k *Kept) CommandLine() string { return shellLine(k.Command) }

// settings are what the command line sets.
func (k *Kept) settings() []experiment.Setting {
	var out []experiment.Setting
	for i := 0; i+1 < len(k.Command); i++ {
		if key, value, ok := strings.Cut(k.Command[i+1], "="); ok && k.Command[i] == "--set" {
			out = append(out, experiment.Setting{Key: key, Value: value})
		}
	}
	return out
}

// exports are the formats of Table.Write.
var exports = []string{"jsonl", "csv", "parquet"}

// ExportFormat reports whether a table can be written so.
func ExportFormat(format string) bool { return slices.Contains(exports, format) }

// Table is a table of results.
type Table struct{ t rowSet }

// Write writes it as jsonl, csv or parquet.
func (t *Table) Write(w io.Writer, format string) error {
	switch format {
	case "csv":
		return t.t.writeCSV(w)
	case "parquet":
		return t.t.writeParquet(w)
	}
	return t.t.writeJSONL(w, nil)
}

// Export is the table of the results in a folder: of one version of the model, or of all when that
// is "", and of one experiment, or of all. n is the number of results.
func Export(dir, model, name string) (t *Table, n int, err error) {
	kept := func() iter.Seq2[*Kept, error] {
		return func(yield func(*Kept, error) bool) {
			for e, err := range store.Entries(dir) {
				if err != nil {
					yield(nil, err)
					return
				}
				if model != "" && !e.Of(model) {
					continue
				}
				k, err := ReadEntry(&e)
				if errors.Is(err, fs.ErrNotExist) {
					continue // damaged, or removed meanwhile
				}
				if (err != nil || name == "" || k.Name == name) && !yield(k, err) {
					return
				}
			}
		}
	}
	axes, n, err := sweptKeys(kept())
	if err != nil {
		return nil, 0, err
	}
	t = &Table{newRowSet(&grid.Grid{Axes: axes}, exportRows, func() iter.Seq2[cell, error] {
		return func(yield func(cell, error) bool) {
			for k, err := range kept() {
				c := cell{}
				if err == nil {
					c = cell{settings: k.settings(), runs: []*result{(*result)(k)}}
				}
				if !yield(c, err) {
					return
				}
			}
		}
	})}
	for c, err := range t.t.cells() {
		if err != nil {
			return nil, 0, err
		}
		t.t.learn(exportRows(&c))
	}
	return t, n, nil
}

// sweptKeys are the keys that command lines set, with their values.
func sweptKeys(kept iter.Seq2[*Kept, error]) (axes []grid.Axis, n int, err error) {
	at := map[string]int{}
	seen := map[experiment.Setting]bool{}
	for k, err := range kept {
		if err != nil {
			return nil, 0, err
		}
		n++
		for _, s := range k.settings() {
			if seen[s] {
				continue
			}
			seen[s] = true
			i, ok := at[s.Key]
			if !ok {
				i = len(axes)
				at[s.Key] = i
				axes = append(axes, grid.Axis{Keys: []string{s.Key}})
			}
			axes[i].Values = append(axes[i].Values, []string{s.Value})
		}
	}
	return axes, n, nil
}

func exportRows(c *cell) []table.Row {
	r := c.runs[0]
	var rows []table.Row
	for i := range r.rows {
		head := prefixed(c.settings, nil)
		head.Set("experiment", r.Name).Set("profile", r.Profile).Set("profile_hash", r.ProfileHash).Set("seed", r.Seed)
		rows = append(rows, join(head, &r.rows[i]))
	}
	return rows
}
