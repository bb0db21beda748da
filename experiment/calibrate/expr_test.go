package calibrate

import (
	"errors"
	"slices"
	"testing"
)

func TestEval(t *testing.T) {
	look := func(run, metric string) (float64, error) {
		if run == "a" && metric == "pcie.rx_bytes" {
			return 8, nil
		}
		if run == "b" {
			return 2, nil
		}
		return 0, errors.New("no such metric")
	}
	for _, c := range []struct {
		expr string
		want float64
	}{{"1 + 2 * 3", 7}, {"a.pcie.rx_bytes / b.x", 4}, {"100 * (1 - b.y / a.pcie.rx_bytes)", 75}, {"-b.x", -2}, {"1e3/4", 250}} {
		if got, err := Eval(c.expr, look); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v, want %v", c.expr, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "a", "a.b", "f(1)", "1 / (b.x - 2)", "1 << 3", `"x"`, "b.x; 2"} {
		if v, err := Eval(bad, look); err == nil {
			t.Errorf("%q gave %v, want an error", bad, v)
		}
	}
}

func FuzzEval(f *testing.F) {
	f.Add("100 * (1 - a.x / b.y.z)")
	f.Fuzz(func(_ *testing.T, s string) {
		_, _ = Eval(s, func(string, string) (float64, error) { return 1, nil })
	})
}

// A file of figures is read before it has values: a difference that divides is not zero yet, and
// what is named behind it counts.
func TestNamesOfAnExpression(t *testing.T) {
	var got []string
	note := func(run, metric string) error {
		got = append(got, run+" "+metric)
		return nil
	}
	if err := Names("1000 / (a.y - b.y) * -c.nic.z + 0", note); err != nil || !slices.Equal(got, []string{"a y", "b y", "c nic.z"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "a", "f(1)", "1 << 3", `"x"`, "b.x; 2", "1/(a-b)", "+1", "2i"} {
		if err := Names(bad, note); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	text := "check: 99\ntitle: x\nsource: x\nscenario: {name: s, traffic: [{messages: 10}]}\nruns: {one: {}, two: {traffic.0.payload: 4KiB}}\n" +
		"figures:\n  - {id: 99a, name: x, value: 1 / (one.rate_mps - two.rate_mps), expected: 1, unit: x, tolerance: 10%, kind: predicted}\n"
	if _, err := ParseValidation("v.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}
