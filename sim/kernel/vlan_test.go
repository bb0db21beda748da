package kernel

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// TestVLAN: the address of a VLAN interface has GID entries that name the interface, which the
// device is told; it goes with the interface, whose index is not given again.
func TestVLAN(t *testing.T) {
	s := newSetup(t, testParams())
	ip := netip.MustParseAddr("198.51.100.1")
	entries := func() (found []uint32) {
		for i := range s.d.gids {
			if e := &s.d.gids[i]; e.valid && e.gid == verbs.GID(ip.As16()) {
				found = append(found, s.d.ifindex(e.vlan))
			}
		}
		return found
	}
	for _, id := range []uint16{0, 4095} {
		wantErrno(t, "ID out of range", s.d.AddVLAN(id, ip), syscall.EINVAL)
	}
	for round := range uint32(2) {
		if err := s.d.AddVLAN(100, ip); err != nil {
			t.Fatal(err)
		}
		wantErrno(t, "made twice", s.d.AddVLAN(100, ip), syscall.EEXIST)
		if got := entries(); len(got) != 2 || got[0] != netdevIndex+1+round {
			t.Fatalf("interfaces of the entries: %v", got)
		}
		a := prm.SetRoCEAddressIn(s.f.last[prm.OpSetRoCEAddress]).Addr()
		if !a.VlanValid() || a.VlanID() != 100 {
			t.Fatalf("the device was told VLAN %d, %v", a.VlanID(), a.VlanValid())
		}
		if err := s.d.RemoveVLAN(100); err != nil {
			t.Fatal(err)
		}
		wantErrno(t, "removed twice", s.d.RemoveVLAN(100), syscall.ENOENT)
		if got := entries(); len(got) != 0 {
			t.Fatalf("entries left: %v", got)
		}
	}
}
