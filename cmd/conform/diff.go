package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
)

// diffOptions say what conform diff compares and prints.
type diffOptions struct {
	format                 string
	common, exact, verbose bool
	today                  string
	ledgers                []conformance.LedgerFile
}

func newDiff() *cobra.Command {
	o := diffOptions{}
	var ledgers []string
	html := ""
	cmd := &cobra.Command{
		Use:   "diff A.json B.json",
		Short: "Compare two run records",
		Long: "diff compares what two runs saw, step by step. A is the reference: an older run, the simulator, or another device.\n" +
			"It prints a line for each case that somebody should look at, with its class, the first step that differs and both values,\n" +
			"then the command that runs these cases again as in B. -v prints every step that differs, --classes explains the\n" +
			"classes. A may be a YAML file of published measurements of a card: then B is compared with these values alone, and\n" +
			"must be a run on such a card or on its profile. The exit status is 0 if every difference is explained, 1 for a regression\n" +
			"or an entry of the ledger that no longer holds, and 2 if the records cannot be compared.",
		Example: "  conform --target=sim --report sim.json && conform --target=hw --report card.json\n  conform diff sim.json card.json\n  conform diff sim.json card.json --html card.html\n  conform diff fixtures/recordings/published-connectx-6.yaml card.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if classes, _ := cmd.Flags().GetBool("classes"); classes {
				if len(args) > 0 {
					return usagef("--classes explains the classes, and compares nothing: leave out %q", args[0])
				}
				return printClasses(cmd.OutOrStdout())
			}
			if err := needs(2, "two records, which conform --report writes")(cmd, args); err != nil {
				return err
			}
			if o.format != "table" && o.format != "json" {
				return usagef("--format %q is neither table nor json", o.format)
			}
			var err error
			if o.ledgers, err = readLedgers(cmd.Context(), ledgers); err != nil {
				return err
			}
			if o.format == "json" && o.verbose {
				return usagef("--format json has explained differences as well: leave out -v")
			}
			if report.IsPublished(args[0]) || report.IsPublished(args[1]) {
				return diffPublished(cmd, args, html, o)
			}
			a, err := readRecord(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			b, err := readRecord(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			pageFile, err := createPage(cmd, html, args)
			if err != nil {
				return err
			}
			c, err := compareRuns(cmd.OutOrStdout(), a, b, o)
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
	f.StringVar(&o.format, "format", "table", "format of the output: table or json")
	f.BoolVar(&o.common, "common", false, "leave out cases that only one record has")
	f.BoolVar(&o.exact, "exact", false, "the records must be the same, as two runs of one simulator are: every difference of what a case saw is a regression")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print explained differences as well, and every step that differs")
	f.StringArrayVar(&ledgers, "ledger", nil, "add a YAML `FILE` of known deviations to those that come with the program (docs/hw.md)")
	f.StringVar(&o.today, "today", "", "`DATE` (2026-11-21) by which entries of the ledger must have been reviewed (default: today)")
	f.Bool("classes", false, "explain the classes of a comparison, and compare nothing")
	f.StringVar(&html, "html", "", "also write both records, and how they differ, as one HTML page to `FILE`")
	return cmd
}

// compareRuns compares two records and prints the result.
func compareRuns(w io.Writer, a, b *report.Run, o diffOptions) (*report.Comparison, error) {
	today, err := dayOf(o.today)
	if err != nil {
		return nil, err
	}
	ledger, err := conformance.LoadLedger(o.ledgers...)
	if err != nil {
		return nil, err
	}
	rules, err := conformance.LoadRules()
	if err != nil {
		return nil, err
	}
	for _, r := range []*report.Run{a, b} {
		if err := ledger.Ambiguous(r.Platform()); err != nil {
			return nil, usagef("%w", err)
		}
	}
	c, err := report.Diff(a, b, report.DiffOptions{Common: o.common, Exact: o.exact, Ledger: ledger, Rules: rules})
	if err != nil {
		return nil, usagef("%w", err)
	}
	for i := range c.Cases {
		if x := &c.Cases[i]; x.Class.Notable() {
			x.Again = againAs(b, x.ID)
		}
	}
	if err := writeDiff(w, c, b, o); err != nil {
		return c, err
	}
	if o.format != "json" {
		for i, r := range []*report.Run{a, b} {
			if r.Incomplete {
				fmt.Fprintf(w, "finding: the %s record comes from a run that did not end\n", [...]string{"first", "second"}[i])
			}
			for _, late := range ledger.Overdue(r.Platform(), today) {
				fmt.Fprintln(w, "finding:", late)
			}
		}
	}
	if !c.OK() {
		err = &status{code: exitFailed}
	}
	return c, err
}

// writeDiff writes a comparison with the run b in the format of the options.
func writeDiff(w io.Writer, c *report.Comparison, b *report.Run, o diffOptions) error {
	if o.format != "json" {
		printDiff(w, c, b, o.verbose)
		return nil
	}
	return writeRows(w, c)
}
