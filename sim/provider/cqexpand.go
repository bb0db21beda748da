package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// miniFormat is the device's number of a format.
func miniFormat(f uint8) uint32 {
	switch f {
	case verbs.CQECompHash:
		return prm.MiniCQEHash
	case verbs.CQECompCsum:
		return prm.MiniCQECsum
	}
	return prm.MiniCQECsumStrideIndex
}

// look finds entry i (not reduced) and whether it is there. A session of compressed
// entries that begins with it is written out in place first, which adds to the thread's
// unspent time. The vendor's libmlx5 does so; that of rdma-core only switches compression
// on, and leaves such entries to programs that read the ring themselves.
func (q *CQ) look(t *Thread, i uint32) (e prm.CQE64, ready bool) {
	e = q.at(i)
	if !e.Ready(i, q.n) {
		return e, false
	}
	if q.comp != 0 && e.Format() == prm.CQEFormatCompressed {
		n, _ := prm.ExpandCQEs(q.at, i, q.n, miniFormat(q.comp)) // what is no session is no completion: parse says so
		t.unspent += q.ctx.proc.Params.ExpandCQE * sim.Time(n)
	}
	return e, true
}
