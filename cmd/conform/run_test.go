package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// The test binary is the worker of the runs below.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "worker" || os.Args[1] == randomWorker || os.Getenv("CONFORM_TEST_PROGRAM") != "") {
		os.Exit(program.Execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func readRun(t *testing.T, path string) (report.Run, []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Run
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r, text
}

// The same seed gives the same files, whatever the number of workers is and whether
// programs run ahead; another seed gives others.
func TestEqualRunsAreEqualFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := t.TempDir()
	runs := map[string][]string{"a": nil, "b": {"--parallel", "1"}, "c": {"--lockstep"}, "d": {"--seed", "2"}}
	files := map[string][3][]byte{}
	for name, extra := range runs {
		base := filepath.Join(dir, name)
		args := append([]string{"--target=sim", "--label-filter", "ATOM && !ATOM-010 || PD-007", "--report", base + ".json",
			"--pcap", base + ".pcapng", "--trace", base + ".trace"}, extra...)
		if code, out, stderr := command(t, args...); code != 0 {
			t.Fatalf("run %s: exit %d\n%s%s", name, code, out, stderr)
		}
		run, record := readRun(t, base+".json")
		if run.Schema != report.Schema || run.Target.Kind != "sim" || run.Target.Profile != simulator.DefaultProfile || len(run.Cases) < 5 {
			t.Errorf("record of %s: %s", name, record[:min(400, len(record))])
		}
		var set [3][]byte
		for i, suffix := range []string{".json", ".pcapng", ".trace"} {
			text, err := os.ReadFile(base + suffix)
			if err != nil || len(text) == 0 {
				t.Fatalf("%s%s: %d bytes, %v", name, suffix, len(text), err)
			}
			set[i] = text
		}
		files[name] = set
	}
	for i, what := range []string{"record", "capture", "timeline"} {
		for _, other := range []string{"b", "c"} {
			if !bytes.Equal(files["a"][i], files[other][i]) {
				t.Errorf("the %s of run %s (%v) differs", what, other, runs[other])
			}
		}
	}
	if _, packets, err := pcap.Read(bytes.NewReader(files["a"][1])); err != nil || len(packets) < 50 ||
		!bytes.Contains(files["a"][1], []byte("PD-007 host0/mlx5_0")) {
		t.Errorf("capture: %d packets, %v", len(packets), err)
	}
	if bytes.Equal(files["a"][0], files["d"][0]) {
		t.Error("two seeds give one record")
	}
	for _, path := range []string{dir, os.TempDir() + "/", "\"/"} {
		if bytes.Contains(files["a"][0], []byte(path)) {
			t.Errorf("the record names a path: %q", path)
		}
	}
}

func TestRunSaysHowToSeeAFailureAgain(t *testing.T) {
	o := &runOptions{target: "sim", profile: "connectx-5"}
	run := &report.Run{Target: report.Target{Kind: "sim", Profile: "connectx-5"}, Seed: 9, Cases: []report.Case{
		{ID: "CQ-001", Area: "CQ", Outcome: report.Pass},
		{ID: "CQ-002", Area: "CQ", Text: "text", Outcome: report.Fail, Reason: "want EINVAL, got 0", Where: "cq/cq.go:1"}}}
	run.Count()
	var b bytes.Buffer
	printRun(&b, o, run)
	for _, want := range []string{"FAIL CQ-002  text", "want EINVAL, got 0", "at cq/cq.go:1",
		"conform --target=sim --profile connectx-5 --seed 9 --label-filter CQ-002 -v", "FAILED: 2 cases", "1 pass, 1 fail"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestInterruptedRunIsWrittenAndMarked(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	path := filepath.Join(t.TempDir(), "run.json")
	var out, stderr bytes.Buffer
	code := program.Execute(ctx, []string{"--repeat", "1000", "--report", path}, &out, &stderr)
	run, _ := readRun(t, path)
	if code != exitInterrupted || !run.Incomplete || run.Summary[report.NotRun] == 0 || !strings.Contains(out.String(), "INTERRUPTED") {
		t.Errorf("exit %d, incomplete %v, %v\n%s%s", code, run.Incomplete, run.Summary, out.String(), stderr.String())
	}
}

func TestVerboseShowsObservations(t *testing.T) {
	code, out, _ := command(t, "-v", "--label-filter", "CQ-001", "--junit", filepath.Join(t.TempDir(), "j.xml"))
	if code != 0 || !strings.Contains(out, `create_cq with 0 entries: "EINVAL"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A run in a folder that was removed is refused, before a case would seem to be to blame.
func TestRunInAFolderThatIsGone(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := command(t, "--target=sim", "--label-filter", "PD-003"); code != exitUsage || !strings.Contains(stderr, "is gone") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}
