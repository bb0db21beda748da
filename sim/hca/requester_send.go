package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// payload is the number of bytes of the next packet that come by DMA, at most.
func (q *requester) payload(m *msg) int {
	return int(min(uint32(q.mtu), m.length-q.pkt*uint32(q.mtu)))
}

// sendNext makes the next packet of the message at the cursor; parsed says that the
// device's parsed WQE is that one.
func (q *requester) sendNext(m *msg, parsed bool) {
	w := &q.u.parsed
	if !parsed {
		w = q.parsedAgain(m, w)
	}
	if m.kind != msgPush {
		q.sendElse(m, w)
	} else if !q.sendPush(m, w) {
		return
	}
	if q.repairing {
		q.repaired()
	}
	q.startTimer()
}

// parsedAgain is the WQE of an open message, nil if its next packet needs nothing of it.
//
//go:noinline
func (q *requester) parsedAgain(m *msg, w *prm.SendWQE) *prm.SendWQE {
	if q.goesOn(m) {
		return nil
	}
	if prm.ParseSendWQE(q.sq.whole(int(m.nbb)), uint32(q.st), w) != nil {
		q.u.bug("QP %#x: WQE %d changed in the buffer", q.num, m.idx)
	}
	return w
}

// sendElse sends what is no SEND or WRITE.
//
//go:noinline
func (q *requester) sendElse(m *msg, w *prm.SendWQE) {
	if m.kind == msgRead {
		q.sendRead(m, w)
	} else {
		q.sendAtomic(m, w)
	}
}

// memoryRange is a range of memory by its key.
type memoryRange struct {
	va  uint64
	key uint32
	len uint32
}

// goesOn says whether the next packet of an open message needs nothing of its WQE but more of
// the data segment in which the packet before has ended.
func (q *requester) goesOn(m *msg) bool {
	if q.rest.len == 0 || m.kind != msgPush {
		return false
	}
	n := uint32(q.payload(m))
	if q.pkt+1 == m.n {
		return n <= q.rest.len && m.op == prm.WQEOpRDMAWrite
	}
	return n < q.rest.len
}

// noteSent remembers how far the PSNs went out.
func (q *requester) noteSent(behind uint32) {
	if roce.CmpPSN(behind, q.sent) > 0 {
		q.sent = behind
	}
}

// pushOps are the opcodes of a SEND or WRITE by the operation and by which packet it is:
// in the middle, the last, the first, the only one.
var pushOps = [...][4]roce.Opcode{
	prm.WQEOpRDMAWrite:    {roce.RCWriteMiddle, roce.RCWriteLast, roce.RCWriteFirst, roce.RCWriteOnly},
	prm.WQEOpRDMAWriteImm: {roce.RCWriteMiddle, roce.RCWriteLastImm, roce.RCWriteFirst, roce.RCWriteOnlyImm},
	prm.WQEOpSend:         {roce.RCSendMiddle, roce.RCSendLast, roce.RCSendFirst, roce.RCSendOnly},
	prm.WQEOpSendImm:      {roce.RCSendMiddle, roce.RCSendLastImm, roce.RCSendFirst, roce.RCSendOnlyImm},
	prm.WQEOpSendInv:      {roce.RCSendMiddle, roce.RCSendLastInv, roce.RCSendFirst, roce.RCSendOnlyInv},
}

// pushOp is the opcode of packet k of n of a SEND or WRITE.
func pushOp(op prm.WQEOpcode, k, n uint32) roce.Opcode {
	which := 0
	if k+1 >= n {
		which = 1
	}
	if k == 0 {
		which += 2
	}
	return pushOps[op][which]
}

