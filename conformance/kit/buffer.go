package kit

import (
	"bytes"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// RedZone is how many bytes before and after a buffer nobody may write.
const RedZone = 16

// redByte fills the red zones.
const redByte = 0xa7

// Buffer is registered memory between two red zones. The region covers the buffer
// and not the zones. The zones are looked at when the case ends, and by Intact.
type Buffer struct {
	Mem   verbs.Buffer
	MR    verbs.MR
	Len   int
	Dereg func(c *spec.C)
}

// Buffer maps n bytes between red zones and registers them on pd; nil: the Env's.
func (e *Env) Buffer(c *spec.C, n int, access verbs.AccessFlags) *Buffer {
	return e.BufferOn(c, e.PD, n, access)
}

// BufferOn is Buffer on a PD.
func (e *Env) BufferOn(c *spec.C, pd verbs.PD, n int, access verbs.AccessFlags) *Buffer {
	b := &Buffer{Mem: Map(c, n+2*RedZone), Len: n}
	b.Redden(c)
	c.Defer(func() { b.Intact(c) })
	mr, err := pd.RegMR(c.T, b.Addr(0), uint64(n), access)
	ok(c, "reg_mr", err)
	b.MR = mr
	b.Dereg = Once(c, "dereg_mr", mr.Dereg)
	return b
}

// Redden fills the red zones, of memory that is new.
func (b *Buffer) Redden(c *spec.C) {
	zone := bytes.Repeat([]byte{redByte}, RedZone)
	b.Set(c, -RedZone, zone)
	b.Set(c, b.Len, zone)
}

// Map maps n bytes.
func Map(c *spec.C, n int) verbs.Buffer {
	m, _ := MapOnce(c, n)
	return m
}

// MapOnce is Map for memory that a case may give back before its end.
func MapOnce(c *spec.C, n int) (m verbs.Buffer, unmap func(c *spec.C)) {
	m, err := c.Process().Map(c.T, uint64(n), verbs.MapOptions{})
	ok(c, "map memory", err)
	return m, Once(c, "unmap memory", m.Unmap)
}

// Addr is the address of a byte of the buffer.
func (b *Buffer) Addr(off int) uint64 { return b.Mem.Addr() + RedZone + uint64(off) }

// SGE names n bytes from off.
func (b *Buffer) SGE(off, n int) verbs.SGE {
	return verbs.SGE{Addr: b.Addr(off), Length: uint32(n), LKey: b.MR.LKey()}
}

// All names the whole buffer.
func (b *Buffer) All() verbs.SGE { return b.SGE(0, b.Len) }

// Set writes p at off.
func (b *Buffer) Set(c *spec.C, off int, p []byte) {
	_, err := b.Mem.WriteAt(c.T, p, int64(RedZone+off))
	ok(c, "write memory", err)
}

// Get reads n bytes from off.
func (b *Buffer) Get(c *spec.C, off, n int) []byte {
	p := make([]byte, n)
	_, err := b.Mem.ReadAt(c.T, p, int64(RedZone+off))
	ok(c, "read memory", err)
	return p
}

// Fill writes drawn bytes over the whole buffer and returns them.
func (b *Buffer) Fill(c *spec.C) []byte {
	p := c.Rand().Bytes(b.Len)
	b.Set(c, 0, p)
	return p
}

// Clear writes v over the whole buffer.
func (b *Buffer) Clear(c *spec.C, v byte) { b.Set(c, 0, bytes.Repeat([]byte{v}, b.Len)) }

// Holds records the digest of the whole buffer and fails the case when it is not want.
func (b *Buffer) Holds(c *spec.C, step string, want []byte) {
	c.Equal(step, b.Get(c, 0, len(want)), want)
}

// Intact fails the case when a red zone was written.
func (b *Buffer) Intact(c *spec.C) {
	for _, off := range [2]int{-RedZone, b.Len} {
		for i, v := range b.Get(c, off, RedZone) {
			if v != redByte {
				c.Failf("red zone: byte %d of a buffer of %d was written: %#02x", off+i, b.Len, v)
			}
		}
	}
}

// Word reads 8 bytes in the host's order.
func (b *Buffer) Word(c *spec.C, off int) uint64 { return word(b.Get(c, off, 8)) }

// SetWord writes 8 bytes in the host's order.
func (b *Buffer) SetWord(c *spec.C, off int, v uint64) { b.Set(c, off, unword(v)) }
