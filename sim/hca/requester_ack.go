package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// response is a response packet. Those outside unaPSN..sent-1 are ghosts, which
// the requester drops (IBTA Vol. 1, 9.7.6); nothing is ever answered.
func (q *qp) response(p *roce.Packet) {
	psn := p.BTH().PSN()
	if q.d.p.Credits && roce.CmpPSN(psn, q.sent) < 0 && q.credit(p) {
		q.kick()
	}
	if roce.CmpPSN(psn, q.una) < 0 || roce.CmpPSN(psn, q.sent) >= 0 {
		q.d.c.RxGhosts++
		return
	}
	if q.exact && psn != q.una {
		q.d.c.RxGhosts++ // of the READ or atomic before it was asked for again
		return
	}
	switch p.Info().Class {
	case roce.ClassAck:
		q.onAckPacket(psn, p.AETH().Syndrome())
	case roce.ClassReadResponse:
		q.onReadResponse(p, psn)
	case roce.ClassAtomicAck:
		q.onAtomicAck(p, psn)
	}
	q.kick()
}

func (q *qp) onAckPacket(psn uint32, s roce.Syndrome) {
	switch s.Type() {
	case roce.SyndromeTypeAck:
		q.rnr = q.rnrMax
		q.acked(psn)
	case roce.SyndromeTypeRNR:
		if q.acked(roce.AddPSN(psn, -1)) && q.una == psn {
			q.onRNR(s.Value())
		}
	case roce.SyndromeTypeNAK:
		if q.acked(roce.AddPSN(psn, -1)) && q.una == psn {
			q.onNAKPacket(s)
		}
	}
}

// acked acknowledges everything up to a PSN. A READ or an atomic in that range
// whose response is missing was lost on the way (an implied NAK): it is asked for
// again, and acked reports false.
func (q *qp) acked(upto uint32) bool {
	before := q.una
	lost := false
walk:
	for i := q.head; i != q.tail; i++ {
		m := q.msg(i)
		if m.n == 0 {
			continue
		}
		if roce.CmpPSN(m.first, upto) > 0 {
			break
		}
		behind := roce.AddPSN(m.first, int32(m.n))
		switch {
		case m.kind != msgPush && m.next < m.n:
			q.una = roce.AddPSN(m.first, int32(m.next))
			lost = roce.CmpPSN(upto, q.una) >= 0
			break walk
		case roce.CmpPSN(behind, roce.AddPSN(upto, 1)) <= 0:
			q.una = behind
		default:
			q.una = roce.AddPSN(upto, 1)
			break walk
		}
	}
	if q.una != before {
		q.progress()
	}
	if lost && q.state != prm.QPStateERR {
		q.qs.add(prm.QCImpliedNAKSeqErr)
		if q.useRetry() {
			q.repair()
			q.pause(q.d.p.NackGenerate[1])
		}
	}
	return !lost && q.state != prm.QPStateERR
}

// progress is what every acknowledgement of something new does.
func (q *qp) progress() {
	q.retry, q.exact = q.retryMax, false
	if q.backoff != 0 {
		q.rewait(0)
	}
	if q.waiting {
		q.complete()
		q.syncCursor()
		return
	}
	q.deadline = sim.Never
	if q.outstanding() {
		q.setDeadline()
	}
	q.complete()
	q.syncCursor()
}

// complete reports the messages at the head that are done, in order.
func (q *qp) complete() {
	for q.head != q.tail {
		m := q.msg(q.head)
		if m.fail != 0 {
			q.failHead(m.fail)
			return
		}
		switch m.kind {
		case msgPush:
			if roce.CmpPSN(roce.AddPSN(m.first, int32(m.n)), q.una) > 0 {
				return
			}
		case msgRead, msgAtomic:
			if m.next < m.n {
				return
			}
		}
		if q.scripted != nil {
			q.failByScript()
			return
		}
		if q.d.answers && (m.kind == msgRead || m.kind == msgAtomic) {
			q.answered(m)
		}
		if m.signal {
			q.sendCQE(m, nil)
		}
		q.head++
	}
	if q.draining {
		q.drained()
	}
}

// syncCursor moves the cursor on when what it stood on was acknowledged before it
// was sent again.
func (q *qp) syncCursor() {
	if int32(q.head-q.cur) <= 0 {
		return
	}
	if q.one && q.head != q.tail {
		q.resume()
		return
	}
	q.one, q.skipping = false, false
	last := q.msg(q.head - 1)
	q.cur, q.open = q.head, false
	q.moveCursor(last.idx + uint16(last.nbb))
}

