package provider

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// dbrec is the doorbell record of a queue: two words that the device reads, alone in
// their cache line (dbrec.c, mlx5_alloc_dbrec).
type dbrec struct {
	va     mem.VA
	b      []byte
	page   *dbPage
	slot   int
	custom verbs.Buffer
}

// dbPage is a page of doorbell records; a set bit is a free one.
type dbPage struct {
	va   mem.VA
	b    []byte
	free []uint64
	used int
}

// size of a record and of the line that it has for itself.
const dbrecSize = 8

func (p *dbPage) take(line int) *dbrec {
	for i, w := range p.free {
		if w == 0 {
			continue
		}
		n := i*64 + bits.TrailingZeros64(w)
		p.free[i] &= w - 1
		p.used++
		off := n * line
		d := &dbrec{va: p.va + mem.VA(off), b: p.b[off : off+dbrecSize : off+dbrecSize], page: p, slot: n}
		clear(d.b)
		return d
	}
	return nil
}
