package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/mutants"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/experiment/sweep/shard"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

const shardHelp = "run one part: `i/n` with i from 0, auto/n or auto (the task of a Slurm array or of a Kubernetes indexed job); conform merge puts the reports together"

// readPart reads --shard.
func readPart(text, reportFile string) (runs.Part, error) {
	if text == "" {
		return runs.Part{}, nil
	}
	i, n, err := shard.Parse(text, os.Getenv)
	if err != nil {
		return runs.Part{}, usagef("--shard %s: %w", text, err)
	}
	if reportFile == "" {
		return runs.Part{}, usagef("--shard %s: conform merge puts parts together by their reports: add --report FILE.json", text)
	}
	return runs.Part{Index: i, Parts: n}, nil
}

// mostReport bounds a report of conform mutants, as records are.
const mostReport = 64 << 20

type mergeOptions struct {
	report, today string
	ledgers       []string
	minPass       int
}

func newMerge() *cobra.Command {
	o := &mergeOptions{}
	cmd := &cobra.Command{
		Use:   "merge PART.json...",
		Short: "Put the reports of the parts of a run together",
		Long: "merge reads the reports of all parts of a run (conform --shard i/n, or conform mutants --shard i/n) in any order, writes the\n" +
			"report that the whole run would have written, byte for byte, and judges the run as a whole. The exit status is the whole run's.",
		Example: "  conform --shard 0/2 --report 0.json; conform --shard 1/2 --report 1.json\n  conform merge 0.json 1.json --report all.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("merge needs the reports of the parts of a run: conform merge PART.json...")
			}
			if err := input.NamesGiven(cmd.Flags(), "report"); err != nil {
				return usagef("%w", err)
			}
			if _, err := dayOf(o.today); err != nil {
				return err
			}
			toStandard(cmd, &o.report)
			if err := o.distinct(args); err != nil {
				return usagef("%w", err)
			}
			first, err := input.ReadUpTo(cmd.Context(), args[0], mostReport) // once: it may be a pipe
			if err != nil {
				return usagef("%w", err)
			}
			read := func(i int) ([]byte, error) {
				if cmd.Context().Err() != nil {
					return nil, &status{exitInterrupted, fmt.Errorf("interrupted before %s was read", args[i])}
				}
				if i == 0 {
					return first, nil
				}
				text, err := input.ReadUpTo(cmd.Context(), args[i], mostReport)
				if err != nil {
					err = usagef("%w", err)
				}
				return text, err
			}
			items, err := conformance.Items(conformance.Suite())
			if err != nil {
				return err
			}
			if mutants.IsReport(first) {
				return mergeMutants(cmd, o, items, args, read)
			}
			return mergeRuns(cmd, o, items, args, read)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.report, "report", "", "write the report of the whole run as JSON to `FILE`; - is standard output")
	f.IntVar(&o.minPass, "min-pass", 0, "fail a run in which fewer cases pass than this")
	f.StringArrayVar(&o.ledgers, "ledger", nil, "YAML `FILE` of known deviations that the parts were given; may be repeated")
	f.StringVar(&o.today, "today", "", "`DATE` by which entries of the ledger must have been reviewed (default: today)")
	return cmd
}

// distinct refuses a report that would overwrite a part.
func (o *mergeOptions) distinct(parts []string) error {
	var inputs []outfile.Named
	for _, path := range parts {
		inputs = append(inputs, outfile.Named{Flag: "a part", Path: path})
	}
	for _, path := range o.ledgers {
		inputs = append(inputs, outfile.Named{Flag: "--ledger", Path: path})
	}
	return outfile.Distinct([]outfile.Named{{Flag: "--report", Path: o.report}}, inputs)
}

// write writes the report of the whole run, if one was asked for.
func (o *mergeOptions) write(ctx context.Context, fill func(io.Writer) error) error {
	if o.report == "" {
		return nil
	}
	file, err := create(ctx, o.report)
	if err != nil {
		return err
	}
	if err := file.Commit(fill); err != nil {
		return &status{exitFailed, err}
	}
	return nil
}

// mergeRuns merges the records of parts; read returns the text of one.
func mergeRuns(cmd *cobra.Command, o *mergeOptions, items []conformance.Item, names []string, read func(i int) ([]byte, error)) error {
	ledgers, err := readLedgers(cmd.Context(), o.ledgers)
	if err != nil {
		return err
	}
	today, err := dayOf(o.today)
	if err != nil {
		return err
	}
	run, err := runs.Merge(items, names, read, runs.Demands{MinPass: o.minPass, Today: today, Ledgers: ledgers})
	if err != nil {
		return err
	}
	lost := o.write(cmd.Context(), run.WriteJSON)
	printRun(cmd.OutOrStdout(), &runOptions{ledgers: o.ledgers}, run)
	return endOfMerge(lost, run.Incomplete, run.OK())
}

// mergeMutants merges the reports of parts of conform mutants.
func mergeMutants(cmd *cobra.Command, o *mergeOptions, items []conformance.Item, names []string, read func(i int) ([]byte, error)) error {
	if o.minPass > 0 || len(o.ledgers) > 0 || o.today != "" {
		return usagef("--min-pass, --ledger and --today are for runs of the suite, and %s is a report of conform mutants: leave them out", names[0])
	}
	out, err := mutants.Merge(items, names, read)
	if err != nil {
		return err
	}
	lost := o.write(cmd.Context(), out.Report.WriteJSON)
	printMutants(cmd.OutOrStdout(), out)
	return endOfMerge(lost, out.Report.Incomplete, len(out.Findings) == 0)
}

// endOfMerge returns the exit status of a run that was merged; lost is the error of its report.
func endOfMerge(lost error, incomplete, ok bool) error {
	switch {
	case lost != nil:
		return lost
	case incomplete:
		return &status{code: exitInterrupted}
	case !ok:
		return &status{code: exitFailed}
	}
	return nil
}
