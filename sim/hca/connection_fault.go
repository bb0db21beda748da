package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// pagedOperations are the operations of a service that may meet absent pages.
func (q *connection) pagedOperations() uint32 {
	switch p := &q.u.p.ODP; q.st {
	case prm.STRC:
		return p.RC
	case prm.STUD:
		return p.UD
	case prm.STXRC:
		return p.XRC
	case prm.STDCI, prm.STDCT:
		return p.DC
	}
	return 0
}

// pages says whether an operation that has met an absent page can wait for it.
func (q *connection) pages(r mkey.Result, operation uint32) bool {
	return r == mkey.Fault && q.pagedOperations()&operation != 0 && q.u.faults.Pages()
}

// newFault is a fault of the queue about what the last translation has missed.
func (q *connection) newFault(s odp.Side, packet int) odp.Fault {
	m := q.u.dma.keys.LastMiss()
	return odp.Fault{Queue: q.arg, Side: s, Number: q.num, Packet: uint16(packet), MKey: m.MKey, At: m.VA, Demand: m.Bytes, Bytes: m.Bytes}
}
