package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// icm is the memory of the device that programs write flow table entries and header changes to (SW
// ICM). The driver takes pieces of its two areas for them. Addresses are of 40 bits, as entries
// have room for.
type icm struct {
	on     bool
	pieces []icmPiece
	pages  map[uint64][]byte // that were written, by number; looked up, never walked
	nums   numbers
}

// pageBytes is the size of a page of BAR 0, and of this memory.
const pageBytes = 4096

// icmPiece is what one allocation holds.
type icmPiece struct {
	id         uint32
	addr, size uint64
}

// Addresses that entries lead to: the two areas, and what is not memory. Where they lie is assumed;
// programs ask for all of them.
const (
	icmDropRx  = 1 * prm.STESize
	icmDropTx  = 2 * prm.STESize
	icmAllowTx = 3 * prm.STESize

	icmTables   = 1 << 32 // by the number of the table, and so on
	icmTIRs     = 2 << 32
	icmSamplers = 3 << 32
	icmObjects  = 4 << 32 // the end of these
	icmNumber   = icmTables - 1

	icmEntries = 16 << 32
	icmChanges = 32 << 32
)

// Sizes of the areas, as the capabilities say. Assumed: eight domains of rdma-core's library have
// room for as much as it likes to take.
const (
	logICMEntries     = 30
	logICMChanges     = 22
	logICMGranularity = 12
)

// changesUnit is what an entry counts the place of header changes in.
const changesUnit = 64

// icmOffset is where the memory lies among that on the chip.
const icmOffset = mkey.SteeringOffset

func newICM(p *Params) icm {
	return icm{on: p.SWSteering, pages: map[uint64][]byte{}, nums: numbers{next: 1, limit: 1 << 16}}
}

// alloc takes a piece that the driver has chosen.
func (m *icm) alloc(addr uint64, log uint32) (id uint32, st prm.Status) {
	area, logArea := uint64(icmEntries), uint32(logICMEntries)
	if addr >= icmChanges {
		area, logArea = icmChanges, logICMChanges
	}
	if !m.on || log < logICMGranularity || log > logArea || addr < area || addr-area > 1<<logArea-1<<log || addr&(1<<logICMGranularity-1) != 0 {
		return 0, prm.StatusBadParam
	}
	i, _ := slices.BinarySearchFunc(m.pieces, addr, func(p icmPiece, a uint64) int { return compare(p.addr, a) })
	if i > 0 && addr-m.pieces[i-1].addr < m.pieces[i-1].size || i < len(m.pieces) && m.pieces[i].addr-addr < 1<<log {
		return 0, prm.StatusNoRes
	}
	id, ok := m.nums.alloc()
	if !ok {
		return 0, prm.StatusLimErr
	}
	m.pieces = slices.Insert(m.pieces, i, icmPiece{id, addr, 1 << log})
	return id, prm.StatusOK
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// free gives a piece back; what is written there is gone.
func (m *icm) free(id uint32) bool {
	i := slices.IndexFunc(m.pieces, func(p icmPiece) bool { return p.id == id })
	if i < 0 {
		return false
	}
	p := m.pieces[i]
	for at := p.addr; at < p.addr+p.size && len(m.pages) > 0; at += pageBytes {
		delete(m.pages, at/pageBytes)
	}
	m.pieces = slices.Delete(m.pieces, i, i+1)
	m.nums.release(id)
	return true
}

// holds says whether [addr, addr+n) lies in one piece.
func (m *icm) holds(addr, n uint64) bool {
	i, found := slices.BinarySearchFunc(m.pieces, addr, func(p icmPiece, a uint64) int { return compare(p.addr, a) })
	if !found {
		i--
	}
	return i >= 0 && n <= m.pieces[i].size && addr-m.pieces[i].addr <= m.pieces[i].size-n
}

// read fills p; what was never written reads as zeros.
func (m *icm) read(addr uint64, p []byte) {
	for len(p) > 0 {
		in := addr % pageBytes
		n := min(len(p), int(pageBytes-in))
		if b := m.pages[addr/pageBytes]; b != nil {
			copy(p[:n], b[in:])
		} else {
			clear(p[:n])
		}
		addr, p = addr+uint64(n), p[n:]
	}
}

// write stores p where there is a piece.
func (m *icm) write(addr uint64, p []byte) {
	for len(p) > 0 {
		in := addr % pageBytes
		n := min(len(p), int(pageBytes-in))
		b := m.pages[addr/pageBytes]
		if b == nil && m.holds(addr&^(pageBytes-1), pageBytes) {
			b = make([]byte, pageBytes)
			m.pages[addr/pageBytes] = b
		}
		if b != nil {
			copy(b[in:], p[:n])
		}
		addr, p = addr+uint64(n), p[n:]
	}
}

// entry is the entry at an address; nil: none was written there.
func (m *icm) entry(addr uint64) prm.STE {
	in := addr % pageBytes
	if b := m.pages[addr/pageBytes]; b != nil && in%prm.STESize == 0 {
		return prm.STE(b[in : in+prm.STESize])
	}
	return nil
}
