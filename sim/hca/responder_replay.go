package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// answerAgain is a packet before epsn (IBTA Vol. 1, 9.7.5): never executed, answered
// again. What cannot be answered is dropped.
func (q *responder) answerAgain(p *roce.Packet) {
	if q.nak == sequenceNAK && !q.breaks(rule.DuplicateRearmsTheNAK) {
		q.nak = noNAK
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
	for i := range q.saved.ops {
		o := &q.saved.ops[i]
		if q.breaks(rule.OlderReadsAreReplayed) && i != q.saved.newest() {
			continue
		}
		k := roce.CmpPSN(psn, o.psn)
		if o.op.Operation() != roce.OpReadRequest || k < 0 || k >= int32(o.n) {
			continue
		}
		off := uint32(k) * uint32(q.mtu)
		if (h.RKey() != o.rkey || h.VA() != o.va+uint64(off) || h.Length() != o.len-off || !q.asksAgain(p, o.by)) && !q.breaks(rule.ReplayedReadIsATail) {
			return
		}
		if h.Length() > 0 {
			if _, r := q.u.dma.keys.Check(q.asking(o.by.pd), o.rkey, h.VA(), uint64(h.Length()), mkey.RemoteRead); r != mkey.OK {
				return
			}
		}
		done := o.before
		if k > 0 {
			done = (done + 1) & roce.PSNMask
		}
		q.due(response{kind: answerRead, psn: psn, msn: q.msn, before: o.before, done: done, pd: o.by.pd, rkey: o.rkey, left: h.Length(), va: h.VA(), saved: -1, first: true})
		return
	}
}

func (q *responder) replayAtomic(p *roce.Packet, psn uint32) {
	for i := range q.saved.ops {
		if o := &q.saved.ops[i]; o.op == p.Op && o.psn == psn && (i == q.saved.newest() || !q.breaks(rule.OlderAtomicsAreReplayed)) {
			kind := answerAtomic
			if o.op.Operation() == roce.OpAtomicWrite {
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
