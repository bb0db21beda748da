package main

import (
	"bytes"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/calibrate"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// The script that owners of a card run has its ten tests done below exec, and calibrate reads all that it leaves. Times there
// are those of this machine's processor, so nothing is asked of the values.
func TestCalibrateScriptBelowExec(t *testing.T) {
	if os.Getenv("RDMASIM_NEED_RDMA") == "" {
		t.Skip("needs Debian's perftest, and RDMASIM_NEED_RDMA=1, as make test sets it")
	}
	bin, dir := filepath.Join(t.TempDir(), "rdmasim"), t.TempDir()
	if out, err := osexec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script, err := filepath.Abs("../../scripts/measure-card")
	if err != nil {
		t.Fatal(err)
	}
	measured := filepath.Join(dir, "measured")
	const both = `"$0" server mlx5_1 & "$0" client mlx5_0 127.0.0.1 "$1" && wait $!`
	c := osexec.Command(bin, "exec", "--devices", "2", "--", "bash", "-c", both, script, measured)
	c.Env = append(os.Environ(), "MEASURE_SECONDS=1", "MEASURE_ITERATIONS=50", "MEASURE_PROCESSES=4")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out, errs bytes.Buffer
	own := filepath.Join(dir, "own.yaml")
	if status := program.Execute(t.Context(), []string{"calibrate", "--from", measured, "-o", own}, &out, &errs); status != 0 {
		t.Fatalf("status %d\n%s%s", status, &out, &errs)
	}
	if text := out.String(); strings.Contains(text, "no measurement") || !strings.Contains(text, "from 16 files") {
		t.Errorf("%s", text)
	}
	p, err := profile.Load(own)
	if err != nil || p.Name != "own" {
		t.Errorf("the profile: %v", err)
	}
	if status := program.Execute(t.Context(), []string{"run", "stream.yaml", "--profile", own}, &out, &errs); status != 0 {
		t.Errorf("stream.yaml with the new profile: status %d\n%s", status, &errs)
	}
}

// Flags that do not belong together are refused, and nothing is run.
func TestCalibrateFlags(t *testing.T) {
	for line, want := range map[string]string{
		"calibrate --check 3":                            "add --leave-one-out",
		"calibrate --stored":                             "give both",
		"calibrate --leave-one-out --stored --seed 2":    "without --check and --seed",
		"calibrate --from x --leave-one-out":             "give one of them",
		"calibrate -o x.yaml":                            "belong to --from",
		"calibrate --from x -o x.txt":                    "ends in .yaml",
		"calibrate --from ./none":                        "no such file",
		"calibrate --from ../../fixtures/perftest":       "is no output of perftest",
		"run stream.yaml --sensitivity --pcap x":         "leave them out",
		"run stream.yaml --sensitivity --trace x":        "leave them out",
		"run stream.yaml --profile ./no-such-file.yaml":  "no-such-file.yaml",
		"run uar-sharing --profile ../../go.mod.yaml":    "go.mod.yaml",
		"profile show ../../fixtures/profiles/none.yaml": "none.yaml",
	} {
		var out, errs bytes.Buffer
		if status := program.Execute(t.Context(), strings.Fields(line), &out, &errs); status != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d, %s, want %s", line, status, &errs, want)
		}
	}
	if os.Remove("x") == nil {
		t.Error("a run that is refused has been made first")
	}
}

// The table that comes with the program is of the profiles that come with it.
func TestCalibrateStoredTable(t *testing.T) {
	rep, err := calibrate.StoredLeaveOneOut()
	if err != nil {
		t.Fatal(err)
	}
	if err := rep.Current(); err != nil {
		t.Error(err)
	}
	if len(rep.Checks) < 100 || len(rep.Profiles) < 5 || rep.Runs == 0 {
		t.Errorf("%d figures of %d profiles, %d runs", len(rep.Checks), len(rep.Profiles), rep.Runs)
	}
	for _, c := range rep.Checks {
		if c.ID == "" || c.Name == "" {
			t.Errorf("%+v", c)
		}
	}
}
