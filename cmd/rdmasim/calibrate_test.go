package main

import (
	"bytes"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/calibrate"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// The script that owners of a card run has its ten tests done below exec, and calibrate reads all
// that it leaves. Times there are those of this machine's processor, so nothing is asked of the
// values.
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

// perftest prints zeros where it cannot measure the frequency of the clock, as on a busy machine.
// The script repeats such a test, all its programs together, and leaves no file of one that never
// measured anything.
func TestMeasureCardRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	script, err := filepath.Abs("../../scripts/measure-card")
	if err != nil {
		t.Fatal(err)
	}
	for zeros, want := range map[int]string{0: "", 2: "", 9: "five times"} {
		dir := t.TempDir()
		fake := fmt.Sprintf(`#!/bin/bash
while [ "$1" != -p ]; do shift; done
echo >>"%[1]s/$2.calls"
n=$(wc -l <"%[1]s/$2.calls")
echo " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]"
if [ $2 -eq %[2]d ] && [ $n -le %[3]d ]; then echo " 8 20880 0.00 0.00 0.000000"; else echo " 8 20880 0.00 17.30 2.1"; fi
`, dir, 18620, zeros) // the second of the programs of the first test that has several
		for _, name := range []string{"ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_atomic_lat"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(fake), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c := osexec.Command(script, "client", "mlx5_0", "192.0.2.7", filepath.Join(dir, "measured"))
		c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "MEASURE_PROCESSES=3", "MEASURE_PORT=18610")
		out, err := c.CombinedOutput()
		if (err != nil) != (want != "") || !strings.Contains(string(out), want) {
			t.Errorf("%d times zeros: %v\n%s", zeros, err, out)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "measured", "*", "*.txt"))
		if n := len(files); n != 6 && want == "" || n != 3 && want != "" {
			t.Errorf("%d times zeros: %d files of tests of several programs", zeros, n)
		}
		for port, calls := range map[int]int{18611: 1, 18619: min(zeros+1, 5), 18620: min(zeros+1, 5), 18622: 1, 18625: 1} {
			if got, _ := os.ReadFile(fmt.Sprintf("%s/%d.calls", dir, port)); len(got) != calls {
				t.Errorf("%d times zeros: %d runs on port %d, want %d", zeros, len(got), port, calls)
			}
		}
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
