package calibrate

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

const twoLoads = "name: two\ntraffic: [{name: inline, inline: true, messages: 20, window: 4}, {name: fetched, payload: 256B, messages: 20, window: 4, cores: [2]}]\n"

// What is found by halving groups is what changes the result when each value is varied alone, at
// one of its bounds.
func TestSensitivityFindsAllThatMatters(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	s, err := experiment.ParseScenario("two.yaml", []byte(twoLoads))
	if err != nil {
		t.Fatal(err)
	}
	x := s.Experiment()
	req := experiment.Request{Seed: 1, Set: []string{"hca.requester_latency=200ns"}}
	got, err := FindSensitivity(t.Context(), x, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	cands, _, err := candidates(x, req)
	if err != nil {
		t.Fatal(err)
	}
	alone := &trial{x: x, req: req, known: map[string]*trialResult{}, done: func(int, string) {}}
	base := alone.run(t.Context(), nil)
	want, found := map[string]bool{}, map[string]bool{}
	for _, c := range cands {
		for _, text := range c.tries[:min(2, len(c.tries))] {
			if alone.ran = 0; text == "" {
				continue
			}
			if r := alone.run(t.Context(), []string{c.key + "=" + text}); r.err == nil && r.print != base.print {
				want[c.key] = true
			}
		}
	}
	for i := range got.Values {
		found[got.Values[i].Key] = true
	}
	if a, b := keysOf(found), keysOf(want); !slices.Equal(a, b) || len(a) < 10 {
		t.Errorf("found  %v\nit is %v", a, b)
	}
	if found["hca.requester_latency"] {
		t.Error("a value that the user gave was varied")
	}
	if !got.Complete || got.Runs >= 2*len(cands) || !strings.Contains(got.Summary(), "assumed or fitted values") {
		t.Errorf("%d runs for %d values, complete: %v; %s", got.Runs, len(cands), got.Complete, got.Summary())
	}
}

// rowsOf makes rows of a picture: a line for each name, with its values at 1, 2, 4, ...
func rowsOf(lines map[string][]float64) *trialResult {
	r := &trialResult{plots: []chart.Plot{{File: "p", Title: "P", X: "x", Y: "rate_mps", Series: "series"}}}
	for _, name := range keysOf(lines) {
		for i, v := range lines[name] {
			var row table.Row
			row.Set("series", name).Set("x", 1<<i).Set("rate_mps", v)
			r.rows = append(r.rows, row)
		}
	}
	return r
}

func TestConclusionsHoldOrNot(t *testing.T) {
	base := map[string][]float64{"a": {10, 20, 40, 40}, "b": {10, 10, 10, 10}, "c": {10.2, 19.8, 30, 20}}
	shown := shapesOf(rowsOf(base))
	text := strings.Join(shown[0].conclusions(), "\n")
	for _, want := range []string{"P: best at x 4: a", "P: best at x 8: a", "P: a is at its best from x 4 to 8", "P: c is at its best from x 4 to 4", "P: order of 8 pairs by rate_mps"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "best at x 1") || strings.Contains(text, "best at x 2") || strings.Contains(text, "b is at its best") {
		t.Errorf("equal lines have an order, or a flat one a knee:\n%s", text)
	}
	for _, c := range []struct {
		name  string
		lines map[string][]float64
		want  []string
	}{
		{"the same", base, nil},
		{"all slower by a third", map[string][]float64{"a": {7, 14, 28, 28}, "b": {7, 7, 7, 7}, "c": {7.1, 14, 21, 14}}, nil},
		{"within the noise", map[string][]float64{"a": {10.2, 20, 39.5, 40}, "b": {10, 10, 10.1, 10}, "c": {10.2, 20, 30, 20}}, nil},
		{"another winner", map[string][]float64{"a": {10, 20, 40, 18}, "b": {10, 10, 10, 10}, "c": {10.2, 19.8, 30, 20}}, []string{"best at x 8 is c, not a", "1 turn and 0 become equal, first a and c at x 8", "a is at its best from x 4 to 4, not from 4 to 8"}},
		{"nothing between them", map[string][]float64{"a": {10, 10, 10, 10}, "b": {10, 10, 10, 10}, "c": {10, 10, 10, 10}}, []string{"0 turn and 8 become equal", "a is at its best from x 1 to 8, not from 4 to 8"}},
		{"no rows", map[string][]float64{}, []string{"there is no such row"}},
	} {
		changes, _ := shown[0].compare(shapesOf(rowsOf(c.lines)))
		got := strings.Join(changes, "\n")
		if len(c.want) == 0 && got != "" {
			t.Errorf("%s: %s", c.name, got)
		}
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in\n%s", c.name, w, got)
			}
		}
	}
	if _, effect := shown[0].compare(shapesOf(rowsOf(map[string][]float64{"a": {10, 20, 30, 40}}))); effect != 25 {
		t.Errorf("effect %v %%", effect)
	}
}

