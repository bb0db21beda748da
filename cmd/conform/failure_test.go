package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// A failure says what the rule is and by which source, what was wanted and seen, where, which
// frames passed, and how to see it again; JUnit and the record have it too, and the capture is a
// file.
func TestFailureIsExplained(t *testing.T) {
	t.Setenv("CONFORM_MUTANTS", os.Args[0]) // the test binary is the worker
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"--mutant", "nak-access-as-invalid", "--label-filter", "RC-006 || RC-007", "--captures", at("frames"), "--junit", at("run.xml"), "--report", at("run.json"), "--html", at("run.html")}
	code, out, stderr := command(t, args...)
	if code != exitFailed {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	for _, want := range []string{"FAIL RC-007  Write just inside", "rule: expects wc REM_ACCESS_ERR; source: IBTA R_Key check", "want REM_ACCESS_ERR, got REM_INV_REQ_ERR",
		"at rc/", "frames on the wire around it:", "RC RDMA WRITE Only, PSN ", "NAK invalid request", "== the check failed here ==",
		"again: conform --target=sim --profile connectx-5 --mutant nak-access-as-invalid --seed 1 --label-filter RC-007 -v", "(conform help outcomes says what these words mean)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	run, text := readRun(t, at("run.json"))
	var failed *report.Case
	for i := range run.Cases {
		if run.Cases[i].ID == "RC-007" {
			failed = &run.Cases[i]
		}
	}
	if failed == nil || len(failed.Frames) == 0 || failed.FailedNs == 0 || run.Environment["mutant"] == "" {
		t.Errorf("the record has not what the failure shows: %s", text[:min(len(text), 2000)])
	}
	checkCapture(t, at("frames/RC-007.pcapng"))
	checkJUnit(t, at("run.xml"))
	if text, err := os.ReadFile(at("run.html")); err != nil || !bytes.Contains(text, []byte("NAK invalid request")) || !bytes.Contains(text, []byte("RC-007.pcapng")) {
		t.Errorf("the page has not what the failure shows (%d bytes, %v)", len(text), err)
	}
	checkDiffPage(t, at)
	if _, err := os.Stat(at("frames/RC-006.pcapng")); err == nil {
		t.Error("a case that passed has a capture")
	}
	again, _, _ := command(t, args...)
	if _, second := readRun(t, at("run.json")); again != exitFailed || !bytes.Equal(text, second) {
		t.Error("a second run has another record")
	}
}

// checkDiffPage compares the run with one of the simulator as it is.
func checkDiffPage(t *testing.T, at func(string) string) {
	t.Helper()
	if code, out, stderr := command(t, "--label-filter", "RC-006 || RC-007", "--report", at("whole.json")); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	code, _, stderr := command(t, "diff", at("whole.json"), at("run.json"), "--html", at("diff.html"))
	text, err := os.ReadFile(at("diff.html"))
	if code != exitFailed || err != nil || !bytes.Contains(text, []byte("DIFFERENT: whole.json against run.json")) {
		t.Errorf("exit %d, %v, a page of %d bytes\n%s", code, err, len(text), stderr)
	}
	if code, _, stderr := command(t, "diff", at("whole.json"), at("run.json"), "--html", at("run.json")); code != exitUsage {
		t.Errorf("a page in place of a record: exit %d\n%s", code, stderr)
	}
}

func checkCapture(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, packets, err := pcap.Read(bytes.NewReader(text)); err != nil || len(packets) == 0 {
		t.Errorf("the capture has %d packets, %v", len(packets), err)
	}
}

func checkJUnit(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var junit struct {
		Suites []struct {
			Time  float64 `xml:"time,attr"`
			Cases []struct {
				Name    string  `xml:"name,attr"`
				Time    float64 `xml:"time,attr"`
				Failure *struct {
					Text string `xml:",chardata"`
				} `xml:"failure"`
				Out string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &junit); err != nil || len(junit.Suites) != 1 || len(junit.Suites[0].Cases) != 2 {
		t.Fatalf("%v\n%s", err, text)
	}
	sum := 0.0
	for _, c := range junit.Suites[0].Cases {
		sum += c.Time
		if c.Time <= 0 || c.Out == "" {
			t.Errorf("%s took %v s and saw %q", c.Name, c.Time, c.Out)
		}
		if failed := strings.HasPrefix(c.Name, "RC-007 "); failed != (c.Failure != nil) || failed && !strings.Contains(c.Failure.Text, "again: conform --target=sim") {
			t.Errorf("%s: %+v", c.Name, c.Failure)
		}
	}
	if d := sum - junit.Suites[0].Time; d > 1e-8 || d < -1e-8 {
		t.Errorf("the cases took %v s, the suite %v s", sum, junit.Suites[0].Time)
	}
}

// Every outcome that a table can show is explained.
func TestHelpOutcomes(t *testing.T) {
	code, out, stderr := command(t, "help", "outcomes")
	if code != exitOK {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	for _, o := range report.Outcomes() {
		if o.Meaning() == "" || !strings.Contains(out, string(o)+" ") || !strings.Contains(out, o.Meaning()) {
			t.Errorf("%s is not explained in\n%s", o, out)
		}
	}
}
