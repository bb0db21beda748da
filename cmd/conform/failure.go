package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce/ladder"
)

// How many frames before and after the failure a terminal shows. The record and the page have more.
const (
	shownBefore = 12
	shownAfter  = 4
)

// printFailures prints each bad case: what it asserts and by which source, what was wanted and
// seen, where, the frames around it, and how to run it again.
func printFailures(w io.Writer, o *runOptions, run *report.Run) {
	for i := range run.Cases {
		c := &run.Cases[i]
		if !c.Outcome.Bad() {
			continue
		}
		fmt.Fprintf(w, "%s %s  %s\n", strings.ToUpper(string(c.Outcome)), plain.Line(c.ID), plain.Line(c.Text))
		if r := ruleOf(c.ID); r != "" {
			fmt.Fprintf(w, "    rule: %s\n", r)
		}
		printReason(w, plain.Text(c.Reason))
		if c.Where != "" {
			fmt.Fprintf(w, "    at %s\n", plain.Line(c.Where))
		}
		if o.target == "hw" {
			printGuest(w)
		}
		printFrames(w, c)
		fmt.Fprintf(w, "    again: %s\n\n", o.again(run, c.ID))
	}
}

// ruleOf says where the rule stands that a case asserts, and what the catalogue expects.
func ruleOf(id string) string {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return ""
	}
	e, ok := cat.Find(id)
	if !ok {
		return ""
	}
	var parts []string
	if e.Expected != "" {
		parts = append(parts, "expects "+e.Expected)
	}
	if s := e.SourceWords(); len(s) > 0 {
		parts = append(parts, "source: "+strings.Join(s, ", "))
	}
	return strings.Join(parts, "; ")
}

// printFrames draws the frames around the failure of a case.
func printFrames(w io.Writer, c *report.Case) {
	if len(c.Frames) == 0 {
		return
	}
	rows := make([]ladder.Row, len(c.Frames))
	before := 0
	for i, f := range c.Frames {
		rows[i] = ladder.Row{AtNs: f.AtNs, From: plain.Line(f.From), To: plain.Line(f.To), Text: plain.Line(f.Text), Fate: plain.Line(f.Fate)}
		if c.FailedNs == 0 || f.AtNs <= c.FailedNs {
			before++
		}
	}
	first, last := max(before-shownBefore, 0), min(before+shownAfter, len(rows))
	left := c.FramesBefore + first
	fmt.Fprintln(w, "    frames on the wire around it:")
	if left > 0 {
		fmt.Fprintf(w, "      (%d before)\n", left)
	}
	lines := ladder.Draw(rows)
	for i := first; i < last; i++ {
		if i == before {
			printFailedAt(w, c)
		}
		fmt.Fprintf(w, "      %s\n", lines[i])
	}
	if before == last {
		printFailedAt(w, c)
	}
	if left := c.FramesAfter + len(rows) - last; left > 0 {
		fmt.Fprintf(w, "      (%d after)\n", left)
	}
}

func printFailedAt(w io.Writer, c *report.Case) {
	if c.FailedNs > 0 {
		fmt.Fprintf(w, "      %12.3f us  == the check failed here ==\n", float64(c.FailedNs)/1e3)
	} else {
		fmt.Fprintf(w, "      %12s     == the check failed later ==\n", "")
	}
}

// roundly is a time with as many digits as a reader wants.
func roundly(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// captures are the captures of the cases that failed, by ID. Of a case without one it is nil.
type captures func(id string) []byte

// capturesIn are those that the workers have left in a folder.
func capturesIn(dir string) captures {
	return func(id string) []byte {
		if dir == "" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, id+harness.EvidenceSuffix))
		if err != nil {
			return nil
		}
		return text
	}
}

// capturesSuffix ends the name of a file of --captures, after the ID of its case.
const capturesSuffix = ".pcapng"

// checkCaptures makes the folder of captures, and says before a run what will keep those of its
// cases from being written.
func checkCaptures(ctx context.Context, into string, ids []string) error {
	if into == "" {
		return nil
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return usagef("--captures %s cannot be made: %w", into, err)
	}
	for i, id := range ids {
		path := filepath.Join(into, id+capturesSuffix)
		if st, err := os.Stat(path); i > 0 && (err != nil || st.Mode().IsRegular()) { // as for the first
			continue
		}
		if err := outfile.Check(ctx, path); err != nil {
			return usagef("--captures: %w", err)
		}
	}
	return nil
}

// saveCaptures writes the captures of the cases that failed into a folder of the user.
func saveCaptures(ctx context.Context, run *report.Run, from, into string) error {
	if into == "" {
		return nil
	}
	var errs []error
	for _, c := range run.Cases {
		text := capturesIn(from)(c.ID)
		if text == nil {
			continue
		}
		f, err := create(ctx, filepath.Join(into, c.ID+capturesSuffix))
		if err == nil {
			err = f.Commit(func(w io.Writer) error { _, err := w.Write(text); return err })
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
