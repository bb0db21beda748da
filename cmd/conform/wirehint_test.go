package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// A capture of the simulator with selective repeat gets one line that says which flag it needs; with
// the flag it is judged, and go-back-n on request is judged as such.
func TestWireNamesTheSenderThatACaptureNeeds(t *testing.T) {
	dir := t.TempDir()
	capture, faults := filepath.Join(dir, "out.pcapng"), filepath.Join(dir, "faults.yaml")
	if err := os.WriteFile(faults, []byte("faults: [{do: drop, direction: requests, flow: 1, packet: 50, iteration: 1}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := experiment.Open(t.Context(), "stream.yaml")
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

// A capture with on-demand paging gets one line that says which flag it needs; with the flag nothing in it is wrong: neither
// the RNR NAKs for READs, WRITEs and atomics, nor the NAK of a request whose pages cannot be had.
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

// A requester drops the answer of an atomic that comes behind a missing one, and asks for it again: that is no violation.
func TestWireAllowsAtomicsToBeAskedForAgain(t *testing.T) {
	capture := captureOf(t, "name: s\nset: {hca.selective_repeat: true}\ntraffic:\n  - {verb: faa, window: 16, messages: 1000}\n"+
		"faults: [{do: drop, direction: responses, per_million: 5000}]\n")
	if code, out, errs := judgeFile(t, capture, "--sender", "selective-repeat"); code != exitOK || !strings.Contains(out, " 0 violations") {
		t.Errorf("exit %d\n%.2000s%s", code, out, errs)
	}
}
