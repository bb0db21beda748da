//go:build linux && amd64

package pci

import (
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// combineLines is how many pushes can be under way at a time. A core of x86 has 10 to 12 such
// buffers. (assumed)
const combineLines = 8

// combiner puts the stores of a BlueFlame push together again. A core that stores a WQE to memory
// that is mapped write-combining sends whole lines; a monitor passes on each of its stores, of at
// most 8 bytes. The combiner holds a store to the start of a bfreg's half until the rest of its WQE
// has come, something else is written or read, or the time to hold it has passed. Nothing tells a
// doorbell from the first store of a push, so that doorbells wait as long.
type combiner struct {
	f     *function
	hold  time.Duration // in wall time, from the last store
	uar   prm.UARMap
	lines [combineLines]combined
	timer bool // an event is to come
}

// combined is what a push has brought so far: n bytes at off; 0: the place is free.
type combined struct {
	off  uint64
	n    int
	last time.Time
	buf  [maxPush]byte
}

const maxPush = 256 // bytes of the largest half

func newCombiner(f *function) *combiner {
	c := &combiner{f: f, hold: f.m.blueFlame}
	for size := f.hca.Params().BFRegSize; size > 1; size /= 2 {
		c.uar.LogBFRegSize++
	}
	return c
}

// write takes a store to BAR 0, and reports whether it holds it. One that it does not hold pushes
// out what it has.
func (c *combiner) write(off uint64, p []byte) bool {
	a := c.uar.Decode(off)
	if off < firstUARPage || a.Kind != prm.UARKindBF || len(p) != prm.DoorbellSize || off%prm.DoorbellSize != 0 {
		c.flush()
		return false
	}
	var free *combined
	for i := range c.lines {
		l := &c.lines[i]
		switch {
		case l.n == 0:
			free = l
		case off == l.off+uint64(l.n):
			l.n += copy(l.buf[l.n:], p)
			if l.last = time.Now(); l.n == l.want(int(c.uar.HalfSize())) {
				c.send(l)
			}
			return true
		case off-l.off < uint64(c.uar.HalfSize()):
			c.send(l) // the half is written to anew, or out of order
			free = l
		}
	}
	if a.Off != 0 {
		return false
	}
	if free == nil {
		c.flush()
		free = &c.lines[0]
	}
	free.off, free.n, free.last = off, copy(free.buf[:], p), time.Now()
	c.look(sim.Time(c.hold) * sim.Nanosecond)
	return true
}

// want is how many bytes the push has: whole lines of its WQE.
func (l *combined) want(half int) int {
	if l.n < prm.CtrlSegmentSize {
		return half
	}
	const line = prm.WQEBBSize
	n := (prm.CtrlSegment(l.buf[:]).DS()*prm.DSSize + line - 1) / line * line
	return min(max(n, line), half)
}

// look has what waits be looked at after t.
func (c *combiner) look(t sim.Time) {
	if !c.timer {
		c.timer = true
		c.f.m.eng.After(t, c.expire, 0)
	}
}

// expire sends on what has waited long enough. Virtual time may have run ahead of the guest's,
// which counts.
func (c *combiner) expire(uint64) {
	c.timer = false
	wait := time.Duration(0)
	for i := range c.lines {
		l := &c.lines[i]
		if l.n == 0 {
			continue
		}
		if left := c.hold - time.Since(l.last); left > 0 {
			wait = max(wait, left)
		} else {
			c.send(l)
		}
	}
	if wait > 0 {
		c.look(sim.Time(wait) * sim.Nanosecond)
	}
}

// flush sends on all that waits.
func (c *combiner) flush() {
	for i := range c.lines {
		if c.lines[i].n > 0 {
			c.send(&c.lines[i])
		}
	}
}

// send gives the link what has been put together: whole lines, or a part of one, as a core does
// that evicts it early.
func (c *combiner) send(l *combined) {
	n := l.n
	l.n = 0
	c.f.post(l.off, l.buf[:n])
}

// drop forgets what waits: the function is reset.
func (c *combiner) drop() {
	for i := range c.lines {
		c.lines[i].n = 0
	}
}
