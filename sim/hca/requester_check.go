package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Here stands what the requester checks, and in which order: a WQE before it is begun and
// before anything of it is sent, and a response before it counts. The lists are short, their
// steps are the small functions below. A new rule is a step.

// mayBegin says whether a new WQE of an opcode and with these flags may be begun now, or must
// wait for what is outstanding.
func (q *requester) mayBegin(op prm.WQEOpcode, fmCESE uint8) bool {
	switch {
	case q.fenced(fmCESE):
		return false
	case q.outOfCredits(op):
		return false
	case q.outOfReads(op):
		return false
	case q.windowFull():
		return false
	case q.st == prm.STDCI && q.turns():
		return false
	}
	return true
}

// parse reads the WQE at the cursor into w, whose form and owner are checked before all else.
func (q *requester) parse(w *prm.SendWQE) error {
	switch err := prm.ParseSendWQE(q.sq.whole(int(q.nbb)), uint32(q.st), w); {
	case err != nil && !(err == prm.ErrWQEInline && q.breaks(rule.InlineDataEndsWithItsWQE)):
		return err
	case !q.named(w):
		return prm.ErrWQEOpcode
	}
	return nil
}

// checkWQE is the order in which a WQE is checked before it has effects. It returns the
// syndrome of what is wrong, or 0.
func (q *requester) checkWQE(m *msg, w *prm.SendWQE) prm.Syndrome {
	if m.op == prm.WQEOpRDMAWrite && q.st == prm.STRC && !w.Memory && w.Bytes <= uint64(q.mtu) { // passes them all
		return 0
	}
	return q.checkElse(m, w)
}

//go:noinline
func (q *requester) checkElse(m *msg, w *prm.SendWQE) prm.Syndrome {
	switch {
	case !q.supported(m.op, w):
		return prm.SyndromeLocalQPOp
	case m.kind == msgLocal:
		return q.doLocally(m, w)
	case !q.reachable(w):
		return prm.SyndromeLocalQPOp
	case !q.fitsDatagram(w):
		return prm.SyndromeLocalLength
	case !q.fitsMessage(w):
		return prm.SyndromeLocalLength
	case !q.atomicLengthOK(m, w):
		return prm.SyndromeLocalLength
	case !q.readLengthOK(m, w):
		return prm.SyndromeLocalLength
	case !q.segmentsPermitted(m, w):
		return prm.SyndromeLocalProt
	}
	return 0
}

// checkResponse is the order in which a response is placed among the requests that are
// outstanding (IBTA Vol. 1, 9.7.6). Those that belong to none are ghosts, and dropped; nothing
// is ever answered.
func (q *requester) checkResponse(p *roce.Packet, psn uint32) bool {
	switch {
	case !q.awaited(psn):
		return false
	case !q.awaitedAgain(p, psn):
		return false
	}
	return true
}

// answeredBy finds the READ or the atomic that a response with data answers: all before it are
// acknowledged by it. It returns nil when there is none.
func (q *requester) answeredBy(psn uint32) *msg {
	switch {
	case !q.acked(roce.AddPSN(psn, -1)): // one before it has no response: an implied NAK
		return nil
	case (q.head == q.tail || q.una != psn) && !q.breaks(rule.DataAnswersTheOldest):
		return nil
	}
	if i := q.unanswered(); i != q.tail {
		return q.msg(i)
	}
	return nil
}

// checkReadData is what a packet of a READ's data must be like.
func (q *requester) checkReadData(m *msg, p *roce.Packet) bool {
	switch {
	case !q.isRead(m):
		return false
	case !endsRead(m, p) && !q.breaks(rule.ReadEndsWithItsLastPacket):
		return false
	case !q.readPayloadOK(m, p) && !q.breaks(rule.ReadPacketsHaveTheirLength):
		return false
	case !acknowledges(p) && !q.breaks(rule.ReadDataIsAnACK):
		return false
	}
	return true
}

