package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// responder is the receive side of a QP.
type responder struct {
	epsn    uint32 // expected
	msn     uint32
	nakSent bool // a sequence or RNR NAK is out and epsn has not come since
	est     bool // COMM_EST was reported
	in      inMessage
	ahead   list // packets that came before epsn, in their order; selective repeat
	hold    list // packets that wait; the first is the one that must wait
	busy    bool // the first waits for a receive WQE or an atomic
	rre     bool // remote reads, writes, atomics are allowed
	rwe     bool
	rae     bool

	// The message that is arriving.
	recvOpen bool // a SEND, with a receive WQE
	recvIdx  uint16
	recvWQE  []byte
	recvCap  uint64
	recvGot  uint32
	recvAt   cursor
	wva      uint64 // of a WRITE: where the next packet goes
	wkey     uint32
	wlen     uint32
	wleft    uint32

	recvQueue
	respQueue
	csReq, csRes int // bytes that may be scattered to a CQE
}

// inMessage is the kind of the message that is not complete.
type inMessage uint8

const (
	inNone inMessage = iota
	inSend
	inWrite
)

func (r *responder) clear() {
	*r = responder{
		hold: emptyList, ahead: emptyList, recvWQE: r.recvWQE[:0],
		recvQueue: recvQueue{
			rqType: r.rqType, rqStride: r.rqStride, rqSize: r.rqSize, rqBuf: r.rqBuf,
			rqReading: r.rqReading, rqStale: r.rqReading,
		},
		respQueue: respQueue{rtx: emptyList, saved: r.saved[:0], items: r.items[:0], ackSet: r.ackSet, nakSet: r.nakSet, readSet: r.readSet, stalled: r.stalled},
	}
}

// request is a request packet of slot i. Packets behind one that waits, wait too.
func (q *qp) request(i int32) {
	if q.busy {
		q.d.pushSlot(&q.hold, i)
		return
	}
	if q.d.p.SelectiveRepeat && q.keep(i) {
		return
	}
	if q.execute(&q.d.slots[i].pkt) {
		q.busy = true
		q.d.pushSlot(&q.hold, i)
		return
	}
	q.d.dropSlot(i)
	if q.ahead.head >= 0 {
		q.catchUp()
	}
}

// unhold goes on with the packets that waited. redo says that the first is looked
// at again; otherwise it is done.
func (q *qp) unhold(redo bool) {
	q.busy = false
	d := q.d
	for ; q.hold.head >= 0; redo = true {
		i := d.popSlot(&q.hold)
		if redo && q.takesRequests() && q.keep(i) {
			continue
		}
		if redo && q.takesRequests() && q.execute(&d.slots[i].pkt) {
			q.busy = true
			d.pushFront(&q.hold, i)
			return
		}
		d.dropSlot(i)
	}
	if q.ahead.head >= 0 {
		q.catchUp()
	}
}

// execute does what a request packet asks for. It reports true when the packet
// must wait, with nothing changed; it is then given again.
func (q *qp) execute(p *roce.Packet) (wait bool) {
	switch q.st {
	case prm.STUC:
		return q.execUC(p)
	case prm.STUD:
		return q.execDatagram(p)
	}
	psn := p.BTH().PSN()
	switch diff := roce.CmpPSN(psn, q.epsn); {
	case diff > 0:
		q.qs.add(prm.QCOutOfSequence)
		q.sequenceNAK()
		return false
	case diff < 0:
		q.qs.add(prm.QCDuplicateRequest)
		q.duplicate(p, psn)
		return false
	}
	info := p.Info()
	if s := q.checkRequest(p, info); s != 0 {
		q.fatal(s)
		return false
	}
	if info.TakesReceive && !q.hasRecv() {
		if q.wantRecv() {
			return true
		}
		q.qs.add(prm.QCOutOfBuffer)
		q.rnrNAK()
		return false
	}
	if !p.PayloadOK(q.mtu) || p.PadCount() != roce.PadCount(p.PayloadLen()) {
		q.fatal(roce.NAKInvalidRequest)
		return false
	}
	switch info.Class {
	case roce.ClassSend:
		q.execSend(p, info)
	case roce.ClassWrite:
		q.execWrite(p, info)
	case roce.ClassReadRequest:
		q.execRead(p)
	case roce.ClassAtomic:
		return q.execAtomic(p)
	case roce.ClassAtomicWrite:
		q.execAtomicWrite(p)
	}
	return false
}

