// Package experiment answers what-if questions: named experiments, scenarios that
// are data, sweeps, and the comparison with published figures.
package experiment

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Row is a flat object with its keys in the order in which they were set. Units
// are in the keys: rate_mps is million messages per second, _ns nanoseconds.
type Row struct {
	keys []string
	vals map[string]any
}

// Set puts a value: a string, a bool, an int, a uint64, a float64, or nil for none.
func (r *Row) Set(key string, v any) *Row {
	if r.vals == nil {
		r.vals = map[string]any{}
	}
	if _, ok := r.vals[key]; !ok {
		r.keys = append(r.keys, key)
	}
	r.vals[key] = v
	return r
}

// Get is the value of key, nil when the row has none.
func (r *Row) Get(key string) any { return r.vals[key] }

// Float is the value of key as a number.
func (r *Row) Float(key string) (float64, bool) {
	switch v := r.vals[key].(type) {
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Keys are the keys in order.
func (r *Row) Keys() []string { return r.keys }

// MarshalJSON keeps the order of the keys.
func (r Row) MarshalJSON() ([]byte, error) { return r.encode(rounded) }

// encode writes the row as JSON, its numbers with a point as number does.
func (r *Row) encode(number func(float64) json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range r.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		kb, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		v := r.vals[k]
		if f, ok := v.(float64); ok {
			v = number(f)
		}
		vb, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k, err)
		}
		b.Write(kb)
		b.WriteByte(':')
		b.Write(vb)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// rounded keeps six significant digits; more would suggest a precision that no result has.
func rounded(f float64) json.RawMessage {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.RawMessage("null")
	}
	return json.RawMessage(strconv.FormatFloat(significant(f), 'f', -1, 64))
}

func significant(f float64) float64 {
	s := strconv.FormatFloat(f, 'g', 6, 64)
	v, _ := strconv.ParseFloat(s, 64)
	return v
}

// Result is what a run leaves.
type Result struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Profile     string   `json:"profile"`
	ProfileHash string   `json:"profile_hash"`
	Seed        uint64   `json:"seed"`
	Hypotheses  []string `json:"hypotheses"`
	Complete    bool     `json:"complete"`
	Rows        []Row    `json:"rows"`
	Notes       []string `json:"notes"`
	// Faults are what rules of faults did, of which a note tells too.
	Faults []FaultCount `json:"-"`
	// Sensitivity is there if it was asked for.
	Sensitivity *Sensitivity `json:"sensitivity,omitempty"`
	// Seeds is how many seeds the numbers are means of, from Seed up; 0: one.
	Seeds int `json:"-"`
	// Plots are drawn when an output folder is asked for.
	Plots []Plot `json:"-"`
	// Drawings are pictures that are no plots of rows; they too need a folder.
	Drawings []Drawing `json:"-"`
	// Columns are those of the table for people; all when empty.
	Columns []string `json:"-"`
	// More are columns of a second table.
	More More `json:"-"`
}

// Drawing is a picture. File has no extension; Draw makes it as SVG, with a caption.
type Drawing struct {
	File string
	Draw func(caption string) ([]byte, error)
}

// More is a second table of rows of some kinds: columns that say which row it is, and more of them.
type More struct {
	Kinds, Lead, Columns []string
}

// Note adds a line that every format carries, once.
func (r *Result) Note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(r.Notes, n) {
		r.Notes = append(r.Notes, n)
	}
}

// Formats are the values of --format.
var Formats = []string{"table", "json", "csv"}

// Write prints the result in one of Formats.
func (r *Result) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return writeJSON(w, r)
	case "csv":
		return r.writeCSV(w)
	}
	return r.writeTable(w)
}

