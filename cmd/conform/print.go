package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// progress is a progress bar on a terminal, and prints nothing elsewhere.
type progress struct {
	bar *progressbar.ProgressBar
	w   io.Writer
}

func newProgress(w io.Writer, n int) progress {
	if text, ok := w.(*plain.Writer); ok {
		w = text.To()
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return progress{}
	}
	return progress{w: w, bar: progressbar.NewOptions(n, progressbar.OptionSetWriter(w), progressbar.OptionShowCount(),
		progressbar.OptionSetDescription("cases"), progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))}
}

func (p progress) add() {
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

func (p progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

func (p progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// printCase prints a case and what it saw, for --verbose.
func printCase(w io.Writer, c report.Case) {
	fmt.Fprintf(w, "%-14s %s\n", c.Outcome, plain.Line(c.ID))
	printObservations(w, c)
	printReason(w, c.Reason)
	if c.Differs != nil {
		fmt.Fprintf(w, "  the repeat that differs: %s\n", c.Differs.Outcome)
		printObservations(w, *c.Differs)
		printReason(w, c.Differs.Reason)
	}
}

// printReason prints a text of one line or more, indented.
func printReason(w io.Writer, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

func printObservations(w io.Writer, c report.Case) {
	for _, o := range c.Observations {
		got, _ := json.Marshal(o.Got) // observations came as JSON
		fmt.Fprintf(w, "    %s: %s", plain.Line(o.Step), got)
		if o.Want != nil {
			want, _ := json.Marshal(o.Want)
			fmt.Fprintf(w, "  (want %s)", want)
		}
		fmt.Fprintln(w)
	}
}

// printTarget prints what a run on hardware tests: device, driver, firmware, kernel, libraries, and
// the environment variables that matter.
func printTarget(w io.Writer, h harness.Hello) {
	fmt.Fprintf(w, "%s: %s\n", plain.Line(h.Target.Profile), plain.Line(h.Chosen))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, k := range slices.Sorted(maps.Keys(h.Target.Details)) {
		fmt.Fprintf(tw, "  %s\t%s\n", plain.Line(k), plain.Line(h.Target.Details[k]))
	}
	_ = tw.Flush() // to the same writer as what follows, which would fail too
}

func printRun(w io.Writer, o *runOptions, run *report.Run) {
	printFailures(w, o, run)
	printTable(w, run)
	for _, f := range run.Findings {
		fmt.Fprintln(w, "finding:", plain.Line(f))
	}
	var parts []string
	for _, out := range report.Outcomes() {
		if n := run.Summary[out]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, out))
		}
	}
	end := "ok"
	switch {
	case run.Incomplete:
		end = "INTERRUPTED"
	case !run.OK():
		end = "FAILED"
	}
	name := run.Target.Kind
	if run.Target.Profile != "" {
		name += " " + run.Target.Profile
	}
	took := ""
	if o.took > 0 {
		took = fmt.Sprintf(" (%s)", roundly(o.took))
	}
	fmt.Fprintf(w, "%s: %s on %s, seed %d: %s%s\n", end, cases(len(run.Cases)), name, run.Seed, strings.Join(parts, ", "), took)
}

func cases(n int) string { return plain.Count(n, "case") }

// printTable counts outcomes by area; columns that are empty everywhere are left out.
func printTable(w io.Writer, run *report.Run) {
	var cols []report.Outcome
	for _, out := range report.Outcomes() {
		if out == report.Pass || out == report.Fail || run.Summary[out] > 0 {
			cols = append(cols, out)
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "area\tcases")
	for _, c := range cols {
		fmt.Fprintf(tw, "\t%s", c)
	}
	fmt.Fprintln(tw)
	for i := 0; i < len(run.Cases); {
		area, n, counts := run.Cases[i].Area, 0, map[report.Outcome]int{}
		for ; i < len(run.Cases) && run.Cases[i].Area == area; i++ {
			counts[run.Cases[i].Outcome]++
			n++
		}
		fmt.Fprintf(tw, "%s\t%d", area, n)
		for _, c := range cols {
			if counts[c] == 0 {
				fmt.Fprint(tw, "\t-")
			} else {
				fmt.Fprintf(tw, "\t%d", counts[c])
			}
		}
		fmt.Fprintln(tw)
	}
	_ = tw.Flush() // to the same writer as what follows, which would fail too
	if run.Summary[report.Pass] < len(run.Cases) {
		fmt.Fprintln(w, "(conform help outcomes says what these words mean)")
	}
}