// checkRequest checks, in this order, opcode sequence, operation enabled and
// responder resources (IBTA Vol. 1, 9.7.4). It returns the syndrome of the NAK, or 0.
func (q *qp) checkRequest(p *roce.Packet, info *roce.OpInfo) roce.Syndrome {
	want := inNone
	switch {
	case info.Class == roce.ClassSend && !info.First:
		want = inSend
	case info.Class == roce.ClassWrite && !info.First:
		want = inWrite
	}
	if q.in != want {
		return roce.NAKInvalidRequest
	}
	ok := true
	switch info.Class {
	case roce.ClassSend:
	case roce.ClassWrite:
		ok = q.rwe
	case roce.ClassReadRequest:
		ok = q.rre && q.freeSaved()
	case roce.ClassAtomic:
		ok = q.rae && q.freeSaved()
	case roce.ClassAtomicWrite:
		ok = q.d.p.AtomicWrite && q.rwe && q.freeSaved()
	default: // FLUSH is not modelled
		ok = false
	}
	if !ok {
		return roce.NAKInvalidRequest
	}
	return 0
}

// accept is what every packet that is executed does.
func (q *qp) accept(p *roce.Packet, psns, msns uint32) {
	q.epsn = roce.AddPSN(q.epsn, int32(psns))
	q.msn = (q.msn + msns) & roce.PSNMask
	q.nakSent = false
	if !q.est && q.state == prm.QPStateRTR {
		q.est = true
		q.d.qpEvent(prm.EventCommEst, q)
	}
	if (p.Info().Class == roce.ClassSend || p.Info().Class == roce.ClassWrite) && p.BTH().AckReq() && q.st == prm.STRC {
		q.oweAck()
	}
}

func (q *qp) execSend(p *roce.Packet, info *roce.OpInfo) {
	if info.First {
		if q.recvOpen { // of a message that was given up
			q.rewindRecv()
		} else {
			q.takeRecv()
		}
		q.in = inSend
	}
	data := p.Payload()
	if uint64(q.recvGot)+uint64(len(data)) > q.recvCap {
		q.qs.add(prm.QCRespLocalLengthError)
		q.failRecv(prm.SyndromeLocalLength, roce.NAKInvalidRequest)
		return
	}
	var inline []byte
	if info.First && info.Last && len(data) > 0 && q.inCQE(q.csRes, len(data)) {
		inline = data
	} else if !q.scatter(data) {
		q.qs.add(prm.QCRespLocalProtection)
		q.failRecv(prm.SyndromeLocalProt, roce.NAKRemoteOp)
		return
	}
	q.recvGot += uint32(len(data))
	if !info.Last {
		q.accept(p, 1, 0)
		return
	}
	op, imm := prm.CQERespSend, uint32(0)
	switch {
	case info.Headers.Has(roce.HasImmDt):
		op, imm = prm.CQERespSendImm, p.ImmDt().Value()
	case info.Headers.Has(roce.HasIETH):
		op, imm = prm.CQERespSendInv, p.IETH().RKey()
		if q.d.keys.Invalidate(q.user, imm) != odp.OK {
			q.failRecv(prm.SyndromeRemoteInvalReq, roce.NAKRemoteAccess)
			return
		}
	}
	q.in, q.recvOpen = inNone, false
	q.recvCQE(op, q.recvIdx, imm, q.recvGot, p.BTH().Solicited(), inline)
	q.accept(p, 1, 1)
}

// skipRecv leaves n bytes of the receive WQE's scatter list out; the list has them.
func (q *qp) skipRecv(n int) {
	for n > 0 {
		s, next, ok := prm.RecvSGE(q.recvWQE, q.recvAt.at)
		if !ok {
			q.d.bug("QP %#x: a receive WQE ended early", q.num)
		}
		k := min(n, int(s.Len-q.recvAt.pos))
		n -= k
		if q.recvAt.pos += uint32(k); q.recvAt.pos == s.Len {
			q.recvAt = cursor{at: next}
		}
	}
}

// scatter writes payload to the receive WQE's scatter list.
func (q *qp) scatter(data []byte) bool {
	for len(data) > 0 {
		s, next, ok := prm.RecvSGE(q.recvWQE, q.recvAt.at)
		if !ok {
			q.d.bug("QP %#x: a receive WQE ended early", q.num)
		}
		n := int(min(uint32(len(data)), s.Len-q.recvAt.pos))
		if !q.d.writeTo(q.recvUser(), s.LKey, s.Addr+uint64(q.recvAt.pos), data[:n], odp.LocalWrite) {
			return false
		}
		data = data[n:]
		if q.recvAt.pos += uint32(n); q.recvAt.pos == s.Len {
			q.recvAt = cursor{at: next}
		}
	}
	return true
}

