package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
)

// A card that was passed through to a virtual machine becomes a baseline when the user says so, and
// is one then.
func TestAcceptPassedThrough(t *testing.T) {
	dir := t.TempDir()
	record := func(name string, env map[string]string) string {
		env[report.KeyProvider], env[report.KeyPart], env[report.KeyMachine] = "mlx5", "0x1017", report.VirtualMachine
		text, err := json.Marshal(&report.Run{Schema: report.Schema, Seed: 1, Target: report.Target{Kind: "hw"}, Environment: env, Cases: []report.Case{{ID: "PD-001", Outcome: report.Pass, Observations: []report.Observation{}}}})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	card := record("card.json", map[string]string{report.KeyPCI: "0000:07:00.0"})
	soft := record("soft.json", map[string]string{})
	for want, args := range map[string][]string{"say so with conform accept --passed-through": {card}, "is no PCI function": {soft}, "device is no PCI": {"--passed-through", soft}} {
		if code, _, stderr := command(t, append([]string{"accept", "--into", dir}, args...)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("accept %v: exit %d, %s", args, code, stderr)
		}
	}
	if code, _, stderr := command(t, "accept", "--into", dir, "--passed-through", card); code != exitOK {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	o := &runOptions{seed: 1, baselines: []string{filepath.Join(dir, "mlx5-0x1017.json")}}
	if got, err := o.readBaselines(t.Context()); err != nil || got[0].Environment[report.KeyPassedThrough] == "" {
		t.Errorf("as a baseline: %v", err)
	}
}

// recordOf writes a record of a card with cases of the given outcomes.
func recordOf(t *testing.T, path string, r report.Run, outcomes map[string]report.Outcome) string {
	t.Helper()
	r.Schema, r.Seed, r.Target = report.Schema, 1, report.Target{Kind: "hw"}
	r.Environment = map[string]string{report.KeyProvider: "mlx5", report.KeyPart: "0x1017"}
	r.Cases = []report.Case{}
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		strength := "H"
		if strings.HasPrefix(id, "RC") {
			strength = "E"
		}
		r.Cases = append(r.Cases, report.Case{ID: id, Strength: strength, Outcome: outcomes[id], Observations: []report.Observation{}})
	}
	text, err := json.Marshal(&r)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A baseline is replaced by one that fixes no less, unless the user says so: what it loses no later
// run can bring back.
func TestAcceptKeepsWhatABaselineHas(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	full := recordOf(t, at("full.json"), report.Run{}, map[string]report.Outcome{"PD-006": report.Unrecorded, "PD-007": report.Unrecorded, "RC-001": report.Pass})
	again := recordOf(t, at("again.json"), report.Run{}, map[string]report.Outcome{"PD-006": report.Unrecorded, "PD-007": report.Pass})
	part := recordOf(t, at("part.json"), report.Run{}, map[string]report.Outcome{"PD-006": report.Unrecorded, "PD-007": report.NotRun})
	none := recordOf(t, at("none.json"), report.Run{}, map[string]report.Outcome{})
	into := at("mlx5-0x1017.json")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{none}, exitUsage, "no case of it has run"},
		{[]string{full}, exitOK, ""},
		{[]string{again}, exitOK, ""},
		{[]string{part}, exitUsage, "fixes PD-007, which this record does not: run the whole suite"},
		{[]string{"--replace", part}, exitOK, ""},
	} {
		before, _ := os.ReadFile(into)
		code, _, stderr := command(t, append([]string{"accept", "--into", dir}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("accept %v: exit %d, %s", c.args, code, stderr)
		}
		if after, _ := os.ReadFile(into); code != exitOK && string(before) != string(after) {
			t.Errorf("accept %v has changed the baseline", c.args)
		}
	}
	if err := os.WriteFile(into, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := command(t, "accept", "--into", dir, full); code != exitUsage || !strings.Contains(stderr, "exists, and is not a baseline") {
		t.Errorf("a file that is no baseline: exit %d, %s", code, stderr)
	}
}

// A comparison of nothing is no success.
func TestDiffOfNothing(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	a := recordOf(t, at("a.json"), report.Run{}, map[string]report.Outcome{"PD-006": report.Pass, "PD-007": report.Pass})
	other := recordOf(t, at("other.json"), report.Run{}, map[string]report.Outcome{"RC-001": report.Pass})
	empty := recordOf(t, at("empty.json"), report.Run{}, map[string]report.Outcome{})
	none := recordOf(t, at("none.json"), report.Run{Incomplete: true}, map[string]report.Outcome{"PD-006": report.NotRun, "PD-007": report.NotRun})
	some := recordOf(t, at("some.json"), report.Run{Incomplete: true}, map[string]report.Outcome{"PD-006": report.Pass, "PD-007": report.NotRun})
	for _, args := range [][]string{{"--common", a, other}, {empty, empty}, {a, none}, {none, a}, {"--common", a, empty}, {"--format", "json", a, none}} {
		if code, stdout, stderr := command(t, append([]string{"diff"}, args...)...); code != exitUsage || strings.Contains(stdout, "ok:") || !strings.Contains(stderr, "no case was compared") {
			t.Errorf("diff %v: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := command(t, "diff", a, some); code != exitOK || !strings.Contains(stdout, "the second record comes from a run that did not end") {
		t.Errorf("a record that is incomplete: exit %d, %s", code, stdout)
	}
}
