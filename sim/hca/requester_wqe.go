package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// begin takes the WQE at the cursor of a runnable QP: it checks it and gives it PSNs, or, when it is
// sent again, finds what it had. It reports whether there is anything to go on with.
func (q *qp) begin() bool {
	d := q.d
	n := q.nbb
	w := &d.parsed
	err := prm.ParseSendWQE(q.whole(n), q.st, w)
	if err == nil && w.Ctrl.QPN() != q.num {
		err = prm.ErrWQEOpcode
	}
	if q.cur != q.tail {
		return q.beginAgain(w, err)
	}
	m := q.newMsg()
	m.idx, m.nbb = q.ci, uint8(n)
	q.d.c.WQEs++
	if err != nil {
		m.signal = true
		q.failLocally(m, prm.SyndromeLocalQPOp)
		return false
	}
	m.op = w.Ctrl.Opcode()
	m.signal = w.Ctrl.FMCESE()&prm.CtrlCEMask >= prm.CtrlCQUpdate
	if s := q.prepare(m, w); s != 0 {
		q.failLocally(m, s)
		return false
	}
	if m.kind == msgLocal {
		q.passWQE(m)
		q.complete()
		return true
	}
	q.ssn = (q.ssn + 1) & roce.PSNMask
	if d.p.Credits {
		q.spendCredit(m.op)
	}
	q.open, q.pkt, q.segAt, q.segPos = true, 0, 0, 0
	return true
}

// prepare fills in m from its WQE and checks what can be checked before anything
// is sent. It returns the syndrome of what is wrong, or 0.
func (q *qp) prepare(m *msg, w *prm.SendWQE) prm.Syndrome {
	d := q.d
	m.first = q.psn
	switch m.op {
	case prm.WQEOpNOP:
		m.kind, m.n = msgLocal, 0
		return 0
	case prm.WQEOpSend, prm.WQEOpSendImm, prm.WQEOpSendInv, prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm:
		m.kind = msgPush
	case prm.WQEOpRDMARead:
		m.kind = msgRead
	case prm.WQEOpAtomicCS, prm.WQEOpAtomicFA:
		if !d.p.Atomics {
			return prm.SyndromeLocalQPOp
		}
		m.kind = msgAtomic
	case prm.WQEOpAtomicWrite:
		if !d.p.AtomicWrite || w.Memory {
			return prm.SyndromeLocalQPOp
		}
		m.kind = msgAtomic
	case prm.WQEOpUMR: // binds of memory windows and local invalidates, at once and in order
		m.kind, m.n = msgLocal, 0
		if q.st == prm.STUD {
			return prm.SyndromeLocalQPOp
		}
		if d.keys.Update(q.user, w.Ctrl.Imm(), w.UMR, w.MKC, w.Inline) != odp.OK {
			return prm.SyndromeMWBind
		}
		return 0
	default:
		return prm.SyndromeLocalQPOp
	}
	if q.st == prm.STUD {
		if s := q.checkDatagram(w); s != 0 {
			return s
		}
	}
	if w.Bytes > 1<<d.p.LogMaxMsg {
		return prm.SyndromeLocalLength
	}
	m.length = uint32(w.Bytes)
	m.n = roce.PacketsOf(m.length, q.mtu)
	access := odp.LocalRead
	if m.kind != msgPush {
		access = odp.LocalWrite
	}
	if m.kind == msgAtomic {
		m.n = 1
		if m.length != 8 {
			return prm.SyndromeLocalLength
		}
	}
	if m.n > roce.MaxOutstandingPSN/2 && m.kind == msgRead {
		return prm.SyndromeLocalLength
	}
	for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
		if s.Inline != nil {
			continue
		}
		if _, r := d.keys.Check(q.user, s.LKey, s.Addr, uint64(s.Len), access); r != odp.OK {
			return prm.SyndromeLocalProt
		}
		var cost miss
		d.touchKey(s.LKey, s.Addr, &cost)
		d.xlate += cost.stall
	}
	if m.kind != msgPush {
		q.takeLanding(m, w)
	}
	q.psn = roce.AddPSN(q.psn, int32(m.n))
	return 0
}

