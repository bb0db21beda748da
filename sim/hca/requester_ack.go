package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// response is a response packet.
func (q *requester) response(p *roce.Packet) {
	psn := p.BTH().PSN()
	if q.u.p.Credits && roce.CmpPSN(psn, q.sent) < 0 && q.credit(p) {
		q.kick()
	}
	if !q.checkResponse(p, psn) {
		q.u.c.RxGhosts++
		return
	}
	switch p.Info().Class {
	case roce.ClassAck:
		q.onAckPacket(psn, p.AETH().Syndrome())
	case roce.ClassReadResponse:
		q.onReadResponse(p, psn)
	case roce.ClassAtomicAck:
		q.onAtomicAck(p, psn)
	case roce.ClassSelectiveNAK:
		q.onSelectiveNAK(p, psn)
	}
	if q.u.sacking {
		q.followAck()
	}
	q.kick()
}

func (q *requester) onAckPacket(psn uint32, s roce.Syndrome) {
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
func (q *requester) acked(upto uint32) bool {
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
	if lost && !q.landingWaits() && !q.breaks(rule.ImpliedNAKAsksAgain) && q.state != prm.QPStateERR {
		q.qs.add(prm.QCImpliedNAKSeqErr)
		if q.useRetry() {
			q.repair()
			q.pause(q.u.p.NackGenerate[1])
		}
	}
	return !lost && q.state != prm.QPStateERR
}

// progress is what every acknowledgement of something new does.
func (q *requester) progress() {
	if !q.breaks(rule.ProgressRestoresRetries) {
		q.retry = q.retryMax
	}
	q.exact = false
	if q.backoff != 0 {
		q.rewait(0)
	}
	if q.waiting {
		q.complete()
		q.syncCursor()
		return
	}
	if !q.breaks(rule.ProgressRestartsTheTimer) {
		q.deadline = sim.Never
	}
	if q.outstanding() && q.deadline == sim.Never {
		q.setDeadline()
	}
	q.complete()
	q.syncCursor()
}

// doneElse says whether a message at the head is done that is no SEND or WRITE, or fails it if it
// has failed.
//
//go:noinline
func (q *requester) doneElse(m *msg) bool {
	switch {
	case q.state == prm.QPStateERR: // it waits for the doorbell record
		return false
	case m.fail != 0:
		q.failHead(m.fail)
		return false
	case m.op == prm.WQEOpMMO && m.next > 0:
		return q.copied(m)
	case m.kind == msgLocal:
		return q.listRead(m)
	case m.next < m.n:
		return false
	}
	if q.u.answers && !q.scripted {
		q.answered(m)
	}
	return true
}

// complete reports the messages at the head that are done, in order.
func (q *requester) complete() {
	for q.head != q.tail {
		m := q.msg(q.head)
		if m.kind == msgPush && m.fail == 0 { // the rule
			if roce.CmpPSN(roce.AddPSN(m.first, int32(m.n)), q.una) > 0 {
				return
			}
		} else if !q.doneElse(m) {
			return
		}
		if q.scripted {
			q.failByScript()
			return
		}
		if q.st == prm.STDCI && q.streams.flushed(m.stream) {
			m.fail = prm.SyndromeWRFlush
			q.reportFailed(m)
			q.headGone = false
		} else if m.signal && !(q.breaks(rule.SignalledRequestsComplete) && m.idx%8 == 3) || q.breaks(rule.UnsignalledRequestsAreSilent) {
			q.sendCQE(m, nil)
		}
		q.head++
	}
	if q.draining {
		q.drained()
	}
}

func (q *requester) onNAKPacket(s roce.Syndrome) {
	if s == roce.NAKSequence {
		if q.breaks(rule.SequenceNAKIsHeard) || q.waiting && (!q.u.p.SelectiveRepeat || q.repairing || !q.passed()) { // what is asked for comes after the wait
			return
		}
		q.qs.add(prm.QCPacketSeqErr)
		if !q.useRetry() {
			return
		}
		q.repair()
		wait := q.u.p.NackReact[0]
		if q.breaks(rule.RepairIsAtOnce) {
			wait += q.timeout / 2
		}
		q.pause(wait)
		return
	}
	q.nakked = true
	switch s {
	case roce.NAKInvalidRequest:
		q.qs.add(prm.QCReqRemoteInvalidRequest)
		q.failAnswered(prm.SyndromeRemoteInvalReq)
	case roce.NAKRemoteAccess:
		q.qs.add(prm.QCReqRemoteAccessErrors)
		if q.breaks(rule.NAKsHaveTheirStatus) {
			q.failAnswered(prm.SyndromeRemoteOp)
			return
		}
		q.failAnswered(prm.SyndromeRemoteAccess)
	case roce.NAKRemoteOp:
		q.qs.add(prm.QCReqRemoteOperationErrors)
		q.failAnswered(prm.SyndromeRemoteOp)
	}
}

// onRNR waits for the coded time and goes back. A second RNR NAK while it waits
// is ignored.
func (q *requester) onRNR(timer uint8) {
	if q.waiting {
		return
	}
	if q.rnrMax != rnrForever || q.breaks(rule.SevenRNRRetriesNeverEnd) {
		if q.rnr == 0 {
			q.qs.add(prm.QCReqRNRRetriesExceeded)
			q.nakked = true
			q.failAnswered(prm.SyndromeRNRRetryExc)
			return
		}
		if !q.breaks(rule.RNRRetriesAreCounted) {
			q.rnr--
		}
	}
	q.qs.add(prm.QCRNRNAKRetryErr)
	q.goBack()
	if q.breaks(rule.RNRTimerIsWaited) {
		timer = 1
	}
	deadline := q.deadline
	q.wait(sim.Time(roce.RNRTimer(timer)) * sim.Nanosecond)
	if q.breaks(rule.RNRWaitStopsTheTimer) {
		q.deadline = deadline
	}
	q.beginDamming()
}

// rnrForever is the RNR retry count that does not run out.
const rnrForever = 7

// onAtomicWritten is the answer to an ATOMIC WRITE.
func (q *requester) onAtomicWritten(m *msg, p *roce.Packet) {
	if !q.checkAtomicWritten(p) {
		q.badResponse()
		return
	}
	q.rnr = q.rnrMax
	m.next = 1
	q.una = roce.AddPSN(m.first, 1)
	q.endRead(m)
	q.progress()
}

// sendCQE reports a send WQE that is done; data is what its response scatters to
// the CQE.
func (q *requester) sendCQE(m *msg, data []byte) {
	u := q.u
	all, e := q.entry(q.scq, false)
	format := putInline(all, e, data)
	if (m.kind == msgRead || m.kind == msgAtomic) && !u.breaks(rule.ReadsCountTheirBytes) {
		e.SetByteCnt(m.length)
	}
	e.SetTimestamp(u.timestamp(u.e.Now()))
	e.SetQPN(q.num)
	e.SetSOp(m.op)
	e.SetWQECounter(m.idx)
	e.SetOpOwn(prm.CQEReq, format, false, 0)
	q.scq.push(all)
}
