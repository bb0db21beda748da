package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Requirement is a bound on a column of rows, such as total.p99 < 20us: what a script or a review
// asks of a run.
type Requirement struct {
	text, row, key, op string
	bound              float64
}

// shortKeys are short names of columns.
var shortKeys = map[string]string{"p50": "latency_ns_p50", "p90": "latency_ns_p90", "p99": "latency_ns_p99", "p999": "latency_ns_p999", "rate": "rate_mps", "goodput": "gbps"}

// operators are longest first, as they are looked for.
var operators = []string{"<=", ">=", "<", ">"}

// ParseRequirement reads ROW.COLUMN and a bound: ROW is the name of a load, or total; COLUMN is one
// of the result, or p50, p90, p99, p999, rate or goodput, each also with _change behind it, which
// is the change in percent against an earlier run; the bound is a number in the unit of the column,
// or a time or a rate with its own, such as 20us or 90Gbps.
func ParseRequirement(text string) (*Requirement, error) {
	r := &Requirement{text: strings.TrimSpace(text)}
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return nil, fmt.Errorf("%q has no bound: write a row, a column and a bound, such as total.p99 < 20us or total.gbps >= 90", text)
	}
	for _, op := range operators {
		if r.op == "" && strings.HasPrefix(text[at:], op) {
			r.op = op
		}
	}
	left, right := strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+len(r.op):])
	dot := strings.LastIndexByte(left, '.')
	if dot <= 0 || dot == len(left)-1 {
		return nil, fmt.Errorf("%q: %q is not a row and a column: write one such as total.p99", text, left)
	}
	r.row, r.key = left[:dot], left[dot+1:]
	key, change := strings.CutSuffix(r.key, "_change")
	if long, ok := shortKeys[key]; ok {
		key = long
	}
	if r.key = key; change {
		r.key = key + changeSuffix
	}
	var err error
	if r.bound, err = bound(r.key, right); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return r, nil
}

// bound reads a number in the unit of a column, or with a unit.
func bound(key, text string) (float64, error) {
	if v, err := input.Number(text); err == nil {
		return v, nil
	}
	parts := strings.Split(key, "_")
	if strings.HasSuffix(key, changeSuffix) {
		parts = []string{"percent"}
	}
	for unit, ps := range map[string]float64{"ns": 1e3, "us": 1e6, "ms": 1e9} {
		if slices.Contains(parts, unit) {
			v, err := input.ParseTime(text)
			return float64(v) / ps, err
		}
	}
	if slices.Contains(parts, "gbps") {
		v, err := input.ParseRate(text)
		return float64(v) / 1e9, err
	}
	if s, ok := strings.CutSuffix(text, "%"); ok && slices.Contains(parts, "percent") {
		return input.Number(strings.TrimSpace(s))
	}
	return 0, fmt.Errorf("%q is not a number: %s has no other unit", text, key)
}

// matches says whether a row is one that the requirement is about. A single load is its own total.
func (r *Requirement) matches(row *table.Row, totals bool) bool {
	kind, name := row.Get("row"), row.Get("name")
	if r.row == "total" {
		return kind == "total" || !totals && kind == "traffic"
	}
	word, _ := kind.(string)
	return name == r.row && kind != "thread" && !slices.Contains(sampled, word) || kind == r.row
}

// Check returns a sentence about the result and the requirement, and whether every row to which it
// applies meets it. It is an error if there is no such row.
func (r *Requirement) Check(rows []table.Row) (says string, met bool, err error) {
	totals := slices.ContainsFunc(rows, func(row table.Row) bool { return row.Get("row") == "total" })
	var names, keys []string
	found, worst := false, 0.0
	for i := range rows {
		row := &rows[i]
		for _, k := range []string{"row", "name"} {
			if s, ok := row.Get(k).(string); ok && row.Get("row") != "thread" && row.Get("row") != "client" {
				names = once(names, s)
			}
		}
		if !r.matches(row, totals) {
			continue
		}
		for _, k := range row.Keys() {
			if _, ok := row.Float(k); ok {
				keys = once(keys, k)
			}
		}
		v, ok := row.Float(r.key)
		if !ok {
			continue
		}
		if !found || !r.holds(v) && r.holds(worst) || r.farther(v, worst) && r.holds(v) == r.holds(worst) {
			worst = v
		}
		found = true
	}
	switch {
	case found:
		met = r.holds(worst)
		word := map[bool]string{true: "met", false: "not met"}[met]
		return fmt.Sprintf("Required %s: %s, for %s is %s.", r.text, word, r.key, table.Short(worst)), met, nil
	case keys != nil:
		return "", false, fmt.Errorf("%q: the row %s has no column %s%s; it has %s", r.text, r.row, r.key, r.cure(keys), strings.Join(keys, ", "))
	}
	return "", false, fmt.Errorf("%q: no row is %s%s; there are %s", r.text, r.row, input.Suggest(r.row, names), strings.Join(names, ", "))
}

// cure says how a run gets the column that it lacks, or which one of keys was meant.
func (r *Requirement) cure(keys []string) string {
	switch {
	case strings.HasPrefix(r.key, "latency_"):
		return " (loads with measure: both or measure: latency have it)"
	case strings.HasPrefix(r.key, "flow_us"):
		return " (loads with messages in place of duration have it)"
	}
	return input.Suggest(r.key, keys)
}

func (r *Requirement) holds(v float64) bool {
	switch r.op {
	case "<":
		return v < r.bound
	case "<=":
		return v <= r.bound
	case ">":
		return v > r.bound
	}
	return v >= r.bound
}

// farther says whether v is nearer to breaking the bound than w, or breaks it by more.
func (r *Requirement) farther(v, w float64) bool {
	if strings.HasPrefix(r.op, "<") {
		return v > w
	}
	return v < w
}

// ErrRequired is the error of a run that is complete and does not meet a requirement.
var ErrRequired = errors.New("a requirement is not met")

// Require notes in the result whether it meets requirements. The error is ErrRequired, or a usage
// error if a row or column is missing.
func (r *Result) Require(all []*Requirement) error {
	missed := 0
	rows := slices.Clone(r.Rows)
	for i := range r.Rows {
		if c := r.changes[i]; c != nil {
			rows = append(rows, *c)
		}
	}
	for _, q := range all {
		if q.NeedsAgainst() && r.Against == nil {
			return Usagef("--require %q: a change needs --against with the records of an earlier run", q.text)
		}
		says, met, err := q.Check(rows)
		if err != nil {
			return Usagef("--require %w", err)
		}
		r.Note("%s", says)
		r.Required = append(r.Required, Required{says, met})
		if !met {
			missed++
		}
	}
	if missed > 0 {
		return fmt.Errorf("%w: %s of %d", ErrRequired, strconv.Itoa(missed), len(all))
	}
	return nil
}

// NeedsAgainst reports whether the requirement bounds a change against an earlier run.
func (r *Requirement) NeedsAgainst() bool { return strings.HasSuffix(r.key, changeSuffix) }