func (q *qp) execWrite(p *roce.Packet, info *roce.OpInfo) {
	data := p.Payload()
	if info.First {
		h := p.RETH()
		if h.Length() > roce.MaxMessage || uint64(h.Length()) < uint64(len(data)) {
			q.fatal(roce.NAKInvalidRequest)
			return
		}
		// A message that is all here is checked when it is written.
		if h.Length() > 0 && (!info.Last || int(h.Length()) != len(data)) {
			if _, r := q.d.keys.Check(q.user, h.RKey(), h.VA(), uint64(h.Length()), odp.RemoteWrite); r != odp.OK {
				q.fatal(roce.NAKRemoteAccess)
				return
			}
		}
		q.wva, q.wkey, q.wlen, q.wleft = h.VA(), h.RKey(), h.Length(), h.Length()
	}
	n := uint32(len(data))
	if info.Last != (q.wleft == n) || q.wleft < n {
		q.fatal(roce.NAKInvalidRequest)
		return
	}
	if n > 0 && !q.d.writeTo(q.user, q.wkey, q.wva, data, odp.RemoteWrite) {
		q.fatal(roce.NAKRemoteAccess)
		return
	}
	if info.First {
		q.qs.add(prm.QCRxWriteRequests)
	}
	q.wva += uint64(n)
	q.wleft -= n
	if !info.Last {
		q.in = inWrite
		q.accept(p, 1, 0)
		return
	}
	q.in = inNone
	if info.TakesReceive {
		idx := q.recvIdx
		if q.recvOpen {
			q.recvOpen = false
		} else {
			idx = q.passRecv()
		}
		q.recvCQE(prm.CQERespWrImm, idx, p.ImmDt().Value(), q.wlen, p.BTH().Solicited(), nil)
	}
	q.accept(p, 1, 1)
}

// fatal answers the packet at epsn with a NAK that ends the connection: the QP goes
// to ERR and reports an asynchronous event. On UC the message is dropped.
func (q *qp) fatal(s roce.Syndrome) {
	if q.st == prm.STUC {
		q.dropMessage()
		return
	}
	ev := prm.EventWQCatasError
	switch s {
	case roce.NAKInvalidRequest:
		ev = prm.EventWQInvalReqError
		q.qs.add(prm.QCRespRemoteInvalidRequest)
	case roce.NAKRemoteAccess:
		ev = prm.EventWQAccessError
		q.qs.add(prm.QCRespRemoteAccessErrors)
	}
	q.answer(answerNAK, q.epsn, s)
	q.d.qpEvent(ev, q)
	q.toError()
}

// failRecv ends the receive that is open with an error and answers, on RC, with a NAK. The
// CQE tells the owner; there is no event.
func (q *qp) failRecv(s prm.Syndrome, nak roce.Syndrome) {
	q.recvOpen = false
	if q.st == prm.STRC {
		q.answer(answerNAK, q.epsn, nak)
	}
	q.errorCQE(prm.CQERespErr, q.recvIdx, 0, s)
	q.toError()
}

// sequenceNAK asks for the packet at epsn, once.
func (q *qp) sequenceNAK() {
	if q.nakSent {
		return
	}
	q.nakSent = true
	if t := q.d.p.NackGenerate[0]; t > 0 {
		if !q.nakSet {
			q.nakSet = true
			q.d.e.After(t, q.d.h.nak, q.arg)
		}
		return
	}
	q.answer(answerNAK, q.epsn, roce.NAKSequence)
}

// onNak sends a sequence NAK that took its time, unless the packet came meanwhile.
func (d *Device) onNak(arg uint64) {
	q := d.qpArg(arg)
	if q == nil {
		return
	}
	q.nakSet = false
	if q.nakSent && q.takesRequests() {
		q.answer(answerNAK, q.epsn, roce.NAKSequence)
	}
}

// rnrNAK says that there is no receive WQE; nothing else changes. The later packets
// of the burst draw no sequence NAK.
func (q *qp) rnrNAK() {
	q.nakSent = true
	q.answer(answerNAK, q.epsn, roce.RNRSyndrome(uint8(q.context().MinRNRNAK())))
	q.d.standStill()
}

// oweAck sends an ACK, or waits a moment for others to join it.
func (q *qp) oweAck() {
	if q.d.p.AckDelay == 0 {
		q.answer(answerAck, roce.AddPSN(q.epsn, -1), q.ackSyndrome())
		return
	}
	q.ackDue = true
	if !q.ackSet {
		q.ackSet = true
		q.d.e.After(q.d.p.AckDelay, q.d.h.ack, q.arg)
	}
}

func (d *Device) onAck(arg uint64) {
	q := d.qpArg(arg)
	if q == nil {
		return
	}
	q.ackSet = false
	if q.ackDue && q.takesRequests() {
		q.answer(answerAck, roce.AddPSN(q.epsn, -1), q.ackSyndrome())
	}
}

// duplicate is a packet before epsn (IBTA Vol. 1, 9.7.5): never executed, answered
// again. What cannot be answered is dropped.
func (q *qp) duplicate(p *roce.Packet, psn uint32) {
	q.nakSent = false
	switch p.Info().Class {
	case roce.ClassSend, roce.ClassWrite:
		if p.BTH().AckReq() {
			q.oweAck()
		}
	case roce.ClassReadRequest:
		q.replayRead(p, psn)
	case roce.ClassAtomic, roce.ClassAtomicWrite:
		q.replayAtomic(p, psn)
	}
}
