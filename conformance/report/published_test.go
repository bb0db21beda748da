package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const publishedHead = `name: ConnectX-9
provider: mlx5
parts: ["0x9", 4123]
profiles: [connectx-9]
firmware: "1.2"
source: a paper
rows:
`

func known(id string) bool { return id == "ERR-025" || id == "ERR-026" || id == "ERR-027" }

func parsePublished(t *testing.T, rows string) *Published {
	t.Helper()
	p, err := ParsePublished("p.yaml", []byte(publishedHead+rows), known)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPublishedRefusesBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		publishedHead + "  - {case: ERR-999, step: x, value: 1}":                                               "p.yaml:8:12: case \"ERR-999\" is unknown",
		publishedHead + "  - {case: ERR-025, step: x, value: 1, tolerance: ten}":                               "p.yaml:8:5: tolerance \"ten\" is neither a percentage",
		publishedHead + "  - {case: ERR-025, step: x, value: 1, tolerance: -1%}":                               "neither a percentage",
		publishedHead + "  - {case: ERR-025, step: x, value: ERR, tolerance: 1%}":                              "value \"ERR\" is not a number",
		publishedHead + "  - {case: ERR-025, step: x, value: 3, most: 2}":                                      "most \"2\" is not a number from value, 3, on",
		publishedHead + "  - {case: ERR-025, step: x, value: 3}\n  - {case: ERR-025, step: x, value: 4}":       "p.yaml:9:5: row 1 has ERR-025, step \"x\" too",
		publishedHead + "  - {case: ERR-025, step: x}":                                                         "value",
		publishedHead + "  - {case: ERR-025, step: x, value: 1, valeu: 2}":                                     "valeu",
		publishedHead + "  - {case: ERR-025, step: [x], value: 1}":                                             "p.yaml:8:",
		publishedHead + "  - {case: ERR-025, step: x, value: 1, trials: some}":                                 "p.yaml:8:",
		strings.Replace(publishedHead, "[\"0x9\", 4123]", "[x]", 1) + "  - {case: ERR-025, step: x, value: 1}": "p.yaml:3:9: \"x\" is not a whole number",
		strings.Replace(publishedHead, "[\"0x9\", 4123]", "[]", 1) + "  - {case: ERR-025, step: x, value: 1}":  "a record needs parts and rows",
		publishedHead + "  []": "needs parts and rows",
		"":                     "the file is empty",
		"- 1":                  "p.yaml:1:",
		strings.Replace(publishedHead, "firmware", "firm", 1) + "  - {case: ERR-025, step: x, value: 1}": "firm",
	} {
		_, err := ParsePublished("p.yaml", []byte(text), known)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gives %v, want %q", text, err, want)
		}
	}
}

// publishedRun is the run of a card or a simulator.
func publishedRun(kind, part, firmware string, cases ...Case) *Run {
	r := &Run{Schema: Schema, Target: Target{Kind: kind}, Environment: map[string]string{KeyProvider: "mlx5", KeyPart: part, KeyFirmware: firmware}, Cases: cases}
	if kind == "sim" {
		r.Target.Profile = "connectx-9"
	}
	return r
}

func TestPublishedValues(t *testing.T) {
	for _, c := range []struct {
		row  string
		got  any
		same bool
	}{
		{"value: 0x52", 82, true}, {"value: 0x52", float64(82), true}, {"value: 0x52", json.Number("82"), true}, {"value: 0x52", 83, false}, {"value: 0x52", "LOC", false},
		{"value: 3661.8, tolerance: 1%", 3690.0, true}, {"value: 3661.8, tolerance: 1%", 3700.0, false}, {"value: 3, tolerance: 0.5", 2.5, true}, {"value: -1", -1, true},
		{"value: 4, most: 7", 5, true}, {"value: 4, most: 7", 8, false}, {"value: 4, most: 7", 3, false}, {"value: 4, most: 10, tolerance: 10%", 11, true},
		{"value: ERR", "ERR", true}, {"value: ERR", "RTS", false}, {"value: true", true, true}, {"value: true", false, false},
		{"value: SUCCESS", map[string]any{"status": "SUCCESS", "wr_id": 1}, true}, {"value: SUCCESS", map[string]any{"status": "REM_OP_ERR"}, false}, {"value: SUCCESS", nil, false},
	} {
		p := parsePublished(t, "  - {case: ERR-025, step: s, "+c.row+"}")
		d, err := p.Compare(publishedRun("sim", "", "", Case{ID: "ERR-025", Outcome: Pass, Observations: []Observation{{Step: "s", Got: c.got}}}))
		if err != nil {
			t.Fatal(err)
		}
		if same := d.Cases[0].Class == Same; same != c.same {
			t.Errorf("%s and %v: %s", c.row, c.got, d.Cases[0].Class)
		}
	}
}

