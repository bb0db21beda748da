package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// pagesCame is the driver's answer to a fault. The peer tries again by itself, and a response that
// waits goes on.
func (q *responder) pagesCame(s odp.Side, wqe, failed bool) {
	failed = failed && !q.breaks(rule.LostPagesFailThePeer)
	q.faults[s-odp.WriteSide] = 0
	q.paging = q.faults[0] != 0
	if s == odp.ReadSide && q.heldFault {
		q.heldPagesCame(failed)
		return
	}
	switch {
	case !failed || !q.takesRequests():
	case wqe:
		q.qs.add(prm.QCRespLocalProtection)
		q.failRecv(prm.SyndromeLocalProt, roce.NAKRemoteOp)
	default:
		q.fatal(roce.NAKRemoteAccess)
	}
	if s == odp.ReadSide {
		q.resumeHeld()
	}
}

// heldPagesCame is the answer to the fault of the response that waits.
func (q *responder) heldPagesCame(failed bool) {
	q.held, q.heldFault = false, false
	if failed {
		r := &q.items[q.itemHead]
		q.failRead(r.psn, r.done)
		q.popItem()
		return
	}
	q.respond()
}

// resumeHeld tries a response again that waited until the fault of a later READ was over.
func (q *responder) resumeHeld() {
	if q.held && !q.heldFault {
		q.held = false
		q.respond()
	}
}
