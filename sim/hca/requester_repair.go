package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// syncCursor moves the cursor on when what it stood on was acknowledged before it
// was sent again.
func (q *requester) syncCursor() {
	if int32(q.head-q.cur) <= 0 {
		return
	}
	if q.repairing && q.head != q.tail {
		q.resume()
		return
	}
	q.repairing, q.skipAcked = false, false
	last := q.msg(q.head - 1)
	q.cur, q.open = q.head, false
	q.sq.moveTo(last.idx + uint16(last.nbb))
}

// goBack has everything from the oldest unacknowledged packet sent again.
func (q *requester) goBack() {
	if q.resentFrom != q.una {
		q.resentFrom, q.resends = q.una, 0
	}
	q.resends++
	q.u.abandon(&q.txq)
	if q.sack != nil {
		q.sack.forget(q.una)
	}
	q.rewind()
}

// rewind moves the cursor to the oldest unacknowledged packet.
func (q *requester) rewind() {
	q.open, q.repairing, q.skipAcked = false, false, false
	for i := q.head; i != q.tail; i++ {
		m := q.msg(i)
		if m.n > 0 && roce.CmpPSN(q.una, roce.AddPSN(m.first, int32(m.n))) < 0 {
			q.exact = m.kind != msgPush
			if int32(i-q.cur) <= 0 {
				q.cur = i
				q.sq.ci, q.sq.got, q.sq.passed = m.idx, m.idx, false
				q.sq.stale = q.sq.fetching
			}
			return
		}
	}
}

// useRetry takes one of the retries; without one left the QP fails.
func (q *requester) useRetry() bool { return q.takeRetry(0) }

// takeRetry takes one of the retries; with no more than spare left the QP fails.
func (q *requester) takeRetry(spare uint32) bool {
	if q.retry <= spare || q.retry == spare+1 && q.breaks(rule.RetriesAreAllUsed) {
		q.qs.add(prm.QCReqTransportRetriesExceeded)
		q.failAnswered(prm.SyndromeTransportRetryExc)
		return false
	}
	if !q.breaks(rule.RetriesAreCounted) {
		q.retry--
	}
	return true
}

// repair has the oldest unacknowledged packet sent again, of a READ or an atomic the
// request. With go-back-N everything behind it follows; with selective repeat the cursor
// then returns to where it was. A cursor that is not beyond that packet comes to it by itself.
func (q *requester) repair() {
	q.undam()
	switch {
	case !q.u.p.SelectiveRepeat || q.goesBack():
		q.goBack()
		return
	case !q.repairing && !q.passed():
		q.rewind()
		return
	}
	back := q.after
	if !q.repairing {
		back = q.nextPSN()
	}
	q.rewind()
	q.repairing, q.after = true, back
}

// passed says whether the cursor is beyond the oldest unacknowledged packet.
func (q *requester) passed() bool { return roce.CmpPSN(q.nextPSN(), q.una) > 0 }

// nextPSN is the PSN of the packet at the cursor.
func (q *requester) nextPSN() uint32 {
	switch {
	case q.cur == q.tail:
		return q.psn
	case q.skipAcked && q.msg(q.cur).kind == msgPush:
		return q.skipTo
	case q.open && q.msg(q.cur).kind == msgPush:
		return roce.AddPSN(q.msg(q.cur).first, int32(q.pkt))
	}
	return q.msg(q.cur).first
}

// resume returns the cursor to where it was before a repair.
func (q *requester) resume() { q.seek(q.after) }

// seek moves the cursor to a packet that was sent before, or to the next one that was not.
func (q *requester) seek(to uint32) {
	q.repairing, q.open = false, false
	if roce.CmpPSN(to, q.una) < 0 {
		to = q.una
	}
	for i := q.head; i != q.tail; i++ {
		m := q.msg(i)
		if m.n > 0 && roce.CmpPSN(to, roce.AddPSN(m.first, int32(m.n))) < 0 {
			q.cur = i
			q.sq.moveTo(m.idx)
			q.skipAcked, q.skipTo = true, to
			return
		}
	}
	last := q.msg(q.tail - 1)
	q.cur = q.tail
	q.sq.moveTo(last.idx + uint16(last.nbb))
}

// claimAck has the packet before a PSN, which is that of the cursor or before it, sent once more
// with a request for an ACK, where it was to be acknowledged with what follows, and nothing does:
// what lies behind it has failed by itself, has no packets, or must wait in SQD. own is how many
// packets were sent from the PSN on. Responders acknowledge a duplicate again, so it takes no
// retry. That a card does the same is not published.
//
//go:noinline
func (q *requester) claimAck(before uint32, own int) {
	if q.breaks(rule.AckIsAskedForInTheEnd) || q.head == q.tail || int(q.sinceAR) <= own || q.waiting || roce.CmpPSN(q.una, before) >= 0 || roce.CmpPSN(q.nextPSN(), before) < 0 {
		return
	}
	q.after = roce.AddPSN(before, -1)
	q.resume()
}

// goesBack says whether a requester with RepeatByOperation goes back N for the oldest message that
// is not acknowledged.
func (q *requester) goesBack() bool {
	if q.u.p.RepeatScheme != RepeatByOperation {
		return false
	}
	i := q.unanswered()
	if i == q.tail {
		return false
	}
	switch q.msg(i).op {
	case prm.WQEOpSend, prm.WQEOpSendImm, prm.WQEOpSendInv, prm.WQEOpRDMAWriteImm:
		return true
	}
	return false
}
