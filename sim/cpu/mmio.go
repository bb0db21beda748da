package cpu

import (
	"fmt"
	"math/bits"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// MapKind is how a register page is mapped.
type MapKind uint8

// Mappings of registers.
const (
	Uncached MapKind = iota + 1
	WriteCombining
)

// Mapping is a page of a device's BAR 0 as a process mapped it.
type Mapping struct {
	Dev  *pcie.Link
	Off  uint64 // of the page in BAR 0
	Kind MapKind

	revoked bool
}

// Revoke puts a page of zeros in the place of the registers, as the kernel does when their
// device is removed: stores change nothing that matters, and loads find zeros.
func (m *Mapping) Revoke() { m.revoked = true }

// wcLine is the size of a write-combining buffer, whatever the cache line is.
const wcLine = 64

// wcBuffer gathers stores to one line of a device.
type wcBuffer struct {
	dev  *pcie.Link
	line uint64 // offset in BAR 0
	mask uint8  // 8-byte words that were stored
	data [wcLine]byte
}

// Store writes b (a multiple of 8 bytes, aligned) to the mapping at off. Uncached:
// each 8 bytes leave as one posted write. Write-combining: they gather in the
// core's buffers by 64-byte line; a full line leaves as one posted write; a fence,
// or the eviction for want of a buffer, makes partial lines leave as they are, one
// posted write for each run of stored words. On a host without write combining
// each 8 bytes leave alone at the price NoWC.
// Writes leave at p's local time as posted events; Store does not yield.
func (c *Core) Store(p *sim.Proc, m *Mapping, off uint64, b []byte) { c.StoreAfter(p, m, off, b, 0) }

// StoreAfter is Store that spends work of CPU time before, in one piece with it.
func (c *Core) StoreAfter(p *sim.Proc, m *Mapping, off uint64, b []byte, work sim.Time) {
	if len(b)%8 != 0 || off%8 != 0 {
		panic(fmt.Sprintf("cpu: at %v %s stores %d bytes at register offset %#x", p.Now(), p.Name(), len(b), off))
	}
	if m.Kind != WriteCombining || c.p.WCBuffers == 0 || m.revoked {
		c.storeUncombined(p, m, off, b, work)
		return
	}
	at := p.Now() + work
	off += m.Off
	if len(b) == wcLine && off%wcLine == 0 && len(c.wc) == 0 { // a whole line, and nothing to merge with: the usual BlueFlame
		c.Run(p, work+wcLine/8*c.p.WCStore+c.p.WCLine+c.mmioFar)
		c.c.WCFull++
		m.Dev.PostMMIO(p, off, b)
		off += wcLine
	} else {
		for len(b) > 0 {
			n := min(len(b), wcLine-int(off%wcLine))
			c.combine(p, m.Dev, off, b[:n], work)
			off, b, work = off+uint64(n), b[n:], 0
		}
	}
	c.span("WC store", at, p.Now(), off)
}

// storeUncombined is StoreAfter where stores are not combined, and to what is revoked.
//
//go:noinline
func (c *Core) storeUncombined(p *sim.Proc, m *Mapping, off uint64, b []byte, work sim.Time) {
	if m.revoked {
		c.Run(p, work+sim.Time(len(b)/8)*c.p.WCStore) // memory, and in the cache
		return
	}
	at := p.Now() + work
	off += m.Off
	cost := c.p.UCStore + c.mmioFar
	if m.Kind == WriteCombining {
		cost = c.p.NoWC + c.mmioFar
	}
	for ; len(b) > 0; off, b = off+8, b[8:] {
		c.Run(p, work+cost)
		work = 0
		c.c.UCStores++
		m.Dev.PostMMIO(p, off, b[:8])
	}
	c.span("UC store", at, p.Now(), off)
}

// StoreWord stores 4 bytes or less, which leave alone: buffers here gather words of 8.
func (c *Core) StoreWord(p *sim.Proc, m *Mapping, off uint64, b []byte) {
	c.Run(p, c.p.UCStore+c.mmioFar)
	if !m.revoked {
		c.c.UCStores++
		m.Dev.PostMMIO(p, m.Off+off, b)
	}
}

// CopyToDevice is the copy of a WQE into a BlueFlame register: stores of whole
// 64-byte lines (mmio_memcpy_x64). A last part of a line is padded with zeros.
func (c *Core) CopyToDevice(p *sim.Proc, m *Mapping, off uint64, b []byte) {
	whole := len(b) &^ (wcLine - 1)
	c.Store(p, m, off, b[:whole])
	if whole < len(b) {
		var line [wcLine]byte
		copy(line[:], b[whole:])
		c.Store(p, m, off+uint64(whole), line[:])
	}
}

// Load reads registers, 8 bytes or less for each transaction. It waits for them,
// after the core's buffers have drained, as a load from the same device does.
func (c *Core) Load(p *sim.Proc, m *Mapping, off uint64, b []byte) {
	if m.revoked {
		clear(b)
		return
	}
	c.drain(p)
	for off += m.Off; len(b) > 0; {
		n := min(len(b), 8)
		m.Dev.ReadMMIO(p, off, b[:n])
		off, b = off+uint64(n), b[n:]
	}
}

// combine stores part of one line into a buffer. Whatever pays may let another
// thread of the core run, so the buffers are looked at afresh after it.
func (c *Core) combine(p *sim.Proc, dev *pcie.Link, off uint64, b []byte, work sim.Time) {
	cost := work + sim.Time(len(b)/8)*c.p.WCStore
	if len(b) == wcLine && len(c.wc) == 0 { // nothing to merge with
		c.Run(p, cost+c.p.WCLine+c.mmioFar)
		c.c.WCFull++
		dev.PostMMIO(p, off, b)
		return
	}
	c.Run(p, cost)
	line, at := off&^(wcLine-1), int(off%wcLine)
	i := c.buffer(dev, line)
	for i < 0 {
		c.c.WCEvicted++
		c.leave(p, 0)
		i = c.buffer(dev, line)
	}
	w := &c.wc[i]
	copy(w.data[at:], b)
	w.mask |= uint8(1<<(len(b)/8)-1) << (at / 8)
	if w.mask == 0xff {
		c.leave(p, i)
	}
}

// buffer is the buffer of a line, a new one if there is room; -1 if there is none.
func (c *Core) buffer(dev *pcie.Link, line uint64) int {
	for i := range c.wc {
		if c.wc[i].line == line && c.wc[i].dev == dev {
			return i
		}
	}
	if len(c.wc) == cap(c.wc) {
		return -1
	}
	c.wc = append(c.wc, wcBuffer{dev: dev, line: line})
	return len(c.wc) - 1
}

// leave sends buffer i: whole, or torn into runs of words.
func (c *Core) leave(p *sim.Proc, i int) {
	w := c.wc[i]
	c.wc = append(c.wc[:i], c.wc[i+1:]...)
	if w.mask == 0xff {
		c.c.WCFull++
		c.Run(p, c.p.WCLine+c.mmioFar)
		w.dev.PostMMIO(p, w.line, w.data[:])
		return
	}
	c.c.WCPartial++
	c.Run(p, c.p.WCFlush+c.mmioFar)
	for m, at := uint(w.mask), 0; m != 0; {
		skip := bits.TrailingZeros(m)
		n := bits.TrailingZeros(^(m >> skip))
		at += skip
		w.dev.PostMMIO(p, w.line+uint64(8*at), w.data[8*at:8*(at+n)])
		at, m = at+n, m>>(skip+n)
	}
}

// drain makes every dirty buffer leave, oldest first.
func (c *Core) drain(p *sim.Proc) {
	for len(c.wc) > 0 {
		c.leave(p, 0)
	}
}

// Fence drains the core's buffers (mmio_flush_writes, mmio_wc_start).
func (c *Core) Fence(p *sim.Proc) {
	at := p.Now()
	c.c.Fences++
	c.Run(p, c.p.StoreFence)
	c.drain(p)
	c.span("fence", at, p.Now(), 0)
}
