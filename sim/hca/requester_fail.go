package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// failAt has message i end in error s, when those before it are done; nothing is
// sent behind it.
func (q *requester) failAt(i uint32, s prm.Syndrome) {
	m := q.msg(i)
	own := 0
	if q.open && i == q.cur {
		own = int(q.pkt)
	}
	m.fail, m.vendor = s, q.refusedKey(s)
	q.halt, q.open = true, false
	q.complete()
	q.claimAck(m.first, own)
}

// unanswered is the oldest message that the peer has not answered. It is the oldest of all, unless
// a local one at the head is still under way: those behind that may have been answered.
func (q *requester) unanswered() uint32 {
	if q.head == q.tail || q.msg(q.head).kind != msgLocal {
		return q.head
	}
	return q.unansweredBehind()
}

//go:noinline
func (q *requester) unansweredBehind() uint32 {
	i := q.head
	for ; i != q.tail; i++ {
		m := q.msg(i)
		answered := m.kind == msgLocal || roce.CmpPSN(roce.AddPSN(m.first, int32(m.n)), q.una) <= 0 && (m.kind == msgPush || m.next >= m.n)
		if !answered || m.fail != 0 {
			break
		}
	}
	return i
}

// failAnswered has the oldest message that the peer has not answered end with an error.
func (q *requester) failAnswered(s prm.Syndrome) {
	i := q.unanswered()
	switch {
	case i == q.head || i == q.tail:
		q.failHead(s)
	case q.msg(i).fail == 0:
		q.failAt(i, s)
	}
}

// failHead ends the oldest message with an error CQE, whether it was signalled or
// not, and moves the QP to ERR, an unreliable one to SQER.
func (q *requester) failHead(s prm.Syndrome) {
	if q.head == q.tail {
		q.u.bug("QP %#x: %v with nothing outstanding", q.num, s)
	}
	m := q.msg(q.head)
	q.failedSent = 1
	if q.resentFrom == q.una {
		q.failedSent += q.resends
	}
	switch s {
	case prm.SyndromeLocalQPOp:
		q.qs.add(prm.QCLocalOperationError)
	case prm.SyndromeLocalLength:
		q.qs.add(prm.QCReqLocalLengthError)
	case prm.SyndromeMWBind:
		q.qs.add(prm.QCReqMWBinding)
	case prm.SyndromeLocalProt:
		q.qs.add(prm.QCReqLocalProtection)
	}
	m.fail, q.headFails = s, true
	if q.vendor != 0 { // the script's
		m.vendor, q.vendor = q.vendor, 0
	}
	if q.streams.endsStream(m.stream, s) {
		q.headFails = false
		q.passFailed(m)
		return
	}
	if q.u.p.CardFaults && (q.reliable() || q.st == prm.STRegUMR) && q.sq.size > 0 { // it completes when the record was read
		q.lastLeave = s == prm.SyndromeLocalProt
		q.owner.abort()
		q.lastLeave = false
		return
	}
	q.reportFailed(m)
	end := m.idx + uint16(m.nbb)
	q.head++
	if q.head == q.tail {
		q.cur = q.tail
		q.open = false
		q.sq.moveTo(end)
	}
	if !q.reliable() && q.st != prm.STRegUMR {
		q.toSQError()
		return
	}
	q.owner.abort()
}

// reportFailed completes a request that has failed.
func (q *requester) reportFailed(m *msg) {
	q.headGone, q.headFails = true, false
	q.vendor = m.vendor
	if m.signal || !q.breaks(rule.ErrorsCompleteUnsignalled) {
		q.errorCQE(prm.CQEReqErr, m.idx, m.op, m.fail)
	}
	q.vendor = 0
}

// flushSQ completes with a flush error what is posted and was never started. The
// WQEs are fetched, since only they say how long they are.
func (q *requester) flushSQ() {
	if q.followsRecord() && q.head != q.tail { // it waits for the record
		return
	}
	for q.sq.ci != q.sq.pi {
		c, n := q.sq.first()
		if n == 0 {
			q.sq.fetchMore()
			return
		}
		if q.breaks(rule.PostedRequestsAreFlushed) {
			q.sq.ci += uint16(n)
			continue
		}
		q.reportFlush(q.sq.ci, c.Opcode())
		q.sq.ci += uint16(n)
	}
}

// toSQError moves an unreliable QP to SQER: what was posted to its send queue is
// flushed; it goes on receiving.
func (q *requester) toSQError() {
	q.setState(prm.QPStateSQER)
	q.epoch++
	q.u.abandon(&q.txq)
	q.waiting, q.deadline, q.open, q.halt = false, sim.Never, false, false
	q.dropFaults()
	q.flushTaken()
	q.una, q.sent = q.psn, q.psn
	q.owner.readRecord()
}

// flushTaken completes with a flush error what the requester has taken.
func (q *requester) flushTaken() {
	for q.head != q.tail {
		m := q.msg(q.head)
		q.reportFlush(m.idx, m.op)
		q.head++
		if q.head == q.tail {
			q.sq.moveTo(m.idx + uint16(m.nbb))
		}
	}
	q.cur, q.reads = q.tail, 0
	for i := range q.landing {
		q.landing[i].busy = false
	}
}

// failByScript ends the oldest message as FailNext asked.
func (q *requester) failByScript() {
	s := q.script[0]
	q.script = q.script[1:]
	q.scripted = len(q.script) > 0
	q.vendor = uint16(s.vendor) + 1
	q.failHead(s.syndrome)
}
