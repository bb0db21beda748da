package oracle

import (
	"github.com/rdmasim/rdmasim/roce"
)

// responder is the answering side of a half, as far as the capture shows it.
type responder struct {
	proved         int64 // everything up to here was executed: a response says so
	inOrder        int64 // nothing behind here can be: it did not arrive in order
	highestInOrder int64 // the highest upper so far
	arrived        int64 // the highest position that arrived at all
	based          bool  // base is known
	base           int64 // MSN when our count began
	lastMSN        int64
	lastPos        int64 // highest position of a response
	answers        int
	lastSent       int64 // time of the last response
	dups           int   // duplicates that may be answered out of order
	duplicate      bool  // some request was a duplicate
	duplicateAt    int64 // when the last one was sent
	uncertain      bool  // frames were delayed: the order of arrival is not known
	gapped         bool  // PSNs were never sent
	dead           bool
	deadRec        *rec
	creditAt       int64
	holeDone       bool
	timerCode      int // RNR timer code seen, plus 1

	nakOut, rnrOut int64 // position of an outstanding NAK; -1
	nakOutAt       int64 // when the sequence NAK was sent
	gapAt          int64 // when something arrived behind a gap, 0
	gapRec         *rec
	blame          string // rule that is broken if the responder is alive
	blameRec       *rec
	runs           []*run
	cur            *run

	// After a restart: the frame, and what the old connection would have answered.
	restartRec *rec
	oldMSN     int64
	oldNext    int64
}

// arriveAtResponder passes a packet to the responder, unless the frame was lost.
func (h *half) arriveAtResponder(p *packet, r *rec, pos int64) {
	switch r.Fate {
	case Lost:
		return
	case Corrupted:
		p.corrupted = true
		return
	case Edited:
		h.report(Inconclusive, "OR-002", r, "the frame was edited on its way: what follows is not judged")
		h.stop(r)
		return
	case Late:
		h.uncertain, h.duplicate = true, true
		h.dups += 1 << 20
	}
	n := 1
	if r.Fate == Twice {
		n = 2
	}
	p.delivered = true
	p.arrivals += n
	p.askedSince = r.Time
	h.arrived = max(h.arrived, p.end-1)
	for range n {
		h.execute(p, r, pos)
	}
}

func (h *half) execute(p *packet, r *rec, pos int64) {
	again := false
	switch {
	case pos > h.inOrder+1:
		if h.uncertain { // it may come in order yet
			h.inOrder = max(h.inOrder, p.end-1)
			break
		}
		if h.hole || h.gapped {
			h.inOrder = p.end - 1
			break
		}
		if h.nakOut < 0 && h.rnrOut < 0 && h.gapAt == 0 {
			h.gapAt, h.gapRec = r.Time, r
		}
		if h.j.o.Sender != GoBackN {
			p.kept = r
		}
		return
	case pos == h.inOrder+1:
		h.inOrder = p.end - 1
		h.gapAt = 0
		h.nakOut, h.rnrOut = -1, -1
	default:
		again = true
		h.duplicate, h.duplicateAt = true, r.Time
		h.dups++
		h.nakOut = -1
	}
	h.startReadResponses(p, r, pos, again)
	for q := h.at(h.inOrder + 1); q != nil && q.kept != nil && q.pos == h.inOrder+1; q = h.at(h.inOrder + 1) {
		h.inOrder = q.end - 1
		h.startReadResponses(q, q.kept, q.pos, false)
	}
	h.highestInOrder = max(h.highestInOrder, h.inOrder)
}

// startReadResponses notes a READ that is now to be answered.
func (h *half) startReadResponses(p *packet, r *rec, pos int64, again bool) {
	if p.class() == roce.ClassReadRequest && r.info.Class == roce.ClassReadRequest {
		h.runs = append(h.runs, &run{pk: p, first: pos, next: pos, end: p.end, length: r.p.RETH().Length(), again: again})
	}
}

