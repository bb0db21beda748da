// Package report writes a result for those who review it: as one HTML page that needs nothing but
// itself, and as Markdown for a pull request. Both say the question, the answer with its interval,
// what limits it, what would change it, the inputs, and how to run it again. Whatever text a
// scenario or a record has stays text.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Report is a result with what its reader needs beside its figures.
type Report struct {
	Result *experiment.Result
	// Question is what was asked, such as the title of a scenario.
	Question string
	// Pictures are drawn from the result.
	Pictures []Picture
	// Inputs are texts that the run was made from, such as the scenario.
	Inputs []Input
	// Profile is that of the run, nil where nothing of it is used.
	Profile *profile.Profile
	// Stored is a sensitivity that comes with the program, of the same settings; nil if there is
	// none or one was asked for.
	Stored *experiment.Sensitivity
	// Again is the command line that gives the same result.
	Again string
}

// Picture is a drawing as SVG.
type Picture struct {
	Title string
	SVG   []byte
}

// Input is a text that the run was made from.
type Input struct{ Name, Text string }

// bad says whether the page shall warn: the result is incomplete, or does not meet a requirement.
func (r *Report) bad() bool {
	return !r.Result.Complete || slices.ContainsFunc(r.Result.Required, func(q experiment.Required) bool { return !q.Met })
}

// title is the question, and what is wrong.
func (r *Report) title() string {
	t := plain.Line(cmp.Or(r.Question, r.Result.Name))
	if !r.Result.Complete {
		t = "INCOMPLETE: " + t
	}
	return t
}

// units are how figures are said.
var units = []struct{ key, form string }{{"rate_mps", "%s million messages/s"}, {"gbps", "%s Gb/s"}, {"latency_ns_p50", "median latency %s ns"},
	{"latency_ns_p99", "99 %% point %s ns"}, {"latency_ns_p999", "99.9 %% point %s ns"}}

// figure is a number with the interval that is known.
func figure(row *table.Row, key string) string {
	shown := row.Shown()
	if s, ok := shown.Get(key).(string); ok {
		return s
	}
	return table.Short(row.Get(key))
}

// mostAnswers bounds the lines of an answer.
const mostAnswers = 12

// answer is a line of the answer; those that are not Main say more of the line before.
type answer struct {
	Text string
	Main bool
}

// answers say what the result shows, in a line each.
func (r *Report) answers() (lines []answer) {
	for _, row := range r.totals() {
		var says []string
		for _, u := range units {
			if v, ok := row.Float(u.key); ok && v == v {
				says = append(says, fmt.Sprintf(u.form, figure(&row, u.key)))
			}
		}
		if len(says) > 0 {
			lines = append(lines, answer{fmt.Sprintf("%s: %s.", plain.Line(table.Text(row.Get("name"))), strings.Join(says, ", ")), true})
		}
	}
	if len(lines) == 0 {
		lines = r.extremes()
	}
	if s := r.sensitivity(); s != nil && len(lines) < mostAnswers {
		for _, c := range s.Conclusions {
			lines = append(lines, answer{plain.Line(c) + ".", false})
		}
	}
	if n := len(lines) - mostAnswers; n > 0 {
		lines = append(lines[:mostAnswers:mostAnswers], answer{fmt.Sprintf("And %s of the same kind.", plain.Count(n, "line")), false})
	}
	return lines
}

// totals are the rows that are the answer of a single run of loads: the total if there are several,
// or the loads.
func (r *Report) totals() (rows []table.Row) {
	if len(r.Result.Plots) > 0 {
		return nil // a sweep, or an experiment of several runs
	}
	for _, row := range r.Result.Rows {
		if row.Get("row") == "total" {
			rows = append([]table.Row{row}, rows...)
		} else if row.Get("row") == "traffic" {
			rows = append(rows, row)
		}
	}
	return rows
}

