package calibrate

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim/profile"
)

// figures are all figures, by ID, and the values of scenarios that were fitted.
func figures(t *testing.T) (figs map[string]Figure, own []string) {
	t.Helper()
	all, err := loadValidations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	figs = map[string]Figure{}
	for _, v := range all {
		for k, id := range v.Fitted {
			own = append(own, id+" "+k)
		}
		for _, f := range v.Figures {
			if _, twice := figs[f.ID]; twice {
				t.Errorf("two figures are called %s", f.ID)
			}
			figs[f.ID] = f
		}
	}
	return figs, own
}

// keys are the values of the profile that a figure is for.
func keys(t *testing.T, name string) []string {
	p, err := profile.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p.Keys()
}

// There are no more fitted values than numbered checks with a figure marked fitted, and each
// value names the figure that it was fitted to, which names the value.
func TestFittedParameters(t *testing.T) {
	figs, own := figures(t)
	known := keys(t, profile.Default)
	marked := map[string]bool{}
	for id, f := range figs {
		if (f.Kind == "fitted") != (f.Fitted != "") {
			t.Errorf("figure %s is %s, and names %q as the value that was fitted", id, f.Kind, f.Fitted)
		}
		if f.Kind == "fitted" {
			number := strings.TrimRight(id, "abcdefghijklmnopqrstuvwxyz")
			marked[number] = true
			ofScenario := strings.HasPrefix(f.Fitted, "traffic.") || strings.HasPrefix(f.Fitted, "completions.")
			if !ofScenario && !slices.Contains(known, f.Fitted) {
				t.Errorf("figure %s: there is no value %s", id, f.Fitted)
			}
		}
	}
	values := profile.FittedValues()
	if len(values) == 0 || len(values)+len(own) > len(marked) {
		t.Errorf("%d values fitted, %d checks marked fitted: %v %v", len(values)+len(own), len(marked), values, own)
	}
	for _, v := range values {
		if f, ok := figs[v.Check]; !ok || f.Kind != "fitted" || f.Fitted != v.Key {
			t.Errorf("%s: %s says it was fitted to %s, which says %q was", v.File, v.Key, v.Check, f.Fitted)
		}
	}
}

// The checks of a profile are those of its figures, also if other figures of the same file
// belong to another profile.
func TestValidateProfile(t *testing.T) {
	rep, err := Validate(t.Context(), nil, "thunderx2", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Checks) != 2 || rep.Checks[0].ID != "18d" || len(rep.NotModelled) != 0 || len(rep.Notes) != 0 || rep.Summary.FittedChecks != 0 {
		t.Errorf("%+v", rep)
	}
	all, err := loadValidations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Scenario.Name != "switched-latency" {
			continue
		}
		w := v.only("connectx-6dx")
		if len(w.Figures) != 2 || len(w.Runs) != 2 || w.Runs["cx6"] == nil {
			t.Errorf("%d figures, runs %v", len(w.Figures), w.Runs)
		}
	}
	if _, err := Validate(t.Context(), nil, "connectx-6d", 1, nil); err == nil || !strings.Contains(err.Error(), `did you mean "connectx-6dx"`) {
		t.Errorf("unknown profile: %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	r := &ValidationReport{Complete: true, Checks: []Check{
		{ID: "1a", Number: 1, Pass: true, Kind: "fitted"}, {ID: "1b", Number: 1, KnownMiss: "why", KnownValue: 100, Got: 95}, {ID: "1c", Number: 1, KnownMiss: "why", KnownValue: 100, Got: 105},
		{ID: "2a", Number: 2, Pass: true, Kind: "predicted"}, {ID: "own", Pass: true}, {ID: "2b", Number: 2, Pass: true, Kind: "described"}},
		NotModelled: []NotModelled{{17, "odp", "because"}}}
	r.Summary = r.summarize()
	if s := r.Summary; s.Numbered != 2 || s.Within != 1 || s.Percent != 50 {
		t.Errorf("%+v", s)
	}
	if !r.Pass() {
		t.Error("known misses fail the run")
	}
	var b bytes.Buffer
	if err := r.Write(&b, "table"); err != nil {
		t.Fatal(err)
	}
	if s := r.Summary; s.Predicted != 4 || s.PredictedWithin != 2 || s.Fitted != 1 || s.FittedWithin != 1 {
		t.Errorf("predicted and fitted figures: %+v", s)
	}
	for _, want := range []string{"2 of 4 predicted figures within tolerance; beside them 1 of 1 fitted one and 1 of 1 that a rule was chosen with\n", "miss (known)", "1b, 1c: known miss: why\n", "not modelled yet", "6 figures: 4 within tolerance, 2 known misses, 0 unexpected misses",
		"2 numbered checks run: 1 within tolerance in all their figures (50 %)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &b)
		}
	}
	for _, c := range []Check{{ID: "3a"}, {ID: "3a", KnownMiss: "why", KnownValue: 100, Got: 94.9}, {ID: "3a", KnownMiss: "why", KnownValue: 100, Got: math.NaN()},
		{ID: "3a", KnownMiss: "why", KnownValue: 100, Got: 105.1}, {ID: "3a", Pass: true, KnownMiss: "why", KnownValue: 100, Got: 100}} {
		r.Checks = append(r.Checks[:6], c)
		if r.Pass() {
			t.Errorf("%+v does not fail the run", c)
		}
	}
	drifted := Check{ID: "3a", KnownMiss: "why", KnownValue: 100, Got: 105.1}
	r.Checks[4] = drifted
	b.Reset()
	if err := r.Write(&b, "table"); err != nil || drifted.Verdict() != "MISS, DRIFTED" || !strings.Contains(b.String(), "3a: DRIFTED: it is 105.1 now, more than 5 % from known_value 100;") {
		t.Errorf("%v\n%s", err, &b)
	}
	if r.Checks[6].Verdict() != "ok, STALE" {
		t.Error(r.Checks[6].Verdict())
	}
}

