package conformance_test

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
)

// A card lacks what only the simulator has, and that does not fail its run, whoever its provider
// is; a target with a policy of its own is not held to that of cards, and a simulated profile that
// nobody knows may lack nothing.
func TestPolicyOfCards(t *testing.T) {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, e := range cat.Cases {
		for _, n := range e.Needs {
			needed[n] = true
		}
	}
	for profile, floor := range map[string]int{"hw-mlx5": 100, "hw-irdma": 100} {
		p, err := conformance.LoadPolicy(profile, nil)
		if err != nil || p.Profile != profile || p.MinPass != floor || len(p.Required) != 1 {
			t.Fatalf("%s: %v, %+v", profile, err, p)
		}
		absent := map[string]bool{}
		for _, a := range p.Absent {
			absent[a.Token] = true
		}
		for n := range needed {
			if absent[n] == (n == "events") {
				t.Errorf("%s: capability %q may be absent: %t", profile, n, absent[n])
			}
		}
	}
	for _, profile := range []string{"hw-rxe", "hw-mlx5-exec", "hw-mlx5-pci"} {
		if p, err := conformance.LoadPolicy(profile, nil); err != nil || p.MinPass == 100 {
			t.Errorf("%s has the policy of cards: %v", profile, err)
		}
	}
	if p, err := conformance.LoadPolicy("connectx-99", nil); err != nil || len(p.Absent) != 0 {
		t.Errorf("an unknown profile: %v, %+v", err, p)
	}
}

// TestPolicyOfOrdinaryUsers: who is not root may leave out what needs it, where an ordinary user
// can run the suite.
func TestPolicyOfOrdinaryUsers(t *testing.T) {
	for _, profile := range []string{"hw-mlx5", "hw-rxe", "hw-mlx5-exec"} {
		p, err := conformance.LoadPolicy(profile, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(p.Absent, func(a conformance.Absence) bool { return a.Token == "root" }) {
			t.Errorf("%s: nothing lets an ordinary user leave out the cases that need root", profile)
		}
	}
}
