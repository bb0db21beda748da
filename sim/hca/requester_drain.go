package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// The SQD state (IBTA Vol. 1, 10.3.1): the send queue takes no new WQE, what it has begun
// is finished, and an event reports when all is acknowledged. Drivers of mlx5 have no command
// for it; devices have ours only with Params.SQD.

// drain begins to finish what the send queue has begun.
func (q *requester) drain(notify bool) {
	q.draining, q.drainEvent = true, notify
	q.complete()
	if q.draining && !q.open { // else its last packet asks
		q.claimAck(q.psn, 0)
		q.kick()
	}
}

// drained ends the draining of a send queue that has nothing left under way.
func (q *requester) drained() {
	q.draining = false
	q.setState(prm.QPStateSQD)
	if q.drainEvent {
		q.drainEvent = false
		q.u.events.ofQP(prm.EventSQDrained, q.num)
	}
}

// growLanding makes room for the READs and atomics that may be outstanding.
func (q *requester) growLanding() {
	q.readMax = 1 << q.context().LogSRAMax()
	if q.breaks(rule.ReadsAreLimited) {
		q.readMax *= 2
	}
	for len(q.landing) < q.readMax {
		q.landing = append(q.landing, landing{})
	}
}

// takeRetries reads timeout and retry counts of the context.
func (q *requester) takeRetries() {
	c := q.context()
	q.rnrMax = c.RNRRetry()
	q.rnr = q.rnrMax
	q.setTimer(uint8(c.PrimaryPath().AckTimeout()), c.RetryCount())
}