// takeLanding keeps the data segments of a READ or an atomic for its responses.
func (q *qp) takeLanding(m *msg, w *prm.SendWQE) {
	for i := range q.landing {
		if l := &q.landing[i]; !l.busy {
			l.busy = true
			l.wqe = append(l.wqe[:0], q.whole(int(m.nbb))...)
			m.land = int16(i)
			q.reads++
			return
		}
	}
	q.d.bug("QP %#x has %d READs outstanding and no landing area", q.num, q.reads)
}

// beginAgain opens a message that was sent before at its oldest unacknowledged
// packet. A WQE that is no longer what it was fails.
func (q *qp) beginAgain(w *prm.SendWQE, err error) bool {
	m := q.msg(q.cur)
	if m.kind == msgLocal {
		q.passWQE(m)
		return true
	}
	if err != nil || w.Ctrl.Opcode() != m.op || w.Bytes != uint64(m.length) || q.nbb != int(m.nbb) {
		q.failAt(q.cur, prm.SyndromeLocalQPOp)
		return false
	}
	q.open, q.pkt, q.segAt, q.segPos = true, 0, 0, 0
	if m.kind != msgPush {
		return true
	}
	from := q.una
	if q.skipping && roce.CmpPSN(q.skipTo, from) > 0 {
		from = q.skipTo
	}
	q.skipping = false
	if k := roce.CmpPSN(from, m.first); k > 0 {
		q.pkt = uint32(k)
		q.skip(w, uint64(q.pkt)*uint64(q.mtu))
	}
	return true
}

// skip moves the data cursor n bytes on.
func (q *qp) skip(w *prm.SendWQE, n uint64) {
	for {
		s, next, ok := w.Data(q.segAt)
		if !ok || n < uint64(s.Len)-uint64(q.segPos) {
			q.segPos += uint32(n)
			return
		}
		n -= uint64(s.Len) - uint64(q.segPos)
		q.segAt, q.segPos = next, 0
	}
}

// newMsg appends a message.
func (q *qp) newMsg() *msg {
	if n := uint32(len(q.msgs)); q.tail-q.head == n {
		bigger := make([]msg, max(16, 2*n))
		for i := q.head; i != q.tail; i++ {
			bigger[i&uint32(len(bigger)-1)] = *q.msg(i)
		}
		q.msgs = bigger
	}
	m := q.msg(q.tail)
	*m = msg{land: -1}
	q.tail++
	return m
}

// failLocally ends sending: the WQE at the cursor failed by itself, and is reported
// when those before it are done.
func (q *qp) failLocally(m *msg, s prm.Syndrome) {
	m.fail, m.kind, m.n, m.first = s, msgLocal, 0, q.psn
	q.halt = true
	q.passWQE(m)
	q.complete()
}

// passWQE moves the cursor behind the WQE of m.
func (q *qp) passWQE(m *msg) {
	q.ci += uint16(m.nbb)
	q.readAhead()
	q.cur++
	q.open = false
}

// payload is the number of bytes of the next packet that come by DMA, at most.
func (q *qp) payload(m *msg) int {
	return int(min(uint32(q.mtu), m.length-q.pkt*uint32(q.mtu)))
}

// sendNext makes the next packet of the message at the cursor; parsed says that the
// device's parsed WQE is that one.
func (q *qp) sendNext(m *msg, parsed bool) {
	w := &q.d.parsed
	if !parsed && prm.ParseSendWQE(q.whole(int(m.nbb)), q.st, w) != nil {
		q.d.bug("QP %#x: WQE %d changed in the buffer", q.num, m.idx)
	}
	switch m.kind {
	case msgPush:
		if !q.sendPush(m, w) {
			return
		}
	case msgRead:
		q.sendRead(m, w)
	case msgAtomic:
		q.sendAtomic(m, w)
	}
	if q.one {
		q.resume()
	}
	q.startTimer()
}

// noteSent remembers how far the PSNs went out.
func (q *qp) noteSent(behind uint32) {
	if roce.CmpPSN(behind, q.sent) > 0 {
		q.sent = behind
	}
}

