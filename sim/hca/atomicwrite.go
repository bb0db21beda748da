package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// ATOMIC WRITE (IBTA Vol. 1, annex A19): 8 bytes that a responder writes as one, and answers with an empty
// READ response. It counts as one of the operations that are kept for replay.

const atomicWriteSize = 8

func (q *qp) sendAtomicWrite(m *msg, w *prm.SendWQE) {
	f := q.tmpl.New(&q.d.frames, roce.RCAtomicWrite, m.first, atomicWriteSize, roce.AckReq)
	h := f.RETH()
	h.SetVA(w.Raddr.Addr())
	h.SetRKey(w.Raddr.RKey())
	h.SetLength(atomicWriteSize)
	to := f.Payload()
	for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
		to = to[copy(to, s.Inline):]
	}
	q.sendRequest(m, f, roce.AddPSN(m.first, 1))
}

// onAtomicWritten is the answer to an ATOMIC WRITE.
func (q *qp) onAtomicWritten(m *msg, p *roce.Packet) {
	if p.Op != roce.RCReadResponseOnly || p.PayloadLen() != 0 || p.AETH().Syndrome().Type() != roce.SyndromeTypeAck {
		q.qs.add(prm.QCReqBadResponse)
		q.failHead(prm.SyndromeBadResp)
		return
	}
	q.rnr = q.rnrMax
	m.next = 1
	q.una = roce.AddPSN(m.first, 1)
	q.endRead(m)
	q.progress()
}

func (q *qp) execAtomicWrite(p *roce.Packet) {
	h := p.RETH()
	switch {
	case h.Length() != atomicWriteSize || h.VA()%atomicWriteSize != 0:
		q.fatal(roce.NAKInvalidRequest)
		return
	case !q.d.writeTo(q.user, h.RKey(), h.VA(), p.Payload(), odp.RemoteWrite):
		q.fatal(roce.NAKRemoteAccess)
		return
	}
	q.qs.add(prm.QCRxAtomicRequests)
	psn := q.epsn
	q.accept(p, 1, 1)
	i := q.save(savedOp{op: p.Op, unsent: true, psn: psn, n: 1})
	q.due(response{kind: answerAtomicWrite, psn: psn, msn: q.msn, saved: i})
}

func (q *qp) answerAtomicWrite(r *response) {
	f := q.tmpl.New(&q.d.frames, roce.RCReadResponseOnly, r.psn, 0, 0)
	f.AETH().SetSyndrome(q.ackSyndrome())
	f.AETH().SetMSN(r.msn)
	q.enqueue(&q.rtx, q.d.getSlot(f))
}
