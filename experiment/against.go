package experiment

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Comparison is the difference between a result and an earlier one.
type Comparison struct {
	// Old is the file of the earlier run. Differ names what the two runs do not have in common,
	// such as the version.
	Old    string   `json:"old"`
	Differ []string `json:"differ"`
	// Changes are the figures and words that differ, and Same is how many do not.
	Changes []Change `json:"changes"`
	Same    int      `json:"same"`
	// Gone are rows that only the earlier run has, New those that only this one has.
	Gone []string `json:"gone"`
	New  []string `json:"new"`

	shown  map[string]bool // columns of the table for people
	hidden []string        // kinds of rows that it leaves out
	same   int             // values of that table that do not differ
}

// Change is a value that differs between two runs. Old and New are numbers, or words that a run
// finds.
type Change struct {
	Row    string `json:"row"`
	Column string `json:"column"`
	Old    any    `json:"old"`
	New    any    `json:"new"`
	// Percent is the change in percent of the old number; nil for words, and from 0.
	Percent *float64 `json:"change_percent"`
	// OldInterval and NewInterval are half the widths of the 95 % intervals, nil where none is
	// known.
	OldInterval *float64 `json:"old_interval"`
	NewInterval *float64 `json:"new_interval"`
	// Beyond says whether the values are apart by more than both intervals together: yes, no, or
	// unknown where one has none.
	Beyond string `json:"beyond"`
	kind   string
}

// Values of Change.Beyond.
const (
	beyond  = "yes"
	within  = "no"
	unknown = "unknown"
)

// changeSuffix ends the name of a column that --require sees of a comparison.
const changeSuffix = "_change_percent"

// compared is a row with what tells it from others.
type compared struct {
	row      *table.Row
	id, kind string
}

// identified gives rows names: their words that are no findings, their settings, and a number where
// that is not enough.
func identified(rows []table.Row, keys []string) (all []compared) {
	times := map[string]int{}
	for i := range rows {
		row := &rows[i]
		var words []string
		for _, k := range row.Keys() {
			v := row.Get(k)
			if k == "row" || v == nil || !slices.Contains(keys, k) && (isFound(row, k) || !isWord(v)) {
				continue
			}
			if k == "name" {
				words = append(words, table.Text(v))
				continue
			}
			words = append(words, k+"="+table.Text(v))
		}
		kind, _ := row.Get("row").(string)
		id := strings.Join(append([]string{kind}, words...), " ")
		times[id]++
		if n := times[id]; n > 1 {
			id += fmt.Sprintf(" (%d)", n)
		}
		all = append(all, compared{row, strings.TrimSpace(id), kind})
	}
	return all
}

func isWord(v any) bool {
	switch v.(type) {
	case string, bool:
		return true
	}
	return false
}

// isFound reports whether a word of a row does not tell which row it is: the rows of a load have a
// name for that.
func isFound(row *table.Row, key string) bool {
	return IsFinding(key) || key != "name" && key != "row" && row.Get("row") != nil && row.Get("name") != nil
}

// interval is half the width of the 95 % interval of a number, as files have it; nil where none is
// known.
func interval(row *table.Row, key string) *float64 {
	half, ok := row.Half(key)
	if !ok {
		return nil
	}
	half = table.Rounded(half)
	return &half
}

// isFigure reports whether a column is compared: the intervals of others are not.
func isFigure(key string, keys []string) bool {
	return !table.IsInterval(key) && !strings.HasSuffix(key, "_seeds") && key != "seeds" && !slices.Contains(keys, key)
}

// keys are columns that tell rows of the result apart, beside its words: those that its pictures
// are drawn against.
func (r *Result) keys() (all []string) {
	for i := range r.Plots {
		p := &r.Plots[i]
		all = append(append(append(all, p.X, p.Series), p.With...), p.By...)
		for k := range p.Only {
			all = append(all, k)
		}
	}
	return append(all, "thread")
}

