package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Numbers of a run that has just ended are equal to those of the baseline's file, 64-bit ones too.
func TestBaselineHoldsNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	run := func(v uint64) *Run {
		return &Run{Schema: Schema, Seed: 1, Target: Target{Kind: "hw"}, Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017"},
			Cases: []Case{{ID: "ODP-058", Strength: "H", Outcome: Unrecorded, Observations: []Observation{{Step: "n", Kind: "value", Got: v}}}}}
	}
	read := func(v uint64) *Run {
		t.Helper()
		f, err := os.Create(path)
		if err == nil {
			err = run(v).WriteJSON(f)
		}
		if err == nil {
			err = f.Close()
		}
		var r *Run
		if err == nil {
			r, err = ReadFile(t.Context(), path)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	now := run(0)
	now.Cases[0].Observations[0].Got = json.Number("9223372036854775809") // as the harness reads it from a worker
	if now.Hold(read(1<<63+1), nil); now.Cases[0].Outcome != Pass {
		t.Errorf("the same: %s", now.Cases[0].Reason)
	}
	a, b := read(1<<63+1), read(1<<63)
	a.Cases[0].Outcome, b.Cases[0].Outcome = Pass, Pass
	if c, err := Diff(a, b, DiffOptions{Ledger: &Ledger{}}); err != nil || c.OK() {
		t.Errorf("two 64-bit values that differ in their last bit are the same: %v", err)
	}
}