// response takes a response of the peer.
func (h *half) response(r *rec) {
	h.watch(r, h.paired())
	if h.blind {
		h.seen = r.Time
		return
	}
	h.seen = r.Time
	if !h.begun {
		h.j.constant(Inconclusive, "OR-002", r, h.s.peer.name, "a response, and no request before it")
		return
	}
	pos := h.position(r.psn)
	if !h.wasRequested(r, pos) {
		return
	}
	if h.dead {
		h.report(h.afterFatal(r), "OR-072", r, "%s after the fatal NAK of frame %d", r.info.Name, h.deadRec.Number)
		return
	}
	if h.blame != "" {
		h.report(h.violationUnlessLost(), h.blame, h.blameRec, "it arrived and was not answered before the timer ran out")
		h.blame = ""
	}
	p := h.at(pos)
	if p == nil && !h.complete() {
		h.unseen(r, pos)
		return
	}
	if p == nil { // a PSN that was skipped, which has its verdict: what follows means nothing
		h.stop(r)
		return
	}
	h.answers++
	switch r.info.Class {
	case roce.ClassAck:
		h.acknowledge(r, p, pos)
	case roce.ClassSelectiveNAK:
		h.selectiveNAK(r, pos)
	case roce.ClassReadResponse:
		h.readResponse(r, p, pos)
	case roce.ClassAtomicAck:
		h.atomicResponse(r, p, pos)
	}
	if r.info.Headers.Has(roce.HasAETH) && r.p.AETH().Syndrome().Type() == roce.SyndromeTypeAck {
		h.takeCredits(r)
	}
	h.lastSent = r.Time
	if r.Fate == Edited {
		h.report(Inconclusive, "OR-002", r, "the frame was edited on its way: what follows is not judged")
		h.stop(r)
	}
	if r.Fate == Late || r.Fate == Twice {
		h.uncertain = h.uncertain || r.Fate == Late
	}
}

func (h *half) afterFatal(r *rec) Kind {
	if r.Time-h.deadRec.Time <= h.j.o.flight() && r.info.Class == roce.ClassReadResponse {
		return Inconclusive
	}
	return h.violationUnlessLost()
}

// wasRequested judges whether a response is for something that was sent.
func (h *half) wasRequested(r *rec, pos int64) bool {
	if h.complete() && h.hole && pos >= h.holeAt && !h.holeDone {
		if r.info.Class == roce.ClassAck && r.p.AETH().Syndrome() == roce.NAKSequence {
			h.holeDone = true
			h.report(Violation, "OR-028", h.holeRec, "PSN %#06x, the next is %#06x", h.holeRec.psn, psn(h.holeAt))
		} else {
			h.disprove(r, "PSN %#06x is acknowledged, and %#06x is missing", r.psn, psn(h.holeAt))
		}
	}
	if !h.complete() {
		return h.answersSeen(r, pos)
	}
	if pos >= h.pk[0].pos && pos < h.next {
		return true
	}
	if pos < h.pk[0].pos && h.middle {
		return false
	}
	if h.restartRec != nil && pos < h.next && pos >= h.next-(h.next-h.oldNext) {
		return false
	}
	if h.proved < h.pk[0].pos && r.info.Class == roce.ClassAck && r.p.AETH().MSN() == 0 && h.j.o.StartPSN == nil {
		h.report(Inconclusive, "OR-027", r, "the responder, which has executed nothing, expects another PSN than %#06x: the two QPs may disagree", psn(h.pk[0].pos))
		return false
	}
	if h.disprove(r, "%s for PSN %#06x, whose request is missing", r.info.Name, r.psn) {
		return h.answersSeen(r, pos)
	}
	rule := "OR-058"
	if r.info.Class == roce.ClassReadResponse {
		rule = "OR-083"
	}
	h.report(Violation, rule, r, "%s for PSN %#06x, which was never requested", r.info.Name, r.psn)
	return false
}

// acknowledge judges an Acknowledge.
func (h *half) acknowledge(r *rec, p *packet, pos int64) {
	aeth := r.p.AETH()
	syn := aeth.Syndrome()
	if syn&0x80 != 0 {
		h.j.verdict(Warning, "OR-014", r.Number, h.s.name, "bit 7 of the syndrome %#02x", uint8(syn))
	}
	switch syn.Type() {
	case roce.SyndromeTypeAck:
		h.ack(r, p, pos)
	case roce.SyndromeTypeRNR:
		h.rnr(r, p, pos)
	case roce.SyndromeTypeNAK:
		if syn == roce.NAKSequence {
			h.sequenceNAK(r, p, pos)
		} else {
			h.fatal(r, p, pos)
		}
	default:
		h.j.verdict(Violation, "OR-079", r.Number, h.s.name, "reserved syndrome %#02x", uint8(syn))
	}
}

