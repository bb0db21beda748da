package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

// ownProfile writes a file of a profile, whose reads take longer, and returns its path.
func ownProfile(t *testing.T, name, interval string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.yaml")
	text := "name: " + name + "\ntitle: mine\nextends: connectx-5\nhca:\n  read_interval: {value: " + interval + ", source: measured here}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// --profile takes a file, as that of rdmasim does. The record has the name in it and its hash, the
// command that runs a case again its path, and what the profile that it extends may lack it may
// lack too.
func TestProfileOfAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	path, dir := ownProfile(t, "my-card", "20ns"), t.TempDir()
	file := filepath.Join(dir, "run.json")
	run := func(file, profile, filter string) report.Run {
		if code, out, stderr := command(t, "--profile", profile, "--label-filter", filter, "--report", file); code != exitOK {
			t.Fatalf("exit %d\n%s%s", code, out, stderr)
		}
		r, _ := readRun(t, file)
		return r
	}
	const filter = "PD-007 || UAR-016" // the policy of ConnectX-5 lets it leave out the second
	own, stock := run(file, path, filter), run(filepath.Join(dir, "stock.json"), "connectx-5", filter)
	if own.Target.Profile != "my-card" || !strings.HasPrefix(own.Environment[profileKey], "own.yaml, ") || own.Environment["profile_hash"] == stock.Environment["profile_hash"] ||
		stock.Environment[profileKey] != "" {
		t.Errorf("the records say %+v %v and %v", own.Target, own.Environment, stock.Environment)
	}
	for i, c := range own.Cases {
		if c.Outcome != stock.Cases[i].Outcome {
			t.Errorf("%s: %s, and %s on what the file extends", c.ID, c.Outcome, stock.Cases[i].Outcome)
		}
	}
	if got, want := againAs(&own, "PD-007"), "conform --target=sim --profile own.yaml --seed 1 "; !strings.HasPrefix(got, want) {
		t.Errorf("a record is run again by %s", got)
	}
	const fails = "again: conform --target=sim --profile "
	if code, out, _ := command(t, "--profile", path, "--label-filter", "WIRE-003", "--fault", writeText(t, "faults:\n  - {do: drop, direction: requests, iteration: 1}\n")); code != exitFailed || !strings.Contains(out, fails+commands.Quoted(path)+" ") {
		t.Errorf("exit %d, the failure is said to be run again so:\n%s", code, out)
	}
}

func writeText(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every command that takes --profile refuses a bad file by file, line and column, and one that is
// not there.
func TestBadFileOfAProfile(t *testing.T) {
	t.Chdir(filepath.Dir(ownProfile(t, "my-card", "20"))) // paths without commas, which part the profiles of random
	bad, none := "./own.yaml", "./none.yaml"
	for _, args := range [][]string{{}, {"run"}, {"mutants", "--list"}, {"random", "--target=sim", "--mutant", "long-send-cut"}} {
		for path, want := range map[string]string{bad: "own.yaml:5:", none: "none.yaml"} {
			if code, out, stderr := command(t, append(args, "--profile", path)...); code != exitUsage || out != "" || !strings.Contains(stderr, want) {
				t.Errorf("%v with %s: exit %d\n%s%s", args, path, code, out, stderr)
			}
		}
	}
}

// Two files are told apart, also where they give their profiles one name.
func TestRandomOnFilesOfProfiles(t *testing.T) {
	t.Chdir(t.TempDir()) // paths without commas
	for dir, interval := range map[string]string{"one": "20ns", "two": "21ns"} {
		if err := os.Rename(filepath.Dir(ownProfile(t, "my-card", interval)), dir); err != nil {
			t.Fatal(err)
		}
	}
	const one, two = "one/own.yaml", "two/own.yaml"
	code, out, stderr := command(t, "random", "--target=sim", "--profile", one+","+two, "--programs", "3")
	if code != exitOK || strings.Count(out, "sim my-card of own.yaml, ") != 2 {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	if code, _, stderr := command(t, "random", "--target=sim", "--profile", one+","+one); code != exitUsage || !strings.Contains(stderr, "twice") {
		t.Errorf("the same file twice: exit %d\n%s", code, stderr)
	}
}
