package model

import (
	"github.com/rdmasim/rdmasim/verbs"
)

// faults is what may be wrong with a request: each fault gives one of its statuses. A device may
// find any of them first.
type faults struct {
	local  Statuses // found by the requester
	remote Statuses // reported by the responder, which goes to ERR
	wait   Statuses // RNR and timeouts, after which the responder is as before
	hard   bool     // one of them is certain; else the specification leaves the checks to the device
	rule   *Rule
}

func (f *faults) add(to *Statuses, r *Rule, l ...verbs.WCStatus) {
	f.may(to, r, l...)
	f.hard = true
}

// may adds a fault that a device may find or not.
func (f *faults) may(to *Statuses, r *Rule, l ...verbs.WCStatus) {
	*to |= set(l...)
	f.rule = r
}

// free reports whether a request with faults may succeed all the same.
func (f *faults) free() bool { return !f.hard && !f.none() }

func (f *faults) none() bool { return f.local|f.remote|f.wait == 0 }

func atomic(op verbs.WROpcode) bool {
	return op == verbs.WRAtomicCmpSwp || op == verbs.WRAtomicFetchAdd
}

// right is what a remote operation needs of the region and of the queue pair.
func right(op verbs.WROpcode) verbs.AccessFlags {
	switch {
	case op == verbs.WRRDMARead:
		return verbs.AccessRemoteRead
	case atomic(op):
		return verbs.AccessRemoteAtomic
	case op == verbs.WRRDMAWrite || op == verbs.WRRDMAWriteImm:
		return verbs.AccessRemoteWrite
	}
	return 0
}

// inCQE is the most bytes that mlx5 may deliver in the completion: the library copies them to the
// program's pieces, without their keys (scatter to CQE, p:mlx5/cq.c).
const inCQE = 64

// received reports whether a request takes a receive.
func received(op verbs.WROpcode) bool {
	return op == verbs.WRSend || op == verbs.WRSendImm || op == verbs.WRSendInv || op == verbs.WRRDMAWriteImm
}

// localFaults checks the pieces of a request.
func (r *Request) localFaults(f *faults) {
	access := verbs.AccessFlags(0)
	if r.Op == verbs.WRRDMARead || atomic(r.Op) {
		access = verbs.AccessLocalWrite
	}
	if r.Flags&verbs.SendInline != 0 {
		return
	}
	ok, all := within(r.Local, total(r.Local), access)
	if ok && all && !emptyInvalid(r.Local, access) {
		return
	}
	add := f.add
	if ok || access != 0 && total(r.Local) <= inCQE {
		add = f.may
	}
	if access != 0 {
		add(&f.local, &ruleLKey, verbs.WCLocProtErr, verbs.WCLocAccessErr)
	} else {
		add(&f.local, &ruleLKey, verbs.WCLocProtErr)
	}
}

// target is the remote range of a request.
func (r *Request) target() Piece {
	p := r.Remote
	p.Len = total(r.Local)
	if atomic(r.Op) {
		p.Len = 8
	}
	return p
}

// next is the receive that a message to the queue pair takes; nil: there is none.
func (q *QP) next() *recvWR {
	l := q.recvs
	if q.SRQ != nil {
		l = q.SRQ.list
	}
	if len(l) == 0 {
		return nil
	}
	return &l[0]
}

// header is how many bytes of a receive lie before the message: the routing header of a datagram.
func (q *QP) header() int {
	if q.Type == verbs.QPTUD {
		return verbs.GRHSize
	}
	return 0
}

func (q *QP) pop() (r recvWR) {
	if q.SRQ != nil {
		return q.SRQ.pop()
	}
	r, q.recvs = q.recvs[0], q.recvs[1:]
	return r
}

