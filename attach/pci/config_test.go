//go:build linux && amd64

package pci

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/uapi"
)

// TestLinksOfProfiles: the link follows from the bandwidth, and is the one that the profile's title
// names.
func TestLinksOfProfiles(t *testing.T) {
	for name, want := range map[string]ExpressLink{
		"connect-ib": {3, 16}, "connectx-4": {3, 16}, "connectx-4lx": {3, 8}, "connectx-5": {3, 16}, "connectx-6": {3, 16},
		"connectx-6dx": {4, 16}, "connectx-7": {4, 16},
	} {
		p, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := LinkOf(p.PCIe.Bandwidth); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, bandwidth := range []uint64{0, 1, 1 << 63} { // what a user's profile may have
		if l := LinkOf(bandwidth); l.Speed > lastSpeed || l.Lanes > 16 {
			t.Errorf("%d bit/s: %+v", bandwidth, l)
		}
	}
}

// TestConfigSpaceInUse: the space of a device that a driver has set up says where BAR 0 is, and
// that the function may use the bus.
func TestConfigSpaceInUse(t *testing.T) {
	p, err := profile.Load("connectx-5-ib")
	if err != nil {
		t.Fatal(err)
	}
	h := uapi.PCIHeader(ConfigSpace(p.Resolved(), 1<<41+1<<25, 1<<25))
	if at := uint64(h.BAR1())<<32 | uint64(h.BAR0()&^0xf); at != 1<<41+1<<25 || h.Class() != classIB || h.Command()&uapi.PCICommandMaster == 0 {
		t.Errorf("BAR 0 at %#x, class %#x, command %#x", at, h.Class(), h.Command())
	}
}