func TestVerdictsAreConclusions(t *testing.T) {
	rows := func(verdict string) *trialResult {
		var row table.Row
		row.Set("row", "plan").Set("prediction", "more cores help").Set("verdict", verdict).Set("other", "x"+verdict)
		return &trialResult{rows: []table.Row{row}, cols: []string{"prediction", "verdict"}}
	}
	changes, _ := shapesOf(rows("confirmed"))[0].compare(shapesOf(rows("refuted")))
	if len(changes) != 1 || changes[0] != "more cores help: verdict: refuted, not confirmed" {
		t.Errorf("%q", changes)
	}
}

// What is stored is of the profiles as they are, and complete.
func TestStoredSensitivities(t *testing.T) {
	all, err := StoredSensitivities()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d, %v", len(all), err)
	}
	for _, r := range all {
		if err := r.Current(); err != nil {
			t.Error(err)
		}
		if !r.Sensitivity.Complete || len(r.Sensitivity.Values) == 0 || len(r.Sensitivity.Conclusions) == 0 {
			t.Errorf("%s %v: %+v", r.Name, r.Set, r.Sensitivity)
		}
		var b bytes.Buffer
		if err := r.Write(&b, "table"); err != nil || !strings.Contains(b.String(), r.Sensitivity.Summary()[:40]) {
			t.Errorf("%v\n%s", err, &b)
		}
	}
	if _, err := StoredSensitivity("uar-sharing", []string{"threads=3"}); err == nil || !strings.Contains(err.Error(), all[0].Name) {
		t.Errorf("%v", err)
	}
}

// A result that the file does not take does not end a calibration, whose answer is told with the
// loss.
func TestRunCacheOnAFullDisk(t *testing.T) {
	ctx := outfile.WithFail(t.Context(), func(op outfile.Operation, _ string) error {
		if op == outfile.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	c, err := openRunCache(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	c.put("a", map[string]float64{"rate_mps": 1.25})
	c.put("b", map[string]float64{"rate_mps": 2.5})
	if m, ok := c.get("b"); !ok || m["rate_mps"] != 2.5 || !errors.Is(c.unkept(), syscall.ENOSPC) {
		t.Errorf("%v %t, %v", m, ok, c.unkept())
	}
}

// The cache gives what was put, also to the next program; a line that was cut is run again.
func TestRunCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, err := openRunCache(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c.put("a", map[string]float64{"rate_mps": 1.25})
	c.put("nan", map[string]float64{"rate_mps": math.NaN()})
	if err := c.unkept(); err != nil {
		t.Fatal(err)
	}
	if _, err := openRunCache(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "another process writes it") {
		t.Errorf("a second program: %v", err)
	}
	c.close()
	files, _ := os.ReadDir(dir)
	path := filepath.Join(dir, files[0].Name())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"key":"b","metr`)
	f.Close()
	if err := os.WriteFile(filepath.Join(dir, "runs-0123.jsonl"), []byte(`{"key":"c","metrics":{"x":1}}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err = openRunCache(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if m, ok := c.get("a"); !ok || m["rate_mps"] != 1.25 || len(c.known) != 1 {
		t.Errorf("%v", c.known)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs-0123.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the file of another build: %v", err)
	}
}

func TestBracket(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     func(x float64) float64
		found bool
		least float64 // tries at most
	}{
		{"crosses", func(x float64) float64 { return math.Exp(3*x) - math.Exp(3*0.62) }, true, 14},
		{"at the start", func(x float64) float64 { return x - 0.5 }, true, 1},
		{"never", func(x float64) float64 { return x + 1 }, false, 8},
		{"steps", func(x float64) float64 { return math.Copysign(1, x-0.61) }, false, 20},
		{"impossible above", func(x float64) float64 {
			if x > 0.7 {
				return math.NaN()
			}
			return x - 0.66
		}, true, 30},
	} {
		tries := 0.0
		best := math.Inf(1)
		done, err := bracket(func(x float64) (float64, error) {
			tries++
			y := c.f(x)
			if math.Abs(y) < best {
				best = math.Abs(y)
			}
			return y, nil
		}, 0.5, []float64{0.1, 0.3, 0.5, 0.7, 0.9}, 0.01)
		if err != nil || done != c.found || c.found && best > 0.01 || tries > c.least {
			t.Errorf("%s: found %v with %v after %v tries, %v", c.name, done, best, tries, err)
		}
	}
}
