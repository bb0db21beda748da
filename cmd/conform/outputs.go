package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/rdmasim/rdmasim/report"
)

// outputs are the files that a run writes; nil are those that were not asked for.
type outputs struct{ report, junit, pcap, trace *report.File }

func (o *runOptions) open() (out outputs, err error) {
	for _, f := range []struct {
		path string
		file **report.File
	}{{o.report, &out.report}, {o.junit, &out.junit}, {o.pcap, &out.pcap}, {o.trace, &out.trace}} {
		if f.path == "" {
			continue
		}
		if *f.file, err = report.Create(f.path); err != nil {
			out.abort()
			return outputs{}, &status{exitUsage, err}
		}
	}
	return out, nil
}

func (out outputs) abort() {
	for _, f := range []*report.File{out.report, out.junit, out.pcap, out.trace} {
		if f != nil {
			f.Abort()
		}
	}
}

func (out outputs) write(run *report.Run, dir string) error {
	var errs []error
	commit := func(f *report.File, fill func(io.Writer) error) {
		if f != nil {
			errs = append(errs, f.Commit(fill))
		}
	}
	commit(out.report, run.WriteJSON)
	commit(out.junit, run.WriteJUnit)
	commit(out.pcap, func(w io.Writer) error { return joinCaptures(w, dir, run.Cases) })
	commit(out.trace, func(w io.Writer) error { return joinTraces(w, dir, run.Cases) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the run's results are lost in part: %w", err)
	}
	return nil
}