// sendPush makes a packet of a SEND or WRITE; w is nil when it goes on. It reports false when
// the data could not be gathered.
func (q *requester) sendPush(m *msg, w *prm.SendWQE) bool {
	u := q.u
	n := q.payload(m)
	op, asked := pushOp(m.op, q.pkt, m.n)|roce.Opcode(q.transport), q.sinceAR
	info := op.Info()
	var flags roce.Flags
	if q.reliable() {
		q.sinceAR++
		if q.wantsAck(m, info.Last) {
			flags |= roce.AckReq
			q.sinceAR = 0
		}
	}
	if info.Last && (info.Completes || info.TakesReceive) && w.Ctrl.FMCESE()&prm.CtrlSolicited != 0 {
		flags |= roce.Solicited
	}
	psn := roce.AddPSN(m.first, int32(q.pkt))
	var f *roce.Frame
	i := int32(-1)
	if q.st == prm.STUD {
		f, i = q.datagram(op, psn, n, flags, w.AV)
	} else {
		f = q.tmpl.New(&u.frames, op, psn, n, flags)
	}
	if info.Headers.Has(roce.HasRETH) {
		h := f.RETH()
		h.SetVA(w.Raddr.Addr())
		h.SetRKey(w.Raddr.RKey())
		h.SetLength(m.length)
	}
	if info.Headers&(roce.HasXRCETH|roce.HasDCETH|roce.HasImmDt|roce.HasIETH) != 0 {
		q.putRare(m, f, info, psn, w)
	}
	if i < 0 && w != nil && (n == 0 || !w.Memory) && q.u.port.free(&q.sender, &q.txq) {
		if p, all := f.Payload(), w.OnlyInline(); len(p) == len(all) { // one packet
			copy(p, all)
		} else {
			q.gather(-1, p, w)
		}
		q.pushed(m, psn, n, len(f.B))
		u.port.leave(f)
		return true
	}
	if i < 0 {
		i = u.getSlot(f)
	}
	if r := q.gather(i, f.Payload(), w); r != mkey.OK {
		u.dropUnsent(i)
		q.sinceAR = asked
		q.cannotGather(r, n)
		return false
	}
	if w != nil && w.Memory {
		q.puOwed += u.p.PUGather
	}
	q.pushed(m, psn, n, len(f.B))
	q.u.port.enqueue(&q.sender, &q.txq, i)
	return true
}

// putRare writes the headers that few packets of a SEND or WRITE have: the target, which each
// packet of XRC and of a DCI bears, and immediate data or the key that is invalidated, which are in
// the last.
//
//go:noinline
func (q *requester) putRare(m *msg, f *roce.Frame, info *roce.OpInfo, psn uint32, w *prm.SendWQE) {
	if info.Headers&(roce.HasXRCETH|roce.HasDCETH) != 0 {
		q.nameTarget(m, f, psn)
	}
	if info.Headers.Has(roce.HasImmDt) {
		f.ImmDt().SetValue(w.Ctrl.Imm())
	} else if info.Headers.Has(roce.HasIETH) {
		f.IETH().SetRKey(w.Ctrl.Imm())
	}
}

// pushed notes that the packet of m at the cursor is made, with n bytes of payload and that many in
// all.
func (q *requester) pushed(m *msg, psn uint32, n, bytes int) {
	q.out += uint64(n)
	q.noteSent(roce.AddPSN(psn, 1))
	if q.reaction != nil {
		q.spend(bytes)
	}
	q.pkt++
	if q.pkt == m.n {
		q.passWQE(m)
	}
}

// wantsAck is the AckReq policy: the requester must never wait for an ACK that the responder does
// not owe. An unsignalled message with more behind it leaves the request to a later packet, and
// where none comes to claimAck; not so on a DCI, whose next message may wait for the end of this
// one.
func (q *requester) wantsAck(m *msg, last bool) bool {
	if int(q.sinceAR) >= q.u.p.AckReqPackets {
		return true
	}
	return last && (m.signal || q.sq.ci+uint16(m.nbb) == q.sq.pi || q.sent != roce.AddPSN(m.first, int32(q.pkt)) || q.draining || q.probes() || q.st == prm.STDCI)
}

// gather fills p with the next bytes of the message: inline bytes at once, others
// by DMA into the frame of slot i. It needs no WQE where the message goes on.
func (q *requester) gather(i int32, p []byte, w *prm.SendWQE) mkey.Result {
	if w == nil {
		return q.gatherOn(i, p)
	}
	u := q.u
	for len(p) > 0 {
		s, next, ok := w.Data(int(q.segAt))
		if !ok {
			u.bug("QP %#x: a WQE's data ended early", q.num)
		}
		n := int(min(uint32(len(p)), s.Len-q.segPos))
		if s.Inline != nil {
			copy(p[:n], s.Inline[q.segPos:])
		} else if r := u.dma.readInto(i, q.user(), s.LKey, s.Addr+uint64(q.segPos), p[:n], mkey.LocalRead); r != mkey.OK {
			return r
		}
		p = p[n:]
		if q.segPos += uint32(n); q.segPos == s.Len {
			q.segAt, q.segPos, q.rest.len = int32(next), 0, 0
		} else if s.Inline == nil {
			q.rest = memoryRange{q.sum(rule.GatherAddressesHave64Bits, s.Addr, q.segPos), s.LKey, s.Len - q.segPos}
		}
	}
	return mkey.OK
}

