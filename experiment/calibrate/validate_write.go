package calibrate

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Write prints the report in one of Formats.
func (r *ValidationReport) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return table.WriteJSON(w, r)
	case "csv":
		rows := [][]string{{"id", "name", "profile", "expected", "got", "unit", "tolerance", "pass", "kind", "source", "known_miss", "known_value"}}
		for _, k := range r.Checks {
			known := ""
			if k.KnownMiss != "" {
				known = table.Text(k.KnownValue)
			}
			rows = append(rows, []string{k.ID, k.Name, k.Profile, table.Text(k.Expected), table.Text(k.Got), k.Unit, k.Tolerance, strconv.FormatBool(k.Pass), k.Kind, k.Source, k.KnownMiss, known})
		}
		return writeCells(w, rows)
	}
	return r.writeTable(w)
}

func (r *ValidationReport) writeTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "check\tfigure\tprofile\tpublished\tours\tunit\ttolerance\tverdict\tkind")
	for i := range r.Checks {
		c := &r.Checks[i]
		cells := []string{c.ID, c.Name, c.Profile, table.Short(c.Expected), table.Short(c.Got), c.Unit, c.Tolerance, c.Verdict(), c.Kind}
		for i := range cells {
			cells[i] = plain.Line(cells[i])
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	for _, n := range r.NotModelled {
		fmt.Fprintf(tw, "%d\t%s\t\t\t\t\t\tnot modelled yet\t\n", n.Number, n.Name)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, n := range r.remarks() {
		fmt.Fprintln(w, table.Wrap(n, 100))
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, table.Wrap(n, 100))
	}
	for _, n := range r.NotModelled {
		fmt.Fprintln(w, table.Wrap(fmt.Sprintf("%d: not modelled yet: %s", n.Number, n.Reason), 100))
	}
	r.writeSummary(w)
	for _, p := range keysOf(r.Profiles) {
		fmt.Fprintf(w, "  profile %s (%s); %s\n", p, r.Profiles[p], experiment.Trust(r.Hypotheses[p]))
	}
	return nil
}

func (r *ValidationReport) writeSummary(w io.Writer) {
	verdicts := map[string]int{}
	for i := range r.Checks {
		verdicts[r.Checks[i].Verdict()]++
	}
	state := ""
	if n := verdicts["ok, STALE"]; n > 0 {
		state = fmt.Sprintf(", wrongly marked as misses: %d", n)
	}
	if n := verdicts["MISS, DRIFTED"]; n > 0 {
		state += fmt.Sprintf(", known misses with another value: %d", n)
	}
	if !r.Complete {
		state += ", INCOMPLETE"
	}
	if s := r.Summary; r.Complete {
		fmt.Fprintf(w, "%d of %s within tolerance; beside them %d of %s", s.PredictedWithin, plain.Count(s.Predicted, "predicted figure"), s.FittedWithin, plain.Count(s.Fitted, "fitted one"))
		if s.Described > 0 {
			fmt.Fprintf(w, " and %d of %d that a rule was chosen with", s.DescribedWithin, s.Described)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s: %d within tolerance, %s, %s%s. rdmasim %s, seed %d\n", plain.Count(len(r.Checks), "figure"),
		verdicts["ok"]+verdicts["ok, STALE"], plain.Count(verdicts["miss (known)"], "known miss"), plain.Count(verdicts["MISS"], "unexpected miss"), state, r.Version, r.Seed)
	if s := r.Summary; r.Complete && s.Numbered > 0 {
		fmt.Fprintf(w, "%s run: %d within tolerance in all their figures (%s %%)", plain.Count(s.Numbered, "numbered check"), s.Within, table.Short(s.Percent))
		if r.whole {
			fmt.Fprintf(w, "; %s fitted, %s marked fitted", plain.Count(s.FittedParameters, "parameter"), plain.Count(s.FittedChecks, "check"))
		}
		fmt.Fprintln(w)
	}
}

// Said is what a table says in sentences, which CSV has no place for: notes on figures, and on the
// run.
func (r *ValidationReport) Said() (said []string) {
	for _, n := range append(r.remarks(), r.Notes...) {
		said = append(said, table.Wrap("note: "+n, 100))
	}
	return said
}

// remarks are the notes on figures; consecutive figures with the same note share a line.
func (r *ValidationReport) remarks() []string {
	type remark struct{ ids, text string }
	var all []remark
	add := func(id, text string) {
		if n := len(all); n > 0 && all[n-1].text == text {
			all[n-1].ids += ", " + id
			return
		}
		all = append(all, remark{id, text})
	}
	for _, c := range r.Checks {
		switch {
		case c.KnownMiss != "" && c.Pass:
			add(c.ID, "STALE: it is within its tolerance now, so remove its known_miss: "+c.KnownMiss)
		case c.drifted():
			add(c.ID, fmt.Sprintf("DRIFTED: it is %s now, more than 5 %% from known_value %s; find out why, then state the new value: %s", table.Short(c.Got), table.Short(c.KnownValue), c.KnownMiss))
		case c.KnownMiss != "":
			add(c.ID, "known miss: "+c.KnownMiss)
		}
		if c.Note != "" {
			add(c.ID, c.Note)
		}
	}
	var lines []string
	for _, m := range all {
		lines = append(lines, m.ids+": "+m.text)
	}
	return lines
}
