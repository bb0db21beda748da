package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
)

// A case is a gap if no run has run it, whatever the others say; more gaps than are allowed fail.
func TestGapsOfSeveralRuns(t *testing.T) {
	record := func(name string, outcomes map[string]report.Outcome) string {
		r := &report.Run{Schema: report.Schema, Seed: 1, Target: report.Target{Kind: "sim", Profile: "connectx-5"}, Environment: map[string]string{}}
		items, err := conformance.Items(conformance.Suite())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			o, named := outcomes[i.Entry.ID]
			if !named {
				o = report.Pass
			}
			if o == "" {
				continue // not in this run
			}
			c := report.Case{ID: i.Entry.ID, Area: i.Entry.Area, Strength: string(i.Entry.Strength), Outcome: o, Observations: []report.Observation{}}
			if o != report.Pass {
				c.Reason = "it lacks a thing"
			}
			r.Cases = append(r.Cases, c)
		}
		r.Count()
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return fileOf(t, name, b.Bytes())
	}
	roce := record("roce.json", map[string]report.Outcome{"IB-001": report.NotRun, "IB-002": report.NotRun, "CM-027": "", "CQ-001": report.Unsupported, "CQ-002": report.NotRun})
	ib := record("ib.json", map[string]report.Outcome{"IB-002": report.NotRun, "CM-027": "", "CQ-001": report.NotRun})
	for _, tt := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{roce, ib}, exitOK, []string{"\nIB-002  it lacks a thing\n", "\nCM-027  no run has chosen it\n", "ok: 2 of ", " ran in none of 2 runs\n"}},
		{[]string{roce, ib, "--at-most", "2"}, exitOK, []string{"ok: 2 of ", "at most 2 may"}},
		{[]string{roce, ib, "--at-most", "1"}, exitFailed, []string{"FAIL: 2 of "}},
		{[]string{roce}, exitOK, []string{"ok: 4 of ", "1 run\n"}},
		{[]string{roce, ib, "--at-most", "1", "--machine-lacks", "ib"}, exitOK, []string{"ok: 1 of ", "at most 1 may; 1 case beside them that this machine cannot run"}},
		{[]string{roce, ib, "--machine-lacks", "moon"}, exitUsage, []string{`"moon": no case needs it`}},
		{nil, exitUsage, []string{"needs the reports"}},
		{[]string{roce, "--at-most", "-1"}, exitUsage, []string{"a number of cases"}},
		{[]string{roce + "x"}, exitUsage, []string{"no such file"}},
	} {
		code, out, stderr := command(t, append([]string{"gaps"}, tt.args...)...)
		for _, w := range tt.want {
			if code != tt.code || !strings.Contains(out+stderr, w) {
				t.Errorf("%v: exit %d, no %q in\n%s%s", tt.args, code, w, out, stderr)
			}
		}
		if strings.Contains(out, "CQ-001") {
			t.Errorf("a refused call is no gap:\n%s", out)
		}
	}
}
