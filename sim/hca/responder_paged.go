package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// pagesCame is the driver's answer to a fault. The peer tries again by itself.
func (q *responder) pagesCame(s odp.Side, wqe, failed bool) {
	failed = failed && !q.breaks(rule.LostPagesFailThePeer)
	q.faults[s-odp.WriteSide] = 0
	q.paging = q.faults[0] != 0
	switch {
	case !failed || !q.takesRequests():
	case s == odp.ReadSide:
		q.dropResponses()
		q.sendAck(q.source.psn, q.source.done, roce.NAKRemoteAccess)
		q.qs.add(prm.QCRespRemoteAccessErrors)
		q.u.events.ofQP(prm.EventWQAccessError, q.num)
		q.owner.toError()
	case wqe:
		q.qs.add(prm.QCRespLocalProtection)
		q.failRecv(prm.SyndromeLocalProt, roce.NAKRemoteOp)
	default:
		q.fatal(roce.NAKRemoteAccess)
	}
}
