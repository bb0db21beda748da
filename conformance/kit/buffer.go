package kit

import (
	"bytes"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// RedZone is the number of bytes before and after a buffer that nothing may write to.
const RedZone = 16

// redByte fills the red zones.
const redByte = 0xa7

// Buffer is registered memory between two red zones. The region covers the buffer
// and not the zones. The zones are checked when the case ends, and by CheckRedZones.
type Buffer struct {
	Mem   verbs.Buffer
	MR    verbs.MR
	Len   int
	Dereg func(c *spec.C)
	bare  bool // it has no red zones, and begins where its mapping does
}

// Buffer maps n bytes between red zones and registers them on the Env's PD.
func (e *Env) Buffer(c *spec.C, n int, access verbs.AccessFlags) *Buffer {
	return e.BufferOn(c, e.PD, n, access)
}

// BufferOn maps n bytes between red zones and registers them on a PD.
func (e *Env) BufferOn(c *spec.C, pd verbs.PD, n int, access verbs.AccessFlags) *Buffer {
	b := &Buffer{Mem: Map(c, n+2*RedZone), Len: n}
	b.FillRedZones(c)
	c.Defer(func() { b.CheckRedZones(c) })
	mr, err := pd.RegMR(c.T, b.Addr(0), uint64(n), access)
	ok(c, "reg_mr", err)
	b.MR = mr
	b.Dereg = DestroyOnce(c, "dereg_mr", mr.Dereg)
	return b
}

// FillRedZones writes the pattern that CheckRedZones expects into both red zones.
func (b *Buffer) FillRedZones(c *spec.C) {
	zone := bytes.Repeat([]byte{redByte}, RedZone)
	b.Set(c, -RedZone, zone)
	b.Set(c, b.Len, zone)
}

// Map maps n bytes of memory until the case ends.
func Map(c *spec.C, n int) verbs.Buffer {
	m, _ := MapOnce(c, n)
	return m
}

// MapOnce maps n bytes of memory. The case may unmap them early; its end does it otherwise.
func MapOnce(c *spec.C, n int) (m verbs.Buffer, unmap func(c *spec.C)) {
	m, err := c.Process().Map(c.T, uint64(n), verbs.MapOptions{})
	ok(c, "map memory", err)
	return m, DestroyOnce(c, "unmap memory", m.Unmap)
}

// Addr returns the address of the byte at off.
func (b *Buffer) Addr(off int) uint64 { return b.Mem.Addr() + uint64(b.start()+off) }

// start is how far into its mapping the buffer begins.
func (b *Buffer) start() int {
	if b.bare {
		return 0
	}
	return RedZone
}

// SGE returns the SGE of n bytes from off.
func (b *Buffer) SGE(off, n int) verbs.SGE {
	return verbs.SGE{Addr: b.Addr(off), Length: uint32(n), LKey: b.MR.LKey()}
}

// All returns the SGE of the whole buffer.
func (b *Buffer) All() verbs.SGE { return b.SGE(0, b.Len) }

// Set writes p at off.
func (b *Buffer) Set(c *spec.C, off int, p []byte) {
	_, err := b.Mem.WriteAt(c.T, p, int64(b.start()+off))
	ok(c, "write memory", err)
}

// Get returns the n bytes from off.
func (b *Buffer) Get(c *spec.C, off, n int) []byte {
	p := make([]byte, n)
	_, err := b.Mem.ReadAt(c.T, p, int64(b.start()+off))
	ok(c, "read memory", err)
	return p
}

// FillRandom fills the buffer with bytes from the case's random source and returns them.
func (b *Buffer) FillRandom(c *spec.C) []byte {
	p := c.Rand().Bytes(b.Len)
	b.Set(c, 0, p)
	return p
}

// FillByte writes v to every byte of the buffer.
func (b *Buffer) FillByte(c *spec.C, v byte) { b.Set(c, 0, bytes.Repeat([]byte{v}, b.Len)) }

// ExpectContents records the digest of the first len(want) bytes and fails the case unless they are
// want.
func (b *Buffer) ExpectContents(c *spec.C, step string, want []byte) {
	c.Equal(step, b.Get(c, 0, len(want)), want)
}

// CheckRedZones fails the case when a byte of a red zone has changed.
func (b *Buffer) CheckRedZones(c *spec.C) {
	for _, off := range [2]int{-RedZone, b.Len} {
		for i, v := range b.Get(c, off, RedZone) {
			if v != redByte {
				c.Failf("red zone: byte %d of a buffer of %d was written: %#02x", off+i, b.Len, v)
			}
		}
	}
}

// Word returns the 8 bytes at off as a number in the host's byte order.
func (b *Buffer) Word(c *spec.C, off int) uint64 { return HostWord(b.Get(c, off, 8)) }

// SetWord writes v to the 8 bytes at off in the host's byte order.
func (b *Buffer) SetWord(c *spec.C, off int, v uint64) { b.Set(c, off, HostWordBytes(v)) }
