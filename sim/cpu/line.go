package cpu

import "github.com/rdmasim/rdmasim/sim"

// Line is a cache line that more than one agent touches: a lock word, a queue
// head, a doorbell record, a completion entry. Its owner is a core, a device, or
// no core yet. Transfers of one line follow one another. The zero value is owned by
// no core.
type Line struct {
	owner   int32 // core number + 1; 0 nobody, -1 a device
	private bool
	free    sim.Time // when the last transfer is over
}

// SetPrivate promises that only one program touches the line, so that touching it
// needs no synchronisation.
func (l *Line) SetPrivate() { l.private = true }

// Touch brings the line to the core for p, which pays LineTransfer when another
// owner had it. Read sharing is not modelled apart: a line has one owner. It
// synchronises p, unless the line is private.
func (c *Core) Touch(p *sim.Proc, l *Line) {
	if !l.private {
		p.Sync()
	}
	c.bring(p, l)
}

// bring is Touch without the synchronisation.
func (c *Core) bring(p *sim.Proc, l *Line) {
	if d := c.Claim(p, l); d > 0 {
		c.Run(p, d)
	}
}

// Claim is Touch by a program that is in order, and leaves the cost for the caller to
// spend: 0 when the core has the line.
func (c *Core) Claim(p *sim.Proc, l *Line) sim.Time {
	if l.owner == c.id+1 {
		return 0
	}
	return c.take(p, l)
}

// take is Claim of a line that the core does not have.
//
//go:noinline
func (c *Core) take(p *sim.Proc, l *Line) sim.Time {
	before := l.owner
	l.owner = c.id + 1
	if before == 0 {
		return 0
	}
	c.c.LineMisses++
	wait, transfer := max(0, l.free-p.Now()), c.p.LineTransfer
	if before > 0 && c.p.apart(c.id, before-1) {
		transfer += c.p.LineFar
	}
	if before < 0 {
		transfer += c.dmaFar
	}
	l.free = p.Now() + wait + transfer
	return wait + transfer
}

// DeviceWrote marks the line as last written by a device.
func (l *Line) DeviceWrote() { l.owner = -1 }
