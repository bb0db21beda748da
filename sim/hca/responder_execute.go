package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// carryOut does what a request packet that passed the checks asks for. It reports true
// when that takes time, and later packets must wait.
func (q *responder) carryOut(p *roce.Packet, info *roce.OpInfo) (wait bool) {
	switch info.Class {
	case roce.ClassWrite:
		q.execWrite(p, info)
	case roce.ClassSend:
		if q.st == prm.STUD {
			q.execDatagram(p)
		} else {
			q.execSend(p, info)
		}
	case roce.ClassReadRequest:
		q.execRead(p)
	case roce.ClassAtomic:
		q.execAtomic(p)
		return true
	case roce.ClassAtomicWrite:
		q.execAtomicWrite(p)
	}
	return false
}

// accept is what every packet that is executed does.
func (q *responder) accept(p *roce.Packet, info *roce.OpInfo, psns, msns uint32) {
	q.epsn = roce.AddPSN(q.epsn, int32(psns))
	q.msn = (q.msn + msns) & roce.PSNMask
	q.nak = noNAK
	if !q.est && q.state == prm.QPStateRTR {
		q.establish()
	}
	if (info.Class == roce.ClassSend || info.Class == roce.ClassWrite) && p.BTH().AckReq() && q.reliable() {
		q.oweAck()
	}
}

// establish reports the first packet before the state RTS.
//
//go:noinline
func (q *responder) establish() {
	if !q.breaks(rule.CommunicationIsReported) {
		q.est = true
		q.u.events.ofQP(prm.EventCommEst, q.num)
	}
}

func (q *responder) execSend(p *roce.Packet, info *roce.OpInfo) {
	if info.First {
		q.openSend()
	}
	data := p.Payload()
	var inline []byte
	if info.First && info.Last && inCQE(q.csRes, len(data)) {
		inline = data
	}
	at := q.recvAt
	if v := q.fillReceive(p, info, inline != nil); v != passed {
		if v == noBuffer { // the packet comes again
			if q.recvAt = at; info.First {
				q.in = inNone
			}
		}
		q.refuse(v, p)
		return
	}
	q.recvGot += uint32(len(data))
	q.got += uint64(len(data))
	if !info.Last {
		q.accept(p, info, 1, 0)
		return
	}
	op, imm := prm.CQERespSend, uint32(0)
	switch {
	case info.Headers.Has(roce.HasImmDt):
		op, imm = prm.CQERespSendImm, p.ImmDt().Value()
	case info.Headers.Has(roce.HasIETH):
		op, imm = prm.CQERespSendInv, p.IETH().RKey()
	}
	q.in, q.recvOpen = inNone, false
	q.recvCQE(op, q.recvIdx, imm, q.recvGot, p.BTH().Solicited(), inline)
	q.accept(p, info, 1, 1)
}

// openSend is the beginning of a SEND: it takes a receive WQE, or that of a message that
// was given up.
func (q *responder) openSend() {
	if again := q.recvOpen && !(q.rq.has() && q.breaks(rule.AbandonedReceiveIsUsedAgain)); again && !q.breaks(rule.AbandonedReceiveIsFilledAnew) {
		q.rewindRecv()
	} else if !again {
		q.takeRecv()
	}
	q.in = inSend
}

// openWrite is the beginning of a WRITE.
func (q *responder) openWrite(h roce.RETH) {
	q.wva, q.wkey, q.wlen, q.wleft = h.VA(), h.RKey(), h.Length(), h.Length()
}

// execWrite writes where the check has found that it goes.
func (q *responder) execWrite(p *roce.Packet, info *roce.OpInfo) {
	data := p.Payload()
	if len(data) > 0 {
		q.u.dma.writeRuns(data)
	}
	if info.First {
		q.qs.add(prm.QCRxWriteRequests)
	}
	q.wva = q.sum(rule.WriteAddressesHave64Bits, q.wva, uint32(len(data)))
	q.wleft -= uint32(len(data))
	q.got += uint64(len(data))
	if !info.Last {
		q.in = inWrite
		q.accept(p, info, 1, 0)
		return
	}
	q.in = inNone
	if info.TakesReceive {
		q.endWriteImm(p)
	}
	q.accept(p, info, 1, 1)
}

