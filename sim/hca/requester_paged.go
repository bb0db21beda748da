package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// pagesCame is the driver's answer to a fault.
func (q *requester) pagesCame(s odp.Side, failed bool) {
	failed = failed && !q.breaks(rule.LostPagesFailTheRequest)
	w := q.faults[s]
	q.faults[s] = pageWait{}
	q.paging = q.faults[odp.GatherSide].token|q.faults[odp.LandingSide].token != 0
	switch {
	case failed && s == odp.GatherSide:
		q.failAt(w.msg, prm.SyndromeLocalProt)
	case failed:
		q.qs.add(prm.QCReqLocalProtection)
		q.failAnswered(prm.SyndromeLocalProt)
	case s == odp.LandingSide && !q.breaks(rule.LandingIsAskedForAgain):
		q.goBack()
		q.setDeadline()
	}
	q.kick()
}
