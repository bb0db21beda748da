package main

import (
	"fmt"
	"strings"
	"testing"
)

// READs of memory on demand share a queue pair with requests that have effects: what the responder
// has executed and acknowledged is not taken back by an RNR NAK for a READ before it, and what a
// requester does whose own pages are absent is no violation either.
func TestWireOfPagedReadsBesideOthers(t *testing.T) {
	for i, c := range []struct {
		verbs, payload, at, loss string
		selective                bool
	}{
		{"read write", "2KiB", "to", "", false},
		{"read write", "16KiB", "to", "", true},
		{"read send", "16KiB", "to", "", false},
		{"read", "16KiB", "to", "", false},
		{"read write", "2KiB", "to", "faults: [{do: drop, per_million: 3000}]\n", true},
		{"read", "16KiB", "to", "faults: [{do: drop, per_million: 3000}]\n", false},
		{"read write", "16KiB", "both", "", false},
		{"read send", "16KiB", "both", "", false},
		{"read send", "8", "both", "faults: [{do: drop, per_million: 3000}]\n", true},
	} {
		if testing.Short() && i%3 > 0 {
			continue
		}
		var mix []string
		for _, v := range strings.Fields(c.verbs) {
			mix = append(mix, "{verb: "+v+"}")
		}
		text := fmt.Sprintf("name: paged\nset: {hca.selective_repeat: %v}\ntraffic:\n  - {mix: [%s], payload: %s, window: 16, messages: 400, on_demand: explicit, "+
			"on_demand_at: %s, mr_size: 4MiB, access: random, min_rnr_timer: 1}\n%s", c.selective, strings.Join(mix, ", "), c.payload, c.at, c.loss)
		sender := "go-back-n"
		if c.selective {
			sender = "selective-repeat"
		}
		capture := captureOf(t, text)
		if code, out, errs := judgeFile(t, capture, "--odp", "--sender", sender); code != exitOK || !strings.Contains(out, " 0 violations") {
			t.Errorf("%v: exit %d\n%.2000s%s", c, code, out, errs)
		}
		if _, out, _ := judgeFile(t, capture, "--sender", sender); !strings.Contains(out, "this capture needs --odp") {
			t.Errorf("%v: without --odp\n%.2000s", c, out)
		}
	}
}

// A requester without its pages asks again from its first READ on, of which all were answered: that
// is no new connection, also when one of the repeated requests is lost.
func TestWireOfReadsThatAreAskedForAgainFromTheFirst(t *testing.T) {
	for _, psn := range []int{0x1010, 0x1090, 0x10b0} {
		capture := captureOf(t, fmt.Sprintf("name: again\ntraffic: [{verb: read, payload: 16KiB, window: 16, messages: 100, on_demand: explicit}]\n"+
			"faults: [{do: drop, direction: requests, psn: %#x, iteration: 2, count: 1}]\n", psn))
		if code, out, errs := judgeFile(t, capture, "--odp"); code != exitOK || !strings.Contains(out, " 0 violations") {
			t.Errorf("PSN %#x: exit %d\n%.1500s%s", psn, code, out, errs)
		}
	}
}