// Compare compares the result with records. rows nil means the result's own rows; the rows of a
// sweep have the column names of files, and keys are its swept columns. The error is a usage error:
// the records are of another experiment, or have no row in common with the result.
func (r *Result) Compare(old *Records, rows []table.Row, keys []string) error {
	if old.Name != "" && old.Name != r.Name {
		return Usagef("--against: %s has results of %s, and this run is one of %s", old.File, old.Name, r.Name)
	}
	if rows == nil {
		rows = r.Rows
	}
	keys = append(keys, r.keys()...)
	c := &Comparison{Old: old.File, Differ: old.differences(r), Changes: []Change{}, Gone: []string{}, New: []string{}, shown: map[string]bool{}, hidden: slices.Concat(r.Hidden, r.Aside)}
	for _, k := range slices.Concat(r.Columns, r.More.Columns) {
		c.shown[k] = true
	}
	before := map[string]*table.Row{}
	var order []string
	for _, o := range identified(old.Rows, keys) {
		before[o.id] = o.row
		order = append(order, o.id)
	}
	common := 0
	for i, n := range identified(rows, keys) {
		o := before[n.id]
		if o == nil {
			c.New = append(c.New, n.id)
			continue
		}
		delete(before, n.id)
		common++
		c.compare(n, o, keys)
		r.changed(i, o, &rows[i])
	}
	for _, id := range order {
		if before[id] != nil {
			c.Gone = append(c.Gone, id)
		}
	}
	if common == 0 && len(old.Rows) > 0 && len(rows) > 0 {
		return Usagef("--against: %s has no row in common with this run: it has %s, and this run has %s", old.File, some(c.Gone), some(c.New))
	}
	r.Against = c
	return nil
}

// compare adds the changes of a row.
func (c *Comparison) compare(n compared, o *table.Row, keys []string) {
	for _, k := range n.row.Keys() {
		if is := n.row.Get(k); isWord(is) {
			was := o.Get(k)
			if slices.Contains(keys, k) || !isFound(n.row, k) || !isWord(was) {
				continue
			}
			if was == is {
				c.equal(n.kind, k)
			} else {
				c.Changes = append(c.Changes, Change{Row: n.id, Column: k, Old: was, New: is, Beyond: unknown, kind: n.kind})
			}
			continue
		}
		was, okOld := o.Float(k)
		is, okNew := n.row.Float(k)
		if !okOld || !okNew || !isFigure(k, keys) || math.IsNaN(was) || math.IsNaN(is) {
			continue
		}
		was, is = table.Rounded(was), table.Rounded(is)
		if was == is {
			c.equal(n.kind, k)
			continue
		}
		ch := Change{Row: n.id, Column: k, Old: was, New: is, OldInterval: interval(o, k), NewInterval: interval(n.row, k), Beyond: unknown, kind: n.kind}
		if was != 0 {
			p := table.Rounded(100 * (is - was) / math.Abs(was))
			ch.Percent = &p
		}
		if ch.OldInterval != nil && ch.NewInterval != nil {
			if ch.Beyond = within; math.Abs(is-was) > *ch.OldInterval+*ch.NewInterval {
				ch.Beyond = beyond
			}
		}
		c.Changes = append(c.Changes, ch)
	}
}

// changed keeps for --require by how much the numbers of a row of the result have changed.
func (r *Result) changed(i int, o, n *table.Row) {
	if r.changes == nil {
		r.changes = map[int]*table.Row{}
	}
	var row table.Row
	for _, k := range []string{"row", "name"} {
		row.Set(k, n.Get(k))
	}
	for _, k := range n.Keys() {
		was, okOld := o.Float(k)
		is, okNew := n.Float(k)
		was, is = table.Rounded(was), table.Rounded(is)
		if okOld && okNew && was != 0 {
			row.Set(k+changeSuffix, 100*(is-was)/math.Abs(was))
		} else if okOld && okNew && is == 0 {
			row.Set(k+changeSuffix, 0.0)
		}
	}
	r.changes[i] = &row
}

// equal counts a value that does not differ.
func (c *Comparison) equal(kind, column string) {
	if c.Same++; c.visible(kind, column) {
		c.same++
	}
}

