package main

import (
	"fmt"
	"strings"
	"testing"
)

// Our own captures of READs that lose requests and responses break no rule: a requester drops
// responses behind a missing one, and a NAK that waits behind responses may be late.
func TestWireOfReadsWithLoss(t *testing.T) {
	for i, lost := range [][]string{
		{"{do: drop, direction: requests, skip: 5, count: 1}", "{do: drop, direction: responses, skip: 200, count: 1}"},
		{"{do: drop, direction: responses, skip: 40, count: 1}", "{do: drop, direction: requests, skip: 9, count: 1}"},
		{"{do: drop, per_million: 2000}"},
	} {
		text := fmt.Sprintf("name: reads\ntraffic:\n  - {verb: read, payload: 64KiB, window: 8, messages: 100}\nfaults:\n  - %s\n", strings.Join(lost, "\n  - "))
		if code, stdout, _ := command(t, "wire", captureOf(t, text)); code != exitOK {
			t.Errorf("loss %d: exit %d\n%s", i, code, stdout[max(0, len(stdout)-2000):])
		}
	}
}
