package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// outputs are the files that a run writes; nil are those that were not asked for.
type outputs struct {
	report, junit, html, pcap, trace *outfile.File
	journal                          *runs.Journal // beside the report, if that is a regular file
}

// open creates the files. While it waits for the reader of a FIFO, the end of ctx ends it.
func (o *runOptions) open(ctx context.Context) (out outputs, err error) {
	for _, f := range []struct {
		path string
		file **outfile.File
	}{{o.report, &out.report}, {o.junit, &out.junit}, {o.html, &out.html}, {o.pcap, &out.pcap}, {o.trace, &out.trace}} {
		if f.path == "" {
			continue
		}
		if *f.file, err = create(ctx, f.path); err != nil {
			out.abort()
			return outputs{}, err
		}
	}
	if out.report != nil && out.report.Regular() {
		if out.journal, err = runs.OpenJournal(ctx, out.report.Path(), o.target == "hw"); err != nil {
			out.abort()
			return outputs{}, err
		}
	}
	return out, nil
}

// toStandard lets outputs that are named "-" be written to standard output. What is printed for
// people then goes to standard error.
func toStandard(cmd *cobra.Command, outputs ...*string) {
	for _, path := range outputs {
		if *path == outfile.Standard {
			*path = outfile.StandardPath
		}
		if outfile.IsStandard(*path) {
			cmd.SetOut(cmd.ErrOrStderr())
		}
	}
}

// create is outfile.Create with the exit status of its errors.
func create(ctx context.Context, path string) (*outfile.File, error) {
	f, err := outfile.Create(ctx, path)
	switch {
	case errors.Is(err, outfile.ErrInterrupted):
		return nil, &status{exitInterrupted, err}
	case err != nil:
		return nil, &status{exitUsage, err}
	}
	return f, nil
}

// abort discards the files. A journal with cases stays.
func (out outputs) abort() {
	out.journal.Leave()
	for _, f := range []*outfile.File{out.report, out.junit, out.html, out.pcap, out.trace} {
		if f != nil {
			f.Abort()
		}
	}
}

// write writes the outputs of a run. again is the command that runs a case again; dir has the files
// of the cases.
func (out outputs) write(run *report.Run, dir string, again func(id string) string) error {
	var errs []error
	commit := func(f *outfile.File, fill func(io.Writer) error) {
		if f != nil {
			errs = append(errs, f.Commit(fill))
		}
	}
	commit(out.report, run.WriteJSON)
	if errors.Join(errs...) == nil {
		errs = append(errs, out.journal.Remove())
	}
	commit(out.junit, func(w io.Writer) error { return run.WriteJUnit(w, again) })
	commit(out.html, func(w io.Writer) error { return writePage(w, run, again, capturesIn(dir)) })
	for _, f := range []struct {
		file   **outfile.File
		suffix string
	}{{&out.pcap, ".pcapng"}, {&out.trace, ".trace"}} {
		if *f.file != nil && run.Incomplete && !runs.LeftAny(dir, f.suffix) { // nothing to put in place of an older file
			(*f.file).Abort()
			*f.file = nil
		}
	}
	commit(out.pcap, func(w io.Writer) error { return runs.JoinCaptures(w, dir, run.Cases) })
	commit(out.trace, func(w io.Writer) error { return runs.JoinTraces(w, dir, run.Cases) })
	return errors.Join(errs...)
}
