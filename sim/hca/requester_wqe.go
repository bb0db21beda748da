package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// begin takes the WQE at the cursor of a runnable QP: it checks it and gives it PSNs, or, when it
// is sent again, finds what it had. It reports whether there is anything to go on with.
func (q *requester) begin() bool {
	u := q.u
	n := q.nbb
	w := &u.parsed
	err := q.parse(w)
	if q.cur != q.tail {
		return q.beginAgain(w, err)
	}
	m := q.newMsg()
	m.idx, m.nbb = q.sq.ci, uint8(n)
	q.u.c.WQEs++
	if err != nil {
		m.signal = true
		q.failLocally(m, prm.SyndromeLocalQPOp)
		return false
	}
	m.op = w.Ctrl.Opcode()
	m.signal = w.Ctrl.FMCESE()&prm.CtrlCEMask >= prm.CtrlCQUpdate
	if q.st == prm.STDCI {
		if m.stream = q.stream(); q.streams.flushed(m.stream) {
			q.failLocally(m, prm.SyndromeWRFlush)
			return false
		}
	}
	if s := q.prepare(m, w); s != 0 {
		q.failLocally(m, s)
		return false
	}
	if m.kind == msgLocal {
		q.passWQE(m)
		q.complete()
		if q.sq.ci == q.sq.pi {
			q.claimAck(q.psn, 0)
		}
		return true
	}
	q.ssn = (q.ssn + 1) & roce.PSNMask
	if u.p.Credits {
		q.spendCredit(m.op)
	}
	q.open, q.pkt, q.segAt, q.segPos, q.rest.len = true, 0, 0, 0, 0
	if q.dams {
		return q.dam(m)
	}
	return true
}

// kindOf is what an opcode asks for.
func kindOf(op prm.WQEOpcode) msgKind {
	switch op {
	case prm.WQEOpNOP, prm.WQEOpUMR, prm.WQEOpMMO:
		return msgLocal
	case prm.WQEOpRDMARead:
		return msgRead
	case prm.WQEOpAtomicCS, prm.WQEOpAtomicFA, prm.WQEOpAtomicWrite:
		return msgAtomic
	}
	return msgPush
}

// prepare checks a WQE and gives its message what it needs before it is sent. It returns the
// syndrome of what is wrong, or 0.
func (q *requester) prepare(m *msg, w *prm.SendWQE) prm.Syndrome {
	m.first, m.kind = q.psn, kindOf(m.op)
	if s := q.checkWQE(m, w); s != 0 || m.kind == msgLocal {
		return s
	}
	m.length = uint32(w.Bytes)
	switch q.st {
	case prm.STXRC:
		m.srqn = w.XRC.SRQN()
	case prm.STDCI:
		q.announced()
	}
	if q.breaks(rule.DatagramFitsAPacket) && q.st == prm.STUD {
		m.length = min(m.length, uint32(q.mtu))
	}
	m.n = 1
	if m.kind != msgAtomic {
		m.n = roce.PacketsOf(m.length, q.mtu)
	}
	if m.kind != msgPush {
		q.takeLanding(m, w)
	}
	q.psn = roce.AddPSN(q.psn, int32(m.n))
	return 0
}

// doLocally does what needs no packet, in order: UMRs and copies.
func (q *requester) doLocally(m *msg, w *prm.SendWQE) prm.Syndrome {
	if m.op == prm.WQEOpMMO {
		return q.doCopy(m, w)
	}
	if m.op != prm.WQEOpUMR {
		return 0
	}
	s := q.doUMR(m, w)
	if s == prm.SyndromeMWBind && q.breaks(rule.FailedBindIsReported) {
		return 0
	}
	return s
}

// takeLanding keeps the data segments of a READ or an atomic for its responses.
func (q *requester) takeLanding(m *msg, w *prm.SendWQE) {
	for i := range q.landing {
		if l := &q.landing[i]; !l.busy {
			l.busy = true
			l.wqe = append(l.wqe[:0], q.sq.whole(int(m.nbb))...)
			m.land = int16(i)
			q.reads++
			return
		}
	}
	q.u.bug("QP %#x has %d READs outstanding and no landing area", q.num, q.reads)
}

// beginAgain opens a message that was sent before at its oldest unacknowledged
// packet. A WQE that is no longer what it was fails.
func (q *requester) beginAgain(w *prm.SendWQE, err error) bool {
	m := q.msg(q.cur)
	if m.kind == msgLocal || m.dammed {
		q.passWQE(m)
		return true
	}
	if q.st == prm.STDCI {
		if q.streams.flushed(m.stream) {
			q.failAt(q.cur, prm.SyndromeWRFlush)
			return false
		}
		q.announced()
	}
	if err != nil || w.Ctrl.Opcode() != m.op || w.Bytes != uint64(m.length) || q.nbb != uint16(m.nbb) || q.namesAnother(m, w) {
		q.failAt(q.cur, prm.SyndromeLocalQPOp)
		return false
	}
	q.open, q.pkt, q.segAt, q.segPos, q.rest.len = true, 0, 0, 0, 0
	from := q.una
	if q.skipAcked && roce.CmpPSN(q.skipTo, from) > 0 {
		from = q.skipTo
	}
	q.skipAcked = false
	if m.kind != msgPush {
		return true
	}
	if k := roce.CmpPSN(from, m.first); k > 0 {
		q.pkt = uint32(k)
		q.skip(w, uint64(q.pkt)*uint64(q.mtu))
	}
	return q.inWindow(m)
}

// skip moves the data cursor n bytes on.
func (q *requester) skip(w *prm.SendWQE, n uint64) {
	for {
		s, next, ok := w.Data(int(q.segAt))
		if !ok || n < uint64(s.Len)-uint64(q.segPos) {
			q.segPos += uint32(n)
			return
		}
		n -= uint64(s.Len) - uint64(q.segPos)
		q.segAt, q.segPos = int32(next), 0
	}
}

// newMsg appends a message.
func (q *requester) newMsg() *msg {
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
func (q *requester) failLocally(m *msg, s prm.Syndrome) {
	m.fail, m.vendor, m.kind, m.n, m.first = s, q.refusedKey(s), msgLocal, 0, q.psn
	q.halt = true
	q.passWQE(m)
	q.complete()
	q.claimAck(q.psn, 0)
}

// passWQE moves the cursor behind the WQE of m.
func (q *requester) passWQE(m *msg) {
	q.sq.ci += uint16(m.nbb)
	q.sq.readAhead()
	q.cur++
	q.open = false
}

// answered is the work of a processing unit on a READ or an atomic that was answered,
// whose WQE must be at hand. It is done by the unit that takes the QP next, or, when
// none works on it or is about to, by one that is free.
func (q *requester) answered(m *msg) {
	u := q.u
	t := u.p.PURead
	if len(u.caches.sendWQEs.nodes) > 0 {
		u.c.WQELookups++
		if !q.sq.keep(m.idx) {
			u.c.WQEMisses++
			t += u.p.WQEMiss
			q.sq.readAgain(m.idx, m.nbb)
		}
	}
	u.c.PUBusy += t
	if q.running || q.queued {
		q.puOwed += t
	} else {
		q.puBusy += t
		q.puFree = max(q.puFree, u.e.Now()) + t
	}
}
