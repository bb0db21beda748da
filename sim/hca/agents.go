package hca

import (
	"bytes"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// agents are those of an InfiniBand port, which answer packets to QP0 and QP1, and the driver by
// MAD_IFC.
type agents struct {
	sma mgmt.SMA
	pma mgmt.PMA
	psn uint32
}

// portInfoWidths are the codes of widths in PortInfo, by those in PTYS.
var portInfoWidths = map[uint32]uint8{prm.PTYSWidth1X: 1, prm.PTYSWidth2X: 16, prm.PTYSWidth4X: 2, prm.PTYSWidth8X: 4, prm.PTYSWidth12X: 8}

func newAgents(p *Params, id *Identity, port *port) *agents {
	link := protocolsOf(p)
	return &agents{
		sma: mgmt.SMA{Node: mgmt.Node{
			Type: mgmt.CA, Ports: 1, GUID: id.GUID, Device: uint16(p.VendorPartID), PKeys: ibPKeys, Speed: link.ib, Width: portInfoWidths[link.width],
			VLCap: mgmt.VLCode(vlHWCap),
		}},
		pma: mgmt.PMA{First: 1, Last: 1, Read: func(int) mgmt.Counters {
			if w, ok := port.wire.(CountingWire); ok {
				return w.PerformanceCounters()
			}
			return mgmt.Counters{}
		}},
	}
}

// describe takes the text of a node's description, which ends with zeros.
func (a *agents) describe(text []byte) {
	text, _, _ = bytes.Cut(text, []byte{0})
	a.sma.Description = string(text)
}
