package mutants

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// The parts of a run, in any order and one of them twice, give the report of the whole run, with
// the matrix.
func TestPartsOfMutantsMakeTheWhole(t *testing.T) {
	all := mutant.All()
	fates := make([]fate, len(all))
	for i, m := range all {
		switch i % 7 {
		case 0:
			fates[i] = fate{outcome: Survived, judged: true}
		default:
			fates[i] = fate{outcome: Killed, judged: true, kill: report.Case{ID: "PD-001", Where: m.Name}, kills: []string{"PD-002", "PD-001"}}
		}
	}
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	explained, err := ReadSurvivors()
	if err != nil {
		t.Fatal(err)
	}
	text := func(r *Report) []byte {
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	cfg := &Config{Identity: "connectx-5", Seed: 3, Matrix: true}
	whole := newReport(cfg, all, fates, false)
	whole.Idle = idleCases(items, whole)
	const parts = 4
	var files [][]byte
	for i := range parts {
		p := runs.Part{Index: i, Parts: parts}
		r := newReport(cfg, runs.Of(p, all), runs.Of(p, fates), false)
		r.Part = &Part{Part: p.String(), Matrix: true}
		files = append(files, text(r))
	}
	merge := func(files ...[]byte) (*Outcome, error) {
		return Merge(items, strings.Fields("a b c d e f")[:len(files)], func(i int) ([]byte, error) { return files[i], nil })
	}
	for _, some := range [][][]byte{files, {files[2], files[0], files[3], files[1]}, append(slices.Clone(files), files[1])} {
		out, err := merge(some...)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text(out.Report), text(whole)) || !slices.Equal(out.Findings, explained.judge(whole, true)) || len(out.Findings) == 0 {
			t.Errorf("of %d parts: %.300s, findings %q", len(some), text(out.Report), out.Findings)
		}
	}
	// A part that is there twice and differs hides a survivor; so does one with an outcome that is
	// none.
	changed := func(old, new string) [][]byte {
		return append(slices.Clone(files), bytes.Replace(files[1], []byte(old), []byte(new), 1))
	}
	for want, some := range map[string][][]byte{
		"run --shard 3/4":                   files[:3],
		"no part of a run":                  nil,
		"mutant " + all[1].Name + " is in ": changed(`"outcome": "killed"`, `"outcome": "survived"`),
		`has the outcome "splendid"`:        changed(`"outcome": "killed"`, `"outcome": "splendid"`),
		", and the two differ":              changed(`"part": "1/4"`, `"part": "2/4"`),
		"e are not parts of one run":        changed(`"seed": 3`, `"seed": 4`),
		"is not a part of a run":            {text(whole)},
		"is not a report of conform mutan":  {[]byte("{}x")},
	} {
		if _, err := merge(some...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.300v\nwant %s", err, want)
		}
	}
}
