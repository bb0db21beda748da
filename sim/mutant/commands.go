package mutant

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// commands are mutants of the device at its mailbox: it answers that it has done what it
// has not.
var commands = []Mutant{
	{Name: "limit-never-armed", Area: "SRQ", Killers: []string{"SRQ-008"}, Rule: "An SRQ with a limit reports when it has fewer receives", wrap: deaf(prm.OpModifyRMP)},
	{Name: "error-state-ignored", Area: "QPS", Killers: []string{"POST-010"}, Rule: "A QP that is moved to ERR flushes its requests", wrap: deaf(prm.Op2ErrQP)},
	{Name: "reset-ignored", Area: "QPS", Killers: []string{"POST-020"}, Rule: "A QP that is moved to RESET forgets its requests", wrap: deaf(prm.Op2RstQP)},
}

// function is the face of a device with a hand before it.
type function struct {
	pcie.Function
	// command may change the mailbox; it reports false when the device shall not see it
	// and all is well.
	command func(op prm.Opcode, in []byte) bool
	// answer may change what the device answers to a command that it has carried out.
	answer func(op prm.Opcode, out []byte)
	// write may change a register write; it reports false when it is to be lost.
	write func(off uint64, p []byte) bool
}

// Command carries out a command, or claims to.
func (f *function) Command(in, out []byte) sim.Time {
	op, status := prm.CheckCommand(in, out)
	if status == prm.StatusOK && f.command != nil && !f.command(op, in) {
		clear(out)
		return 0
	}
	t := f.Function.Command(in, out)
	if status == prm.StatusOK && f.answer != nil && out[0] == byte(prm.StatusOK) {
		f.answer(op, out)
	}
	return t
}

// MMIOWrite passes a register write on, or loses it.
func (f *function) MMIOWrite(off uint64, p []byte) {
	if f.write != nil && !f.write(off, p) {
		return
	}
	f.Function.MMIOWrite(off, p)
}

// deaf does not carry a command out.
func deaf(to prm.Opcode) func(*testbed.Wrap) {
	return func(w *testbed.Wrap) {
		w.Function = func(f pcie.Function) pcie.Function {
			return &function{Function: f, command: func(op prm.Opcode, _ []byte) bool { return op != to }}
		}
	}
}
