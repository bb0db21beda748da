package link

import "github.com/rdmasim/rdmasim/sim"

// Meter is the use of the line by what the port sends. The name is that of the port.
func (p *Port) Meter(name string) sim.Meter {
	p.settle()
	return sim.Meter{Resource: sim.Wire, Unit: name, Busy: sim.BytesTime(p.C.TxWireBytes, p.p.Bandwidth) - max(0, p.free-p.e.Now())}
}
