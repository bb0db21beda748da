package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

func newGaps() *cobra.Command {
	atMost := -1
	var lacks []string
	cmd := &cobra.Command{
		Use:   "gaps REPORT.json...",
		Short: "List the cases that ran in none of several runs",
		Long: "gaps reads the reports of runs, such as those of one stack on devices of several kinds, and lists the cases of this suite that\n" +
			"none of them ran: each report lacks such a case or has it as not-run. A case whose call was refused (unsupported) has run.\n" +
			"Cases that need what the machine itself lacks (--machine-lacks) are counted apart.\n" +
			"Exit status: 0, or 1 when there are more such cases than --at-most, 2 wrong usage.",
		Example: "  conform gaps roce.json infiniband.json --at-most 40",
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				return usagef("gaps needs the reports of runs: conform gaps REPORT.json...")
			}
			if cmd.Flags().Changed("at-most") && atMost < 0 {
				return usagef("--at-most %d: a number of cases from 0 up is needed", atMost)
			}
			items, err := conformance.Items(conformance.Suite())
			if err != nil {
				return err
			}
			g, err := runs.FindGaps(items, lacks, records(cmd.Context(), names))
			if err != nil {
				return err
			}
			tooMany := atMost >= 0 && len(g.List) > atMost
			printUnrun(cmd.OutOrStdout(), g, len(names), atMost, tooMany)
			if tooMany {
				return &status{code: exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&atMost, "at-most", -1, "fail if more than `N` cases ran in none of the runs (default: no limit)")
	cmd.Flags().StringSliceVar(&lacks, "machine-lacks", nil, "count separately the cases that need one of these `CAPABILITIES` (conform list --capabilities)")
	return cmd
}

func printUnrun(w io.Writer, g *runs.Gaps, n, atMost int, tooMany bool) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CASE\tWHY IT RAN IN NONE")
	for _, x := range g.List {
		fmt.Fprintf(tw, "%s\t%s\n", x.ID, plain.Line(x.Why))
	}
	_ = tw.Flush()
	head, limit := "ok:", ""
	if tooMany {
		head = "FAIL:"
	}
	if atMost >= 0 {
		limit = fmt.Sprintf(", and at most %d may", atMost)
	}
	if g.Apart > 0 {
		limit += fmt.Sprintf("; %s beside them that this machine cannot run", plain.Count(g.Apart, "case"))
	}
	fmt.Fprintf(w, "%s %d of %s ran in none of %s%s\n", head, len(g.List), plain.Count(g.All, "case"), plain.Count(n, "run"), limit)
}

// records reads the records of runs, one at a time.
func records(ctx context.Context, names []string) iter.Seq2[*report.Run, error] {
	return func(yield func(*report.Run, error) bool) {
		for _, name := range names {
			if !yield(readRecord(ctx, name)) {
				return
			}
		}
	}
}

// readRecord reads one of several records, unless the command is to end: they may be many, and
// large.
func readRecord(ctx context.Context, name string) (*report.Run, error) {
	if ctx.Err() != nil {
		return nil, &status{exitInterrupted, fmt.Errorf("interrupted before %s was read", name)}
	}
	r, err := report.ReadFile(ctx, name)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return r, nil
}