// pushOp is the opcode of packet k of n of a SEND or WRITE.
func pushOp(op prm.WQEOpcode, k, n uint32) roce.Opcode {
	write := op == prm.WQEOpRDMAWrite || op == prm.WQEOpRDMAWriteImm
	switch {
	case k+1 < n && k == 0 && write:
		return roce.RCWriteFirst
	case k+1 < n && k == 0:
		return roce.RCSendFirst
	case k+1 < n && write:
		return roce.RCWriteMiddle
	case k+1 < n:
		return roce.RCSendMiddle
	}
	only := n == 1
	pick := func(o, l roce.Opcode) roce.Opcode {
		if only {
			return o
		}
		return l
	}
	switch op {
	case prm.WQEOpRDMAWrite:
		return pick(roce.RCWriteOnly, roce.RCWriteLast)
	case prm.WQEOpRDMAWriteImm:
		return pick(roce.RCWriteOnlyImm, roce.RCWriteLastImm)
	case prm.WQEOpSendImm:
		return pick(roce.RCSendOnlyImm, roce.RCSendLastImm)
	case prm.WQEOpSendInv:
		return pick(roce.RCSendOnlyInv, roce.RCSendLastInv)
	}
	return pick(roce.RCSendOnly, roce.RCSendLast)
}

// sendPush makes a packet of a SEND or WRITE. It reports false when the data could
// not be gathered, which fails the message.
func (q *qp) sendPush(m *msg, w *prm.SendWQE) bool {
	d := q.d
	n := q.payload(m)
	op := pushOp(m.op, q.pkt, m.n) | roce.Opcode(q.transport)
	info := op.Info()
	var flags roce.Flags
	if q.st == prm.STRC {
		q.sinceAR++
		if q.wantsAck(m, info.Last) {
			flags |= roce.AckReq
			q.sinceAR = 0
		}
	}
	if info.Last && w.Ctrl.FMCESE()&prm.CtrlSolicited != 0 && (info.Completes || info.TakesReceive) {
		flags |= roce.Solicited
	}
	psn := roce.AddPSN(m.first, int32(q.pkt))
	var f *roce.Frame
	i := int32(-1)
	if q.st == prm.STUD {
		f, i = q.datagram(op, psn, n, flags, w.AV)
	} else {
		f = q.tmpl.New(&d.frames, op, psn, n, flags)
	}
	if info.Headers.Has(roce.HasRETH) {
		h := f.RETH()
		h.SetVA(w.Raddr.Addr())
		h.SetRKey(w.Raddr.RKey())
		h.SetLength(m.length)
	}
	if info.Headers.Has(roce.HasImmDt) {
		f.ImmDt().SetValue(w.Ctrl.Imm())
	}
	if info.Headers.Has(roce.HasIETH) {
		f.IETH().SetRKey(w.Ctrl.Imm())
	}
	if i < 0 && (n == 0 || !w.Memory) && q.free(&q.txq) {
		q.gather(-1, f.Payload(), w)
		q.pushed(m, psn, len(f.B))
		d.leave(f)
		return true
	}
	if i < 0 {
		i = d.getSlot(f)
	}
	if !q.gather(i, f.Payload(), w) {
		if s := d.slots[i]; s.pending > 0 {
			s.q = nil
		} else {
			d.dropSlot(i)
		}
		q.failAt(q.cur, prm.SyndromeLocalProt)
		return false
	}
	q.pushed(m, psn, len(f.B))
	q.enqueue(&q.txq, i)
	return true
}

// pushed notes that the packet at the cursor, of m and so many bytes, is made.
func (q *qp) pushed(m *msg, psn uint32, bytes int) {
	q.noteSent(roce.AddPSN(psn, 1))
	if q.reaction != nil {
		q.spend(bytes)
	}
	q.pkt++
	if q.pkt == m.n {
		q.passWQE(m)
	}
}

// wantsAck is the AckReq policy: the requester must never wait for an ACK that
// nobody owes. An unsignalled message with more behind it leaves the request to a
// later packet.
func (q *qp) wantsAck(m *msg, last bool) bool {
	if q.sinceAR >= q.d.p.AckReqPackets {
		return true
	}
	return last && (m.signal || q.ci+uint16(m.nbb) == q.pi || q.sent != roce.AddPSN(m.first, int32(q.pkt)) || q.probes())
}