// endWriteImm reports a WRITE with immediate data.
//
//go:noinline
func (q *responder) endWriteImm(p *roce.Packet) {
	idx := q.recvIdx
	if q.recvOpen {
		q.recvOpen = false
	} else {
		idx = q.rq.pass()
	}
	q.recvCQE(prm.CQERespWrImm, idx, p.ImmDt().Value(), q.wlen, p.BTH().Solicited(), nil)
}

// execRead takes a READ request: its PSNs are used at once, the data is fetched
// when its turn comes.
func (q *responder) execRead(p *roce.Packet) {
	h := p.RETH()
	q.qs.add(prm.QCRxReadRequests)
	psn, before, n := q.epsn, q.msn, roce.PacketsOf(h.Length(), q.mtu)
	q.accept(p, p.Info(), n, 1)
	i := q.saved.save(savedOp{op: p.Op, unsent: true, psn: psn, n: n, before: before, by: q.requested(p), rkey: h.RKey(), len: h.Length(), va: h.VA()})
	q.due(response{kind: answerRead, psn: psn, msn: q.msn, before: before, done: before, pd: q.pd, rkey: h.RKey(), left: h.Length(), va: h.VA(), saved: i, first: true})
}

func (q *responder) execAtomicWrite(p *roce.Packet) {
	q.u.dma.writeRuns(p.Payload())
	q.qs.add(prm.QCRxAtomicRequests)
	psn := q.epsn
	q.accept(p, p.Info(), 1, 1)
	i := q.saved.save(savedOp{op: p.Op, unsent: true, psn: psn, n: 1})
	q.due(response{kind: answerAtomicWrite, psn: psn, msn: q.msn, saved: i})
}

// execAtomic starts an atomic where the check has found that it goes; the QP's later packets
// wait until it is done.
func (q *responder) execAtomic(p *roce.Packet) {
	h := p.AtomicETH()
	q.atomicBusy = true
	q.u.atomics.start(atomicOp{
		qp: q.arg, epoch: q.epoch, pa: q.u.dma.runs[0].PA, user: q.user(), key: h.RKey(), va: h.VA(), op: p.Op, swap: h.SwapAdd(), compare: h.Compare(),
	})
}

// againAtomic looks at the packet at the head of the waiting ones once more.
func (q *responder) againAtomic() {
	q.atomicBusy = false
	q.unhold(true)
}

// finishAtomic accepts the packet at the head of the waiting ones and answers it.
func (q *responder) finishAtomic(op roce.Opcode, old uint64) {
	u := q.u
	q.atomicBusy = false
	if q.hold.head < 0 {
		u.bug("QP %#x: an atomic without its packet", q.num)
	}
	q.qs.add(prm.QCRxAtomicRequests)
	psn := q.epsn
	p := u.packet(q.hold.head)
	q.accept(p, p.Info(), 1, 1)
	i := q.saved.save(savedOp{op: op, unsent: true, psn: psn, n: 1, value: old})
	q.due(response{kind: answerAtomic, psn: psn, msn: q.msn, value: old, saved: i})
	q.unhold(false)
}

// recvCQE reports a receive WQE that is done.
func (q *responder) recvCQE(op prm.CQEOpcode, idx uint16, imm, n uint32, solicited bool, data []byte) {
	u, c := q.u, q.recvCQ()
	all, e := q.entry(c, true)
	e.SetRQPN(q.remote) // 32 bytes of inline data take its place
	format := putInline(all, e, data)
	e.SetImmInvalPKey(imm)
	if u.breaks(rule.BytesAreCounted) {
		n = (n + 3) &^ 3
	}
	e.SetByteCnt(n)
	e.SetTimestamp(u.timestamp(u.e.Now()))
	e.SetQPN(q.shown())
	e.SetWQECounter(idx)
	e.SetOpOwn(op, format, solicited, 0)
	c.push(all)
}
