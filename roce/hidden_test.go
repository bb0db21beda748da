package roce_test

import (
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

// datagram is a frame of RoCEv2/IPv4 with n bytes of payload.
func datagramOf(t *testing.T, n int) *roce.Frame {
	t.Helper()
	tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GIDFromIPv4([4]byte{10, 0, 0, 1}),
		DstGID: roce.GIDFromIPv4([4]byte{10, 0, 0, 2}), HopLimit: 64, SrcPort: 4791, PKey: roce.DefaultPKey, DestQP: 17})
	if err != nil {
		t.Fatal(err)
	}
	f := tmpl.New(new(roce.Pool), roce.RCSendOnly, 5, n, 0)
	for i := range f.Payload() {
		f.Payload()[i] = byte(i * 7)
	}
	f.FinishICRC()
	return f
}

// TestHiddenIdentification: what a socket hides of a header follows from the ICRC, and damage
// elsewhere does not pass for it.
func TestHiddenIdentification(t *testing.T) {
	var s roce.HiddenIPv4
	for _, n := range []int{0, 1, 4, 63, 1024, 4096, 1024, 2} {
		f := datagramOf(t, n)
		p, err := roce.Parse(f.B)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct{ id, flags uint16 }{{0, roce.IPv4DontFragment}, {1, roce.IPv4DontFragment}, {0x8001, 0}, {0xffff, roce.IPv4DontFragment}, {0x1234, 0}} {
			p.PutIPv4Hidden(want.id, want.flags)
			p.FixICRC()
			p.PutIPv4Hidden(0, roce.IPv4DontFragment)
			if id, flags, ok := s.Solve(&p); !ok || id != want.id || flags != want.flags {
				t.Errorf("%d bytes, identification %#x, flags %#x: found %#x, %#x, %v", n, want.id, want.flags, id, flags, ok)
			}
			p.Corrupt()
			if id, flags, ok := s.Solve(&p); ok {
				t.Errorf("%d bytes: a damaged packet passes with %#x, %#x", n, id, flags)
			}
			p.Corrupt()
			p.IPv4().SetFlagsOffset(roce.IPv4MoreFragments)
			p.FixICRC()
			p.IPv4().SetFlagsOffset(roce.IPv4DontFragment)
			if _, _, ok := s.Solve(&p); ok {
				t.Errorf("%d bytes: a fragment passes", n)
			}
		}
	}
}
