package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// Packet flood, a hypothesis (odp.Params.AskAgain): a requester that waits for the pages in which a
// response lands asks for the response again and again meanwhile, and drops each. That a card does
// so is inferred from what Fukuoka et al. (ISPASS 2021) call by that name; only the abstract was at
// hand. How late it learns that the pages are there is odp.Params.Learn.

// beginAsking sets the next request of a requester whose response had no place to land.
func (q *requester) beginAsking() {
	if t := q.u.p.ODP.AskAgain; t > 0 {
		q.askAt = q.u.e.Now() + t
		q.u.e.At(q.askAt, q.u.h.ask, q.arg)
	}
}

// onAsk asks again. An event that was set for a fault before this one finds another time.
func (q *requester) onAsk() {
	if !q.landingWaits() || q.u.e.Now() != q.askAt {
		return
	}
	q.askAgain()
	q.beginAsking()
}

// askAgain sends the request of the oldest message once more. The cursor, which may wait for pages
// of its own, stays.
func (q *requester) askAgain() {
	m, w := q.msg(q.faults[odp.LandingSide].msg), &q.u.parsed
	if prm.ParseSendWQE(q.landing[m.land].wqe, uint32(q.st), w) != nil {
		q.u.bug("QP %#x: the landing area of WQE %d changed", q.num, m.idx)
	}
	var f *roce.Frame
	if m.kind == msgRead {
		f = q.readRequest(m, w)
	} else {
		f = q.atomicRequest(m, w)
	}
	if q.st >= prm.STXRC {
		q.nameTarget(m, f, roce.AddPSN(m.first, int32(m.next)))
	}
	q.u.c.RequestsAskedAgain++
	q.u.port.enqueue(&q.sender, &q.txq, q.u.getSlot(f))
}
