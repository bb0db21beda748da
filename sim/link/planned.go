package link

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Planner is a Receiver that can say, when a frame is put on the line, at which later
// instant the frame takes effect at the earliest; so arrival and effect cost one event.
// Only that instant is foreseen. What the arrival changes, in the port and in the receiver,
// it changes when somebody looks: whatever else the receiver's arrivals depend on, or that
// depends on them, comes behind a call of Settle.
type Planner interface {
	Receiver
	// Plan is called with a frame whose last bit comes at tail. The receiver sets an event,
	// later than tail and not later than the frame's effect, and names the frame by a word;
	// the reference passes to it. Or it reports false, and the frame shall come by Receive.
	Plan(f *roce.Frame, tail sim.Time) (word uint64, ok bool)
	// Arrive is the arrival of a planned frame at a time that is not later than now, behind
	// all arrivals before it.
	Arrive(word uint64, tail sim.Time)
	// Lost says that a planned frame will not arrive; the reference is the port's again.
	Lost(word uint64) *roce.Frame
}

// planned are the frames on their way to a port for which the receiver has set an event,
// oldest first.
type planned struct {
	rx    Planner // nil: nothing is planned
	queue []arriving
	head  int
	busy  bool // in Settle: an arrival looks for those before it, which have come
}

type arriving struct {
	f    *roce.Frame
	at   sim.Place // of the event that Receive would have come by
	word uint64
}

// foresee plans the arrival of a frame if the receiver does so.
func (p *Port) foresee(f *roce.Frame, tail sim.Time) bool {
	if p.planned.rx == nil {
		return false
	}
	word, ok := p.planned.rx.Plan(f, tail)
	if ok {
		p.planned.queue = append(p.planned.queue, arriving{f, p.e.Reserve(tail), word})
	}
	return ok
}

// Settle lets planned frames arrive that should have by now, and returns the time before
// which there is nothing to settle: that of the next arrival, Never when there is none.
func (p *Port) Settle() (next sim.Time) {
	l := &p.planned
	if l.busy {
		return 0
	}
	l.busy = true
	for l.head < len(l.queue) {
		a := &l.queue[l.head]
		if !p.e.Passed(a.at) {
			l.busy = false
			return a.at.Time()
		}
		f, tail, word := a.f, a.at.Time(), a.word
		a.f = nil
		l.head++
		if l.head >= 64 && 2*l.head >= len(l.queue) {
			l.queue, l.head = l.queue[:copy(l.queue, l.queue[l.head:])], 0
		}
		p.count(f, &p.C.RxPackets, &p.C.RxBytes, &p.C.RxMulticast, &p.C.RxBroadcast)
		l.rx.Arrive(word, tail)
	}
	l.queue, l.head, l.busy = l.queue[:0], 0, false
	return sim.Never
}

// unplan gives each planned frame that has not arrived the event that it would have had.
func (p *Port) unplan() {
	p.Settle()
	l := &p.planned
	for _, a := range l.queue[l.head:] {
		fl := flight{f: l.rx.Lost(a.word), tail: a.at.Time(), epoch: p.cable.epoch, free: true}
		p.e.AtPlace(a.at, p.arrived, p.slot(fl))
	}
	l.queue, l.head = l.queue[:0], 0
}
