package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// answerKind is what a responder sends.
type answerKind uint8

const (
	answerAck answerKind = iota
	answerNAK
	answerRead
	answerAtomic
	answerAtomicWrite
	answerSACK
)

// response is one entry of the responder's queue: answers leave in its order.
type response struct {
	kind     answerKind
	syndrome roce.Syndrome
	saved    int16 // of a READ or an atomic executed now; -1: none, or a replay
	first    bool  // READ: the next packet is the first
	psn, msn uint32
	before   uint32 // READ: the MSN before it
	done     uint32 // READ: the MSN of a NAK, which counts it from its first response on
	pd       uint32 // READ: who has asked
	rkey     uint32
	left     uint32 // READ: bytes to send; a NAK with SACK: the PSN that has arrived
	va       uint64 // READ
	value    uint64 // atomic
}

// silence drops the responses that are due.
func (q *responder) silence() {
	q.dropResponses()
	q.u.abandon(&q.rtx)
}

// dropResponses forgets what is due.
func (q *responder) dropResponses() {
	q.items, q.itemHead = q.items[:0], 0
	q.ackDue, q.readGrant, q.held, q.heldFault = false, false, false, false
}

// rateReturned goes on with a READ that waited for the reaction point.
func (q *responder) rateReturned() {
	if q.resting.held {
		q.resting.held = false
		q.respond()
	}
}

// due queues an answer and works on the queue.
func (q *responder) due(r response) {
	q.items = append(q.items, r)
	if len(q.items)-q.itemHead == 1 {
		q.respond()
	}
}

// onRespond works on a responder's queue when a READ gets its turn or room.
func (q *responder) onRespond() {
	if q.readSet {
		q.readSet, q.readGrant = false, true
	}
	q.stalled = false
	q.respond()
}

// respond sends what is due, in order, until something must wait.
func (q *responder) respond() {
	for len(q.items) > q.itemHead {
		if q.readSet || q.stalled {
			return
		}
		r := &q.items[q.itemHead]
		switch r.kind {
		case answerAck, answerNAK:
			q.sendAck(r.psn, r.msn, r.syndrome)
		case answerAtomic:
			f := q.tmpl.New(&q.u.frames, q.opcode(roce.OpAtomicAcknowledge), r.psn, 0, 0)
			f.AETH().SetSyndrome(q.ackSyndrome())
			f.AETH().SetMSN(r.msn)
			f.AtomicAckETH().SetOriginal(r.value)
			q.u.port.enqueue(&q.sender, &q.rtx, q.u.getSlot(f))
		case answerSACK:
			q.leaveSACK(r)
		case answerAtomicWrite:
			q.answerAtomicWrite(r)
		case answerRead:
			if !q.respondRead(r) {
				return
			}
		}
		q.saved.answered(r.saved)
		q.popItem()
	}
}

func (q *responder) popItem() {
	q.itemHead++
	q.readGrant = false
	if q.itemHead == len(q.items) {
		q.items, q.itemHead = q.items[:0], 0
	} else if q.itemHead >= 64 && 2*q.itemHead >= len(q.items) {
		q.items = q.items[:copy(q.items, q.items[q.itemHead:])]
		q.itemHead = 0
	}
}

// respondRead makes the response packets of a READ. It reports false when it must
// wait: for its turn, or for room.
func (q *responder) respondRead(r *response) bool {
	u := q.u
	if q.held && !q.breaks(rule.FaultHoldsItsSide) {
		return false
	}
	if !q.readGrant {
		var m miss
		u.caches.touchQP(q.cachedQP, &m)
		if r.left > 0 {
			u.caches.touchKey(r.rkey, r.va, &m)
		}
		now := u.e.Now()
		u.missed.read += m.stall
		start, _ := u.readEng.Take(now, u.p.ReadInterval+m.stall)
		start += m.late
		if r.saved < 0 { // asked for again
			start += u.p.NackReact[1]
		}
		if u.atomics.delays(q.arg, start) {
			q.readSet = true
			return false
		}
		if start > now {
			q.readSet = true
			u.e.At(start, u.h.respond, q.arg)
			return false
		}
	}
	q.readGrant = true
	for {
		n := int(min(uint32(q.mtu), r.left))
		if q.reaction != nil && q.paced() {
			q.resting.held = true
			return false
		}
		if !u.room(n) {
			q.stalled = true
			u.stall(q.arg | responderBit)
			return false
		}
		last := uint32(n) == r.left
		f := q.tmpl.New(&u.frames, q.opcode(readOp(r.first, last)), r.psn, n, 0)
		if r.first || last {
			f.AETH().SetSyndrome(q.ackSyndrome())
			f.AETH().SetMSN(r.msn)
		}
		i := u.getSlot(f)
		if n > 0 {
			if result := u.dma.readInto(i, q.asking(r.pd), r.rkey, r.va, f.Payload(), mkey.RemoteRead); result != mkey.OK {
				u.dropSlot(i)
				return !q.cannotRead(r, result)
			}
		}
		if q.reaction != nil {
			q.spend(len(f.B))
		}
		q.u.port.enqueue(&q.sender, &q.rtx, i)
		r.first, r.done = false, (r.before+1)&roce.PSNMask
		r.psn = roce.AddPSN(r.psn, 1)
		r.va = q.sum(rule.ReadAddressesHave64Bits, r.va, uint32(n))
		r.left -= uint32(n)
		if last {
			return true
		}
	}
}

// cannotRead is a READ whose next bytes are not to be had. It reports whether the READ waits for
// them.
//
//go:noinline
func (q *responder) cannotRead(r *response, result mkey.Result) (wait bool) {
	if !q.pages(result, prm.ODPRead) || q.breaks(rule.ReadWaitsForPages) || !q.holdRead(r) {
		q.failRead(r.psn, r.done)
		return false
	}
	return true
}

// failRead ends a READ whose memory went away: a NAK at the PSN of the response
// that cannot be made, and the QP goes to ERR.
func (q *responder) failRead(psn, msn uint32) {
	q.sendAck(psn, msn, roce.NAKRemoteAccess)
	q.qs.add(prm.QCRespRemoteAccessErrors)
	if q.state != prm.QPStateERR {
		q.raise(prm.EventWQAccessError)
		q.owner.toError()
	}
	q.items = q.items[:q.itemHead+1]
}

func readOp(first, last bool) uint8 {
	switch {
	case first && last:
		return roce.OpReadResponseOnly
	case first:
		return roce.OpReadResponseFirst
	case last:
		return roce.OpReadResponseLast
	}
	return roce.OpReadResponseMiddle
}

func (q *responder) answerAtomicWrite(r *response) {
	f := q.tmpl.New(&q.u.frames, q.opcode(roce.OpReadResponseOnly), r.psn, 0, 0)
	f.AETH().SetSyndrome(q.ackSyndrome())
	f.AETH().SetMSN(r.msn)
	q.u.port.enqueue(&q.sender, &q.rtx, q.u.getSlot(f))
}
