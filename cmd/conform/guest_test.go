package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

// TestFailureInAGuestNamesItsFiles: the report of a case that failed in a guest names the file of
// faults and the capture of the simulation around it, whichever way the flags are written.
func TestFailureInAGuestNamesItsFiles(t *testing.T) {
	for _, c := range []struct {
		line        []string
		fault, pcap string
	}{
		{[]string{"rdmasim", "vm", "--fault", "my faults.yaml", "--pcap=out/a.pcapng", "--", "conform"}, "my faults.yaml", "out/a.pcapng"},
		{[]string{"rdmasim", "vm", "--functions", "2", "--", "conform", "--fault", "f.yaml"}, "", ""},
		{[]string{"rdmasim", "vm", "--fault=f.yaml", "conform"}, "f.yaml", ""},
	} {
		program := len(c.line) - 1
		for i, w := range c.line {
			if w == "--" {
				program = i + 1
			}
		}
		t.Setenv(commands.GuestVariable, commands.UpTo(c.line, len(c.line)-program))
		run := &report.Run{Target: report.Target{Kind: "hw"}, Environment: map[string]string{}, Cases: []report.Case{{ID: "RC-001", Outcome: report.Fail, Reason: "x"}}}
		noteGuest(run)
		var out bytes.Buffer
		printFailures(&out, &runOptions{target: "hw"}, run)
		for _, f := range []struct{ name, key, line string }{
			{c.fault, guestFaultKey, "faults: " + c.fault + ", which rdmasim vm injects"}, {c.pcap, guestCaptureKey, "capture: " + c.pcap + ", whole when"},
		} {
			if named := strings.Contains(out.String(), f.line); named != (f.name != "") {
				t.Errorf("%q: %s", c.line, out.String())
			}
			if got, has := run.Environment[f.key]; has != (f.name != "") || has && !strings.HasSuffix(f.name, got) || strings.Contains(got, "/") {
				t.Errorf("%q: %s is %q", c.line, f.key, got)
			}
		}
	}
}
