package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// resynchronize ends the message that was arriving when a packet is missing or another
// message begins. Its receive WQE is used again.
func (q *responder) resynchronize(psn uint32, info *roce.OpInfo) {
	if psn != q.epsn {
		q.qs.add(prm.QCOutOfSequence)
		q.epsn = psn
		if !q.breaks(rule.GapsEndTheMessage) {
			q.in = inNone
		}
	}
	if info.First {
		q.in = inNone
	}
}

// dropMessage gives up the message that is arriving, silently. What it has written
// stays, and the rest of it will find no message to belong to.
func (q *responder) dropMessage() {
	q.in = inNone
	q.epsn = roce.AddPSN(q.epsn, 1)
}
