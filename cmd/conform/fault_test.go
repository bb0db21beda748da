package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of faults is in force in every case, and the record says so.
func TestFaultFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := filepath.Join(dir, "run.json")
	// The second transmission of a packet gets through.
	lossy := file("lossy.yaml", "faults:\n  - {do: drop, direction: requests, iteration: 1}\n")
	if code, out, stderr := command(t, "--label-filter", "WIRE-003 || POST-017", "--fault", lossy, "--report", path); code != exitFailed ||
		!strings.Contains(out, "FAIL WIRE-003") || !strings.Contains(out, "--fault ") {
		t.Errorf("requests lost: exit %d\n%s%s", code, out, stderr)
	}
	run, _ := readRun(t, path)
	if got := run.Environment["faults"]; !strings.HasPrefix(got, "lossy.yaml, ") {
		t.Errorf("the record says %q of the faults", got)
	}
	quiet := file("quiet.yaml", "faults:\n  - {do: drop, flow: 60}\n")
	if code, out, stderr := command(t, "--label-filter", "WIRE-003", "--fault", quiet); code != 0 {
		t.Errorf("nothing lost: exit %d\n%s%s", code, out, stderr)
	}
	for text, want := range map[string]string{
		"faults:\n  - {do: drip}\n":                     "bad.yaml:2:10",
		"faults:\n  - {do: drop, from: host7/mlx5_0}\n": "bad.yaml:2:22",
		"links:\n  - {port: host0/mlx5_0, at: 1us}\n":   "bad.yaml:2:5",
		"faults:\n  - {do: truncate}\n":                 "keeps at least 1 byte",
	} {
		code, _, stderr := command(t, "--label-filter", "WIRE-003", "--fault", file("bad.yaml", text))
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, no %q in\n%s", text, code, want, stderr)
		}
	}
}
