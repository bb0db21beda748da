package page

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/verbs"
)

// rowView is a line of the table of observations: a step, and what each target saw.
type rowView struct {
	Step   string
	Got    []string // by target; empty: it did not come here
	Want   string
	Note   string // the deviation that explains it
	Unlike bool   // the targets saw different things
	Failed bool   // the check that failed
}

// tableView is a table of observations; Names are the heads of the columns of what was seen.
type tableView struct {
	Names []string
	Rows  []rowView
}

// stands reports whether a row is to be looked at.
func (r *rowView) stands() bool { return r.Unlike || r.Failed || r.Note != "" }

// classify notes at the rows how their differences were judged.
func classify(rows []rowView, d *report.CaseDiff) {
	for _, x := range d.Differences {
		for i := range rows {
			r := &rows[i]
			if r.Step != plain.Line(x.Step) || !r.Unlike || r.Note != "" {
				continue
			}
			if r.Note = string(x.Class); x.Deviation != "" {
				r.Note = plain.Line(r.Note + " " + x.Deviation)
			}
			break
		}
	}
}

// place is the n-th observation of a step, from 0.
type place struct {
	step string
	n    int
}

// rowsOf lines the observations of the targets up by their steps.
func rowsOf(sides []*report.Case) []rowView {
	var rows []rowView
	at := map[place]int{}
	for i, c := range sides {
		if c == nil {
			continue
		}
		seen := map[string]int{}
		for j := range c.Observations {
			o := &c.Observations[j]
			key := place{o.Step, seen[o.Step]}
			seen[o.Step]++
			n, known := at[key]
			if !known {
				n = len(rows)
				at[key] = n
				rows = append(rows, rowView{Step: plain.Line(o.Step), Got: make([]string, len(sides))})
			}
			rows[n].Got[i] = seenWords(o.Kind, o.Got)
			if want := wantWords(o.Kind, o.Want); !known || rows[n].Want == want {
				rows[n].Want = want
			} else {
				rows[n].Want = "differs too"
			}
			if o.Deviation != "" {
				rows[n].Note = plain.Line("known deviation " + o.Deviation)
			}
			if j == len(c.Observations)-1 && c.Outcome.Bad() && c.Step == o.Step {
				rows[n].Failed = true
			}
		}
	}
	for i := range rows {
		first := ""
		for k, c := range sides {
			switch {
			case c == nil:
			case first == "":
				first = rows[i].Got[k] + "\x00"
			case first != rows[i].Got[k]+"\x00":
				rows[i].Unlike = true
			}
		}
	}
	return rows
}

// seenWords is what was seen, with the names of the verbs API for the numbers of a completion.
func seenWords(kind string, got any) string {
	if kind == "errno" && got == "0" {
		return "success"
	}
	wc, ok := got.(map[string]any)
	if kind != "wc" || !ok {
		return value(got)
	}
	parts := []string{value(wc["status"])}
	if n, ok := number(wc["opcode"]); ok {
		w, _ := verbs.Words(verbs.WCOpcode(n))
		parts = append(parts, w)
	}
	if n, ok := number(wc["wr_id"]); ok {
		parts = append(parts, fmt.Sprintf("wr_id %d", uint64(n)))
	}
	if n, ok := number(wc["byte_len"]); ok {
		parts = append(parts, plain.Count(int(n), "byte"))
	}
	if n, ok := number(wc["imm"]); ok {
		parts = append(parts, fmt.Sprintf("immediate %#x", uint64(n)))
	}
	if n, ok := number(wc["wc_flags"]); ok && n != 0 {
		w, _ := verbs.Words(verbs.WCFlags(n))
		parts = append(parts, w)
	}
	return plain.Line(strings.Join(parts, ", "))
}

func wantWords(kind string, want any) string {
	if want == nil {
		return ""
	}
	set, ok := want.([]any)
	if !ok || kind != "errno" && kind != "wc" {
		return seenWords(kind, want)
	}
	var names []string
	for _, w := range set {
		names = append(names, seenWords(kind, w))
	}
	return "one of " + strings.Join(names, ", ")
}

// value is a value as JSON, and a string as it is.
func value(v any) string {
	if s, ok := v.(string); ok {
		return plain.Line(s)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return plain.Line(fmt.Sprint(v))
	}
	return plain.Line(string(text))
}

// number is a value that JSON has as a number.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}
