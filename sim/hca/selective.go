package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// Selective repeat: the responder keeps packets that came before the one it expects, and
// the requester sends again only the one that a NAK names. What mlx5 does is not public
// beyond the words; here the packets kept are executed in order, once the gap is closed,
// so that nothing but the wire shows the difference.

// repair has the oldest unacknowledged packet sent again, of a READ or an atomic the
// request. With go-back-N everything behind it follows; with selective repeat the cursor
// then returns to where it was.
func (q *qp) repair() {
	if !q.d.p.SelectiveRepeat {
		q.goBack()
		return
	}
	back := q.after
	if !q.one {
		back = q.nextPSN()
	}
	q.rewind()
	q.one, q.after = true, back
}

// nextPSN is the PSN of the packet at the cursor.
func (q *qp) nextPSN() uint32 {
	switch {
	case q.cur == q.tail:
		return q.psn
	case q.open && q.msg(q.cur).kind == msgPush:
		return roce.AddPSN(q.msg(q.cur).first, int32(q.pkt))
	}
	return q.msg(q.cur).first
}

// resume returns the cursor to where it was before a repair.
func (q *qp) resume() {
	q.one, q.open = false, false
	to := q.after
	if roce.CmpPSN(to, q.una) < 0 {
		to = q.una
	}
	for i := q.head; i != q.tail; i++ {
		m := q.msg(i)
		if m.n > 0 && roce.CmpPSN(to, roce.AddPSN(m.first, int32(m.n))) < 0 {
			q.cur = i
			q.moveCursor(m.idx)
			q.skipping, q.skipTo = true, to
			return
		}
	}
	last := q.msg(q.tail - 1)
	q.cur = q.tail
	q.moveCursor(last.idx + uint16(last.nbb))
}

// keep takes a request packet that came early, if the device does so. The list is in the
// order of PSNs.
func (q *qp) keep(i int32) bool {
	d := q.d
	if !d.p.SelectiveRepeat || q.st != prm.STRC {
		return false
	}
	psn := d.slots[i].pkt.BTH().PSN()
	if ahead := roce.CmpPSN(psn, q.epsn); ahead <= 0 || ahead > int32(d.p.RepeatWindow) {
		return false
	}
	q.qs.add(prm.QCOutOfSequence)
	q.sequenceNAK()
	before, at := int32(-1), q.ahead.head
	for at >= 0 {
		diff := roce.CmpPSN(d.slots[at].pkt.BTH().PSN(), psn)
		if diff == 0 { // it is here already
			d.dropSlot(i)
			return true
		}
		if diff > 0 {
			break
		}
		before, at = at, d.slots[at].next
	}
	switch {
	case at < 0:
		d.pushSlot(&q.ahead, i)
	case before < 0:
		d.pushFront(&q.ahead, i)
	default:
		d.slots[i].next, d.slots[before].next = at, i
	}
	return true
}

// catchUp executes packets that were kept, up to the next gap, for which it asks.
func (q *qp) catchUp() {
	d := q.d
	for q.ahead.head >= 0 && !q.busy {
		i := q.ahead.head
		diff := roce.CmpPSN(d.slots[i].pkt.BTH().PSN(), q.epsn)
		if diff > 0 {
			q.sequenceNAK()
			return
		}
		d.popSlot(&q.ahead)
		switch {
		case diff < 0 || !q.takesRequests():
			d.dropSlot(i)
		case q.execute(&d.slots[i].pkt):
			q.busy = true
			d.pushFront(&q.hold, i)
		default:
			d.dropSlot(i)
			if q.nakSent { // no receive WQE: this one and those behind it come again
				q.dropAhead()
			}
		}
	}
}

// dropAhead forgets the packets that were kept.
func (q *qp) dropAhead() {
	for q.ahead.head >= 0 {
		q.d.dropSlot(q.d.popSlot(&q.ahead))
	}
}
