package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// WriteJSON writes v as JSON for programs: indented, and without characters that would harm a
// terminal.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(plain.NewWriter(w))
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Text is a value as CSV files have it: six significant digits of a number, nothing for nil or what
// is no number.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // no figure, as in JSON
			return ""
		}
		return strconv.FormatFloat(Rounded(v), 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// Short is a value as tables have it: four significant digits of a number, in one line.
func Short(v any) string {
	f, ok := v.(float64)
	if !ok {
		return plain.Line(Text(v))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	s := strconv.FormatFloat(f, 'g', 4, 64)
	g, _ := strconv.ParseFloat(s, 64)
	return strconv.FormatFloat(g, 'f', -1, 64)
}

// KindOf is the kind of rows of one kind.
func KindOf(rows []Row) any {
	if len(rows) == 0 {
		return nil
	}
	return rows[0].vals["row"]
}

// Kinds groups rows by the kind in their key "row", in the order in which kinds come:
// loads, threads and counters have no column in common worth a common table. The total of loads is
// in their group. There is at least one group.
func Kinds(rows []Row) [][]Row {
	groups := [][]Row{nil}
	at := map[any]int{}
	for _, row := range rows {
		kind := row.vals["row"]
		if i, ok := at["traffic"]; ok && kind == "total" {
			groups[i] = append(groups[i], row)
			continue
		}
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

// WriteRows prints the columns that some row has, each once; all when there are no rows.
func WriteRows(w io.Writer, keys []string, rows []Row) error {
	keys, cells := Cells(keys, rows)
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range headings(keys) {
		fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
	}
	for _, line := range cells {
		fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
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

// Cells are the columns that some row has, each once, all when there are no rows, and the rows as a
// table for people has them.
func Cells(keys []string, rows []Row) (columns []string, cells [][]string) {
	seen := map[string]bool{}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
		again := seen[k] // a swept key may be a column of its own
		seen[k] = true
		return again || len(rows) > 0 && !slices.ContainsFunc(rows, func(row Row) bool { _, ok := row.vals[k]; return ok })
	})
	for i := range rows {
		line := make([]string, len(keys))
		for j, k := range keys {
			v, ok := rows[i].vals[k]
			if line[j] = cell(k, v); ok && v == nil {
				line[j] = "-"
			}
		}
		cells = append(cells, line)
	}
	return keys, cells
}

// cell is a value of a table: percentages with one decimal, numbers with four digits.
func cell(key string, v any) string {
	if f, ok := v.(float64); ok && strings.HasSuffix(key, "_percent") && !math.IsNaN(f) {
		return strings.Replace(strconv.FormatFloat(f, 'f', 1, 64), "-0.0", "0.0", 1)
	}
	return Short(v)
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

// Wrap breaks a note into lines, the later ones indented.
func Wrap(s string, width int) string {
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

// Headings are the names of columns as a table has them, each in one line: loss_page_percent is
// "loss page %".
func Headings(keys []string) []string {
	names := make([]string, len(keys))
	for _, line := range headings(keys) {
		for i, word := range line {
			names[i] = strings.TrimSpace(names[i] + " " + plain.Line(word))
		}
	}
	return names
}
