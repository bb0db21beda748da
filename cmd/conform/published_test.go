package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
)

// publishedCases are all that the records of published measurements have values of.
const publishedCases = "card faults || DEV-026"

// TestSimulatorIsAsPublished runs on the simulator all that others have measured on cards and made
// public, and compares it with their values, each of which must be of a step that there is.
func TestSimulatorIsAsPublished(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, profile := range map[string]string{"connectx-5": "connectx-5", "connectx-6": "../../fixtures/loop/connectx-6-roce.yaml"} {
		t.Run(name, func(t *testing.T) {
			file, out := "../../fixtures/recordings/published-"+name+".yaml", filepath.Join(t.TempDir(), "run.json")
			if code, text, errs := command(t, "--target=sim", "--profile", profile, "--label-filter", publishedCases, "--report", out, "--baseline", file); code != exitOK {
				t.Errorf("exit %d\n%s%s", code, text, errs)
			}
			if code, text, errs := command(t, "diff", file, out); code != 0 || !strings.Contains(text, "SAME") {
				t.Errorf("exit %d\n%s%s", code, text, errs)
			}
			p, err := conformance.ReadPublished(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := report.ReadFile(t.Context(), out)
			if err != nil {
				t.Fatal(err)
			}
			if missing := p.Missing(r); len(missing) > 0 {
				t.Errorf("no step of the run is that of the rows %q", missing)
			}
			for i := range r.Cases {
				c, has := &r.Cases[i], func(row report.PublishedRow) bool { return row.Case == r.Cases[i].ID }
				if c.Outcome != report.Pass && slices.ContainsFunc(p.Rows, has) {
					t.Errorf("%s is %s with the baseline: %s", c.ID, c.Outcome, c.Reason)
				}
			}
		})
	}
}

func TestDiffWithPublished(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run.json")
	if code, _, errs := command(t, "--target=sim", "--profile", "connectx-5", "--label-filter", "ERR-025", "--report", run); code != 0 {
		t.Fatal(errs)
	}
	published := "../../fixtures/recordings/published-connectx-5.yaml"
	text, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other := write("other.yaml", strings.Replace(string(text), "value: 0x52", "value: 0x51", 1))
	unknown := write("unknown.yaml", strings.Replace(string(text), "case: ERR-025", "case: ERR-125", 1))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"diff", published, run}, 0, "1 SAME"},
		{[]string{"diff", other, run}, 1, `SIM-GAP ERR-025 (unrecorded -> pass) write: vendor_err: "0x51" -> 82`},
		{[]string{"diff", other, run, "--format", "json"}, 1, `"class": "SIM-GAP"`},
		{[]string{"diff", unknown, run}, 2, `unknown.yaml:12:12: case "ERR-125" is unknown: conform list shows the cases`},
		{[]string{"diff", run, published}, 2, "give it first, and the report of a run behind it"},
		{[]string{"diff", published, run, "--html", filepath.Join(dir, "x.html")}, 2, "leave --html out"},
		{[]string{"diff", published, run, "--exact"}, 2, "leave --exact out"},
		{[]string{"diff", "../../fixtures/recordings/published-connectx-6.yaml", run}, 2, "the run was made on profile connectx-5"},
		{[]string{"diff", filepath.Join(dir, "none.yaml"), run}, 2, "none.yaml"},
		{[]string{"--target=sim", "--profile", "connectx-5", "--label-filter", "ERR-025", "--baseline", other}, 1, "published of ConnectX-5 is 0x51, this run shows 82"},
		{[]string{"--target=sim", "--profile", "connectx-5", "--label-filter", "ERR-025", "--baseline", published}, 0, "1 pass"},
		{[]string{"--target=sim", "--profile", "connectx-4", "--label-filter", "ERR-001", "--baseline", published}, 1, "no --baseline has this kind of device"},
		{[]string{"--target=sim", "--label-filter", "ERR-025", "--baseline", unknown}, 2, "unknown.yaml:12:12"},
	} {
		code, out, errs := command(t, c.args...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("conform %q: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
}