// checkAtomicAck is what the answer to an atomic must be like.
func (q *requester) checkAtomicAck(m *msg, p *roce.Packet) bool {
	switch {
	case !q.isAtomic(m):
		return false
	case !acknowledges(p) && !q.breaks(rule.AtomicAnswerIsAnACK):
		return false
	}
	return true
}

// checkAtomicWritten is what the answer to an ATOMIC WRITE must be like.
func (q *requester) checkAtomicWritten(p *roce.Packet) bool {
	switch {
	case p.Op.Operation() != roce.OpReadResponseOnly && !q.breaks(rule.AtomicWriteAnswerIsOnePacket):
		return false
	case p.PayloadLen() != 0 && !q.breaks(rule.AtomicWriteAnswerHasNoData):
		return false
	case !acknowledges(p) && !q.breaks(rule.AtomicWriteAnswerIsAnACK):
		return false
	}
	return true
}

// fenced says whether a WQE waits for the READs and atomics before it.
func (q *requester) fenced(fmCESE uint8) bool {
	return fmCESE&prm.CtrlFenceMask >= prm.CtrlFence && q.reads > 0 && !q.breaks(rule.FenceWaits)
}

// outOfCredits says whether a message waits for receives of the responder.
func (q *requester) outOfCredits(op prm.WQEOpcode) bool {
	return q.u.p.Credits && q.limited(op) && !q.breaks(rule.CreditsAreKept)
}

// outOfReads says whether as many READs and atomics are outstanding as the peer takes.
func (q *requester) outOfReads(op prm.WQEOpcode) bool {
	switch op {
	case prm.WQEOpRDMARead, prm.WQEOpAtomicCS, prm.WQEOpAtomicFA, prm.WQEOpAtomicWrite:
		return int(q.reads) >= q.readMax
	}
	return false
}

// windowFull says whether no further PSN may be given to a message.
func (q *requester) windowFull() bool {
	return roce.CmpPSN(q.psn, q.una) >= min(q.u.window(), roce.MaxOutstandingPSN/2) && !q.breaks(rule.WindowOfPSNsIsKept)
}

// named says whether the WQE bears the number of the QP that posted it.
func (q *requester) named(w *prm.SendWQE) bool {
	return w.Ctrl.QPN() == q.num || q.breaks(rule.WQENamesItsQP)
}

// supported says whether the device has the operation on this service.
func (q *requester) supported(op prm.WQEOpcode, w *prm.SendWQE) bool {
	switch op {
	case prm.WQEOpNOP, prm.WQEOpSend, prm.WQEOpSendImm, prm.WQEOpSendInv, prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm, prm.WQEOpRDMARead:
		return true
	case prm.WQEOpAtomicCS, prm.WQEOpAtomicFA:
		return q.u.p.Atomics || q.breaks(rule.RequestIsSupported)
	case prm.WQEOpAtomicWrite:
		return (q.u.p.AtomicWrite || q.breaks(rule.AtomicWriteRequestIsSupported)) && !w.Memory
	case prm.WQEOpMMO:
		return q.copiable(w)
	case prm.WQEOpUMR:
		return q.st != prm.STUD || q.breaks(rule.UMRsAreOfConnections)
	}
	return false
}

// reachable says whether the address vector of a request that has one is whole and leads somewhere.
func (q *requester) reachable(w *prm.SendWQE) bool {
	return w.AV == nil || w.AV.Extended() && q.paths.path(&q.u.addresses, w.AV, q.pkey, q.manages()).ok || q.breaks(rule.DatagramsNeedAnAddress)
}

// fitsDatagram says whether a datagram is no more than a packet's payload.
func (q *requester) fitsDatagram(w *prm.SendWQE) bool {
	return q.st != prm.STUD || w.Bytes <= uint64(q.mtu) || q.breaks(rule.DatagramFitsAPacket)
}

// fitsMessage says whether the message is not longer than the device sends.
func (q *requester) fitsMessage(w *prm.SendWQE) bool {
	return w.Bytes <= 1<<q.u.p.LogMaxMsg || q.breaks(rule.MessageHasALimit)
}

