package hca

import "github.com/rdmasim/rdmasim/roce"

// keepsClass says whether a responder keeps an early packet of an opcode.
func (q *responder) keepsClass(info *roce.OpInfo) bool {
	return q.u.p.RepeatScheme != RepeatByOperation || info.Class != roce.ClassSend && !info.TakesReceive
}

// earlyNAKs are the PSNs of early packets whose NAKs with SACK take their time, the oldest first.
type earlyNAKs struct {
	psns []uint32
	head int
}

// sendSelectiveNAK answers a packet that came early with a NAK that names it too.
func (q *responder) sendSelectiveNAK(psn uint32) {
	t := q.u.p.NackGenerate[0]
	if t == 0 {
		q.answerSACK(psn)
		return
	}
	q.early.psns = append(q.early.psns, psn)
	q.u.e.After(t, q.u.h.sack, q.arg)
}

// onSACK sends the oldest NAK with SACK, unless the packet was executed meanwhile.
func (q *responder) onSACK() {
	e := &q.early
	if e.head == len(e.psns) { // of a connection before
		return
	}
	psn := e.psns[e.head]
	if e.head++; e.head == len(e.psns) {
		e.psns, e.head = e.psns[:0], 0
	}
	if q.takesRequests() && q.nak != rnrNAK && roce.CmpPSN(psn, q.epsn) > 0 {
		q.answerSACK(psn)
	}
}

// answerSACK queues a NAK with SACK behind what is due.
func (q *responder) answerSACK(psn uint32) {
	r := response{kind: answerSACK, psn: q.epsn, msn: q.msn, syndrome: roce.NAKSequence, saved: -1, left: psn}
	if len(q.items) > q.itemHead {
		q.items = append(q.items, r)
		return
	}
	q.leaveSACK(&r)
}

func (q *responder) leaveSACK(r *response) {
	f := q.tmpl.New(&q.u.frames, q.opcode(roce.OpSelectiveNAK), r.psn, 0, 0)
	f.AETH().SetSyndrome(r.syndrome)
	f.AETH().SetMSN(r.msn)
	f.SACKETH().SetPSN(r.left)
	q.u.c.NaksSent++
	q.u.c.SelectiveNaksSent++
	q.u.port.enqueue(&q.sender, &q.rtx, q.u.getSlot(f))
}
