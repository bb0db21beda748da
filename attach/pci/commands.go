//go:build linux && amd64

package pci

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
)

// commandDone counts a command, and tells of it what a user wants to know.
func (f *function) commandDone(in, out []byte, d prm.CommandDelivery) {
	f.life.commands++
	if d != prm.DeliveryOK {
		if f.life.brokenEntries++; f.life.brokenEntries > 1 {
			return
		}
		f.logf("an entry of the command queue is broken; it is answered with delivery status %#x", uint32(d))
		return
	}
	op, st := prm.CmdIn(in).Opcode(), prm.CmdOut(out).Status()
	if st != prm.StatusOK {
		f.life.failed++
		f.refused(op, prm.CmdIn(in).OpMod(), prm.CmdOut(out))
	}
	switch {
	case f.m.verbose:
		f.logf("command %v (%#x)%s, modifier %#x, %d bytes: status %v, %d bytes", op, uint16(op), ended(op, in), prm.CmdIn(in).OpMod(), len(in), st, len(out))
	case st == prm.StatusOK && op == prm.OpInitHCA:
		f.logf("a driver has initialised the device (%d commands so far)", f.life.commands)
	case st == prm.StatusOK && op == prm.OpTeardownHCA:
		f.logf("the driver has shut the device down")
	}
}

// ended names the object that a command destroys: " of 0x48". It is empty for other commands.
func ended(op prm.Opcode, in []byte) string {
	var number uint32
	switch op {
	case prm.OpDeallocPD:
		number = prm.DeallocPDIn(in).PD()
	case prm.OpDestroyCQ:
		number = prm.DestroyCQIn(in).CQN()
	case prm.OpDestroyQP:
		number = prm.DestroyQPIn(in).QPN()
	case prm.OpDestroyMKey:
		number = prm.DestroyMKeyIn(in).MKeyIndex()
	case prm.OpDestroyRMP:
		number = prm.DestroyRMPIn(in).RMPN()
	case prm.OpDestroyXRCSRQ:
		number = prm.DestroyXRCSRQIn(in).SRQN()
	case prm.OpDeallocXRCD:
		number = prm.DeallocXRCDIn(in).XRCD()
	default:
		return ""
	}
	return fmt.Sprintf(" of %#x", number)
}

// refusal is a kind of refused command.
type refusal struct {
	op prm.Opcode
	st prm.Status
}

// refused tells of each kind of refused command once in a life.
func (f *function) refused(op prm.Opcode, mod uint16, out prm.CmdOut) {
	r := refusal{op, out.Status()}
	if f.life.refusals[r]++; f.life.refusals[r] > 1 {
		return
	}
	if r.st == prm.StatusBadOp {
		f.logf("the device does not know command %v (%#x) with modifier %#x, and has refused it", op, uint16(op), mod)
		return
	}
	f.logf("command %v (%#x) with modifier %#x is refused: status %v, syndrome %#x", op, uint16(op), mod, r.st, out.Syndrome())
}

// unknown is how many opcodes the device does not know.
func (l *life) unknown() (n int) {
	for r := range l.refusals {
		if r.st == prm.StatusBadOp {
			n++
		}
	}
	return n
}

// describe is the summary of a life.
func (l *life) describe() string {
	s := fmt.Sprintf("%d commands", l.commands)
	if l.failed > 0 {
		s += fmt.Sprintf(" (%d refused, %d opcodes unknown)", l.failed, l.unknown())
	}
	if l.brokenEntries > 0 {
		s += fmt.Sprintf(", %d broken entries of the command queue", l.brokenEntries)
	}
	if l.resets > 0 {
		s += fmt.Sprintf(", %d resets", l.resets)
	}
	return s
}

// describe is the summary of a function.
func (f *function) describe() string {
	h, l := f.hca.Counters(), f.link.Counters()
	s := fmt.Sprintf("%d lives, %d interrupts, %d packets sent and %d received, %d bytes read from guests' memory and %d written",
		f.lives, l.Interrupts, h.TxPackets, h.RxPackets, l.DMAReadBytes, l.DMAWriteBytes)
	if u := f.hca.UARTotals(); f.combine != nil {
		s += fmt.Sprintf(", %d BlueFlame pushes, %d torn, %d doorbells", u.BlueFlame, u.Torn, u.Doorbells)
	}
	if l.Unsupported > 0 {
		s += fmt.Sprintf(", %d accesses outside their memory", l.Unsupported)
	}
	return s
}