// atomicLengthOK says whether an atomic has the size of one.
func (q *requester) atomicLengthOK(m *msg, w *prm.SendWQE) bool {
	return m.kind != msgAtomic || w.Bytes == atomicSize || w.Bytes > atomicSize && q.breaks(rule.AtomicsHaveTheirLength)
}

// readLengthOK says whether the PSNs of a READ's responses fit into the window.
func (q *requester) readLengthOK(m *msg, w *prm.SendWQE) bool {
	return m.kind != msgRead || roce.PacketsOf(uint32(w.Bytes), q.mtu) <= roce.MaxOutstandingPSN/2+1 || q.breaks(rule.ReadFitsTheWindowOfPSNs)
}

// segmentsPermitted checks the keys of the WQE's data segments, and looks them up.
func (q *requester) segmentsPermitted(m *msg, w *prm.SendWQE) bool {
	return !w.Memory || q.keysPermit(m, w) || q.breaks(rule.LocalKeysAreCheckedFirst)
}

// keysPermit is segmentsPermitted of a WQE with segments that are not inline.
//
//go:noinline
func (q *requester) keysPermit(m *msg, w *prm.SendWQE) bool {
	u, access, prior := q.u, mkey.LocalRead, uint64(0)
	if m.kind != msgPush {
		access = mkey.LocalWrite
	}
	for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
		if s.Inline != nil {
			prior += uint64(len(s.Inline))
			continue
		}
		if _, r := u.dma.keys.Check(q.user(), s.LKey, s.Addr, uint64(s.Len), access); r != mkey.OK {
			q.refused = r
			return r == mkey.OutOfRange && q.sendsBefore(m, w, s.LKey, s.Addr, prior)
		}
		prior += uint64(s.Len)
		var cost miss
		u.caches.touchKey(s.LKey, s.Addr, &cost)
		u.xlate += cost.stall
	}
	return true
}

// awaited says whether a PSN is one of those that are outstanding.
func (q *requester) awaited(psn uint32) bool {
	return roce.CmpPSN(psn, q.una) >= 0 && roce.CmpPSN(psn, q.sent) < 0 || q.breaks(rule.GhostsAreDropped)
}

// awaitedAgain says whether a response can be that of a READ or an atomic that was asked for again;
// others are of the request before. So is an ACK of its PSN: each request that was sent again is
// acknowledged by the last PSN that was executed, which may be that one.
func (q *requester) awaitedAgain(p *roce.Packet, psn uint32) bool {
	return !q.exact || psn == q.una && !isACK(p) || q.breaks(rule.StaleResponsesAreDropped)
}

// isACK says whether a response is an Acknowledge packet without data that is no NAK.
func isACK(p *roce.Packet) bool {
	return p.Info().Class == roce.ClassAck && p.AETH().Syndrome().Type() == roce.SyndromeTypeAck
}

// isRead says whether READ data may answer a message.
func (q *requester) isRead(m *msg) bool {
	return m.kind == msgRead || m.kind == msgAtomic && q.breaks(rule.ReadDataAnswersARead)
}

// isAtomic says whether the answer to an atomic may answer a message.
func (q *requester) isAtomic(m *msg) bool {
	return m.kind == msgAtomic && m.op != prm.WQEOpAtomicWrite || m.kind == msgRead && q.breaks(rule.AtomicAnswerIsOfAnAtomic)
}

// endsRead says whether a packet of data is the last one exactly when the READ ends.
func endsRead(m *msg, p *roce.Packet) bool { return p.Info().Last == (m.next+1 == m.n) }

// readPayloadOK says whether a packet has as many bytes of data as its place asks for.
func (q *requester) readPayloadOK(m *msg, p *roce.Packet) bool {
	return p.PayloadLen() == int(min(uint32(q.mtu), m.length-m.next*uint32(q.mtu)))
}

// acknowledges says whether the AETH of a response, if it has one, is that of an ACK.
func acknowledges(p *roce.Packet) bool {
	return !p.Has(roce.HasAETH) || p.AETH().Syndrome().Type() == roce.SyndromeTypeAck
}
