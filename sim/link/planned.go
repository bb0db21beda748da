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
	// Plan is called with a frame whose last bit comes at tail. The receiver keeps the frame, and
	// reserves the place of its arrival, at tail. It sees to an event that is later than tail and
	// not later than the frame's effect. Or it reports false, and the frame shall come by Receive.
	Plan(f *roce.Frame, tail sim.Time) bool
	// Settle lets planned frames arrive whose places have passed, in order, each with a call
	// of Port.Arrived.
	Settle()
	// NextArrival is the place of the planned frame that arrives next; at Never if there is none.
	NextArrival() sim.Place
	// Unplan gives back the planned frames that have not arrived, in order, with their places.
	Unplan(back func(f *roce.Frame, at sim.Place))
}

// foresee plans the arrival of a frame if the receiver does so.
func (p *Port) foresee(f *roce.Frame, tail sim.Time) bool {
	return p.planner != nil && p.planner.Plan(f, tail)
}

// Arrived counts a planned frame that arrives, and returns its credits on an InfiniBand link. It is
// out of the receiver's buffer at a time.
func (p *Port) Arrived(f *roce.Frame, out sim.Time) {
	if p.lanes == nil {
		p.countRx(f)
		return
	}
	n := len(f.B)
	p.C.RxPackets++
	p.C.RxBytes += uint64(n + p.p.FCS)
	if roce.IsMulticastLID(roce.LRH(f.B).DLID()) {
		p.C.RxMulticast++
	}
	s := p.peer.lanes
	s.refund(s.lane(f), blocks(n), out)
}

// Recall has planned frames come by Receive: what they depend on is about to change.
func (p *Port) Recall() { p.unplan() }

// settle lets planned frames arrive that should have by now.
func (p *Port) settle() {
	if p.planner != nil {
		p.planner.Settle()
	}
}

// unplan gives each planned frame that has not arrived the event that it would have had.
func (p *Port) unplan() {
	if p.planner == nil {
		return
	}
	p.planner.Settle()
	p.planner.Unplan(func(f *roce.Frame, at sim.Place) {
		fl := flight{f: f, tail: at.Time(), epoch: p.cable.epoch}
		if p.lanes != nil {
			fl.marks = paid | marks(p.peer.lanes.lane(f))
		}
		p.e.AtPlace(at, p.arrived, p.slot(fl))
	})
}
