package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// pagesCame is the driver's answer to a fault. The peer tries again by itself, and a response that waits goes on.
func (q *responder) pagesCame(s odp.Side, wqe, failed bool) {
	failed = failed && !q.breaks(rule.LostPagesFailThePeer)
	q.faults[s-odp.WriteSide] = 0
	q.paging = q.faults[0] != 0
	held := s == odp.ReadSide && q.held
	if held {
		q.held = false
	}
	switch {
	case held && failed:
		r := &q.items[q.itemHead]
		q.failRead(r.psn, r.done)
		q.popItem()
	case held:
		q.respond()
	case !failed || !q.takesRequests():
	case wqe:
		q.qs.add(prm.QCRespLocalProtection)
		q.failRecv(prm.SyndromeLocalProt, roce.NAKRemoteOp)
	default:
		q.fatal(roce.NAKRemoteAccess)
	}
}
