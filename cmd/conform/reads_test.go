package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// Our own captures of READs that lose requests and responses break no rule: a requester drops responses
// behind a missing one, and a NAK that waits behind responses may be late.
func TestWireOfReadsWithLoss(t *testing.T) {
	for i, lost := range [][]string{
		{"{do: drop, direction: requests, skip: 5, count: 1}", "{do: drop, direction: responses, skip: 200, count: 1}"},
		{"{do: drop, direction: responses, skip: 40, count: 1}", "{do: drop, direction: requests, skip: 9, count: 1}"},
		{"{do: drop, per_million: 2000}"},
	} {
		dir := t.TempDir()
		capture, scenario := filepath.Join(dir, "reads.pcapng"), filepath.Join(dir, "reads.yaml")
		text := fmt.Sprintf("name: reads\ntraffic:\n  - {verb: read, payload: 64KiB, window: 8, messages: 100}\nfaults:\n  - %s\n", strings.Join(lost, "\n  - "))
		if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := experiment.Open(t.Context(), scenario)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Execute(t.Context(), experiment.Request{Seed: 1, Pcap: capture}, nil); err != nil {
			t.Fatal(err)
		}
		if code, stdout, _ := command(t, "wire", capture); code != exitOK {
			t.Errorf("loss %d: exit %d\n%s", i, code, stdout[max(0, len(stdout)-2000):])
		}
	}
}
