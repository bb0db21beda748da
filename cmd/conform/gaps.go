package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// gap is a case that ran in none of several runs.
type gap struct{ id, why string }

// gaps are the cases of the suite that none of several runs has run.
type gaps struct {
	list  []gap
	apart int // that need what the machine lacks
	all   int // cases of the suite
}

func newGaps() *cobra.Command {
	atMost := -1
	var lacks []string
	cmd := &cobra.Command{
		Use:   "gaps REPORT.json...",
		Short: "List the cases that ran in none of several runs",
		Long: "gaps reads the reports of runs, such as those of one stack on devices of several kinds, and lists the cases of this suite that\n" +
			"none of them ran: those that are not-run in each, or in none. A case whose call was refused (unsupported) has run. Those that need\n" +
			"what the machine itself lacks (--machine-lacks) are counted apart.\n" +
			"Exit status: 0, or 1 when there are more such cases than --at-most, 2 wrong usage.",
		Example: "  conform gaps roce.json infiniband.json --at-most 40",
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				return usagef("gaps needs the reports of runs: conform gaps REPORT.json...")
			}
			if cmd.Flags().Changed("at-most") && atMost < 0 {
				return usagef("--at-most %d: a number of cases from 0 up is needed", atMost)
			}
			g, err := gapsOf(cmd.Context(), names, lacks)
			if err != nil {
				return err
			}
			tooMany := atMost >= 0 && len(g.list) > atMost
			g.print(cmd.OutOrStdout(), len(names), atMost, tooMany)
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

func gapsOf(ctx context.Context, names, lacks []string) (*gaps, error) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		return nil, err
	}
	for _, token := range lacks {
		if !slices.ContainsFunc(items, func(i conformance.Item) bool { return slices.Contains(i.Entry.Needs, token) }) {
			return nil, usagef("--machine-lacks %q: no case needs it; conform list --capabilities has the names", token)
		}
	}
	ran, why := map[string]bool{}, map[string]string{}
	for _, name := range names {
		r, err := readRecord(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, c := range r.Cases {
			if c.Outcome != report.NotRun {
				ran[c.ID] = true
			} else if why[c.ID] == "" {
				why[c.ID] = c.Reason
			}
		}
	}
	g := &gaps{all: len(items)}
	for _, i := range items {
		id := i.Entry.ID
		if ran[id] {
			continue
		}
		if slices.ContainsFunc(lacks, func(token string) bool { return slices.Contains(i.Entry.Needs, token) }) {
			g.apart++
			continue
		}
		if why[id] == "" {
			why[id] = "no run has chosen it"
		}
		g.list = append(g.list, gap{id, why[id]})
	}
	return g, nil
}

func (g *gaps) print(w io.Writer, runs, atMost int, tooMany bool) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CASE\tWHY IT RAN IN NONE")
	for _, x := range g.list {
		fmt.Fprintf(tw, "%s\t%s\n", x.id, plain.Line(x.why))
	}
	_ = tw.Flush()
	head, limit := "ok:", ""
	if tooMany {
		head = "FAIL:"
	}
	if atMost >= 0 {
		limit = fmt.Sprintf(", and at most %d may", atMost)
	}
	if g.apart > 0 {
		limit += fmt.Sprintf("; %s beside them that this machine cannot run", plain.Count(g.apart, "case"))
	}
	fmt.Fprintf(w, "%s %d of %s ran in none of %s%s\n", head, len(g.list), plain.Count(g.all, "case"), plain.Count(runs, "run"), limit)
}

// readRecord reads one of several records, unless the command is to end: they may be many, and large.
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
