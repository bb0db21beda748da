package hca

import (
	"github.com/rdmasim/rdmasim/sim"
)

// sendEngine is what all requesters share: the processing units, which work on one QP each at
// a time.
type sendEngine struct {
	queues  sendQueues
	groups  []puGroup
	xlate   sim.Time // what misses of the last WQE's keys hold up the send engine
	answers bool     // READs and atomics that are answered cost something: time of a PU, or a look-up
}

// puGroup is processing units, any of which may work on the QPs of the group.
type puGroup struct {
	queues sendQueues
	idle   int
	ready  sim.FIFO[uint64] // QPs that wait for one
}

// sendQueues are the requesters, by the event words of their QPs, as the send engine sees them.
type sendQueues interface {
	// grant has a QP take an idle processing unit, if it still has work for one.
	grant(qp uint64)
}

// newSendEngine makes one with all processing units idle.
func newSendEngine(p *Params, queues sendQueues) sendEngine {
	n, each := 1, p.PUs
	if p.PUChoice == PUByNumber {
		n, each = p.PUs, 1
	}
	s := sendEngine{queues: queues, groups: make([]puGroup, n)}
	for i := range s.groups {
		s.groups[i] = puGroup{queues: queues, idle: each}
	}
	return s
}

// groupOf is the number of the group of a QP.
func (s *sendEngine) groupOf(qpn uint32) uint16 { return uint16(int(qpn) % len(s.groups)) }

// dispatch gives idle processing units to waiting QPs.
func (g *puGroup) dispatch() {
	for g.idle > 0 && g.ready.Len() > 0 {
		g.queues.grant(g.ready.Pop())
	}
}