// gatherOn is gather from the rest of the data segment in which the packet before has ended.
//
//go:noinline
func (q *requester) gatherOn(i int32, p []byte) mkey.Result {
	r := &q.rest
	if result := q.u.dma.readInto(i, q.user(), r.key, r.va, p, mkey.LocalRead); result != mkey.OK {
		return result
	}
	q.segPos, r.va, r.len = q.segPos+uint32(len(p)), q.sum(rule.GatherAddressesHave64Bits, r.va, uint32(len(p))), r.len-uint32(len(p))
	return mkey.OK
}

// sendRead asks for what is missing of a READ.
func (q *requester) sendRead(m *msg, w *prm.SendWQE) {
	f := q.readRequest(m, w)
	q.sendRequest(m, f, roce.AddPSN(m.first, int32(m.next)), roce.AddPSN(m.first, int32(m.n)))
}

// readRequest is the request for what is missing of a READ.
func (q *requester) readRequest(m *msg, w *prm.SendWQE) *roce.Frame {
	skip := m.next * uint32(q.mtu)
	psn := roce.AddPSN(m.first, int32(m.next))
	f := q.tmpl.New(&q.u.frames, q.opcode(roce.OpReadRequest), psn, 0, roce.AckReq)
	h := f.RETH()
	h.SetVA(w.Raddr.Addr() + uint64(skip))
	h.SetRKey(w.Raddr.RKey())
	h.SetLength(m.length - skip)
	return f
}

func (q *requester) sendAtomic(m *msg, w *prm.SendWQE) {
	if m.op == prm.WQEOpAtomicWrite {
		q.sendAtomicWrite(m, w)
		return
	}
	q.sendRequest(m, q.atomicRequest(m, w), m.first, roce.AddPSN(m.first, 1))
}

// atomicRequest is the request of a compare-and-swap or a fetch-and-add.
func (q *requester) atomicRequest(m *msg, w *prm.SendWQE) *roce.Frame {
	op := uint8(roce.OpFetchAdd)
	if m.op == prm.WQEOpAtomicCS {
		op = roce.OpCmpSwap
	}
	f := q.tmpl.New(&q.u.frames, q.opcode(op), m.first, 0, roce.AckReq)
	h := f.AtomicETH()
	h.SetVA(w.Raddr.Addr())
	h.SetRKey(w.Raddr.RKey())
	h.SetSwapAdd(w.Atomic.SwapAdd())
	if op == roce.OpCmpSwap {
		h.SetCompare(w.Atomic.Compare())
	}
	return f
}

// sendAtomicWrite is ATOMIC WRITE (IBTA Vol. 1, annex A19): 8 bytes that a responder writes as
// one, and answers with an empty READ response. It counts as one of the operations that are kept
// for replay.
func (q *requester) sendAtomicWrite(m *msg, w *prm.SendWQE) {
	f := q.tmpl.New(&q.u.frames, q.opcode(roce.OpAtomicWrite), m.first, atomicSize, roce.AckReq)
	h := f.RETH()
	h.SetVA(w.Raddr.Addr())
	h.SetRKey(w.Raddr.RKey())
	h.SetLength(atomicSize)
	to := f.Payload()
	for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
		to = to[copy(to, s.Inline):]
	}
	q.sendRequest(m, f, m.first, roce.AddPSN(m.first, 1))
}

// sendRequest sends a packet that asks for data: its PSN, and that behind its answer.
func (q *requester) sendRequest(m *msg, f *roce.Frame, psn, behind uint32) {
	if q.st >= prm.STXRC {
		q.nameTarget(m, f, psn)
	}
	q.sinceAR = 0
	q.noteSent(behind)
	if q.reaction != nil {
		q.spend(len(f.B))
	}
	q.passWQE(m)
	q.u.port.enqueue(&q.sender, &q.txq, q.u.getSlot(f))
}
