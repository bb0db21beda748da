package testbed

import (
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// Wrap inserts something between the units of each device. A nil member leaves the units joined
// directly.
type Wrap struct {
	// Function stands in front of the device's interface to the host: registers and commands.
	Function func(pcie.Function) pcie.Function
	// Bus stands before the host's memory and interrupts.
	Bus func(pcie.Bus) pcie.Bus
	// Wire stands between the device and its port.
	Wire func(*link.Port) hca.Wire
}

func (w *Wrap) function(f pcie.Function) pcie.Function {
	if w.Function == nil {
		return f
	}
	return w.Function(f)
}

func (w *Wrap) bus(b pcie.Bus) pcie.Bus {
	if w.Bus == nil {
		return b
	}
	return w.Bus(b)
}

func (w *Wrap) wire(p *link.Port) hca.Wire {
	if w.Wire == nil {
		return p
	}
	return w.Wire(p)
}