// extremes are the least and the largest value of each picture, and where they are.
func (r *Report) extremes() (lines []answer) {
	for i := range r.Result.Plots {
		p := &r.Result.Plots[i]
		if p.Per != "" || len(p.YWords) > 0 {
			continue // it shows how evenly what another one shows is divided, or words
		}
		var least, most *table.Row
		for j := range r.Result.Rows {
			row := &r.Result.Rows[j]
			v, ok := row.Float(p.Y)
			if !ok || v != v || !p.Matches(row) {
				continue
			}
			if low, _ := value(least, p.Y); least == nil || v < low {
				least = row
			}
			if high, _ := value(most, p.Y); most == nil || v > high {
				most = row
			}
		}
		if most == nil {
			continue
		}
		keys := append(append([]string{p.X, p.Series}, p.With...), p.By...)
		line := fmt.Sprintf("%s: from %s (%s) to %s (%s) %s.", p.Title, figure(least, p.Y), where(least, keys), figure(most, p.Y), where(most, keys), p.YLabel)
		if low, _ := value(least, p.Y); low == mustFloat(most, p.Y) {
			line = fmt.Sprintf("%s: %s %s everywhere.", p.Title, figure(most, p.Y), p.YLabel)
		}
		lines = append(append(lines, answer{plain.Line(line), true}), curves(p, r.Result.Rows)...)
	}
	return lines
}

// Bounds of curves that an answer says in words.
const (
	mostCurves = 6
	mostPlaces = 4
)

// curves says of each line of a picture how it goes, where they are few: what the values are, or
// between which places it rises or falls.
func curves(p *chart.Plot, rows []table.Row) (lines []answer) {
	ch := p.Collect(rows)
	if len(ch.Names) > mostCurves || len(ch.Ticks) < 2 {
		return nil
	}
	label := map[float64]string{}
	for _, t := range ch.Ticks {
		label[t.Value] = t.Label
	}
	axis := strings.Join(append([]string{p.X}, p.With...), ", ")
	for _, name := range ch.Names {
		points := ch.Points[name]
		low, high := points[0], points[0]
		var places []string
		for _, q := range points {
			if q.Y < low.Y {
				low = q
			}
			if q.Y > high.Y {
				high = q
			}
			places = append(places, fmt.Sprintf("%s at %s", table.Short(q.Y), label[q.X]))
		}
		line := fmt.Sprintf("least %s at %s, most %s at %s", table.Short(low.Y), label[low.X], table.Short(high.Y), label[high.X])
		switch {
		case high.Y-low.Y < high.Y*noDifference || low.Y == high.Y:
			line = fmt.Sprintf("%s at every %s", table.Short(low.Y), axis)
		case len(points) <= mostPlaces:
			line = fmt.Sprintf("%s (%s)", strings.Join(places, ", "), axis)
		default:
			line += fmt.Sprintf(" (%s)", axis)
		}
		if d := high.Y - low.Y; d >= high.Y*noDifference && d < high.Y*sameWithin {
			line += fmt.Sprintf(": within %.2g %%", 100*(high.Y-low.Y)/high.Y)
		}
		if name != "" {
			line = name + ": " + line
		}
		lines = append(lines, answer{plain.Line(line + "."), false})
	}
	return lines
}

// Differences, as parts of a value, that an answer says to be small, and that it leaves out.
const (
	sameWithin   = 0.05
	noDifference = 1e-3
)

func value(row *table.Row, key string) (float64, bool) {
	if row == nil {
		return 0, false
	}
	return row.Float(key)
}

func mustFloat(row *table.Row, key string) float64 {
	v, _ := row.Float(key)
	return v
}

// where names a row by the keys of a picture.
func where(row *table.Row, keys []string) string {
	var words []string
	for _, k := range keys {
		if v := row.Get(k); v == nil || k == "" {
			continue
		} else if k == "name" || k == "series" {
			words = append(words, table.Text(v))
		} else {
			words = append(words, k+"="+table.Text(v))
		}
	}
	return strings.Join(words, " ")
}

// intervals say how exact the figures are, as far as the run knows.
func (r *Report) intervals() (lines []string) {
	res := r.Result
	if slices.ContainsFunc(res.Notes, func(n string) bool {
		return strings.Contains(n, "not steady") || strings.Contains(n, "says little") || strings.Contains(n, "longer duration")
	}) {
		lines = append(lines, "WARNING: not every figure will last: the notes say which, and what to do.")
	}
	if res.Validity != nil {
		lines = append(lines, res.Validity.String())
	}
	if res.Seeds > 1 {
		return append(lines, fmt.Sprintf("Means over %d seeds; ± is half the width of the 95 %% confidence interval of the mean. A figure without it does not depend on the seed.", res.Seeds))
	}
	for _, row := range r.totals() {
		percent, ok := row.Float("rate_ci95_percent")
		name := plain.Line(table.Text(row.Get("name")))
		switch n, timed := row.Float("samples"); {
		case timed:
			lines = append(lines, fmt.Sprintf("%s: percentiles of %s messages.", name, table.Short(n)))
		case !ok:
			continue
		case percent != percent || percent > 1e6:
			lines = append(lines, fmt.Sprintf("%s: the rate has no interval: some quarter of the measured time had no message.", name))
		default:
			lines = append(lines, fmt.Sprintf("%s: the rate is steady to ±%.2g %% (95 %%, from the quarters of the measured time).", name, percent))
		}
	}
	return append(lines, "One seed: --seeds 10 gives means with intervals, where anything is drawn at random.")
}

