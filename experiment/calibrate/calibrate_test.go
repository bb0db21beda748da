package calibrate

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rdmasim/rdmasim/sim/profile"
)

func inMemory() *runCache { return &runCache{known: map[string]map[string]float64{}} }

var loadOnce = sync.OnceValues(func() (*Calibration, error) { return LoadCalibration(context.Background()) })

// storedCalibration is what comes with the program; tests only read it.
func storedCalibration(t *testing.T) *Calibration {
	t.Helper()
	c, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// calibrations reads texts as files of parameters, beside the stored validation files and profiles.
func calibrations(t *testing.T) func(text string) (*Calibration, error) {
	t.Helper()
	c := storedCalibration(t)
	var all []*Validation
	for _, name := range keysOf(c.files) {
		all = append(all, c.files[name])
	}
	return func(text string) (*Calibration, error) {
		return parseCalibration(all, c.profiles, "c.yaml", []byte(text))
	}
}

// The stored parameters are sound, each within its bounds, and each figure that is marked as fitted
// to a number names one.
func TestStoredCalibration(t *testing.T) {
	c := storedCalibration(t)
	seen := map[string]bool{}
	for _, g := range c.Groups {
		for i := range g.Parameters {
			p := &g.Parameters[i]
			if seen[p.Name()+p.Run] {
				t.Errorf("%s is fitted twice", p.Name())
			}
			seen[p.Name()+p.Run] = true
			if p.Profile != "" {
				text, err := c.storedValue(p)
				n, _, _ := quantity(text)
				if err != nil || n < p.low || n > p.high {
					t.Errorf("%s: the stored %s is not within %s to %s (%v)", p.Name(), text, p.Low, p.High, err)
				}
			}
			for _, id := range p.Figures {
				if f := c.at[id].figure(); f.Kind != "fitted" || f.Fitted != p.Key {
					t.Errorf("%s is fitted to figure %s, which is %s and names %q", p.Name(), id, f.Kind, f.Fitted)
				}
			}
			for _, id := range p.Otherwise {
				for _, own := range p.Figures {
					if c.at[id].v.Check == c.at[own].v.Check {
						t.Errorf("%s: %s and %s are of one check, and are left out together", p.Name(), own, id)
					}
				}
			}
		}
	}
	for _, v := range profile.FittedValues() {
		if !seen[v.File+" "+v.Key] {
			t.Errorf("%s of %s was fitted to %s, and no group fits it", v.Key, v.File, v.Check)
		}
	}
}

func TestCalibrationErrors(t *testing.T) {
	parse := calibrations(t)
	const head = "groups:\n  - name: g\n    parameters:\n      - "
	for _, c := range []struct{ text, want string }{
		{"{key: hca.pu_service, low: 1ns, high: 2ns, figures: [3b]}", "give either profile or file"},
		{"{profile: connectx-4, key: hca.pu_servic, low: 1ns, high: 2ns, figures: [3b]}", `did you mean "hca.pu_service"`},
		{"{profile: connect-ib, key: hca.pu_service, low: 1ns, high: 2ns, figures: [3b]}", "no file gives hca.pu_service of profile connect-ib"},
		{"{profile: connectx-4, key: hca.pu_service, low: 2ns, high: 2ns, figures: [3b]}", "want 0 < low < high"},
		{"{profile: connectx-4, key: hca.pu_service, low: 2ns, high: 9ns, prior: 10ns, figures: [3b]}", "a prior between them"},
		{"{profile: connectx-4, key: hca.pu_service, low: \"2\", high: 9ns, figures: [3b]}", "is not a time, a size or a whole number as the other bound is"},
		{"{profile: connectx-4, key: hca.pu_service, low: 2ns, high: 9ns, figures: [3z]}", `there is no figure "3z"`},
		{"{profile: connectx-4, key: hca.pu_service, low: 2ns, high: 9ns, figures: [1a]}", "which a fit cannot use"},
		{"{profile: connectx-5, key: hca.pu_service, low: 2ns, high: 9ns, figures: [3b]}", "figure 3b uses profile connect-ib, which does not take hca.pu_service from profile connectx-5"},
		{"{file: 12-bytes-by-sizes.yaml, key: traffic.0.work, low: 2ns, high: 9ns, figures: [12a]}", `did you mean "12-bytes-by-size.yaml"`},
	} {
		if _, err := parse(head + c.text + "\n"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "c.yaml:") {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// A fit finds a value again from the figures that the simulator gives with it, and what is left out
// does not come back.
func TestFitFindsValues(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests fit nothing")
	}
	c, err := calibrations(t)(`groups:
  - name: g
    parameters:
      - {profile: x86-host, key: pcie.memory_latency, low: 30ns, high: 600ns, prior: 400ns, figures: [16a]}
      - {profile: connectx-5, key: hca.read_handling, low: 50ns, high: 1us, figures: [16c]}
`)
	if err != nil {
		t.Fatal(err)
	}
	e := newEvaluator(c, 1, inMemory())
	g := &c.Groups[0]
	want := [2]uint64{350_000, 120_000}
	truth := []setting{{&g.Parameters[0], want[0]}, {&g.Parameters[1], want[1]}}
	got, err := e.figures(t.Context(), []string{"16a", "16c"}, truth)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"16a", "16c"} {
		f := c.at[id].figure()
		published := f.Expected
		t.Cleanup(func() { f.Expected = published })
		f.Expected = got[i]
	}
	set, fits, err := e.fitAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range set {
		if math.Abs(float64(s.v)/float64(want[i])-1) > 0.1 {
			t.Errorf("%s: %s, and the figures are of %s", fits[i].Parameter, fits[i].Value, s.p.text(want[i]))
		}
	}
	ran := e.ran
	set, _, err = e.refit(t.Context(), []setting{{&g.Parameters[0], 1}, {&g.Parameters[1], 1}}, 16)
	if err != nil || set[0].v != 400_000 || set[1].v != g.Parameters[1].value(0.5) || e.ran != ran {
		t.Errorf("without check 16: %v, %v, %d more runs", set, err, e.ran-ran)
	}
}

// Equal content is run once.
func TestEvaluatorRunsOnce(t *testing.T) {
	c := storedCalibration(t)
	e := newEvaluator(c, 1, inMemory())
	a, err := e.figures(t.Context(), []string{"16a", "16b"}, nil)
	if err != nil || e.ran != 2 {
		t.Fatalf("%v, %d runs", err, e.ran)
	}
	b, err := e.figures(t.Context(), []string{"16a", "16b"}, nil)
	if err != nil || e.ran != 2 || !slices.Equal(a, b) {
		t.Errorf("again: %v %v, %v, %d runs", a, b, err, e.ran)
	}
}

func TestLeaveOneOutReport(t *testing.T) {
	r := &LeaveOneOut{Checks: []LeftOut{{ID: "1a", Name: "a", Expected: 10, Predicted: 11, Error: 10, Kind: "fitted"},
		{ID: "1b", Name: "b", Expected: 0, Predicted: 3, Error: 3, Unit: "%", Kind: "predicted", Within: true},
		{ID: "1c", Name: "c", Expected: 10, Predicted: 14, Error: 40, Kind: "predicted"}}, NotPredicted: []NotPredicted{{"1d", "d", "why"}}}
	r.summarize()
	if r.Median != 25 || r.MedianFitted != 10 || r.Within != 1 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := r.Write(&b, "table"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 %", "40 %", "1d: d: not predicted: why", "3 figures, each predicted without its check: median error 25 %, of those that values are fitted to 10 %; 1 within tolerance"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &b)
		}
	}
	b.Reset()
	if err := r.Write(&b, "csv"); err != nil || !strings.HasPrefix(b.String(), "id,figure,expected,predicted,error_percent,unit,within_tolerance,kind\n1a,a,10,11,10,") {
		t.Errorf("%v\n%s", err, &b)
	}
}