// reliable carries out a request of an RC queue pair.
func (q *QP) reliable(r *Request) {
	var f faults
	p, n := q.Peer, total(r.Local)
	q.aim(r)
	r.localFaults(&f)
	switch p.State {
	case verbs.QPSRTR, verbs.QPSRTS, verbs.QPSSQD, verbs.QPSSQE:
		p.responderFaults(r, n, &f)
	default:
		f.add(&f.wait, &ruleRetry, verbs.WCRetryExcErr)
	}
	done := entry{id: r.ID, seq: r.seq, opcode: sendOpcode(r.Op), quiet: !q.SigAll && r.Flags&verbs.SendSignaled == 0, rule: &ruleSuccess}
	switch {
	case f.none():
		done.statuses = set(verbs.WCSuccess)
		q.transfer(r)
		if !done.quiet {
			if n <= inCQE && q.SigAll && (r.Op == verbs.WRRDMARead || atomic(r.Op)) {
				done.late, done.data = r.Local, append([]byte(nil), q.scratch...)
				blurLate(r.Local, n, r.ID+1)
			}
			q.sendDone.add(done)
		}
	case f.hard:
		done.quiet, done.statuses, done.rule = false, f.local|f.remote|f.wait|q.World.unanswered(&f), f.rule
		q.sendDone.add(done)
		q.refused(r, &f)
	default:
		req := *r
		req.Local = append([]Piece(nil), r.Local...)
		done.statuses, done.rule = set(verbs.WCSuccess)|f.local|f.remote|f.wait|q.World.unanswered(&f), f.rule
		q.held = true
		done.decided = func(ok bool) {
			q.held = false
			if ok {
				q.transfer(&req)
			} else {
				q.refused(&req, &f)
			}
			q.run()
		}
		q.sendDone.add(done)
	}
}

// responderFaults checks a request of n bytes at the queue pair that it goes to.
func (q *QP) responderFaults(r *Request, n int, f *faults) {
	need := right(r.Op)
	if need != 0 && q.attr.Access&need == 0 {
		f.add(&f.remote, &ruleRights, verbs.WCRemInvReqErr, verbs.WCRemAccessErr)
	}
	if atomic(r.Op) && r.Remote.Off%8 != 0 {
		f.add(&f.remote, &ruleAligned, verbs.WCRemInvReqErr, verbs.WCRemAccessErr)
	}
	if t := r.target(); need != 0 && t.Len > 0 && (!t.valid(need) || t.MW != nil && t.MW.QP != nil && t.MW.QP != q) {
		f.add(&f.remote, &ruleRKey, verbs.WCRemAccessErr)
	}
	if q.named != nil && r.SRQ == nil {
		f.add(&f.remote, &ruleNamed, verbs.WCRemAccessErr, verbs.WCRemInvReqErr)
		return
	}
	if !received(r.Op) {
		return
	}
	w := q.next()
	switch {
	case w == nil:
		f.add(&f.wait, &ruleRNR, verbs.WCRNRRetryExcErr)
	case need != 0: // a write with immediate data takes a receive and puts nothing into it
	case n+q.header() > total(w.pieces):
		f.add(&f.remote, &ruleTooLong, verbs.WCRemInvReqErr)
		fallthrough
	default:
		reached, all := within(w.pieces, n+q.header(), verbs.AccessLocalWrite)
		if !reached && n > inCQE {
			f.add(&f.remote, &ruleRecvKey, verbs.WCRemOpErr)
		} else if !all || emptyInvalid(w.pieces, verbs.AccessLocalWrite) {
			f.may(&f.remote, &ruleRecvKey, verbs.WCRemOpErr)
		}
	}
}

// transfer does what a request without a fault does.
func (q *QP) transfer(r *Request) {
	q.aim(r)
	p, n := q.Peer, total(r.Local)
	t := r.target()
	switch {
	case r.Op == verbs.WRRDMARead:
		q.scratch = append(q.scratch[:0], t.Mem.Bytes[min(t.Off, len(t.Mem.Bytes)):min(t.Off+n, len(t.Mem.Bytes))]...)
		fuzzy := t.fuzzy() || t.meets(r.Local) // of a range that is read and written at once
		scatter(r.Local, q.scratch, nil, 0)
		blurAll(r.Local, n, fuzzy)
	case atomic(r.Op):
		q.scratch = append(q.scratch[:0], t.Mem.Bytes[t.Off:t.Off+8]...)
		fuzzy := t.fuzzy() || t.meets(r.Local)
		r.operate(t.Mem.Bytes[t.Off : t.Off+8])
		scatter(r.Local, q.scratch, nil, 0)
		blurAll(r.Local, 8, fuzzy)
		if fuzzy {
			t.Mem.blur(t.Off, t.Off+8)
		}
	default:
		q.scratch = gather(q.scratch[:0], r.Local)
		fuzzy := right(r.Op) != 0 && t.meets(r.Local)
		for i := range r.Local {
			fuzzy = fuzzy || r.Local[i].fuzzy()
		}
		if right(r.Op) != 0 && n > 0 {
			t.Mem.write(t.Off, q.scratch)
			if fuzzy {
				t.Mem.blur(t.Off, t.Off+n)
			}
		}
		if received(r.Op) {
			p.deliver(r, q.scratch, fuzzy)
		}
	}
}

