package report

import (
	"strings"
	"testing"
)

func rules(t *testing.T, lines ...string) *Rules {
	t.Helper()
	r, err := ParseRules("compare.yaml", []byte("rules:\n- "+strings.Join(lines, "\n- ")+"\n"), func(id string) bool { return id == "RC-001" })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRules(t *testing.T) {
	card, hw := map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017"}, Target{Kind: "hw"}
	saw := func(obs ...Observation) *Run {
		return recorded(t, hw, card, Case{ID: "RC-001", Strength: "E", Outcome: Pass, Observations: obs})
	}
	value := func(step string, got any) Observation { return Observation{Step: step, Kind: "value", Got: got} }
	r := rules(t, `{case: RC-001, step: guid, compare: identity, because: b}`,
		`{case: "RC-*", step: "*, ns", compare: ratio, within: 1.2, because: b}`,
		`{case: RC-001, step: packets, compare: at-least, at_least: 100, because: b}`,
		`{case: RC-001, step: "filled*", compare: granted, on: room, because: b}`,
		`{case: RC-001, step: race, compare: chance, because: b}`)
	for name, tt := range map[string]struct {
		a, b []Observation
		want Class
	}{
		"a GUID":                 {[]Observation{value("guid", 1)}, []Observation{value("guid", 2)}, Same},
		"a race":                 {[]Observation{value("race", 1), value("race", 1)}, []Observation{value("race", 2)}, Same},
		"near":                   {[]Observation{value("x, ns", 100)}, []Observation{value("x, ns", 120)}, Same},
		"near lists":             {[]Observation{value("x, ns", []int{100, 10})}, []Observation{value("x, ns", []int{120, 9})}, Same},
		"far":                    {[]Observation{value("x, ns", 100)}, []Observation{value("x, ns", 121)}, Regression},
		"another sign":           {[]Observation{value("x, ns", 1)}, []Observation{value("x, ns", -1)}, Regression},
		"a list is longer":       {[]Observation{value("x, ns", []int{1})}, []Observation{value("x, ns", []int{1, 1})}, Regression},
		"no number":              {[]Observation{value("x, ns", "1")}, []Observation{value("x, ns", "1.1")}, Regression},
		"enough":                 {[]Observation{value("packets", 100)}, []Observation{value("packets", 5000)}, Same},
		"too few":                {[]Observation{value("packets", 100)}, []Observation{value("packets", 99)}, Regression},
		"no rule":                {[]Observation{value("y", 100)}, []Observation{value("y", 101)}, Regression},
		"one only has the GUID":  {[]Observation{value("guid", 1)}, nil, Same},
		"one only has the value": {[]Observation{value("y", 1)}, nil, Regression},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Diff(saw(tt.a...), saw(tt.b...), DiffOptions{Rules: r})
			if err != nil || c.Cases[0].Class != tt.want {
				t.Errorf("%v, want %s: %+v", err, tt.want, c.Cases[0])
			}
			exact, err := Diff(saw(tt.a...), saw(tt.b...), DiffOptions{Rules: r, Exact: true})
			if err != nil || exact.OK() {
				t.Errorf("exactly: %v, %+v", err, exact.Cases[0])
			}
		})
	}
}

// What depends on a size that was granted differs only where the size does, or where an older
// record does not show it.
func TestGrantedSize(t *testing.T) {
	r := rules(t, `{case: RC-001, step: "filled*", compare: granted, on: room, because: b}`)
	step := func(name string, got any) Observation {
		return Observation{Step: name, Kind: "value", Got: got, Want: got}
	}
	run := func(fw string, obs ...Observation) *Run {
		return recorded(t, Target{Kind: "hw"}, map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyFirmware: fw},
			Case{ID: "RC-001", Strength: "E", Outcome: Pass, Observations: obs})
	}
	for name, tt := range map[string]struct {
		a, b *Run
		want Class
	}{
		"another size":      {run("1", step("room", 1), step("filled", 1)), run("2", step("room", 2), step("filled", 2), step("filled 2", 3)), FromEnvironment},
		"the same size":     {run("1", step("room", 1), step("filled", 1)), run("1", step("room", 1), step("filled", 1), step("filled", 1)), Regression},
		"none in the older": {run("1", step("filled", 1)), run("2", step("filled", 2), step("filled 2", 3)), FromEnvironment},
	} {
		if c, err := Diff(tt.a, tt.b, DiffOptions{Rules: r}); err != nil || c.Cases[0].Class != tt.want {
			t.Errorf("%s: %v, want %s: %+v", name, err, tt.want, c.Cases[0])
		}
	}
}

func TestRuleMistakes(t *testing.T) {
	for rule, want := range map[string]string{
		`{case: RC-999, step: s, compare: identity, because: b}`:          `case "RC-999" is unknown`,
		`{case: RC-001, step: "[", compare: identity, because: b}`:        "pattern",
		`{case: RC-001, step: s, compare: ratio, because: b}`:             "needs within",
		`{case: RC-001, step: s, compare: ratio, within: 1, because: b}`:  "needs within",
		`{case: RC-001, step: s, compare: chance, within: 2, because: b}`: "needs within",
		`{case: RC-001, step: s, compare: at-least, because: b}`:          "needs at_least",
		`{case: RC-001, step: s, compare: granted, because: b}`:           "needs on",
		`{case: RC-001, step: s, compare: equal, because: b}`:             "equal",
		`{case: RC-001, step: s, compare: identity}`:                      "because",
	} {
		_, err := ParseRules("compare.yaml", []byte("rules:\n- "+rule+"\n"), func(id string) bool { return id == "RC-001" })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "compare.yaml:2") {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