// A value beyond all numbers meets no figure, and a tolerance that is no number allows none.
func TestOnlyNumbersAreCompared(t *testing.T) {
	for _, bad := range []string{"1e308 * 10", "1e308 * 10 - 1e308 * 10", "0 - 1e308 * 10"} {
		if v, err := Eval(bad, nil); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v, %v", bad, v, err)
		}
	}
	for _, bad := range []string{"inf", "Inf%", "NaN", "nan%", "1e999", "-1", "-5%", "", "100%", "1000000%"} {
		if _, _, err := tolerance(bad); err == nil {
			t.Errorf("tolerance %q is accepted", bad)
		}
	}
}

// A check prints values of its profile with their sources; a value that does not exist is refused
// where it stands.
func TestParametersOfChecks(t *testing.T) {
	const file = "check: 1\ntitle: x\nsource: y\nscenario:\n  name: x\n  traffic: [{messages: 1}]\nruns: {one: {}}\nparameters: [odp.report%s]\n" +
		"figures: [{id: \"1a\", name: n, value: one.rate_mps, expected: 1, unit: x, tolerance: at-least, kind: predicted}]\n"
	v, err := ParseValidation("v.yaml", []byte(strings.Replace(file, "%s", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if notes, err := v.sources(); err != nil || len(notes) != 1 || !strings.HasPrefix(notes[0], "1: odp.report = 128us (Lesokhin") {
		t.Errorf("%q, %v", notes, err)
	}
	_, err = ParseValidation("v.yaml", []byte(strings.Replace(file, "%s", ", odp.reports", 1)))
	if err == nil || !strings.Contains(err.Error(), "v.yaml:8:") || !strings.Contains(err.Error(), `did you mean "odp.report"`) {
		t.Errorf("%v", err)
	}
}

func TestValidationErrors(t *testing.T) {
	const head = "title: t\nsource: s\nscenario: {name: n, traffic: [{verb: read}]}\nruns: {a: {}}\nfigures:\n"
	const none = "title: t\nsource: s\n"
	const good = "  - {id: i, name: n, value: a.rate_mps, expected: 1, unit: x, tolerance: 5%, kind: fitted}\n"
	for _, c := range []struct{ src, want string }{
		{head + "  - {id: i, name: n, value: b.rate_mps, expected: 1, unit: x, tolerance: 5%, kind: fitted}\n", `no run "b"`},
		{head + "  - {id: i, name: n, value: a.rate_mps, expected: 1, unit: x, tolerance: 5 %%, kind: fitted}\n", "v.yaml:6:"},
		{head + "  - {id: i, name: n, value: a.rate_mps, expected: 1, unit: x, tolerance: 5%, kind: guessed}\n", "not one of fitted, described, predicted"},
		{none, "or not_modelled"}, {head + good + "fitted: {traffic.0.work: i}\n", `v.yaml:7:26: no figure "i" says that traffic.0.work was fitted to it`}, {none + "not_modelled: why\nruns: {a: {}}\n", "has no scenario"},
		{strings.Replace(head, "{a: {}}", "{a: {traffic.0.windw: 4}}", 1) + good, `did you mean`},
	} {
		_, err := ParseValidation("v.yaml", []byte(c.src))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.src, err, c.want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		got, want float64
		tol       string
		ok        bool
	}{{110, 100, "10%", true}, {111, 100, "10%", false}, {15, 20, "5", true}, {14.9, 20, "5", false}, {1534, 1534, "exact", true}, {1535, 1534, "exact", false}, {5, 4, "at-least", true}, {3, 4, "at-least", false}} {
		if within(c.got, c.want, c.tol) != c.ok {
			t.Errorf("%v against %v within %s: want %v", c.got, c.want, c.tol, c.ok)
		}
	}
}
