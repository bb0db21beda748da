package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/plain"
	"github.com/rdmasim/rdmasim/report"
)

func newDiff() *cobra.Command {
	format, common, verbose, html := "table", false, false, ""
	cmd := &cobra.Command{
		Use:   "diff A.json B.json",
		Short: "Compare two run records",
		Long: "diff compares what two runs saw, step by step. A is the reference: an older run, the simulator, or another device.\n" +
			"A difference is predicted by the ledger of known deviations, allowed by the catalogue, in a value that nothing fixes\n" +
			"between two kinds of device, or a regression; so is a case that fails or is flaky in B only. One that is flaky in A\n" +
			"is named, and has no verdict. The exit status is 0 if every difference is explained, 1 for a regression, and 2 if\n" +
			"the records cannot be compared.",
		Example: "  conform --target=sim --report sim.json && conform --target=hw --report card.json\n  conform diff sim.json card.json\n  conform diff sim.json card.json --html card.html",
		Args:    needs(2, "two records, which conform --report writes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" {
				return usagef("--format %q is neither table nor json", format)
			}
			a, err := report.ReadFile(cmd.Context(), args[0])
			if err != nil {
				return usagef("%w", err)
			}
			b, err := report.ReadFile(cmd.Context(), args[1])
			if err != nil {
				return usagef("%w", err)
			}
			pageFile, err := createPage(cmd, html, args)
			if err != nil {
				return err
			}
			c, err := compareRuns(cmd.OutOrStdout(), a, b, format, common, verbose)
			if unwritten := commitDiffPage(pageFile, args, a, b, c); unwritten != nil {
				return unwritten
			}
			if c != nil && c.Compared() == 0 {
				return usagef("no case was compared: none has run in both %s and %s", args[0], args[1])
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "table", "format of the output: table or json")
	f.BoolVar(&common, "common", false, "leave out cases that only one record has")
	f.StringVar(&html, "html", "", "also write both records, and how they differ, as one HTML page to `FILE`")
	f.BoolVarP(&verbose, "verbose", "v", false, "print explained differences as well")
	return cmd
}

// compareRuns compares two records and prints the result.
func compareRuns(w io.Writer, a, b *report.Run, format string, common, verbose bool) (*report.Comparison, error) {
	ledger, err := conformance.LoadLedger()
	if err != nil {
		return nil, err
	}
	for _, r := range []*report.Run{a, b} {
		if err := ledger.Ambiguous(r.Platform()); err != nil {
			return nil, usagef("%w", err)
		}
	}
	c, err := report.Diff(a, b, report.DiffOptions{Common: common, Ledger: ledger})
	if err != nil {
		return nil, usagef("%w", err)
	}
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		enc.SetEscapeHTML(false)
		err = enc.Encode(c)
	} else {
		printDiff(w, c, verbose)
		for i, r := range []*report.Run{a, b} {
			if r.Incomplete {
				fmt.Fprintf(w, "finding: the %s record is of a run that did not end\n", [...]string{"first", "second"}[i])
			}
			for _, late := range ledger.Overdue(r.Platform(), time.Now()) {
				fmt.Fprintln(w, "finding:", late)
			}
		}
	}
	if err == nil && !c.OK() {
		err = &status{code: exitFailed}
	}
	return c, err
}

func printDiff(w io.Writer, c *report.Comparison, verbose bool) {
	for _, x := range c.Cases {
		if x.Class == report.Same || !verbose && !x.Class.Bad() && x.Class != report.Unstable {
			continue
		}
		fmt.Fprintf(w, "%s %s  %s -> %s\n", x.Class, plain.Line(x.ID), outcome(x.A), outcome(x.B))
		printReason(w, x.Reason)
		for _, d := range x.Differences {
			if verbose || d.Class.Bad() {
				fmt.Fprintf(w, "    %s %s: %s -> %s", d.Class, plain.Line(d.Step), shown(d.A), shown(d.B))
				if d.Deviation != "" {
					fmt.Fprintf(w, "  (%s)", plain.Line(d.Deviation))
				}
				fmt.Fprintln(w)
			}
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, class := range report.Classes() {
		if n := c.Summary[class]; n > 0 {
			fmt.Fprintf(tw, "%s\t%d\n", class, n)
		}
	}
	_ = tw.Flush() // to the same writer as what follows, which would fail too
	end := "ok"
	switch {
	case !c.OK():
		end = "DIFFERENT"
	case c.Compared() == 0:
		end = "NOTHING COMPARED"
	}
	fmt.Fprintf(w, "%s: %s, %s against %s\n", end, comparedOf(c), platformName(c.A), platformName(c.B))
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

func shown(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
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
