package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
)

func sample() *report.Run {
	r := &report.Run{Schema: report.Schema, Target: report.Target{Kind: "sim", Profile: "p"}, Seed: 3,
		Environment: map[string]string{"b": "2", "a": "1"},
		Cases: []report.Case{
			{ID: "A-001", Area: "A", Text: "x < y", Outcome: report.Pass, Observations: []report.Observation{{Step: "s", Kind: "errno", Got: "0"}}},
			{ID: "A-002", Area: "A", Outcome: report.Fail, Reason: "bell \x07 & more", Observations: []report.Observation{}},
			{ID: "B-001", Area: "B", Outcome: report.Error, Observations: []report.Observation{}},
			{ID: "B-002", Area: "B", Outcome: report.Unsupported, Observations: []report.Observation{}},
		}}
	r.Count()
	return r
}

func TestJSONIsStableAndWhole(t *testing.T) {
	var a, b bytes.Buffer
	if err := errors.Join(sample().WriteJSON(&a), sample().WriteJSON(&b)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same run gives two files")
	}
	var got struct {
		Schema, Target, Environment, Seed any
		Cases                             []map[string]any
	}
	if err := json.Unmarshal(a.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema == nil || got.Target == nil || got.Environment == nil || got.Seed == nil || len(got.Cases) != 4 ||
		got.Cases[1]["outcome"] != "fail" || got.Cases[0]["observations"] == nil {
		t.Errorf("record: %s", a.String())
	}
}

func TestJUnitCountsAndParses(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteJUnit(&b, nil); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Errors   int    `xml:"errors,attr"`
			Skipped  int    `xml:"skipped,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if len(got.Suites) != 2 || got.Suites[0].Tests != 2 || got.Suites[0].Failures != 1 || got.Suites[1].Errors != 1 ||
		got.Suites[1].Skipped != 1 {
		t.Errorf("%+v", got)
	}
}

func TestBadOutcomesFailTheRun(t *testing.T) {
	for _, o := range report.Outcomes() {
		r := &report.Run{Cases: []report.Case{{ID: "A-001", Outcome: o}}}
		bad := o == report.Fail || o == report.Error || o == report.Integrity || o == report.Flaky
		if r.OK() == bad || o.Bad() != bad {
			t.Errorf("%s: run ok %v", o, r.OK())
		}
	}
	if (&report.Run{Incomplete: true}).OK() || (&report.Run{Findings: []string{"x"}}).OK() {
		t.Error("an incomplete run, or one with a finding, is ok")
	}
}
