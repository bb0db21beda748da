package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// printDiff prints a line for each case that people should look at, how to run these again, and a
// sum.
func printDiff(w io.Writer, c *report.Comparison, b *report.Run, verbose bool) {
	var look []string
	lonely := map[string][]string{}
	for i := range c.Cases {
		x := &c.Cases[i]
		switch {
		case x.Class == report.Incomparable && (x.A == "" || x.B == ""):
			lonely[x.Reason] = append(lonely[x.Reason], x.ID)
		case x.Class.Notable():
			look = append(look, x.ID)
			printCaseDiff(w, x, verbose)
		case verbose && x.Class != report.Same:
			printCaseDiff(w, x, verbose)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(lonely)) {
		fmt.Fprintf(w, "%s %s: %s\n", report.Incomparable, plain.Line(someOf(lonely[reason])), reason)
	}
	for _, f := range c.Findings {
		fmt.Fprintln(w, "finding:", plain.Line(f))
	}
	if len(look) > 0 {
		fmt.Fprintln(w, "again:", againAs(b, filterOf(look)))
	}
	var sums []string
	for _, class := range report.Classes() {
		if n := c.Summary[class]; n > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", n, class))
		}
	}
	fmt.Fprintln(w, strings.Join(sums, ", "))
	end := "ok"
	switch {
	case !c.OK():
		end = "DIFFERENT"
	case c.Compared() == 0:
		end = "NOTHING COMPARED"
	}
	fmt.Fprintf(w, "%s: %s, %s\n", end, comparedOf(c), platforms(c.A, c.B))
}

// printCaseDiff prints the line of a case; verbose adds one for each further step that differs.
func printCaseDiff(w io.Writer, x *report.CaseDiff, verbose bool) {
	fmt.Fprintf(w, "%s %s", x.Class, plain.Line(x.ID))
	if x.A != x.B {
		fmt.Fprintf(w, " (%s -> %s)", outcome(x.A), outcome(x.B))
	}
	first := x.First()
	if first != nil {
		printStep(w, first)
	} else if x.Reason != "" {
		line, _, more := strings.Cut(x.Reason, "\n")
		fmt.Fprintf(w, " %s", plain.Line(line))
		if more {
			fmt.Fprint(w, " ...")
		}
	}
	fmt.Fprintln(w)
	if !verbose {
		return
	}
	if first != nil || strings.Contains(x.Reason, "\n") {
		printReason(w, x.Reason)
	}
	for i := range x.Differences {
		if d := &x.Differences[i]; d != first {
			fmt.Fprintf(w, "    %s", d.Class)
			printStep(w, d)
			if d.Follows != "" {
				fmt.Fprintf(w, "  follows from %q", plain.Line(d.Follows))
			}
			fmt.Fprintln(w)
		}
	}
}

func printStep(w io.Writer, d *report.Difference) {
	fmt.Fprintf(w, " %s: %s -> %s", plain.Line(d.Step), shown(d.A), shown(d.B))
	if d.Deviation != "" {
		fmt.Fprintf(w, " (%s)", plain.Line(d.Deviation))
	}
}

// longestValue of a step that is printed; the records have it whole.
const longestValue = 100

func shown(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	text := string(b)
	if err != nil {
		text = fmt.Sprint(v)
	}
	if r := []rune(text); len(r) > longestValue {
		return string(r[:longestValue]) + "..."
	}
	return text
}

// someOf names up to eight cases.
func someOf(ids []string) string {
	const most = 8
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
}

// filterOf is a value of --label-filter for the cases; of more than twenty it names their areas.
func filterOf(ids []string) string {
	const most = 20
	if len(ids) > most {
		for i, id := range ids {
			ids[i], _, _ = strings.Cut(id, "-")
		}
		ids = slices.Compact(ids)
	}
	return strings.Join(ids, " || ")
}

// comparedOf says how many cases were compared, and of how many.
func comparedOf(c *report.Comparison) string {
	if n := c.Compared(); n < len(c.Cases) {
		return fmt.Sprintf("%d of %s compared", n, cases(len(c.Cases)))
	}
	return cases(len(c.Cases)) + " compared"
}

func outcome(o report.Outcome) string {
	if o == "" {
		return "none"
	}
	return plain.Line(string(o))
}

// platforms names what two runs were made on: what both have, then how they differ.
func platforms(a, b report.Platform) string {
	same, x, y := report.Platform{}, report.Platform{}, report.Platform{}
	for k, v := range a {
		if b[k] == v {
			same[k] = v
		} else {
			x[k] = v
		}
	}
	for k, v := range b {
		if _, both := same[k]; !both {
			y[k] = v
		}
	}
	switch {
	case len(x)+len(y) == 0:
		return "both " + platformName(same)
	case len(same) == 0:
		return platformName(x) + " against " + platformName(y)
	}
	return fmt.Sprintf("%s against %s, both %s", platformName(x), platformName(y), platformName(same))
}

func platformName(p report.Platform) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		if !strings.HasPrefix(k, report.KeyEnv) {
			parts = append(parts, plain.Line(k+" "+p[k]))
		}
	}
	if len(parts) == 0 {
		return "(unknown)"
	}
	return strings.Join(parts, ", ")
}

// printClasses explains the classes of a comparison, those that fail it last.
func printClasses(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range report.Classes() {
		mark := ""
		switch {
		case c.Bad():
			mark = "fails"
		case c.Notable():
			mark = "listed"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", c, mark, c.About())
	}
	return tw.Flush()
}
