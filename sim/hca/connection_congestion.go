package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca/dcqcn"
)

// topRate is where a QP is not limited any more.
func (q *connection) topRate() uint64 { return q.u.p.Congestion.Top(q.u.p.WireRate) }

// notified is a CNP for the QP.
func (q *connection) notified() {
	u, p, now := q.u, &q.u.p.Congestion, q.u.e.Now()
	r := q.reaction
	if r == nil {
		if q.resting == nil {
			q.resting = &reaction{}
		}
		r = q.resting
		r.Reaction = dcqcn.Begin(p, q.topRate(), now)
		q.reaction = r
	}
	u.c.RpCNPHandled++
	if r.Cut(p, now) && !r.ticking {
		r.ticking = true
		u.e.At(r.RaiseAt(), u.h.raise, q.arg)
	}
}

// onRaise is the timer that raises the rate of a QP; a cut moves it on.
func (q *connection) onRaise() {
	u := q.u
	if q.resting == nil {
		return
	}
	r := q.resting
	r.ticking = false
	if q.reaction == nil {
		return
	}
	if u.e.Now() >= r.RaiseAt() && r.RaiseByTime(&u.p.Congestion, q.topRate(), u.e.Now()) {
		q.endReaction()
		return
	}
	r.ticking = true
	u.e.At(r.RaiseAt(), u.h.raise, q.arg)
}

// endReaction is the end of the reaction point.
func (q *connection) endReaction() {
	q.reaction = nil
	q.owner.rateReturned()
}

// spend counts a packet of n bytes, frame as given to the wire, against the rate.
func (q *connection) spend(n int) {
	u := q.u
	if q.reaction.Spend(&u.p.Congestion, q.topRate(), u.e.Now(), n+u.p.WireOverhead, n) {
		q.endReaction()
	}
}

// paced says whether the QP has to wait for its rate; it is woken then.
func (q *connection) paced() bool {
	r := q.reaction
	if q.u.e.Now() >= r.Next() {
		return false
	}
	if !r.waking {
		r.waking = true
		q.u.e.At(r.Next(), q.u.h.pace, q.arg)
	}
	return true
}

func (q *connection) onPace() {
	if q.resting == nil {
		return
	}
	q.resting.waking = false
	q.owner.rateReturned()
}

// marked is a data packet of the QP that arrived with "congestion experienced": it draws a
// CNP unless one was sent within the time, whether the packet is in order or not.
func (q *connection) marked() {
	u, p, now := q.u, &q.u.p.Congestion, q.u.e.Now()
	u.c.NpECNMarkedRocePackets++
	if q.cnp == nil {
		return
	}
	last := &u.notices.cnpAt
	switch p.CNPScope {
	case dcqcn.PerQP:
		last = &q.cnpAt
	case dcqcn.PerDestination:
		last = u.notices.cnpTo[q.dstGID]
		if last == nil {
			last = new(sim.Time)
			*last = -sim.Second
			u.notices.cnpTo[q.dstGID] = last
		}
	}
	if now-*last < p.MinTimeBetweenCNPs {
		return
	}
	*last = now
	u.c.NpCNPSent++
	u.port.transmit(u.getSlot(q.cnp.New(&u.frames, roce.CNPacket, 0, 0, roce.BECN)), &q.sender)
}
