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
	{Name: "second-half-unread", Area: "UAR", Killers: []string{"BF-005"}, Rule: "Both halves of a register take doorbells and pushes", wrap: loseWrites(func(off uint64, _ []byte) bool {
		return off%prm.UARPageSize >= prm.UARBFOffset && off&0x100 != 0
	})},
	{Name: "second-register-unread", Area: "UAR", Killers: []string{"CQ-016"}, Rule: "Each register of a UAR page takes doorbells and pushes", wrap: loseWrites(func(off uint64, _ []byte) bool {
		return off%prm.UARPageSize >= prm.UARBFOffset+0x200 && off%prm.UARPageSize < prm.UARBFOffset+0x400
	})},
	{Name: "torn-push-lost", Area: "BF", Killers: []string{"BF-007"}, Rule: "A push that is torn is a doorbell", wrap: loseWrites(torn)},
}

func loseArms(w *testbed.Wrap) {
	n := 0
	loseWrites(func(off uint64, _ []byte) bool {
		if off%prm.UARPageSize != prm.UARCQArm {
			return false
		}
		n++
		return n%3 == 0
	})(w)
}

// loseWrites loses the register writes that a case picks.
func loseWrites(lost func(off uint64, p []byte) bool) func(*testbed.Wrap) {
	return func(w *testbed.Wrap) {
		w.Function = func(f pcie.Function) pcie.Function {
			return &function{Function: f, write: func(off uint64, p []byte) bool { return !lost(off, p) }}
		}
	}
}

// torn are stores to a register that are neither a doorbell nor lines of a push.
func torn(off uint64, p []byte) bool {
	return off%prm.UARPageSize >= prm.UARBFOffset && len(p) != prm.DoorbellSize && len(p)%prm.WQEBBSize != 0
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
