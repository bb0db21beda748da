package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// A case whose repeat differs: the record keeps what the repeat saw, through a file too, and -v and
// the end of a run show it.
func TestRepeatThatDiffersIsKeptAndShown(t *testing.T) {
	c := report.Case{ID: "RC-001", Area: "RC", Text: "a case", Strength: "E", Outcome: report.Flaky, Step: "completion", Reason: "repeat 2 differs from the first run with the same seed, at step completion: 0 and 12",
		Observations: []report.Observation{{Step: "completion", Kind: "value", Got: 0}},
		Differs:      &report.Case{Outcome: report.Fail, Reason: "the peer did not answer", Observations: []report.Observation{{Step: "completion", Kind: "value", Got: 12}}}}
	run := &report.Run{Schema: report.Schema, Target: report.Target{Kind: "sim", Profile: "connectx-5", Device: "mlx5_0"}, Environment: map[string]string{}, Seed: 1, Cases: []report.Case{c}}
	run.Count()
	path := filepath.Join(t.TempDir(), "r.json")
	f, err := outfile.Create(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(run.WriteJSON); err != nil {
		t.Fatal(err)
	}
	back, err := report.ReadFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	d := back.Cases[0].Differs
	if d == nil || d.Outcome != report.Fail || d.Reason != c.Differs.Reason || len(d.Observations) != 1 {
		t.Fatalf("the file has %+v", d)
	}
	var verbose, end bytes.Buffer
	printCase(&verbose, back.Cases[0])
	printRun(&end, &runOptions{target: "sim", profile: "connectx-5", seed: 1}, back)
	for _, want := range []string{"the repeat that differs: fail", "completion: 12", "the peer did not answer", "at step completion"} {
		if !strings.Contains(verbose.String(), want) {
			t.Errorf("-v: want %q in\n%s", want, &verbose)
		}
	}
	if want := "repeat 2 differs from the first run with the same seed, at step completion"; !strings.Contains(end.String(), want) {
		t.Errorf("want %q in\n%s", want, &end)
	}
}
