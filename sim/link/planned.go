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
	// Plan is called with a frame whose last bit comes at tail. The receiver sees to an event
	// that is later than tail and not later than the frame's effect. Or it reports false, and
	// the frame shall come by Receive.
	Plan(f *roce.Frame, tail sim.Time) bool
	// Arrive is the arrival of a planned frame at a time that is not later than now, behind
	// all arrivals before it. The reference passes to the receiver.
	Arrive(f *roce.Frame, tail sim.Time)
	// Lost says that what is planned will not arrive.
	Lost()
}

// planned are the frames on their way to a port that the receiver has foreseen, oldest first.
type planned struct {
	rx    Planner // nil: nothing is planned
	queue sim.FIFO[arriving]
	busy  bool // in Settle: an arrival looks for those before it, which have come
}

type arriving struct {
	f  *roce.Frame
	at sim.Place // of the event that Receive would have come by
}

// foresee plans the arrival of a frame if the receiver does so.
func (p *Port) foresee(f *roce.Frame, tail sim.Time) bool {
	l := &p.planned
	if l.rx == nil || !l.rx.Plan(f, tail) {
		return false
	}
	l.queue.Push(arriving{f, p.e.Reserve(tail)})
	return true
}

// Settle lets planned frames arrive that should have by now, and returns the time before
// which there is nothing to settle: that of the next arrival, Never when there is none.
func (p *Port) Settle() (next sim.Time) {
	l := &p.planned
	if l.busy {
		return 0
	}
	l.busy = true
	for l.queue.Len() > 0 {
		at := l.queue.Front().at
		if !p.e.Passed(at) {
			l.busy = false
			return at.Time()
		}
		f := l.queue.Pop().f
		p.count(f, &p.C.RxPackets, &p.C.RxBytes, &p.C.RxMulticast, &p.C.RxBroadcast)
		l.rx.Arrive(f, at.Time())
	}
	l.busy = false
	return sim.Never
}

// unplan gives each planned frame that has not arrived the event that it would have had.
func (p *Port) unplan() {
	p.Settle()
	l := &p.planned
	if l.queue.Len() == 0 {
		return
	}
	l.rx.Lost()
	for l.queue.Len() > 0 {
		a := l.queue.Pop()
		fl := flight{f: a.f, tail: a.at.Time(), epoch: p.cable.epoch, free: true}
		p.e.AtPlace(a.at, p.arrived, p.slot(fl))
	}
}
