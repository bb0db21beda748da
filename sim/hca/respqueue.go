package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// answerKind is what a responder sends.
type answerKind uint8

const (
	answerAck answerKind = iota
	answerNAK
	answerRead
	answerAtomic
	answerAtomicWrite
)

// response is one entry of the responder's queue: answers leave in its order.
type response struct {
	kind     answerKind
	syndrome roce.Syndrome
	saved    int16 // of a READ or an atomic executed now; -1: none, or a replay
	first    bool  // READ: the next packet is the first
	psn, msn uint32
	rkey     uint32
	left     uint32 // READ: bytes to send
	va       uint64 // READ
	value    uint64 // atomic
}

// savedOp is a READ or an atomic that may be asked for again.
type savedOp struct {
	op        roce.Opcode
	unsent    bool
	psn, n    uint32
	rkey, len uint32
	va, value uint64
}

// respQueue is the responder's way out.
type respQueue struct {
	items      []response // from itemHead on
	itemHead   int
	saved      []savedOp // max_dest_rd_atomic of them, oldest overwritten first
	savedNext  int
	savedMax   int
	rtx        list // frames in order, some waiting for data
	ackDue     bool
	ackSet     bool // an ACK event is set
	nakSet     bool
	readSet    bool // a respond event is set
	readGrant  bool // the READ at the head may start
	stalled    bool // waits for TxBuffer
	atomicBusy bool
}

// dropResponses forgets what is due.
func (q *qp) dropResponses() {
	q.items, q.itemHead = q.items[:0], 0
	q.ackDue, q.readGrant = false, false
}

// answer queues an ACK or a NAK for a PSN behind what is due; ACKs join.
func (q *qp) answer(kind answerKind, psn uint32, s roce.Syndrome) {
	q.ackDue = false
	if n := len(q.items); n > q.itemHead {
		last := &q.items[n-1]
		if last.kind == answerAck && kind == answerAck {
			last.psn, last.msn, last.syndrome = psn, q.msn, s
			return
		}
		q.items = append(q.items, response{kind: kind, psn: psn, msn: q.msn, syndrome: s, saved: -1})
		return
	}
	q.sendAck(psn, q.msn, s)
}

// sendAck sends an Acknowledge behind the frames that are on their way.
func (q *qp) sendAck(psn, msn uint32, s roce.Syndrome) {
	f := q.tmpl.New(&q.d.frames, roce.RCAcknowledge, psn, 0, 0)
	h := f.AETH()
	h.SetSyndrome(s)
	h.SetMSN(msn)
	if s.Type() == roce.SyndromeTypeAck {
		q.d.c.AcksSent++
	} else {
		q.d.c.NaksSent++
	}
	if q.free(&q.rtx) {
		q.d.leave(f)
		return
	}
	q.enqueue(&q.rtx, q.d.getSlot(f))
}

// freeSaved says whether a READ or an atomic can be taken: the oldest saved one
// must have been answered.
func (q *qp) freeSaved() bool {
	return q.savedMax > 0 && (len(q.saved) < q.savedMax || !q.saved[q.savedNext].unsent)
}

