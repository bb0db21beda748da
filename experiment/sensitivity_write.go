package experiment

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Sensitivity says which assumed and fitted values a result depends on, and whether what it shows
// holds when each of them is at its bounds.
type Sensitivity struct {
	// Runs is how often the experiment was run.
	Runs int `json:"runs"`
	// Settings are those of the experiment that were taken to make its runs shorter.
	Settings []string `json:"settings"`
	// Conclusions are what the result shows, in words.
	Conclusions []string `json:"conclusions"`
	// Values are those that the result depends on.
	Values []Sensitive `json:"values"`
	// Without is the number of assumed and fitted values that change nothing in the result.
	Without int `json:"values_without_effect"`
	// NotVaried are values that could not be given another value, each with the reason.
	NotVaried []string `json:"not_varied"`
	// Complete is false if the search was ended by its bound of runs.
	Complete bool `json:"complete"`
}

// Sensitive is a value that a result depends on.
type Sensitive struct {
	Key    string  `json:"key"`
	Value  string  `json:"value"`
	Source string  `json:"source"`
	Bounds string  `json:"bounds"` // where they are from
	Tries  []Tried `json:"tries"`
	Holds  bool    `json:"holds"`
}

// Tried is the outcome of a run with a value at one of its bounds.
type Tried struct {
	Value string `json:"value"`
	// Effect is the largest change of a number that the result shows, in percent of it.
	Effect float64 `json:"effect_percent"`
	// Changes are conclusions that do not hold.
	Changes []string `json:"changes"`
}

// Summary returns the answer in a sentence.
func (s *Sensitivity) Summary() string {
	var turning []string
	for i := range s.Values {
		if !s.Values[i].Holds {
			turning = append(turning, s.Values[i].Key)
		}
	}
	head := fmt.Sprintf("Sensitivity: the result depends on %s", plain.Count(len(s.Values), "assumed or fitted value"))
	if !s.Complete {
		head += " at least (the search ended at its bound of runs)"
	}
	switch {
	case len(s.Conclusions) == 0:
		return head + "; it shows no order, winner or knee."
	case len(s.Values) == 0:
		return head + "."
	case len(turning) == 0:
		return head + ", and what it shows holds with each of them at its bounds."
	}
	return fmt.Sprintf("%s; what it shows holds at the bounds of %d, and not at those of %s.", head, len(s.Values)-len(turning), strings.Join(turning, ", "))
}

// Write prints the values, first those with which a conclusion does not hold.
func (s *Sensitivity) Write(w io.Writer) error {
	fmt.Fprintln(w, "\nwhat the result shows:")
	for _, c := range s.Conclusions {
		fmt.Fprintln(w, "  "+plain.Line(c))
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "value\tis\tsource\tbounds\ttried\teffect\tholds")
	var changes, small []string
	for i := range s.Values {
		v := &s.Values[i]
		if !v.matters() {
			small = append(small, v.Key)
			continue
		}
		for j, t := range v.Tries {
			cells := []string{v.Key, v.Value, v.Source, v.Bounds}
			if j > 0 {
				cells = make([]string, 4)
			}
			holds := "yes"
			if len(t.Changes) > 0 {
				holds = "NO"
				changes = append(changes, fmt.Sprintf("%s=%s: %s", v.Key, t.Value, strings.Join(few(t.Changes), "; ")))
			}
			cells = append(cells, t.Value, table.Short(t.Effect)+" %", holds)
			for k := range cells {
				cells[k] = plain.Line(cells[k])
			}
			fmt.Fprintln(tw, strings.Join(cells, "\t"))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(small) > 0 {
		changes = append(changes, fmt.Sprintf("less than 1 %% of any number: %s", strings.Join(small, ", ")))
	}
	fmt.Fprintln(w)
	for _, n := range slices.Concat(changes, s.remarks()) {
		if _, err := fmt.Fprintln(w, table.Wrap(n, 100)); err != nil {
			return err
		}
	}
	return nil
}

// matters reports whether the value is worth a line for people: it moves a number by a hundredth,
// or a conclusion.
func (v *Sensitive) matters() bool {
	return !v.Holds || slices.ContainsFunc(v.Tries, func(t Tried) bool { return t.Effect >= 1 })
}

// few are the first changes, and how many more there are.
func few(changes []string) []string {
	const most = 3
	if len(changes) <= most {
		return changes
	}
	return append(slices.Clone(changes[:most]), fmt.Sprintf("and %d more", len(changes)-most))
}

// remarks say what was not varied, and what it took.
func (s *Sensitivity) remarks() (lines []string) {
	if len(s.NotVaried) > 0 {
		var what []string
		for _, n := range s.NotVaried {
			kv, _, _ := strings.Cut(n, ": ")
			what = append(what, kv)
		}
		lines = append(lines, "not tried, since the experiment or the device refuses it (--format json has the reasons): "+strings.Join(what, ", "))
	}
	what := fmt.Sprintf("%s; %s change nothing in the result.", plain.Count(s.Runs, "run"), plain.Count(s.Without, "assumed or fitted value"))
	if len(s.Settings) > 0 {
		what += " They were made with " + strings.Join(s.Settings, ", ") + "."
	}
	return append(lines, what, s.Summary())
}
