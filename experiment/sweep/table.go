package sweep

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/sweep/grid"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// kind is the type of a column in files that have types.
type kind int

const (
	nothing kind = iota // no row has a value
	truth
	integer
	real
	words
)

// column is a column of a table in a file.
type column struct {
	key  string // of rows
	name string // in files, with the unit
	kind kind
	// number turns the text of a swept key into a number.
	number func(string) any
}

// rowSet is rows with the columns that they have together. Rows are read again each time: they may
// be many.
type rowSet struct {
	columns []*column
	at      map[string]*column
	rowsOf  func(*cell) []table.Row
	cells   func() iter.Seq2[cell, error]
}

func newRowSet(g *grid.Grid, rowsOf func(*cell) []table.Row, cells func() iter.Seq2[cell, error]) rowSet {
	t := rowSet{at: map[string]*column{}, rowsOf: rowsOf, cells: cells}
	for i := range g.Axes {
		for k, key := range g.Axes[i].Keys {
			c := t.column(key)
			if suffix, number, ok := g.Axes[i].Numbers(k); ok {
				c.name, c.number = key+suffix, number
			}
		}
	}
	return t
}

func (t *rowSet) column(key string) *column {
	c := t.at[key]
	if c == nil {
		c = &column{key: key, name: key}
		t.at[key] = c
		t.columns = append(t.columns, c)
	}
	return c
}

// value is what a row has in a column.
func (c *column) value(row *table.Row) any {
	v := row.Get(c.key)
	if s, ok := v.(string); ok && c.number != nil {
		return c.number(s)
	}
	if f, ok := v.(float64); ok {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return table.Rounded(f)
	}
	return v
}

// learn adds the columns of rows.
func (t *rowSet) learn(rows []table.Row) {
	for i := range rows {
		for _, k := range rows[i].Keys() {
			c := t.column(k)
			c.kind = c.kind.with(c.value(&rows[i]))
		}
	}
}

// with is the kind of a column that has a value too.
func (k kind) with(v any) kind {
	have := nothing
	switch v := v.(type) {
	case string:
		have = words
	case bool:
		have = truth
	case int:
		have = integer
	case uint64:
		if have = integer; v > math.MaxInt64 {
			have = real
		}
	case float64:
		have = real
	}
	switch {
	case k == nothing:
		return have
	case have == nothing || have == k:
		return k
	case min(have, k) == integer && max(have, k) == real:
		return real
	}
	return words
}

// all are the rows.
func (t *rowSet) all() iter.Seq2[*table.Row, error] {
	return func(yield func(*table.Row, error) bool) {
		for c, err := range t.cells() {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, row := range t.rowsOf(&c) {
				if !yield(&row, nil) {
					return
				}
			}
		}
	}
}

// writeCSV writes the rows with a line of names above them.
func (t *rowSet) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	line := make([]string, len(t.columns))
	for i, c := range t.columns {
		line[i] = plain.Cell(c.name)
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for row, err := range t.all() {
		if err != nil {
			return err
		}
		for i, c := range t.columns {
			line[i] = plain.Cell(table.Text(c.value(row)))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// writeJSONL writes an object a line, behind what origin sets. A column that a row lacks is left
// out.
func (t *rowSet) writeJSONL(w io.Writer, origin func(*table.Row)) error {
	for row, err := range t.all() {
		if err != nil {
			return err
		}
		named := t.named(row)
		if origin != nil {
			var full table.Row
			origin(&full)
			named = join(full, &named)
		}
		line, err := json.Marshal(named)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// named is a row with the names of files.
func (t *rowSet) named(row *table.Row) (named table.Row) {
	for _, c := range t.columns {
		if row.Get(c.key) == nil && !slices.Contains(row.Keys(), c.key) {
			continue
		}
		v := c.value(row)
		if s, ok := v.(string); ok {
			v = plain.Line(s)
		}
		named.Set(c.name, v)
	}
	return named
}

// names are the columns' names, made distinct.
func (t *rowSet) distinct() []string {
	seen := map[string]bool{}
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		name := strings.ReplaceAll(c.name, ",", "_")
		for seen[name] {
			name += "_"
		}
		seen[name] = true
		names[i] = name
	}
	return names
}

// writeJSONL writes the answer as lines that say what they are from.
func (a *Answer) writeJSONL(w io.Writer) error {
	return a.rows.writeJSONL(w, func(row *table.Row) { a.Result.Origin(row, a.r.Grid.Keys()) })
}

// Records are the rows of the answer with the names that files have, as --against compares them,
// and its swept columns; none if the answer is not whole.
func (a *Answer) Records() (rows []table.Row, swept []string, err error) {
	if !a.Whole {
		return nil, nil, nil
	}
	for row, err := range a.rows.all() {
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, a.rows.named(row))
	}
	for i := range a.r.Grid.Axes {
		for _, key := range a.r.Grid.Axes[i].Keys {
			swept = append(swept, key, a.rows.at[key].name)
		}
	}
	return rows, swept, nil
}