// visible reports whether the table for people has a column of a kind of rows.
func (c *Comparison) visible(kind, column string) bool {
	return !slices.Contains(c.hidden, kind) && (len(c.shown) == 0 || c.shown[column])
}

// negligible is a change in percent that a table does not show, unless it is beyond the intervals.
const negligible = 0.1

// Shown returns the changes for a table: those in its columns and rows, without trifles. The total
// of a single load is that load, and is left out.
func (c *Comparison) Shown() (all []Change) {
	loads := map[string]bool{}
	for _, ch := range c.Changes {
		same := fmt.Sprint(ch.Column, ch.Old, ch.New)
		switch {
		case !c.visible(ch.kind, ch.Column):
		case ch.kind == "total" && loads[same]:
		case ch.Percent != nil && math.Abs(*ch.Percent) < negligible && ch.Beyond != beyond:
		default:
			all = append(all, ch)
		}
		loads[same] = loads[same] || ch.kind == "traffic"
	}
	return all
}

// Summary returns the comparison in sentences, for the changes that Shown returns.
func (c *Comparison) Summary() (lines []string) {
	differ, apart, unsure := 0, 0, 0
	for _, ch := range c.Changes {
		if !c.visible(ch.kind, ch.Column) {
			continue
		}
		differ++
		switch ch.Beyond {
		case beyond:
			apart++
		case unknown:
			unsure++
		}
	}
	head := fmt.Sprintf("Against %s: of %s %d differ, %d of them by more than both 95 %% intervals together", c.Old, plain.Count(differ+c.same, "value"), differ, apart)
	if unsure > 0 {
		head += fmt.Sprintf("; %d have no interval", unsure)
	}
	if head += "."; differ == 0 {
		head = fmt.Sprintf("Against %s: nothing has changed in %s.", c.Old, plain.Count(c.same, "value"))
	}
	lines = append(lines, head)
	for _, d := range c.Differ {
		lines = append(lines, fmt.Sprintf("%s is not of the same: %s.", c.Old, d))
	}
	if len(c.Gone) > 0 {
		lines = append(lines, fmt.Sprintf("Only the earlier run has %s.", some(c.Gone)))
	}
	if len(c.New) > 0 {
		lines = append(lines, fmt.Sprintf("Only this run has %s.", some(c.New)))
	}
	return lines
}

// Columns returns the headings of Cells.
func (c *Comparison) Columns() []string {
	return []string{"row", "column", "old", "new", "change_percent", "beyond"}
}

// Cells returns the change as a line of a table.
func (ch *Change) Cells() []string {
	cell := func(v any, half *float64) string {
		s := table.Short(v)
		if half != nil && *half > 0 {
			s += " ±" + table.Short(*half)
		}
		return s
	}
	percent := ""
	if ch.Percent != nil {
		percent = fmt.Sprintf("%+.1f", *ch.Percent)
	}
	return []string{plain.Line(ch.Row), plain.Line(ch.Column), cell(ch.Old, ch.OldInterval), cell(ch.New, ch.NewInterval), percent, ch.Beyond}
}

// write prints the comparison.
func (c *Comparison) write(w io.Writer) error {
	shown := c.Shown()
	var rows []table.Row
	for i := range shown {
		var row table.Row
		for k, cell := range shown[i].Cells() {
			row.Set(c.Columns()[k], cell)
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		if err := table.WriteRows(w, c.Columns(), rows); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	lines := c.Summary()
	if n := len(c.Changes) - len(shown); n > 0 {
		lines = append(lines, fmt.Sprintf("--format json shows %s more.", plain.Count(n, "change")))
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, table.Wrap(plain.Line(l), 100)); err != nil {
			return err
		}
	}
	return nil
}

// some are the first names, and how many more there are.
func some(names []string) string {
	const most = 3
	if len(names) == 0 {
		return "none"
	}
	if len(names) <= most {
		return strings.Join(names, "; ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], "; "), len(names)-most)
}