// save remembers an operation for replay.
func (q *qp) save(o savedOp) int16 {
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

// execRead takes a READ request: its PSNs are used at once, the data is fetched
// when its turn comes.
func (q *qp) execRead(p *roce.Packet) {
	h := p.RETH()
	if h.Length() > roce.MaxMessage {
		q.fatal(roce.NAKInvalidRequest)
		return
	}
	if h.Length() > 0 {
		if _, r := q.d.keys.Check(q.user, h.RKey(), h.VA(), uint64(h.Length()), odp.RemoteRead); r != odp.OK {
			q.fatal(roce.NAKRemoteAccess)
			return
		}
	}
	q.qs.add(prm.QCRxReadRequests)
	psn, n := q.epsn, roce.PacketsOf(h.Length(), q.mtu)
	q.accept(p, n, 1)
	i := q.save(savedOp{op: p.Op, unsent: true, psn: psn, n: n, rkey: h.RKey(), len: h.Length(), va: h.VA()})
	q.due(response{kind: answerRead, psn: psn, msn: q.msn, rkey: h.RKey(), left: h.Length(), va: h.VA(), saved: i, first: true})
}

// due queues an answer and works on the queue.
func (q *qp) due(r response) {
	q.items = append(q.items, r)
	if len(q.items)-q.itemHead == 1 {
		q.respond()
	}
}

// replayRead answers a repeated READ request, or the rest of one, from memory as it
// is now. Its range must be a tail of the READ that is remembered.
func (q *qp) replayRead(p *roce.Packet, psn uint32) {
	h := p.RETH()
	for i := range q.saved {
		o := &q.saved[i]
		k := roce.CmpPSN(psn, o.psn)
		if o.op != roce.RCReadRequest || k < 0 || k >= int32(o.n) {
			continue
		}
		off := uint32(k) * uint32(q.mtu)
		if h.RKey() != o.rkey || h.VA() != o.va+uint64(off) || h.Length() != o.len-off {
			return
		}
		if h.Length() > 0 {
			if _, r := q.d.keys.Check(q.user, o.rkey, h.VA(), uint64(h.Length()), odp.RemoteRead); r != odp.OK {
				return
			}
		}
		q.due(response{kind: answerRead, psn: psn, msn: q.msn, rkey: o.rkey, left: h.Length(), va: h.VA(), saved: -1, first: true})
		return
	}
}

func (q *qp) replayAtomic(p *roce.Packet, psn uint32) {
	for i := range q.saved {
		if o := &q.saved[i]; o.op == p.Op && o.psn == psn {
			kind := answerAtomic
			if o.op == roce.RCAtomicWrite {
				kind = answerAtomicWrite
			}
			q.due(response{kind: kind, psn: psn, msn: q.msn, value: o.value, saved: -1})
			return
		}
	}
}

// onRespond works on a responder's queue when a READ gets its turn or room.
func (d *Device) onRespond(arg uint64) {
	q := d.qpArg(arg)
	if q == nil {
		return
	}
	if q.readSet {
		q.readSet, q.readGrant = false, true
	}
	q.stalled = false
	q.respond()
}

// respond sends what is due, in order, until something must wait.
func (q *qp) respond() {
	for len(q.items) > q.itemHead {
		if q.readSet || q.stalled {
			return
		}
		r := &q.items[q.itemHead]
		switch r.kind {
		case answerAck, answerNAK:
			q.sendAck(r.psn, r.msn, r.syndrome)
		case answerAtomic:
			f := q.tmpl.New(&q.d.frames, roce.RCAtomicAcknowledge, r.psn, 0, 0)
			f.AETH().SetSyndrome(q.ackSyndrome())
			f.AETH().SetMSN(r.msn)
			f.AtomicAckETH().SetOriginal(r.value)
			q.enqueue(&q.rtx, q.d.getSlot(f))
		case answerAtomicWrite:
			q.answerAtomicWrite(r)
		case answerRead:
			if !q.respondRead(r) {
				return
			}
		}
		if r.saved >= 0 && int(r.saved) < len(q.saved) {
			q.saved[r.saved].unsent = false
		}
		q.popItem()
	}
}

func (q *qp) popItem() {
	q.itemHead++
	q.readGrant = false
	if q.itemHead == len(q.items) {
		q.items, q.itemHead = q.items[:0], 0
	} else if q.itemHead >= 64 && 2*q.itemHead >= len(q.items) {
		q.items = q.items[:copy(q.items, q.items[q.itemHead:])]
		q.itemHead = 0
	}
}

// respondRead makes the response packets of a READ. It reports false when it must
// wait: for its turn, or for room.
func (q *qp) respondRead(r *response) bool {
	d := q.d
	if !q.readGrant {
		var m miss
		d.touchQP(q, &m)
		if r.left > 0 {
			d.touchKey(r.rkey, r.va, &m)
		}
		now := d.e.Now()
		start, _ := d.readEng.Take(now, d.p.ReadInterval+m.stall)
		start += m.late
		if r.saved < 0 { // asked for again
			start += d.p.NackReact[1]
		}
		if start > now {
			q.readSet = true
			d.e.At(start, d.h.respond, q.arg)
			return false
		}
	}
	q.readGrant = true
	for {
		n := int(min(uint32(q.mtu), r.left))
		if q.reaction != nil && q.paced() {
			q.resting.held = true
			return false
		}
		if !d.room(n) {
			q.stalled = true
			d.c.TxStalls++
			d.stalled.push(q.arg | responderBit)
			return false
		}
		last := uint32(n) == r.left
		f := q.tmpl.New(&d.frames, readOp(r.first, last), r.psn, n, 0)
		if r.first || last {
			f.AETH().SetSyndrome(q.ackSyndrome())
			f.AETH().SetMSN(r.msn)
		}
		i := d.getSlot(f)
		if n > 0 && !d.readInto(i, q.user, r.rkey, r.va, f.Payload(), odp.RemoteRead) {
			d.dropSlot(i)
			q.failRead(r.psn, r.msn)
			return true
		}
		if q.reaction != nil {
			q.spend(len(f.B))
		}
		q.enqueue(&q.rtx, i)
		r.first = false
		r.psn = roce.AddPSN(r.psn, 1)
		r.va += uint64(n)
		r.left -= uint32(n)
		if last {
			return true
		}
	}
}

// failRead ends a READ whose memory went away: a NAK at the PSN of the response
// that cannot be made, and the QP goes to ERR.
func (q *qp) failRead(psn, msn uint32) {
	q.sendAck(psn, msn, roce.NAKRemoteAccess)
	q.qs.add(prm.QCRespRemoteAccessErrors)
	if q.state != prm.QPStateERR {
		q.d.qpEvent(prm.EventWQAccessError, q)
		q.toError()
	}
	q.items = q.items[:q.itemHead+1]
}

func readOp(first, last bool) roce.Opcode {
	switch {
	case first && last:
		return roce.RCReadResponseOnly
	case first:
		return roce.RCReadResponseFirst
	case last:
		return roce.RCReadResponseLast
	}
	return roce.RCReadResponseMiddle
}
