package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// What a responder of ConnectX-5 and ConnectX-6 shows when something fails
// (github.com/unionxic/rdma-fault-characterization, 2026).

// staysSilent says whether a packet that a key refuses waits, since the key was deregistered a
// moment ago; those behind it wait too.
func (q *responder) staysSilent(p *roce.Packet) bool {
	if len(q.u.gone) == 0 || !q.reliable() || q.breaks(rule.DeregistrationIsSilent) {
		return false
	}
	key := q.wkey
	switch p.Info().Class {
	case roce.ClassWrite:
	case roce.ClassAtomic:
		key = p.AtomicETH().RKey()
	default:
		key = p.RETH().RKey()
	}
	until := q.u.gone.until(key>>8, q.u.e.Now())
	if until == 0 {
		return false
	}
	q.hushed = true
	q.u.e.At(until, q.u.h.hush, q.arg)
	return true
}

// onHush is the end of a silence: the packet that waits is looked at again.
func (q *responder) onHush() {
	if q.hushed && q.busy {
		q.hushed = false
		q.unhold(true)
	}
}

// countRefused counts a request that was refused for its key or its address, as one that was
// carried out.
func (q *responder) countRefused(info *roce.OpInfo) {
	switch {
	case !q.u.p.CardFaults || q.breaks(rule.RefusedRequestsAreCounted):
	case info.Class == roce.ClassWrite && info.First:
		q.qs.add(prm.QCRxWriteRequests)
	case info.Class == roce.ClassReadRequest:
		q.qs.add(prm.QCRxReadRequests)
	}
}

// countError counts a request that the responder refuses; cards count none.
func (q *responder) countError(c prm.QCounter) {
	if !q.u.p.CardFaults || q.breaks(rule.RespondersCountNoError) {
		q.qs.add(c)
	}
}