// limited says what limits the run.
func (r *Report) limited() []string {
	all := r.Result.Limits()
	if len(all) == 1 && len(r.totals()) > 0 {
		busy := ""
		if all[0].Busy > 0 { // no unit is busy for a latency
			busy = fmt.Sprintf(", %.1f %% busy", all[0].Busy)
		}
		return []string{fmt.Sprintf("%s (%s%s).", plain.Line(all[0].Word), plain.Line(all[0].Unit), busy)}
	}
	var says []string
	for _, l := range all {
		says = append(says, fmt.Sprintf("%s in %s", plain.Line(l.Word), plain.Count(l.Rows, "row")))
	}
	if len(says) == 0 {
		return nil
	}
	return []string{strings.Join(says, ", ") + "."}
}

// sensitivity is what the result depends on, where somebody has looked.
func (r *Report) sensitivity() *experiment.Sensitivity { return cmp.Or(r.Result.Sensitivity, r.Stored) }

// notes are those of the result that are not said elsewhere.
func (r *Report) notes() (lines []string) {
	for _, n := range r.Result.Notes {
		said := slices.ContainsFunc(r.Result.Required, func(q experiment.Required) bool { return q.Says == n })
		if s := r.Result.Sensitivity; s != nil && s.Summary() == n {
			said = true
		}
		if !said {
			lines = append(lines, plain.Line(n))
		}
	}
	return lines
}

// change is a value that may change the answer.
type change struct{ Key, Value, Source, Tried, Effect, Holds string }

// changes are the values that would change the answer: those that a search has found, or else those
// without a source that act on the limit.
func (r *Report) changes() (intro []string, all []change) {
	if s := r.sensitivity(); s != nil {
		for i := range s.Values {
			v := &s.Values[i]
			for _, t := range v.Tries {
				holds := "yes"
				if len(t.Changes) > 0 {
					holds = "NO: " + strings.Join(t.Changes, "; ")
				}
				all = append(all, change{v.Key, v.Value, v.Source, t.Value, table.Short(t.Effect) + " %", holds})
			}
		}
		if r.Result.Sensitivity == nil {
			intro = append(intro, "From the sensitivity that comes with the program.")
		}
		return append(intro, s.Summary()), all
	}
	if r.Profile != nil {
		for _, v := range r.Result.Guesses(r.Profile) {
			all = append(all, change{Key: v.Key, Value: v.Text, Source: v.Origin()})
		}
	}
	switch {
	case len(all) > 0:
		intro = append(intro, fmt.Sprintf("%s that no source gives %s on what limits the run. Another value of one of them may change the answer:", plain.Count(len(all), "value"), map[bool]string{true: "acts", false: "act"}[len(all) == 1]))
	case len(r.Result.Limits()) > 0:
		intro = append(intro, "No assumed or fitted value of the profile acts on what limits the run.")
	}
	return append(intro, "--sensitivity finds all values that the answer depends on; --confirm runs again with more of what limits it."), all
}

// facts are the inputs in words.
func (r *Report) facts() (all [][2]string) {
	res := r.Result
	all = [][2]string{{"version", res.Version}, {"profile", res.Profile}, {"hash of its values", res.ProfileHash}}
	if seeds := res.Seeds; seeds > 1 {
		all = append(all, [2]string{"seeds", fmt.Sprintf("%d to %d", res.Seed, res.Seed+uint64(seeds)-1)})
	} else {
		all = append(all, [2]string{"seed", fmt.Sprint(res.Seed)})
	}
	all = append(all, [2]string{"trust", experiment.Trust(res.Hypotheses)})
	for i := range all {
		all[i][1] = plain.Line(all[i][1])
	}
	return all
}
