package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The runs of tasks that the cluster has ended are named in the answer and on stderr, with the
// reason, what to do, and the command that runs one alone; what was done before is kept. The
// cluster is a script here; scripts/slurm-sweep has a real one.
func TestRunsThatAClusterLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range []struct{ state, log, want string }{
		{"TIMEOUT", "shard 0/1: 1 known", "task 0 ended as TIMEOUT: it took longer than its task may: give more with --time"},
		{"OUT_OF_MEMORY", "", "task 0 ended as OUT_OF_MEMORY: it took more memory than its task has: give more with --mem"},
		{"FAILED", "slurmstepd: error: StepId=4.batch exceeded memory limit (33 > 20), being killed", "task 0 ended as FAILED: it took more memory than its task has: give more with --mem"},
		{"FAILED", "no such file", "task 0 ended as FAILED"},
	} {
		if testing.Short() && c.log == "" {
			continue
		}
		dir, err := os.MkdirTemp("/tmp", "slurm-") // Slurm takes no path with spaces, which that of t.TempDir may have
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		own, store := filepath.Join(dir, "own.yaml"), filepath.Join(dir, "store")
		if err := os.WriteFile(own, []byte("name: own\ntraffic:\n  - {messages: 10}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := rdmasim(t, "run", own, "--sweep", "traffic.0.messages=10,11", "--store", store); code != 0 {
			t.Fatal(out)
		}
		for name, text := range map[string]string{
			"sbatch": `dir=${2%/*}; echo "` + c.log + `" >"$dir/0.log"; echo 4`,
			"squeue": `echo "0|` + c.state + `"`,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		code, out := rdmasim(t, "run", own, "--sweep", "traffic.0.messages=10,11,12", "--store", store, "--slurm", "-o", filepath.Join(dir, "out"))
		if code != exitFailure || !strings.Contains(out, "rdmasim: lost: traffic.0.messages=12: "+c.want) ||
			!strings.Contains(out, "(alone: rdmasim run "+own+" --seed 1 --set traffic.0.messages=12)") || strings.Contains(out, "lost: traffic.0.messages=11") {
			t.Errorf("%s: exit %d, %s", c.state, code, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "out", "own.json"))
		if err != nil || !strings.Contains(string(text), `"complete": false`) || !strings.Contains(string(text), "traffic.0.messages=12 has no result: "+c.want) {
			t.Errorf("%s: %v, %s", c.state, err, text)
		}
	}
}
