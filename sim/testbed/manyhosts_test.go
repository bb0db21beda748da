package testbed

import (
	"net/netip"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

// No two of a thousand hosts share an address, and the first have those that they always had.
func TestIdentitiesOfManyHosts(t *testing.T) {
	seen := map[any]bool{}
	for i := range MostHosts {
		for k := range 2 {
			id := identity(i, k, MostHosts)
			for _, of := range []any{id.Number, id.GUID, id.MAC, id.IPv4} {
				if seen[of] {
					t.Fatalf("host %d, device %d: %v again", i, k, of)
				}
				seen[of] = true
			}
		}
		h := host{index: i}
		if a := h.management(); seen[a] || !a.IsPrivate() {
			t.Fatalf("host %d: %v", i, a)
		}
		seen[h.management()] = true
	}
	id := identity(199, 1, 200)
	if id.GUID != 0x0002_c903_0000_c802 || id.MAC != (roce.MAC{2, 2, 0xc9, 0, 200, 2}) || id.IPv4 != [4]byte{10, 2, 0, 200} || (&host{index: 199}).management() != netip.MustParseAddr("192.168.77.200") {
		t.Errorf("%+v", id)
	}
}