// writeJSON writes what programs read, indented.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(plain.NewWriter(w))
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (r *Result) allKeys() []string {
	var keys []string
	seen := map[string]bool{}
	for i := range r.Rows {
		for _, k := range r.Rows[i].keys {
			if !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	return keys
}

func (r *Result) writeCSV(w io.Writer) error {
	keys := r.allKeys()
	c := csv.NewWriter(w)
	rec := make([]string, len(keys))
	for i, k := range keys {
		rec[i] = plain.Cell(k)
	}
	if err := c.Write(rec); err != nil {
		return err
	}
	for i := range r.Rows {
		for j, k := range keys {
			rec[j] = plain.Cell(text(r.Rows[i].vals[k]))
		}
		if err := c.Write(rec); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // no figure, as in JSON
			return ""
		}
		return strconv.FormatFloat(significant(v), 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// short is for tables: four significant digits.
func short(v any) string {
	f, ok := v.(float64)
	if !ok {
		return plain.Line(text(v))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	s := strconv.FormatFloat(f, 'g', 4, 64)
	g, _ := strconv.ParseFloat(s, 64)
	return strconv.FormatFloat(g, 'f', -1, 64)
}

func (r *Result) writeTable(w io.Writer) error {
	keys := r.Columns
	if len(keys) == 0 {
		keys = r.allKeys()
	}
	for _, rows := range kinds(r.Rows) {
		if err := writeRows(w, keys, rows); err != nil {
			return err
		}
		fmt.Fprintln(w)
		if kind, _ := kindOf(rows).(string); slices.Contains(r.More.Kinds, kind) {
			if err := writeRows(w, slices.Concat(r.More.Lead, r.More.Columns), rows); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, wrap(n, 100))
	}
	if r.Sensitivity != nil {
		if err := r.Sensitivity.Write(w); err != nil {
			return err
		}
	}
	state := ""
	if !r.Complete {
		state = ", INCOMPLETE"
	}
	_, err := fmt.Fprintf(w, "rdmasim %s, profile %s (%s), %s%s; %s\n", r.Version, r.Profile, r.ProfileHash, r.seeds(), state, trust(r.Hypotheses))
	return err
}

// trust is what results say of themselves: that timing is not calibrated, where it is not, and the hypotheses.
func trust(hypotheses []string) string {
	rest := slices.DeleteFunc(slices.Clone(hypotheses), func(h string) bool { return h == profile.TimingNotCalibrated })
	s := "hypotheses on: " + cmp.Or(strings.Join(rest, ", "), "none")
	if len(rest) < len(hypotheses) {
		s = profile.TimingNotCalibrated + "; " + s
	}
	return s
}

// kindOf is the kind of rows of one kind.
func kindOf(rows []Row) any {
	if len(rows) == 0 {
		return nil
	}
	return rows[0].vals["row"]
}

// kinds groups rows by the kind in their key "row", in the order in which kinds come:
// loads, threads and counters have no column in common worth a common table. There is
// at least one group.
func kinds(rows []Row) [][]Row {
	groups := [][]Row{nil}
	at := map[any]int{}
	for _, row := range rows {
		kind := row.vals["row"]
		i, ok := at[kind]
		if !ok {
			i = len(at)
			at[kind] = i
			if i > 0 {
				groups = append(groups, nil)
			}
		}
		groups[i] = append(groups[i], row)
	}
	return groups
}

// writeRows prints the columns that some row has, each once; all when there are no rows.
func writeRows(w io.Writer, keys []string, rows []Row) error {
	seen := map[string]bool{}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
		again := seen[k] // a swept key may be a column of its own
		seen[k] = true
		return again || len(rows) > 0 && !slices.ContainsFunc(rows, func(row Row) bool { _, ok := row.vals[k]; return ok })
	})
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range headings(keys) {
		fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
	}
	for i := range rows {
		for _, k := range keys {
			v, ok := rows[i].vals[k]
			s := cell(k, v)
			if ok && v == nil {
				s = "-"
			}
			fmt.Fprint(tw, s, "\t")
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// cell is a value of a table: percentages with one decimal, numbers with four digits.
func cell(key string, v any) string {
	if f, ok := v.(float64); ok && strings.HasSuffix(key, "_percent") && !math.IsNaN(f) {
		return strings.Replace(strconv.FormatFloat(f, 'f', 1, 64), "-0.0", "0.0", 1)
	}
	return short(v)
}

// headings stacks the words of long keys, so that columns stay narrow: loss_page_percent
// becomes loss, page, % on three lines.
func headings(keys []string) [][]string {
	words := make([][]string, len(keys))
	depth := 1
	for i, k := range keys {
		words[i] = []string{k}
		if len(k) > 10 {
			words[i] = strings.Split(strings.Replace(k, "_percent", "_%", 1), "_")
		}
		depth = max(depth, len(words[i]))
	}
	lines := make([][]string, depth)
	for d := range lines {
		lines[d] = make([]string, len(keys))
		for i, w := range words {
			if at := d - (depth - len(w)); at >= 0 {
				lines[d][i] = w[at]
			}
		}
	}
	return lines
}

// wrap breaks a note into lines, the later ones indented.
func wrap(s string, width int) string {
	var b strings.Builder
	col := 0
	for i, word := range strings.Fields(s) {
		if i > 0 {
			if col+1+len(word) > width {
				b.WriteString("\n  ")
				col = 2
			} else {
				b.WriteByte(' ')
				col++
			}
		}
		b.WriteString(word)
		col += len(word)
	}
	return b.String()
}
