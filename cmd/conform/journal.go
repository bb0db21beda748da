package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// noteJournal says at once what the journal of a run cannot take.
func noteJournal(stderr io.Writer, err error) {
	if err != nil {
		fmt.Fprintf(stderr, "conform: %v: the run goes on, but from here on a kill loses its cases\n", err)
	}
}

// withJournal adds to the error that ended a run where its cases are.
func withJournal(j *runs.Journal, err error) error {
	where := j.Where()
	if where == "" {
		return err
	}
	code := exitFailed
	var s *status
	if errors.As(err, &s) {
		code = s.code
	}
	return &status{code, fmt.Errorf("%w; %s: conform recover %s makes a record of them", err, where, commands.Quoted(j.Path()))}
}

func newRecover() *cobra.Command {
	into := ""
	cmd := &cobra.Command{
		Use:   "recover FILE.json.journal",
		Short: "Make a record of the cases of a run that was killed",
		Long: "While a run with --report FILE.json lasts, FILE.json.journal holds each case that has finished. If the run is killed\n" +
			"or the machine loses power, recover writes FILE.json from the journal, marked as incomplete, and removes the journal.\n" +
			"conform diff compares the cases of such a record; conform accept refuses it. The exit status is 0, or 2 for a\n" +
			"journal that cannot be read or whose report exists already.",
		Example: "  conform recover card.json.journal",
		Args:    needs(1, "the journal of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return recoverRun(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], into)
		},
	}
	cmd.Flags().StringVar(&into, "report", "", "write the record to this `FILE` (default: the name of the journal without "+report.JournalSuffix+")")
	return cmd
}

func recoverRun(ctx context.Context, stdout, stderr io.Writer, path, into string) error {
	if err := outfile.NotStandard(outfile.Named{Flag: "--report", Path: into}); err != nil {
		return &status{exitUsage, err}
	}
	var named bool
	if into == "" {
		if into, named = report.ReportOfJournal(path); !named {
			return usagef("%s does not end in %s: name the record with --report FILE.json", path, report.JournalSuffix)
		}
	}
	back, err := runs.Recover(ctx, path, into)
	if err != nil {
		return &status{exitUsage, err}
	}
	defer back.Close()
	if back.Torn != "" {
		fmt.Fprintln(stderr, "conform:", back.Torn)
	}
	f, err := create(ctx, into)
	if err != nil {
		return err
	}
	if err := f.Commit(back.Run.WriteJSON); err != nil {
		return &status{exitFailed, err}
	}
	printFailures(stdout, &runOptions{}, back.Run)
	printTable(stdout, back.Run)
	fmt.Fprintf(stdout, "%s: %d of %s, marked as incomplete\n", into, back.Finished, cases(len(back.Run.Cases)))
	if err := back.Remove(); err != nil {
		return &status{exitFailed, err}
	}
	return nil
}