// moveCursor sets the cursor to WQE index idx.
func (q *qp) moveCursor(idx uint16) {
	if step := idx - q.ci; step <= q.got-q.ci {
		q.ci = idx
		return
	}
	q.ci, q.got = idx, idx
	q.stale = q.fetch
}

// goBack has everything from the oldest unacknowledged packet sent again.
func (q *qp) goBack() {
	q.abandon(&q.txq)
	q.rewind()
}

// rewind moves the cursor to the oldest unacknowledged packet.
func (q *qp) rewind() {
	q.open, q.one, q.skipping = false, false, false
	for i := q.head; i != q.tail; i++ {
		m := q.msg(i)
		if m.n > 0 && roce.CmpPSN(q.una, roce.AddPSN(m.first, int32(m.n))) < 0 {
			q.exact = m.kind != msgPush
			if int32(i-q.cur) <= 0 {
				q.cur = i
				q.ci, q.got = m.idx, m.idx
				q.stale = q.fetch
			}
			return
		}
	}
}

// useRetry takes one of the retries; without one left the QP fails.
func (q *qp) useRetry() bool {
	if q.retry == 0 {
		q.qs.add(prm.QCReqTransportRetriesExceeded)
		q.failHead(prm.SyndromeTransportRetryExc)
		return false
	}
	q.retry--
	return true
}

func (q *qp) onNAKPacket(s roce.Syndrome) {
	if s == roce.NAKSequence {
		if q.waiting {
			return
		}
		q.qs.add(prm.QCPacketSeqErr)
		if !q.useRetry() {
			return
		}
		q.repair()
		q.pause(q.d.p.NackReact[0])
		return
	}
	switch s {
	case roce.NAKInvalidRequest:
		q.qs.add(prm.QCReqRemoteInvalidRequest)
		q.failHead(prm.SyndromeRemoteInvalReq)
	case roce.NAKRemoteAccess:
		q.qs.add(prm.QCReqRemoteAccessErrors)
		q.failHead(prm.SyndromeRemoteAccess)
	case roce.NAKRemoteOp:
		q.qs.add(prm.QCReqRemoteOperationErrors)
		q.failHead(prm.SyndromeRemoteOp)
	}
}

// onRNR waits for the coded time and goes back. A second RNR NAK while it waits
// is ignored.
func (q *qp) onRNR(timer uint8) {
	if q.waiting {
		return
	}
	if q.rnrMax != rnrForever {
		if q.rnr == 0 {
			q.qs.add(prm.QCReqRNRRetriesExceeded)
			q.failHead(prm.SyndromeRNRRetryExc)
			return
		}
		q.rnr--
	}
	q.qs.add(prm.QCRNRNAKRetryErr)
	q.goBack()
	q.wait(sim.Time(roce.RNRTimer(timer)) * sim.Nanosecond)
}

// rnrForever is the RNR retry count that does not run out.
const rnrForever = 7

// pause is what the requester takes before it sends again.
func (q *qp) pause(t sim.Time) {
	switch {
	case q.waiting:
	case t > 0:
		q.wait(t)
	default:
		q.setDeadline()
	}
}

// wait keeps the requester quiet for t; the ACK timer stops meanwhile.
func (q *qp) wait(t sim.Time) {
	q.waiting, q.waitEnd, q.deadline = true, q.d.e.Now()+t, sim.Never
	q.d.e.After(t, q.d.h.wait, q.arg)
}

func (d *Device) onWait(arg uint64) {
	q := d.qpArg(arg)
	if q == nil || !q.waiting || d.e.Now() < q.waitEnd {
		return
	}
	q.waiting = false
	if q.outstanding() {
		q.setDeadline()
	}
	q.kick()
}

// onTimer looks whether the ACK timer has run out; it may have been moved since
// the event was set.
func (d *Device) onTimer(arg uint64) {
	q := d.qpArg(arg)
	if q == nil {
		return
	}
	q.timerSet = false
	now := d.e.Now()
	switch {
	case q.deadline == sim.Never:
		return
	case now < q.deadline:
		q.timerSet = true
		d.e.At(q.deadline, d.h.timer, arg)
		return
	}
	q.deadline = sim.Never
	if !q.takesResponses() || !q.outstanding() {
		return
	}
	q.timedOut()
	if !q.useRetry() {
		return
	}
	if q.d.p.AdaptiveRetrans {
		q.qs.add(prm.QCRoCEADPRetrans)
	}
	q.goBack()
	q.setDeadline()
	q.kick()
}