// operate does an atomic operation on 8 bytes of the host.
func (r *Request) operate(b []byte) {
	v := hostWord(b)
	switch {
	case r.Op == verbs.WRAtomicFetchAdd:
		v += r.CompareAdd
	case v == r.CompareAdd:
		v = r.Swap
	}
	setHostWord(b, v)
}

// deliver completes the next receive with a message.
func (q *QP) deliver(r *Request, data []byte, fuzzy bool) {
	w := q.pop()
	q.taken++
	for i := range w.pieces { // what is read and written at once
		fuzzy = fuzzy || w.pieces[i].meets(r.Local)
	}
	e := entry{id: w.id, statuses: set(verbs.WCSuccess), opcode: verbs.WCOpRecv, length: uint32(len(data) + q.header()), rule: &ruleReceived,
		solicited: r.Flags&verbs.SendSolicited != 0}
	switch r.Op {
	case verbs.WRSendImm, verbs.WRRDMAWriteImm:
		e.withImm, e.imm = true, r.Imm
	case verbs.WRSendInv:
		e.withInv, e.imm = true, r.Imm
		r.Inv.unbind()
	}
	if q.Type == verbs.QPTUD {
		e.from = q.Peer.Number
	}
	if right(r.Op) != 0 {
		e.opcode = verbs.WCOpRecvRDMAImm
	} else {
		scatter(w.pieces, data, r, q.header())
		if q.header() == 0 && len(data) <= inCQE {
			e.late, e.data = w.pieces, append([]byte(nil), data...)
			if !fuzzy {
				blurLate(w.pieces, len(data), w.id+1)
			}
		}
		blurAll(w.pieces, q.header()+len(data), fuzzy)
	}
	q.recvDone.add(e)
}

// refused does what a request with a fault may do: it leaves bytes that are not known, and brings
// both ends to ERR.
func (q *QP) refused(r *Request, f *faults) {
	q.aim(r)
	p, n := q.Peer, total(r.Local)
	t := r.target()
	need := right(r.Op)
	alive := f.wait&set(verbs.WCRetryExcErr) == 0
	switch {
	case r.Op == verbs.WRRDMARead || atomic(r.Op):
		for i := range r.Local {
			r.Local[i].blur(verbs.AccessLocalWrite)
		}
		if atomic(r.Op) && alive && f.remote == 0 {
			t.blur(need)
		}
	case need != 0 && alive && p.attr.Access&need != 0:
		t.blur(need)
	case need == 0 && alive && p.next() != nil:
		for _, x := range p.next().pieces {
			x.blur(verbs.AccessLocalWrite)
		}
	}
	if f.remote != 0 {
		p.struck(r, n, f)
	} else if f.local != 0 && alive && received(r.Op) && need == 0 && p.SRQ != nil && p.next() != nil && n > p.attr.PathMTU.Bytes() {
		q.World.Vague = true // packets before the failure may have taken a receive
	}
	q.fail()
}

// struck is the responder of a request that it refuses.
func (q *QP) struck(r *Request, n int, f *faults) {
	for _, t := range []verbs.EventType{verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventQPFatal} {
		q.World.allow(t, q, 0, &ruleNoEvent)
	}
	certain := f.local|f.wait == 0
	var status Statuses
	if received(r.Op) && right(r.Op) == 0 && q.next() != nil {
		if n+q.header() > total(q.next().pieces) {
			status |= set(verbs.WCLocLenErr)
		}
		if f.remote.has(verbs.WCRemOpErr) {
			status |= set(verbs.WCLocProtErr, verbs.WCLocAccessErr)
		}
	}
	switch {
	case status == 0:
	case certain:
		w := q.pop()
		q.taken++
		q.recvDone.add(entry{id: w.id, statuses: status, rule: f.rule})
	case q.SRQ != nil:
		q.World.Vague = true // whether it has a receive is not seen
	default:
		q.next().also |= status
	}
	if certain {
		q.fail()
	} else {
		q.maybe(verbs.QPSErr)
	}
}

func sendOpcode(op verbs.WROpcode) verbs.WCOpcode {
	switch op {
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteImm:
		return verbs.WCOpRDMAWrite
	case verbs.WRRDMARead:
		return verbs.WCOpRDMARead
	case verbs.WRAtomicCmpSwp:
		return verbs.WCOpCompSwap
	case verbs.WRAtomicFetchAdd:
		return verbs.WCOpFetchAdd
	}
	return verbs.WCOpSend
}
