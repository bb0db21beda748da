package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/plain"
	"github.com/rdmasim/rdmasim/report"
)

// gap is a case that ran in none of several runs.
type gap struct{ id, why string }

func newGaps() *cobra.Command {
	atMost := -1
	cmd := &cobra.Command{
		Use:   "gaps REPORT.json...",
		Short: "List the cases that ran in none of several runs",
		Long: "gaps reads the reports of runs, such as those of one stack on devices of several kinds, and lists the cases of this suite that\n" +
			"none of them ran: those that are not-run in each, or in none. A case whose call was refused (unsupported) has run.\n" +
			"Exit status: 0, or 1 when there are more such cases than --at-most, 2 wrong usage.",
		Example: "  conform gaps roce.json infiniband.json --at-most 40",
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				return usagef("gaps needs the reports of runs: conform gaps REPORT.json...")
			}
			if cmd.Flags().Changed("at-most") && atMost < 0 {
				return usagef("--at-most %d: it is a number of cases", atMost)
			}
			gaps, all, err := gapsOf(cmd.Context(), names)
			if err != nil {
				return err
			}
			tooMany := atMost >= 0 && len(gaps) > atMost
			printGaps(cmd.OutOrStdout(), gaps, all, len(names), atMost, tooMany)
			if tooMany {
				return &status{code: exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&atMost, "at-most", -1, "fail when more cases than this ran in no run (default: any number may)")
	return cmd
}

// gapsOf are the cases of the suite that none of the runs has run, and how many cases there are.
func gapsOf(ctx context.Context, names []string) (gaps []gap, all int, err error) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		return nil, 0, err
	}
	ran, why := map[string]bool{}, map[string]string{}
	for _, name := range names {
		r, err := report.ReadFile(ctx, name)
		if err != nil {
			return nil, 0, usagef("%w", err)
		}
		for _, c := range r.Cases {
			if c.Outcome != report.NotRun {
				ran[c.ID] = true
			} else if why[c.ID] == "" {
				why[c.ID] = c.Reason
			}
		}
	}
	for _, i := range items {
		if id := i.Entry.ID; !ran[id] {
			if why[id] == "" {
				why[id] = "no run has chosen it"
			}
			gaps = append(gaps, gap{id, why[id]})
		}
	}
	return gaps, len(items), nil
}

func printGaps(w io.Writer, gaps []gap, all, runs, atMost int, tooMany bool) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CASE\tWHY IT RAN IN NONE")
	for _, g := range gaps {
		fmt.Fprintf(tw, "%s\t%s\n", g.id, plain.Line(g.why))
	}
	_ = tw.Flush()
	head, limit := "ok:", ""
	if tooMany {
		head = "FAIL:"
	}
	if atMost >= 0 {
		limit = fmt.Sprintf(", and at most %d may", atMost)
	}
	fmt.Fprintf(w, "%s %d of %s ran in none of %s%s\n", head, len(gaps), plain.Count(all, "case"), plain.Count(runs, "run"), limit)
}
