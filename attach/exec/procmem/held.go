//go:build linux && amd64

package procmem

import (
	"golang.org/x/sys/unix"
	"slices"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// Bounds of what is held back for a process.
const (
	maxHeld  = 64 << 10
	maxParts = 64
)

// held are the writes to a process that are held back, in order.
type held struct {
	parts []part
	data  []byte
	live  int // parts that no later one covers
	lo    mem.VA
	hi    mem.VA // all of them lie in [lo, hi)
	// of the call: the kernel reads them
	local  []unix.Iovec
	remote []unix.RemoteIovec
}

// part is a write: n bytes of data from at on. It is dead when n is 0.
type part struct {
	addr mem.VA
	at   int
	n    int
}

func (x *part) end() mem.VA { return x.addr + mem.VA(x.n) }

// hold keeps a write for the next Flush; with alone it is not joined to the one before it. It
// reports false when there is no room.
func (s *Streams) hold(p *Process, addr mem.VA, b []byte, alone bool) bool {
	h := &p.held
	if len(h.data)+len(b) > maxHeld || len(h.parts) == maxParts {
		return false
	}
	if len(h.parts) == 0 {
		s.dirty = append(s.dirty, p)
		h.lo, h.hi = addr, addr
	}
	end := addr + mem.VA(len(b))
	if addr < h.hi && h.lo < end {
		h.cover(addr, end)
	}
	h.lo, h.hi = min(h.lo, addr), max(h.hi, end)
	at := len(h.data)
	h.data = append(h.data, b...)
	if k := len(h.parts) - 1; k >= 0 && !alone && h.parts[k].n > 0 && h.parts[k].end() == addr {
		h.parts[k].n += len(b)
		return true
	}
	h.parts = append(h.parts, part{addr, at, len(b)})
	h.live++
	return true
}

// cover ends the parts that [addr, end) overwrites whole.
func (h *held) cover(addr, end mem.VA) {
	for i := range h.parts {
		if x := &h.parts[i]; x.n > 0 && addr <= x.addr && x.end() <= end {
			x.n = 0
			h.live--
		}
	}
	if h.live == 0 {
		h.parts, h.data = h.parts[:0], h.data[:0]
	}
}

// Flush writes what is held back. A write to memory that is no longer mapped fails
// as a posted DMA write does: the device does not learn of it.
func (s *Streams) Flush() {
	for _, p := range s.dirty {
		p.writeHeld()
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
}

// flush is Flush of one process, flushOthers that of the others.
func (s *Streams) flush(p *Process) {
	if len(p.held.parts) > 0 {
		p.writeHeld()
		s.markClean(p)
	}
}

func (s *Streams) flushOthers(p *Process) {
	mine := false
	for _, x := range s.dirty {
		if x == p {
			mine = true
			continue
		}
		x.writeHeld()
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	if mine {
		s.dirty = append(s.dirty, p)
	}
}

func (s *Streams) markClean(p *Process) {
	s.dirty = slices.DeleteFunc(s.dirty, func(x *Process) bool { return x == p })
}

// drop forgets the writes to a process.
func (s *Streams) drop(p *Process) {
	p.held.reset()
	s.markClean(p)
}

// flushOverlap writes what is held back for a process when it overlaps [addr, addr+n).
func (s *Streams) flushOverlap(p *Process, addr mem.VA, n int) {
	h := &p.held
	if len(h.parts) == 0 || addr >= h.hi || h.lo >= addr+mem.VA(n) {
		return
	}
	for i := range h.parts {
		if x := &h.parts[i]; x.n > 0 && x.addr < addr+mem.VA(n) && addr < x.end() {
			s.flush(p)
			return
		}
	}
}

func (h *held) reset() { h.parts, h.data, h.live = h.parts[:0], h.data[:0], 0 }

// writeHeld makes the writes, in as few calls as it takes: one, unless part of the
// memory is gone.
func (p *Process) writeHeld() {
	h := &p.held
	h.local, h.remote = h.local[:0], h.remote[:0]
	for i := range h.parts {
		if x := &h.parts[i]; x.n > 0 {
			h.add(x)
		}
	}
	for len(h.remote) > 0 && !p.gone {
		skip := p.writeVector()
		h.local, h.remote = h.local[skip:], h.remote[skip:]
	}
	clear(h.local)
	h.reset()
}

// add makes a part's segments, the last byte of a short one behind the rest: the kernel
// copies them in order.
func (h *held) add(x *part) {
	segment := func(off, n int) {
		h.local = append(h.local, unix.Iovec{Base: &h.data[x.at+off], Len: uint64(n)})
		h.remote = append(h.remote, unix.RemoteIovec{Base: uintptr(x.addr) + uintptr(off), Len: n})
	}
	if x.n > 1 && x.n <= lastByteLast {
		segment(0, x.n-1)
		segment(x.n-1, 1)
		return
	}
	segment(0, x.n)
}

// writeVector writes the segments up to the first that fails, and returns how many of
// them are finished, including that one.
func (p *Process) writeVector() int {
	h := &p.held
	got, e := p.call(unix.SYS_PROCESS_VM_WRITEV, h.local, h.remote)
	if e == unix.ESRCH && p.nextThread() {
		got, e = p.call(unix.SYS_PROCESS_VM_WRITEV, h.local, h.remote)
	}
	if e == unix.ESRCH || e == unix.EPERM {
		return len(h.remote)
	}
	left := got
	if e != 0 {
		left = 0
	}
	for i := range h.remote {
		if left < h.remote[i].Len {
			return i + 1
		}
		left -= h.remote[i].Len
	}
	return len(h.remote)
}
