package mutant

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// registers are mutants of the device at its registers and its interrupts.
var registers = []Mutant{
	{Name: "every-third-arm-lost", Area: "COMP", Killers: []string{"COMP-002"}, Rule: "Every arm of a CQ takes effect", wrap: loseArms},
	{Name: "every-third-interrupt-lost", Area: "COMP", Killers: []string{"COMP-002"}, Rule: "An armed event queue interrupts", wrap: loseInterrupts},
}

func loseArms(w *testbed.Wrap) {
	w.Function = func(f pcie.Function) pcie.Function {
		n := 0
		return &function{Function: f, write: func(off uint64, _ []byte) bool {
			if off%prm.UARPageSize != prm.UARCQArm {
				return true
			}
			n++
			return n%3 != 0
		}}
	}
}

// bus is the way to the host with a hand on the interrupts.
type bus struct {
	pcie.Bus
	n int
}

func (b *bus) Interrupt(vector int) {
	if b.n++; b.n%3 != 0 {
		b.Bus.Interrupt(vector)
	}
}

func loseInterrupts(w *testbed.Wrap) {
	w.Bus = func(b pcie.Bus) pcie.Bus { return &bus{Bus: b} }
}
