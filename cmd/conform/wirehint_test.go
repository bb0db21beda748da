package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// A capture of the simulator with selective repeat gets one line that says which flag it needs;
// with the flag it is judged, and go-back-n on request is judged as such.
func TestWireNamesTheSenderThatACaptureNeeds(t *testing.T) {
	dir := t.TempDir()
	capture, faults := filepath.Join(dir, "out.pcapng"), filepath.Join(dir, "faults.yaml")
	if err := os.WriteFile(faults, []byte("faults: [{do: drop, direction: requests, flow: 1, packet: 50, iteration: 1}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := studies.Open(t.Context(), "stream.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Execute(t.Context(), experiment.Request{Seed: 1, Fault: faults, Pcap: capture, Set: []string{"hca.selective_repeat=true"}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sender string
		code   int
		want   string
		lines  int // at most
	}{
		{"", exitFailed, "this capture needs --sender selective-repeat", 1},
		{"selective-repeat", exitOK, "0 violations", 20},
		{"go-back-n", exitFailed, "violation ", 10000},
	} {
		args := []string{capture}
		if c.sender != "" {
			args = append(args, "--sender", c.sender)
		}
		code, out, errs := judgeFile(t, args...)
		if code != c.code || !strings.Contains(out, c.want) || strings.Count(out, "\n") > c.lines {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
}

// A capture with on-demand paging gets one line that says which flag it needs; with the flag
// nothing in it is wrong: neither the RNR NAKs for READs, WRITEs and atomics, nor the NAK of a
// request whose pages cannot be had.
func TestWireNamesThePagingThatACaptureNeeds(t *testing.T) {
	capture := filepath.Join(t.TempDir(), "out.pcapng")
	if code, out, errs := command(t, "--target=sim", "--label-filter", "/ODP-0[0-2]./", "--pcap", capture); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	code, out, errs := judgeFile(t, capture)
	if code != exitFailed || !strings.Contains(out, "this capture needs --odp") || strings.Count(out, "\n") > 1 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	code, out, errs = judgeFile(t, capture, "--odp", "--notes")
	if code != exitOK || !strings.Contains(out, " 0 violations") || !strings.Contains(out, "RNR NAK for the RC RDMA READ Request") {
		t.Errorf("exit %d\n%.3000s%s", code, out, errs)
	}
}

// A requester drops the answer of an atomic that comes behind a missing one, and asks for it again:
// that is no violation.
func TestWireAllowsAtomicsToBeAskedForAgain(t *testing.T) {
	capture := captureOf(t, "name: s\nset: {hca.selective_repeat: true}\ntraffic:\n  - {verb: faa, window: 16, messages: 1000}\n"+
		"faults: [{do: drop, direction: responses, per_million: 5000}]\n")
	if code, out, errs := judgeFile(t, capture, "--sender", "selective-repeat"); code != exitOK || !strings.Contains(out, " 0 violations") {
		t.Errorf("exit %d\n%.2000s%s", code, out, errs)
	}
}

const hintScenario = "name: hint\nset: {hca.selective_repeat: true}\ntraffic: [{verb: %s, payload: 16KiB, window: 16, messages: 100%s}]\n" +
	"faults: [{do: drop, direction: requests, per_million: 10000}]\n"

// hintOf is the hint of a judgement, and how many violations it has.
func hintOf(t *testing.T, args ...string) (hint string, violations int) {
	t.Helper()
	_, out, errs := judgeFile(t, append([]string{"--format", "json"}, args...)...)
	var j struct {
		Hint    string
		Summary map[string]int
	}
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	return j.Hint, j.Summary["violation"]
}

// A capture that needs two flags is told so. Each flag alone gives a hint of the other.
func TestWireNamesTwoFlagsThatACaptureNeeds(t *testing.T) {
	for _, verb := range []string{"write", "read"} {
		capture := captureOf(t, fmt.Sprintf(hintScenario, verb, ", on_demand: explicit"))
		hint, n := hintOf(t, capture)
		want := fmt.Sprintf("this capture needs --odp --sender selective-repeat: %d violations without them, none with them", n)
		if code, out, errs := judgeFile(t, capture); code != exitFailed || hint != want || out != want+"\n" {
			t.Errorf("%s: exit %d\n%.2000s%s", verb, code, out, errs)
		}
		for _, c := range [][2]string{{"--odp", "--sender selective-repeat"}, {"--sender selective-repeat", "--odp"}} {
			hint, _ := hintOf(t, append(strings.Fields(c[0]), capture)...)
			if !strings.HasPrefix(hint, "this capture needs "+c[1]+":") {
				t.Errorf("%s, %s: %q", verb, c[0], hint)
			}
		}
		if code, out, errs := judgeFile(t, "--odp", "--sender", "selective-repeat", capture); code != exitOK {
			t.Errorf("%s: exit %d\n%.2000s%s", verb, code, out, errs)
		}
	}
}

// A violation that other rules leave does not take the hint away, and the hint does not hide what
// is wrong.
func TestWireNamesFlagsThatLeaveAViolation(t *testing.T) {
	capture := flipped(t, captureOf(t, fmt.Sprintf(hintScenario, "write", "")))
	hint, n := hintOf(t, capture)
	_, left := hintOf(t, "--sender", "selective-repeat", capture)
	want := fmt.Sprintf("this capture seems to need --sender selective-repeat: %d violations without it, %d with it", n, left)
	if left == 0 || left > 3 || hint != want {
		t.Errorf("%q, want %q", hint, want)
	}
	if _, out, _ := judgeFile(t, capture); !strings.HasSuffix(out, want+"\n") || !strings.Contains(out, "OR-011 violation") {
		t.Errorf("the table has no violation, or no hint below it\n%.2000s", out)
	}
}

// flipped is a copy of a capture with one bit of the last byte of a frame's payload flipped.
func flipped(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, packets, err := pcap.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, packets[10].Data)
	b[at+len(packets[10].Data)-8] ^= 1
	out := name + ".flipped"
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// The hint of a file of several runs counts those of all of them, and one run that other rules do
// not excuse is not hidden.
func TestWireHintsOfSeveralRuns(t *testing.T) {
	one, two := captureOf(t, fmt.Sprintf(hintScenario, "write", "")), captureOf(t, fmt.Sprintf(hintScenario, "send", ""))
	both := joined(t, one, two, one)
	hint, n := hintOf(t, both)
	_, first := hintOf(t, one)
	_, second := hintOf(t, two)
	want := fmt.Sprintf("this capture needs --sender selective-repeat: %d violations without it, none with it", 2*first+second)
	if n != 2*first+second || hint != want {
		t.Errorf("%q, want %q", hint, want)
	}
	mixed := joined(t, flipped(t, one), two)
	_, left := hintOf(t, "--sender", "selective-repeat", mixed)
	hint, n = hintOf(t, mixed)
	want = fmt.Sprintf("this capture seems to need --sender selective-repeat: %d violations without it, %d with it", n, left)
	if left == 0 || hint != want {
		t.Errorf("%q, want %q", hint, want)
	}
}

// joined is a file with the packets of captures, each as a run of its own.
func joined(t *testing.T, names ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "joined.pcapng")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	var ports []string
	for i := range names {
		ports = append(ports, fmt.Sprintf("run%d a", i))
	}
	w, err := pcap.NewWriter(f, oracle.Application, ports...)
	for i, name := range names {
		b, readErr := os.ReadFile(name)
		_, packets, parseErr := pcap.Read(bytes.NewReader(b))
		if err = errors.Join(err, readErr, parseErr); err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			err = errors.Join(err, w.Write(i, p.Time, p.Data, p.Comment))
		}
	}
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}
