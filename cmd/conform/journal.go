package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// journal keeps the cases of a run beside its report until that is written. Its methods do nothing for nil: a
// run without a report that is a file.
type journal struct {
	*report.Journal
	path string
	err  error // the first: what is lost if the run is killed
}

// openJournal makes the journal of a report. A case on hardware may have taken minutes, and the card may not
// do it again: each is made durable. Those of the simulator can be run again.
func openJournal(ctx context.Context, of, target string) (*journal, error) {
	path, sync := of+report.JournalSuffix, time.Second
	if target == "hw" {
		sync = 0
	}
	j, err := report.OpenJournal(ctx, path, sync)
	if errors.Is(err, outfile.ErrLocked) {
		return nil, usagef("another run writes %s and its journal %s: wait for its end, or give --report another name", of, path)
	}
	if err != nil {
		return nil, &status{exitUsage, err}
	}
	return &journal{Journal: j, path: path}, nil
}

// begin and add say at once what cannot be written. The run goes on, because its report may still be written.

func (j *journal) begin(run *report.Run, stderr io.Writer) {
	if j != nil {
		j.note(j.Begin(run), stderr)
	}
}

func (j *journal) add(c report.Case, stderr io.Writer) {
	if j != nil {
		j.note(j.Add(c), stderr)
	}
}

func (j *journal) note(err error, stderr io.Writer) {
	if err == nil || j.err != nil {
		return
	}
	j.err = err
	fmt.Fprintf(stderr, "conform: %v: the run goes on, but from here on a kill loses its cases\n", err)
}

// failed reports whether a case is missing in the journal.
func (j *journal) failed() bool { return j != nil && j.err != nil }

// remove ends a journal whose report is in place.
func (j *journal) remove() error {
	if j == nil {
		return nil
	}
	return j.Remove()
}

// drop ends a journal that nobody needs.
func (j *journal) drop() {
	if j != nil && j.Remove() == nil {
		j.Journal = nil
	}
}

// leave ends a journal without a report. It stays if it has cases.
func (j *journal) leave() {
	switch {
	case j == nil || j.Journal == nil:
	case j.Cases() > 0:
		j.Close()
	default:
		j.drop()
	}
}

// mention adds to the error that ended a run where its cases are.
func (j *journal) mention(err error) error {
	if j == nil || j.Journal == nil || j.Cases() == 0 {
		return err
	}
	if _, gone := os.Stat(j.path); gone != nil { // the report is written
		return err
	}
	code := exitFailed
	var s *status
	if errors.As(err, &s) {
		code = s.code
	}
	what := "its cases are"
	if j.failed() {
		what = fmt.Sprintf("only %s of the run, those before the journal failed, are", cases(j.Cases()))
	}
	return &status{code, fmt.Errorf("%w; %s in %s: conform recover %s makes a record of them", err, what, j.path, commands.Quoted(j.path))}
}

func newRecover() *cobra.Command {
	into := ""
	cmd := &cobra.Command{
		Use:   "recover FILE.json.journal",
		Short: "Make a record of the cases of a run that was killed",
		Long: "A run with --report FILE.json keeps FILE.json.journal while it lasts, with each case that has finished. When it was\n" +
			"killed or the machine lost power, recover writes FILE.json from it, marked as incomplete, and removes the journal.\n" +
			"conform diff compares the cases that such a record has; conform accept refuses it. The exit status is 0, or 2 for a\n" +
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
	if _, err := os.Stat(path); err != nil {
		return &status{exitUsage, err}
	}
	log, err := outfile.OpenLog(ctx, path) // nobody else writes or recovers it meanwhile
	if errors.Is(err, outfile.ErrLocked) {
		return usagef("the run that writes %s has not ended", path)
	}
	if err != nil {
		return &status{exitUsage, err}
	}
	defer log.Close()
	back, err := report.ReadJournal(path, log.Reader())
	if err != nil {
		return &status{exitUsage, err}
	}
	if back.Torn != "" {
		fmt.Fprintln(stderr, "conform:", back.Torn)
	}
	if err := replaceable(ctx, into); err != nil {
		return err
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
	if err := log.Remove(); err != nil {
		return &status{exitFailed, err}
	}
	return nil
}

// replaceable refuses a file that is anything but an incomplete record.
func replaceable(ctx context.Context, path string) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil // nothing is there that could be lost; create says what is wrong
	}
	if old, err := report.ReadFile(ctx, path); err != nil || !old.Incomplete {
		return usagef("%s exists, and is not the record of an interrupted run: give the recovered record another name with --report FILE.json", path)
	}
	return nil
}
