package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// perfReport is the file of --out_json. A regular one is put in place after each size. What else
// stands there, such as a pipe, is written once, at the end, for its reader takes the first report
// as all.
type perfReport struct {
	ctx    context.Context
	direct *outfile.File // no regular file, open from the beginning
	last   []byte        // for it
	lost   error         // why the last report is not in its place; the test goes on, for its sizes are printed
}

// openPerfReport sees to it that the report can be written, before anything is measured.
func openPerfReport(c *cobra.Command, o *perf.Options) (*perfReport, error) {
	r := &perfReport{ctx: c.Context()}
	if !o.JSON {
		return r, nil
	}
	f, err := outfile.Create(r.ctx, o.JSONFile)
	if err != nil {
		fmt.Fprintf(c.ErrOrStderr(), "failed to open %s\n", o.JSONFile)
		return nil, fmt.Errorf("perf: --out_json: %w: give another file with --out_json_file", err)
	}
	if f.Regular() {
		f.Abort()
		return r, nil
	}
	r.direct = f
	return r, nil
}

// write is perf.Env.WriteJSON.
func (r *perfReport) write(path string, b []byte) error {
	if r.direct != nil {
		r.last = b
		return nil
	}
	f, err := outfile.Create(r.ctx, path)
	if err == nil {
		err = f.Commit(func(w io.Writer) error { _, err := w.Write(b); return err })
	}
	r.lost = err
	return nil
}

// finish writes what has waited for the end, and says what is lost.
func (r *perfReport) finish() error {
	switch {
	case r.direct == nil:
		return r.lost
	case r.last == nil:
		r.direct.Abort()
		return nil
	}
	return r.direct.Commit(func(w io.Writer) error { _, err := w.Write(r.last); return err })
}

// ended reports whether a test is to end: the user wants it, or of one that has no end of its own
// nobody reads the output any more.
func ended(c *cobra.Command, o *perf.Options) func() bool {
	return func() bool {
		out, ok := c.OutOrStdout().(*plain.Output)
		return c.Context().Err() != nil || o.Method == perf.Infinite && ok && out.Err != nil
	}
}
