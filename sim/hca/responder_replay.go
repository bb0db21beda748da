package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// savedOp is a READ or an atomic that may be asked for again.
type savedOp struct {
	op        roce.Opcode
	unsent    bool
	psn, n    uint32
	rkey, len uint32
	va, value uint64
}

// freeSaved says whether a READ or an atomic can be taken: the oldest saved one
// must have been answered.
func (q *responder) freeSaved() bool {
	return q.savedMax > 0 && (len(q.saved) < q.savedMax || !q.saved[q.savedNext].unsent)
}

// limitSaved forgets what is remembered, and takes the limit of it from the context.
func (q *responder) limitSaved() {
	q.savedMax, q.saved, q.savedNext = 1<<q.context().LogRRAMax(), q.saved[:0], 0
}

// save remembers an operation for replay.
func (q *responder) save(o savedOp) int16 {
	i := q.savedNext
	if len(q.saved) < q.savedMax {
		q.saved = append(q.saved, o)
		i = len(q.saved) - 1
	} else {
		q.saved[i] = o
	}
	q.savedNext = (i + 1) % q.savedMax
	return int16(i)
}

// answerAgain is a packet before epsn (IBTA Vol. 1, 9.7.5): never executed, answered
// again. What cannot be answered is dropped.
func (q *responder) answerAgain(p *roce.Packet) {
	if !q.breaks(rule.DuplicateRearmsTheNAK) {
		q.nakSent = false
	}
	switch p.Info().Class {
	case roce.ClassSend, roce.ClassWrite:
		if p.BTH().AckReq() && !q.breaks(rule.DuplicateIsAcknowledged) {
			q.oweAck()
		}
	case roce.ClassReadRequest:
		q.replayRead(p, p.BTH().PSN())
	case roce.ClassAtomic, roce.ClassAtomicWrite:
		q.replayAtomic(p, p.BTH().PSN())
	}
}

// replayRead answers a repeated READ request, or the rest of one, from memory as it
// is now. Its range must be a tail of the READ that is remembered.
func (q *responder) replayRead(p *roce.Packet, psn uint32) {
	h := p.RETH()
	for i := range q.saved {
		o := &q.saved[i]
		k := roce.CmpPSN(psn, o.psn)
		if o.op != roce.RCReadRequest || k < 0 || k >= int32(o.n) {
			continue
		}
		off := uint32(k) * uint32(q.mtu)
		if (h.RKey() != o.rkey || h.VA() != o.va+uint64(off) || h.Length() != o.len-off) && !q.breaks(rule.ReplayedReadIsATail) {
			return
		}
		if h.Length() > 0 {
			if _, r := q.u.dma.keys.Check(q.user(), o.rkey, h.VA(), uint64(h.Length()), mkey.RemoteRead); r != mkey.OK {
				return
			}
		}
		q.due(response{kind: answerRead, psn: psn, msn: q.msn, rkey: o.rkey, left: h.Length(), va: h.VA(), saved: -1, first: true})
		return
	}
}

func (q *responder) replayAtomic(p *roce.Packet, psn uint32) {
	for i := range q.saved {
		if o := &q.saved[i]; o.op == p.Op && o.psn == psn {
			kind := answerAtomic
			if o.op == roce.RCAtomicWrite {
				kind = answerAtomicWrite
			}
			q.due(response{kind: kind, psn: psn, msn: q.msn, value: q.savedValue(o), saved: -1})
			return
		}
	}
}

// savedValue is what an atomic has returned.
func (q *responder) savedValue(o *savedOp) uint64 {
	if q.breaks(rule.ReplayedAtomicReturnsItsValue) {
		return o.value + 1
	}
	return o.value
}
