//go:build linux && amd64

package pci

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// healthPeriod is how often the firmware's counter changes. A driver looks once a second, and takes
// the device for dead when it has seen the same value three times.
const healthPeriod = 10 * sim.Millisecond

// bar is BAR 0 (pcie.Function): the initialisation segment, and behind it the registers of the
// device.
type bar struct {
	*function
	// arrived counts the writes that the link has brought.
	arrived uint64
	seg     [prm.InitSegSize]byte // what is read of it
}

// BAR0Size implements pcie.Function.
func (b *bar) BAR0Size() uint64 { return b.hca.BAR0Size() }

// Command implements pcie.Function.
func (b *bar) Command(in, out []byte) sim.Time { return b.queue.device.Command(in, out) }

// MMIOWrite implements pcie.Function.
func (b *bar) MMIOWrite(off uint64, p []byte) {
	b.arrived++
	if off >= firstUARPage {
		b.hca.MMIOWrite(off, p)
		return
	}
	// Registers are written as words; what else comes is dropped.
	for len(p) >= 4 && off%4 == 0 && off < prm.InitSegSize {
		b.queue.write(off, prm.RegisterWord(p))
		off, p = off+4, p[4:]
	}
}

// MMIORead implements pcie.Function. No request crosses a page, as a TLP does not.
func (b *bar) MMIORead(off uint64, p []byte) {
	clear(p)
	switch {
	case off >= firstUARPage:
		b.hca.MMIORead(off, p)
	case off < prm.InitSegSize:
		b.hca.MMIORead(0, b.seg[:prm.InitSegHeadSize])
		b.hca.MMIORead(prm.InitSegTimer, b.seg[prm.InitSegTimer:][:prm.TimerSize])
		prm.SetRegisterWord(b.seg[prm.InitSegHealthCounter:], uint32(b.m.eng.Now()/healthPeriod))
		copy(b.seg[prm.InitSegCommandQueue:], b.queue.regs[:])
		copy(p, b.seg[off:])
	}
}