func TestPublishedClasses(t *testing.T) {
	p := parsePublished(t, "  - {case: ERR-025, step: s, value: 1}\n  - {case: ERR-026, step: s, value: 1, firmware: \"2.0\"}\n  - {case: ERR-027, step: s, value: 1}")
	saw := func(id string, o Outcome, got any) Case {
		return Case{ID: id, Outcome: o, Reason: "r", Observations: []Observation{{Step: "s", Got: got}}}
	}
	other := saw("ERR-025", Pass, 1)
	other.Observations[0].Step = "another"
	for _, c := range []struct {
		name string
		run  *Run
		want Class // of the first case
	}{
		{"the same", publishedRun("hw", "0x9", "1.2", saw("ERR-025", Unrecorded, 1)), Same},
		{"another part", publishedRun("hw", "0x101b", "1.2", saw("ERR-025", Pass, 2)), Regression},
		{"another firmware", publishedRun("hw", "0x9", "1.3", saw("ERR-025", Pass, 2)), Changed},
		{"a simulator", publishedRun("sim", "", "", saw("ERR-025", Pass, 2)), SimGap},
		{"not run", publishedRun("sim", "", "", saw("ERR-025", NotRun, 2)), NotCompared},
		{"no such step", publishedRun("sim", "", "", other), NotCompared},
		{"failed, and the same", publishedRun("sim", "", "", saw("ERR-025", Fail, 1)), SimGap},
		{"an error", publishedRun("sim", "", "", saw("ERR-025", Error, 1)), Incomparable},
	} {
		d, err := p.Compare(c.run)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := d.Cases[0].Class; got != c.want || len(d.Cases) != 3 || d.Cases[1].Class != NotCompared {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	below := publishedRun("hw", "0x9", "1.2", Case{ID: "ERR-025", Outcome: Pass, Observations: []Observation{{Step: "s", Got: 1}, {Step: "s, ms", Got: 2}}})
	below.Environment[KeyBelow] = "rdmasim exec"
	timed := parsePublished(t, "  - {case: ERR-025, step: s, value: 1}\n  - {case: ERR-025, step: \"s, ms\", value: 1}")
	if d, err := timed.Compare(below); err != nil || d.Cases[0].Class != Same {
		t.Errorf("a time below exec: %+v, %v", d, err)
	}
	d, err := p.Compare(publishedRun("hw", "0x9", "2.0", saw("ERR-025", Pass, 2), saw("ERR-026", Pass, 2)))
	if err != nil || d.Cases[0].Class != Changed || d.Cases[1].Class != Regression {
		t.Errorf("firmware of a row: %+v, %v", d, err)
	}
	for name, r := range map[string]*Run{"part": publishedRun("hw", "0x1017", "1.2"), "provider": publishedRun("hw", "0x9", "1.2"), "profile": publishedRun("sim", "0x9", "")} {
		switch name {
		case "provider":
			r.Environment[KeyProvider] = "rxe"
		case "profile":
			r.Target.Profile = "connectx-5"
		}
		if _, err := p.Compare(r); err == nil || !strings.Contains(err.Error(), "p.yaml has measurements of ConnectX-9, parts 0x9, 0x101b") {
			t.Errorf("another %s: %v", name, err)
		}
		if p.Hold(r) {
			t.Errorf("another %s is held to it", name)
		}
	}
}

func TestPublishedHolds(t *testing.T) {
	p := parsePublished(t, "  - {case: ERR-025, step: s, value: 1}\n  - {case: ERR-026, step: s, value: 1}\n  - {case: ERR-027, step: s, value: 1}")
	obs := func(v int) []Observation { return []Observation{{Step: "s", Got: v}} }
	r := publishedRun("sim", "", "", Case{ID: "ERR-025", Outcome: Unrecorded, Observations: obs(1)}, Case{ID: "ERR-026", Outcome: Pass, Observations: obs(2)}, Case{ID: "ERR-027", Outcome: NotRun})
	if !p.Hold(r) {
		t.Fatal("not held")
	}
	want := []Outcome{Pass, Fail, NotRun}
	for i, c := range r.Cases {
		if c.Outcome != want[i] {
			t.Errorf("%s: %s, want %s", c.ID, c.Outcome, want[i])
		}
	}
	if c := r.Cases[1]; c.Step != "s" || c.Reason != "s: published of ConnectX-9 is 1, this run shows 2" || r.Summary[Fail] != 1 {
		t.Errorf("%+v", c)
	}
	if got := p.Missing(r); !slices.Equal(got, []string{"ERR-027: s"}) {
		t.Errorf("missing %q", got)
	}
}
