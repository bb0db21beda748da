package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

// The range of a port's LIDs holds what the rule of the specification says, and no LID of a group.
func TestLIDRange(t *testing.T) {
	lids := []uint16{0, 1, 2, 3, 0x7f, 0x80, 0x81, 0x1234, 0xbf80, 0xbfff, 0xc000, 0xc07f, 0xfffe, 0xffff}
	for _, state := range []roce.PortState{roce.PortDown, roce.PortInit, roce.PortArmed, roce.PortActive} {
		for lmc := range uint8(8) {
			for _, own := range lids {
				b := ibPort{info: roce.PortInfo{State: state, LID: own, LMC: lmc}}
				b.update()
				for _, lid := range lids {
					want := state >= roce.PortArmed && own < roce.FirstMulticastLID && lid>>lmc == own>>lmc
					if b.lids.has(lid) != want {
						t.Errorf("state %v, LID %#x, LMC %d: %#x is in the range: %v", state, own, lmc, lid, !want)
					}
				}
			}
		}
	}
}