func (h *half) ack(r *rec, p *packet, pos int64) {
	h.checkExecuted(r, p, pos)
	if p.responds() && !h.duplicate {
		h.report(Violation, "OR-063", r, "an ACK for the %s of frame %d", p.r.info.Name, p.r.Number)
	}
	if pos < h.lastPos {
		h.checkOrder(r, "OR-059", Warning)
	}
	h.checkMSN(r, p.msn, h.before(h.highestInOrder+1))
	h.proved, h.lastPos = max(h.proved, pos), max(h.lastPos, pos)
	if r.Fate.arrives() {
		if p.responds() && h.duplicate {
			h.advance(p.pos, r.Time)
			return
		}
		h.advance(pos+1, r.Time)
	}
}

// checkOrder judges a response before one that was sent already: only a duplicate
// request explains it.
func (h *half) checkOrder(r *rec, rule string, k Kind) {
	if h.dups > 0 {
		h.dups--
		return
	}
	h.report(k, rule, r, "PSN %#06x after a response for %#06x, and no request was sent again", r.psn, psn(h.lastPos))
}

// checkExecuted judges whether a response may claim that a position was executed.
func (h *half) checkExecuted(r *rec, p *packet, pos int64) {
	if pos <= h.inOrder {
		if p.r.info.Class == roce.ClassAtomic && p.r.p.AtomicETH().VA()&7 != 0 {
			h.wrong(p, "OR-035", r, "the atomic of frame %d at %#x was executed", p.r.Number, p.r.p.AtomicETH().VA())
		}
		return
	}
	if h.uncertain {
		return
	}
	missing := h.at(h.inOrder + 1)
	rule := "OR-058"
	if missing != nil && missing.corrupted && !missing.delivered {
		rule = "OR-012"
	}
	h.report(Violation, rule, r, "PSN %#06x is acknowledged, %#06x has not arrived in order", r.psn, psn(h.inOrder+1))
	h.inOrder = pos
	h.highestInOrder = max(h.highestInOrder, pos)
}

// checkMSN judges the MSN of a response: at least what its PSN proves, at most what
// arrived.
func (h *half) checkMSN(r *rec, least, most int64) {
	if !h.complete() {
		h.learnMSN(r, least, most)
		return
	}
	got := int64(r.p.AETH().MSN())
	if !h.based {
		h.based = true
		fits := within(got, least, most)
		if h.restartRec != nil && !fits && within(got, h.oldMSN+1, h.oldMSN+most) {
			h.report(Violation, "OR-028", h.restartRec, "the responder goes on counting (MSN %d): PSN %#06x is no new connection's, %#06x was due",
				got, h.restartRec.psn, psn(h.oldNext))
		}
	}
	least, most = least+h.base, most+h.base
	switch {
	case within(got, least, most):
	case h.duplicate && within(got, least, most+16) && h.dups > 0 && !h.uncertain:
		h.report(Violation, "OR-076", r, "MSN %d after a duplicate, %d requests are complete", got, most)
	case !h.uncertain:
		h.report(Violation, "OR-061", r, "MSN %d, at PSN %#06x %d to %d requests are complete", got, r.psn, least&roce.PSNMask, most&roce.PSNMask)
	}
	if h.answers > 1 && roce.CmpPSN(uint32(got), uint32(h.lastMSN)) < 0 {
		h.report(h.violationUnlessLost(), "OR-062", r, "MSN %d after %d", got, h.lastMSN)
	}
	h.lastMSN = got
}

// within compares an MSN, which has 24 bits, with counts that have more.
func within(got, least, most int64) bool {
	return roce.CmpPSN(uint32(got), uint32(least)) >= 0 && roce.CmpPSN(uint32(got), uint32(most)) <= 0
}

// takeCredits takes the credits of a response: receives beyond the requests that its MSN counts.
func (h *half) takeCredits(r *rec) {
	code := r.p.AETH().Syndrome().Value()
	if code == roce.CreditUnlimited {
		h.unlimited = h.unlimited || r.Fate.arrives()
		return
	}
	if h.j.o.SRQ {
		h.j.verdict(Violation, "OR-079", r.Number, h.s.name, "credit code %d from a QP with an SRQ", code)
	}
	if !r.Fate.arrives() {
		return
	}
	if !h.limited {
		h.limited, h.creditAt = true, r.Time
	}
	newest := h.base + h.count
	msn := newest + int64(roce.CmpPSN(r.p.AETH().MSN(), uint32(newest)&roce.PSNMask))
	h.lsn = max(h.lsn, msn+int64(roce.Credits(code)))
}
