package hca

import (
	"github.com/rdmasim/rdmasim/sim"
)

// sendEngine is what all requesters share: the processing units, which work on one QP each at
// a time.
type sendEngine struct {
	queues  sendQueues
	idlePUs int
	ready   sim.FIFO[uint64] // QPs that wait for a PU
	xlate   sim.Time         // what misses of the last WQE's keys hold up the send engine
	answers bool             // READs and atomics that are answered cost something: time of a PU, or a look-up
}

// sendQueues are the requesters, by the event words of their QPs, as the send engine sees them.
type sendQueues interface {
	// grant has a QP take an idle processing unit, if it still has work for one.
	grant(qp uint64)
}

// dispatch gives idle processing units to waiting QPs.
func (s *sendEngine) dispatch() {
	for s.idlePUs > 0 && s.ready.Len() > 0 {
		s.queues.grant(s.ready.Pop())
	}
}
