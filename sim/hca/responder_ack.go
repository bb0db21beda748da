package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// answer queues an ACK or a NAK for a PSN behind what is due; ACKs join.
func (q *responder) answer(kind answerKind, psn uint32, s roce.Syndrome) {
	q.ackDue = false
	if n := len(q.items); n > q.itemHead {
		last := &q.items[n-1]
		if last.kind == answerAck && kind == answerAck {
			if !q.breaks(rule.JoinedAckMovesOn) {
				last.psn, last.msn, last.syndrome = psn, q.msn, s
			}
			return
		}
		q.items = append(q.items, response{kind: kind, psn: psn, msn: q.msn, syndrome: s, saved: -1})
		return
	}
	q.sendAck(psn, q.msn, s)
}

// sendAck sends an Acknowledge behind the frames that are on their way.
func (q *responder) sendAck(psn, msn uint32, s roce.Syndrome) {
	f := q.tmpl.New(&q.u.frames, q.opcode(roce.OpAcknowledge), psn, 0, 0)
	h := f.AETH()
	h.SetSyndrome(s)
	h.SetMSN(msn)
	if s.Type() == roce.SyndromeTypeAck {
		q.u.c.AcksSent++
	} else {
		q.u.c.NaksSent++
		if s.Type() == roce.SyndromeTypeRNR {
			q.u.c.RnrNaksSent++
		}
	}
	if q.u.port.free(&q.sender, &q.rtx) {
		q.u.port.leave(f)
		return
	}
	q.u.port.enqueue(&q.sender, &q.rtx, q.u.getSlot(f))
}

// oweAck sends an ACK, or waits a moment for others to join it.
func (q *responder) oweAck() {
	if q.u.p.AckDelay == 0 {
		q.answer(answerAck, roce.AddPSN(q.epsn, -1), q.ackSyndrome())
		return
	}
	q.ackDue = true
	if !q.ackSet {
		q.ackSet = true
		q.u.e.After(q.u.p.AckDelay, q.u.h.ack, q.arg)
	}
}

func (q *responder) onAck() {
	q.ackSet = false
	if q.ackDue && q.takesRequests() {
		q.answer(answerAck, roce.AddPSN(q.epsn, -1), q.ackSyndrome())
	}
}

// fatal answers the packet at epsn with a NAK that ends the connection: the QP goes
// to ERR and reports an asynchronous event. On UC the message is dropped.
func (q *responder) fatal(s roce.Syndrome) {
	if q.st == prm.STUC {
		q.dropMessage()
		return
	}
	ev := prm.EventWQCatasError
	switch s {
	case roce.NAKInvalidRequest:
		ev = prm.EventWQInvalReqError
		q.countError(prm.QCRespRemoteInvalidRequest)
	case roce.NAKRemoteAccess:
		ev = prm.EventWQAccessError
		q.countError(prm.QCRespRemoteAccessErrors)
	}
	q.answer(answerNAK, q.epsn, s)
	if q.breaks(rule.EventsHaveTheirType) {
		ev = prm.EventWQCatasError
	}
	q.raise(ev)
	if q.breaks(rule.FatalRequestEndsTheQP) {
		return
	}
	q.owner.toError()
}

// failRecv ends the receive that is open with an error and answers, on a reliable service, with a
// NAK. The CQE informs the owner; there is no event.
func (q *responder) failRecv(s prm.Syndrome, nak roce.Syndrome) {
	q.recvOpen = false
	if q.reliable() {
		q.answer(answerNAK, q.epsn, nak)
	}
	q.errorCQE(prm.CQERespErr, q.recvIdx, 0, s)
	q.owner.toError()
}

// sendSequenceNAK asks for the packet at epsn, once.
func (q *responder) sendSequenceNAK() {
	if q.nak != noNAK && !q.breaks(rule.SequenceNAKIsSentOnce) {
		return
	}
	q.nak = sequenceNAK
	if t := q.u.p.NackGenerate[0]; t > 0 {
		if !q.nakSet {
			q.nakSet = true
			q.u.e.After(t, q.u.h.nak, q.arg)
		}
		return
	}
	q.answer(answerNAK, q.epsn, roce.NAKSequence)
}

// onNak sends a sequence NAK that took its time, unless the packet came meanwhile.
func (q *responder) onNak() {
	q.nakSet = false
	if q.nak == sequenceNAK && q.takesRequests() {
		q.answer(answerNAK, q.epsn, roce.NAKSequence)
	}
}

// notReady is a packet that found no receive WQE.
func (q *responder) notReady() {
	switch q.st {
	case prm.STUC:
		q.dropMessage()
	case prm.STUD:
	default:
		q.sendRNRNAK()
	}
}

// sendRNRNAK says that there is no receive WQE; nothing else changes. The later packets
// of the burst draw no sequence NAK, and none is kept, since all come again.
func (q *responder) sendRNRNAK() {
	if !q.breaks(rule.RNRNAKSilencesWhatFollows) {
		q.nak = rnrNAK
	}
	q.dropAhead()
	q.answer(answerNAK, q.epsn, roce.RNRSyndrome(uint8(q.context().MinRNRNAK())))
	q.u.standStill()
}

// ackSyndrome is the syndrome of an ACK that is sent now. A QP with an SRQ announces nothing, for
// what the SRQ has may be taken by others.
func (q *responder) ackSyndrome() roce.Syndrome {
	if !q.u.p.Credits || q.rq.size == 0 {
		return roce.SyndromeAck
	}
	receives := int(q.rq.pi - q.rq.ci)
	if q.breaks(rule.CreditsArePosted) {
		receives = 2*receives + 2
	}
	return roce.AckSyndrome(roce.CreditCode(receives))
}
