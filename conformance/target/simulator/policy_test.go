package simulator_test

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// What a profile lacks fails its run unless a policy names the profile.
func TestEveryProfileHasAPolicy(t *testing.T) {
	for _, name := range profile.List() {
		if p, err := conformance.LoadPolicy(name); err != nil || !slices.Contains(p.Profiles, name) {
			t.Errorf("%s: no file of conformance/unsupported lists it (%v)", name, err)
		}
	}
}