// gather fills p with the next bytes of the message: inline bytes at once, others
// by DMA into the frame of slot i.
func (q *qp) gather(i int32, p []byte, w *prm.SendWQE) bool {
	d := q.d
	for len(p) > 0 {
		s, next, ok := w.Data(q.segAt)
		if !ok {
			d.bug("QP %#x: a WQE's data ended early", q.num)
		}
		n := int(min(uint32(len(p)), s.Len-q.segPos))
		if s.Inline != nil {
			copy(p[:n], s.Inline[q.segPos:])
		} else if !d.readInto(i, q.user, s.LKey, s.Addr+uint64(q.segPos), p[:n], odp.LocalRead) {
			return false
		}
		p = p[n:]
		if q.segPos += uint32(n); q.segPos == s.Len {
			q.segAt, q.segPos = next, 0
		}
	}
	return true
}

// readInto starts the DMA reads of [va, va+len(p)) of a key into p, a part of the
// frame of slot i. It reports false, having read nothing, when the access is refused.
func (d *Device) readInto(i int32, u odp.User, key uint32, va uint64, p []byte, a odp.Access) bool {
	runs, r := d.keys.Translate(u, key, va, len(p), a, d.runs[:0])
	if r != odp.OK {
		return false
	}
	d.runs = runs
	s := d.slots[i]
	s.bytes += int32(len(p))
	d.txBytes += len(p)
	if len(runs) == 0 {
		clear(p)
	}
	for _, run := range runs {
		if run.PA >= onChip {
			d.memory.read(uint64(run.PA-onChip), p[:run.Len])
			p = p[run.Len:]
			continue
		}
		s.pending++
		d.bus.ReadDMA(run.PA, p[:run.Len], d.h.gather, uint64(i))
		p = p[run.Len:]
	}
	return true
}

// sendRead asks for what is missing of a READ.
func (q *qp) sendRead(m *msg, w *prm.SendWQE) {
	skip := m.next * uint32(q.mtu)
	psn := roce.AddPSN(m.first, int32(m.next))
	f := q.tmpl.New(&q.d.frames, roce.RCReadRequest, psn, 0, roce.AckReq)
	h := f.RETH()
	h.SetVA(w.Raddr.Addr() + uint64(skip))
	h.SetRKey(w.Raddr.RKey())
	h.SetLength(m.length - skip)
	q.sendRequest(m, f, roce.AddPSN(m.first, int32(m.n)))
}

func (q *qp) sendAtomic(m *msg, w *prm.SendWQE) {
	if m.op == prm.WQEOpAtomicWrite {
		q.sendAtomicWrite(m, w)
		return
	}
	op := roce.RCFetchAdd
	if m.op == prm.WQEOpAtomicCS {
		op = roce.RCCmpSwap
	}
	f := q.tmpl.New(&q.d.frames, op, m.first, 0, roce.AckReq)
	h := f.AtomicETH()
	h.SetVA(w.Raddr.Addr())
	h.SetRKey(w.Raddr.RKey())
	h.SetSwapAdd(w.Atomic.SwapAdd())
	if op == roce.RCCmpSwap {
		h.SetCompare(w.Atomic.Compare())
	}
	q.sendRequest(m, f, roce.AddPSN(m.first, 1))
}

func (q *qp) sendRequest(m *msg, f *roce.Frame, behind uint32) {
	q.sinceAR = 0
	q.noteSent(behind)
	if q.reaction != nil {
		q.spend(len(f.B))
	}
	q.passWQE(m)
	q.enqueue(&q.txq, q.d.getSlot(f))
}

// startTimer starts the ACK timer when none runs.
func (q *qp) startTimer() {
	if q.timeout != 0 && q.deadline == sim.Never {
		q.setDeadline()
	}
}

// setDeadline (re)starts the ACK timer; one event at a time looks at it.
func (q *qp) setDeadline() {
	if q.timeout == 0 {
		return
	}
	q.deadline = q.d.e.Now() + q.timeout
	if !q.timerSet {
		q.timerSet = true
		q.d.e.At(q.deadline, q.d.h.timer, q.arg)
	}
}
