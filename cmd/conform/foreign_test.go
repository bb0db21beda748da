package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce/pcap"
)

// foreignCapture runs a load of one verb and gives its frames from one on as somebody's capture,
// which says nothing of what was lost.
func foreignCapture(t *testing.T, verb, faults string, from int) string {
	t.Helper()
	size := "4KiB"
	if verb == "faa" {
		size = "8B"
	}
	whole, err := os.ReadFile(captureOf(t, fmt.Sprintf("name: s\ntraffic:\n  - {verb: %s, payload: %s, window: 16, messages: 600, ack_timeout: 6}\n%s\n", verb, size, faults)))
	if err != nil {
		t.Fatal(err)
	}
	_, packets, err := pcap.Read(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pcap.NewWriter(&out, "somebody's", "eth0")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets[from:] {
		if err := w.Write(0, p.Time, p.Data, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "foreign.pcapng")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Nothing is wrong in a capture that begins in the middle of a connection, and in one of a tap
// behind which frames are lost.
func TestWireJudgesCapturesOfOthers(t *testing.T) {
	lossy := func(direction string) string {
		return "faults: [{do: drop, direction: " + direction + ", per_million: 20000}]"
	}
	for _, verb := range []string{"read", "faa", "write", "send", "write_imm"} {
		for what, c := range map[string]struct {
			faults string
			from   int
		}{
			"begins late": {"", 301}, "begins late, among responses": {"", 333},
			"responses are lost": {lossy("responses"), 0}, "requests are lost": {lossy("requests"), 0},
			"responses are lost, and it begins late": {lossy("responses"), 200},
		} {
			code, out, errs := judgeFile(t, foreignCapture(t, verb, c.faults, c.from))
			if code != exitOK || !strings.Contains(out, " 0 violations") {
				t.Errorf("%s, %s: exit %d\n%.1500s%s", verb, what, code, out, errs)
			}
		}
	}
}
