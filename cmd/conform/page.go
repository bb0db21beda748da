package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/report/page"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// newPage is a page of runs, with what the catalogue says of their cases.
func newPage(targets ...page.Target) *page.Page {
	p := &page.Page{Targets: targets}
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return p // the page shows the records alone
	}
	p.Areas = map[string]string{}
	for _, a := range cat.Areas {
		p.Areas[a.Area] = a.Title
	}
	p.Rule = func(id string) page.Rule {
		e, ok := cat.Find(id)
		if !ok {
			return page.Rule{}
		}
		return page.Rule{Expected: e.Expected, Sources: e.SourceWords()}
	}
	return p
}

// writePage writes a run as a page.
func writePage(w io.Writer, run *report.Run, again func(id string) string, frames captures) error {
	return newPage(page.Target{Run: run, Again: again, Capture: frames}).Write(w)
}

// createPage makes the file of the page of a comparison, which is none of the records; nil if none
// was asked for.
func createPage(cmd *cobra.Command, path string, records []string) (*outfile.File, error) {
	if err := input.NamesGiven(cmd.Flags(), "html"); err != nil {
		return nil, usagef("%w", err)
	}
	if path == "" {
		return nil, nil
	}
	out := outfile.Named{Flag: "--html", Path: path}
	var in []outfile.Named
	for i, r := range records {
		in = append(in, outfile.Named{Flag: [...]string{"the first record", "the second record"}[i], Path: r})
	}
	err := outfile.NotStandard(out)
	if err == nil {
		err = outfile.Distinct([]outfile.Named{out}, in)
	}
	if err != nil {
		return nil, usagef("%w", err)
	}
	return create(cmd.Context(), path)
}

// commitDiffPage writes two records and their comparison as a page; without a comparison there is
// none.
func commitDiffPage(f *outfile.File, names []string, a, b *report.Run, c *report.Comparison) error {
	if f == nil {
		return nil
	}
	if c == nil {
		f.Abort()
		return nil
	}
	p := newPage(page.Target{Run: a, Name: filepath.Base(names[0])}, page.Target{Run: b, Name: filepath.Base(names[1])})
	p.Comparison = c
	if err := f.Commit(p.Write); err != nil {
		return &status{exitFailed, err}
	}
	return nil
}
