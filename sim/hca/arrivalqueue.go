package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// arrivals are the packets between port and receive engine.
//
// A planned frame is on its way. Its arrival, which takes time of the receive engine and
// looks at the caches, is carried out when somebody looks at what it changes (settle), never
// before its instant: others may use the engine and the caches until then. Only the earliest
// instant at which it can take effect is foreseen.
//
// One event is set for all packets, at the earliest instant at which the first of them can
// take effect (alarm). Where it turns out that the packet takes effect later, it is set again.
type arrivals struct {
	n     uint64 // packets that have arrived
	pipes [2]pipeline
	alarm sim.Time // of the event for the first packet; Never: there is none
	// stalled is until when none takes effect.
	stalled sim.Time
}

// pipeline is the packets of one kind, in the order in which they take effect: first those
// that have arrived, then those that are on their way.
type pipeline struct {
	queue sim.FIFO[arrival]
	here  int       // have arrived
	next  sim.Place // of the arrival of the first that is on its way; at Never: none is

	// What a further frame will find at the least: when the engine is free, and when the last
	// packet takes effect.
	free, last sim.Time
}

// arrival is a packet that waits for its effect.
type arrival struct {
	f     *roce.Frame
	at    sim.Time  // it takes effect: while it is on its way, no earlier
	place sim.Place // of the arrival of a planned frame
	turn  uint64    // its number among those that have arrived
	slot  int32     // of a frame that the device sends to itself; -1: none
	pfc   int8      // class that is counted in the port's buffer, plus 1; 0: none
}

// The pipelines of the receive engine.
const (
	requests = iota
	responses
)

func pipelineOf(p *roce.Packet) int {
	if p.Info().Kind == roce.KindRequest {
		return requests
	}
	return responses
}

// decodes says whether a frame is a whole packet.
func decodes(f *roce.Frame) bool {
	_, err := f.Decode()
	return err == nil
}

// firstPlanned is the pipeline of the planned frame that arrives next, if one is planned.
func (a *arrivals) firstPlanned() *pipeline {
	req, rsp := &a.pipes[requests], &a.pipes[responses]
	if rsp.next.Before(req.next) {
		return rsp
	}
	return req
}

// takeNext is the first frame that is on its way, which has arrived.
func (l *pipeline) takeNext() *arrival {
	x := l.queue.At(l.here)
	l.here++
	if l.next = nowhere; l.queue.Len() > l.here {
		l.next = l.queue.At(l.here).place
	}
	return x
}

// nowhere is the place of what is not planned.
var nowhere = sim.PlaceAt(sim.Never)

// add makes room for a packet that arrives now without a plan, before those that are on their way.
func (l *pipeline) add() *arrival {
	l.queue.Reserve()
	x := l.queue.Extend()
	l.here++
	if l.queue.Len() == l.here {
		return x
	}
	for i := l.queue.Len() - 1; i >= l.here; i-- {
		*l.queue.At(i) = *l.queue.At(i - 1)
	}
	return l.queue.At(l.here - 1)
}

// first is the pipeline of the packet that takes effect first of those that have arrived, if
// any has.
func (a *arrivals) first() *pipeline {
	req, rsp := &a.pipes[requests], &a.pipes[responses]
	if rsp.here == 0 {
		return req
	}
	if req.here == 0 {
		return rsp
	}
	if x, y := req.queue.Front(), rsp.queue.Front(); y.at < x.at || y.at == x.at && y.turn < x.turn {
		return rsp
	}
	return req
}

// soonest is the earliest instant at which a packet of the pipeline can take effect.
func (l *pipeline) soonest() sim.Time {
	if l.queue.Len() == 0 {
		return sim.Never
	}
	return l.queue.Front().at
}

// foresee is when a packet takes effect whose engine is free at t, takes busy for it and then needs
// some time; not before last.
func (l *pipeline) foresee(t, busy, latency, last sim.Time) sim.Time {
	t = max(t, l.free)
	l.free, l.last = t+busy, max(t+latency, last, l.last)
	return l.last
}
