package oracle

import (
	"github.com/rdmasim/rdmasim/roce"
)

// readResponse judges a READ response, and the empty one of FLUSH and ATOMIC WRITE.
func (h *half) readResponse(r *rec, p *packet, pos int64) {
	if r.info.Headers.Has(roce.HasAETH) {
		if syn := r.p.AETH().Syndrome(); syn.Type() != roce.SyndromeTypeAck {
			h.j.verdict(Violation, "OR-084", r.Number, h.s.name, "%v in a READ response", syn)
		}
	}
	switch p.class() {
	case roce.ClassReadRequest:
		h.checkReadPayload(r, p, pos)
	case roce.ClassFlush, roce.ClassAtomicWrite:
		if r.p.PayloadLen() != 0 {
			h.wrong(p, "OR-087", r, "%d bytes of payload answer %s", r.p.PayloadLen(), p.r.info.Name)
		}
	default:
		h.wrong(p, "OR-063", r, "a READ response for the %s of frame %d", p.r.info.Name, p.r.Number)
		return
	}
	h.checkExecuted(r, p, p.pos)
	if r.info.Headers.Has(roce.HasAETH) {
		h.checkMSN(r, p.msn, h.before(h.highestInOrder+1))
	}
	h.proved, h.lastPos = max(h.proved, pos), max(h.lastPos, pos)
	if r.Fate.arrives() {
		if p.got == pos && h.answeredBefore(p) {
			h.landsAt(p, pos, r.Time)
		}
		h.advance(pos, r.Time)
	}
}

// answeredBefore reports whether each READ and ATOMIC before p has its response. A requester
// drops responses that come behind a missing one.
func (h *half) answeredBefore(p *packet) bool {
	for i := h.unackedIndex; i < len(h.pk) && h.pk[i].pos < p.pos; i++ {
		if q := h.pk[i]; q.responds() && q.got < q.end {
			return false
		}
	}
	return true
}

// checkReadPayload judges a response against the READ that it belongs to.
func (h *half) checkReadPayload(r *rec, p *packet, pos int64) {
	x := h.readInProgress(r, p, pos)
	if x == nil {
		return
	}
	m := int64(h.pathMTU())
	n := x.end - x.first
	want := uint8(roce.OpReadResponseMiddle)
	switch {
	case n == 1:
		want = roce.OpReadResponseOnly
	case pos == x.first:
		want = roce.OpReadResponseFirst
	case pos == x.end-1:
		want = roce.OpReadResponseLast
	}
	if op := r.p.Op.Operation(); op != want && !h.guessed {
		h.report(Violation, "OR-081", r, "%s is response %d of %d; it should be %s", r.info.Name, pos-x.first+1, n, r.p.Op.Transport().Opcode(want).Info().Name)
	}
	size := m
	if pos == x.end-1 {
		size = int64(x.length) - (n-1)*m
	}
	if int64(r.p.PayloadLen()) != size && !h.guessed {
		h.report(Violation, "OR-082", r, "response %d of %d has %d bytes, due are %d", pos-x.first+1, n, r.p.PayloadLen(), size)
	}
	x.next = pos + 1
	if x.next == x.end {
		h.cur = nil
	}
}

// readInProgress is the READ that a response goes on with or begins; nil when the response
// is out of order, which it reports.
func (h *half) readInProgress(r *rec, p *packet, pos int64) *run {
	if x := h.cur; x != nil && x.pk == p && x.next == pos {
		return x
	}
	for i, x := range h.runs {
		if x.first != pos || x.pk != p {
			continue
		}
		if c := h.cur; c != nil && !x.again && !h.uncertain {
			h.report(Violation, "OR-081", r, "the READ of frame %d was answered up to PSN %#06x only", c.pk.r.Number, psn(c.next-1))
		}
		if pos <= h.lastPos && !x.again && !h.uncertain {
			h.report(Violation, "OR-080", r, "the READ of frame %d is answered after a response for PSN %#06x", p.r.Number, psn(h.lastPos))
		}
		h.cur = x
		h.runs = append(append([]*run(nil), h.runs[:i]...), h.runs[i+1:]...)
		return x
	}
	if !h.uncertain {
		h.report(Violation, "OR-081", r, "response with PSN %#06x is out of order", r.psn)
	}
	if x := h.cur; x != nil && x.pk == p && pos > x.next && pos < x.end {
		return x
	}
	return nil
}

// word is 8 bytes of a responder's memory.
type word struct {
	host roce.GID
	rkey uint32
	va   uint64
}

// atomicResponse judges an ATOMIC ACK.
func (h *half) atomicResponse(r *rec, p *packet, pos int64) {
	if p.class() != roce.ClassAtomic {
		h.wrong(p, "OR-063", r, "an ATOMIC ACK for the %s of frame %d", p.r.info.Name, p.r.Number)
		return
	}
	if syn := r.p.AETH().Syndrome(); syn.Type() != roce.SyndromeTypeAck {
		h.j.verdict(Violation, "OR-084", r.Number, h.s.name, "%v in an ATOMIC ACK", syn)
	}
	value := r.p.AtomicAckETH().Original()
	h.checkExecuted(r, p, pos)
	if p.answered {
		if value != p.answer {
			h.wrong(p, "OR-078", r, "the repeated atomic is answered with %#x, first with %#x", value, p.answer)
		}
		if p.sent == 1 && h.dups == 0 {
			h.report(Warning, "OR-059", r, "a second answer, and the request was not sent again")
		}
	} else {
		if pos < h.lastPos {
			h.checkOrder(r, "OR-080", Violation)
		}
		h.checkAtomicValue(r, p, value)
	}
	p.answered, p.answer = true, value
	h.checkMSN(r, p.msn, h.before(h.highestInOrder+1))
	h.proved, h.lastPos = max(h.proved, pos), max(h.lastPos, pos)
	if r.Fate.arrives() {
		if h.answeredBefore(p) {
			h.landsAt(p, pos, r.Time)
		}
		h.advance(pos, r.Time)
	}
}

// checkAtomicValue follows what the atomics leave in memory.
func (h *half) checkAtomicValue(r *rec, p *packet, value uint64) {
	a := p.r.p.AtomicETH()
	_, dst := ends(&p.r.p)
	key := word{dst, a.RKey(), a.VA()}
	if was, ok := h.j.words[key]; ok && was != value && h.j.o.OnlyAtomics {
		h.report(Violation, "OR-086", r, "the original value is %#x, the atomic before left %#x", value, was)
	}
	switch {
	case p.r.p.Op.Operation() == roce.OpFetchAdd:
		value += a.SwapAdd()
	case value == a.Compare():
		value = a.SwapAdd()
	}
	h.j.words[key] = value
}
