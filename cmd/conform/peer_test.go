package main

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
)

// TestCasesOfARole: with a simulated peer a device is asked for what is its own, and one that
// answers for what reaches it.
func TestCasesOfARole(t *testing.T) {
	all, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	of := func(peer, role string) (ids []string) {
		o := &runOptions{peer: peer, role: role}
		items, err := o.pick(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			ids = append(ids, i.Entry.ID)
		}
		return ids
	}
	if n := len(of("unix:x", roleRequester)); n != len(all) {
		t.Errorf("with an agent %d of %d cases are picked", n, len(all))
	}
	asks, answers := of("sim:udp:127.0.0.3", roleRequester), of("sim:udp:127.0.0.3", roleResponder)
	for id, want := range map[string][2]bool{ // asks, answers
		"WIRE-053": {true, false}, "WIRE-030": {false, true}, "WIRE-017": {true, true}, "PD-001": {true, false}, "CM-028": {true, true},
	} {
		if got := [2]bool{slices.Contains(asks, id), slices.Contains(answers, id)}; got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	for _, i := range all {
		if i.Entry.TwoNodes() && !slices.Contains(asks, i.Entry.ID) && !slices.Contains(answers, i.Entry.ID) {
			t.Errorf("%s runs in neither role", i.Entry.ID)
		}
	}
}
