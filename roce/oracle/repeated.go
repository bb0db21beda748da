package oracle

import (
	"bytes"

	"github.com/rdmasim/rdmasim/roce"
)

// checkSameRequest judges a repeated packet against its first transmission.
func (h *half) checkSameRequest(p *packet, r *rec) {
	if same(p.r, r) {
		return
	}
	defer func() {
		if !h.current(p.r) {
			h.replace(p, r)
		}
	}()
	if r.info.First && !p.r.info.First {
		h.contradict(p.r, "OR-053", r, "%s in place of %s", r.info.Name, p.r.info.Name)
		return
	}
	var what string
	switch {
	case p.r.p.Op != r.p.Op:
		what = "opcode " + r.info.Name + " in place of " + p.r.info.Name
	case !bytes.Equal(p.r.p.Ext(), r.p.Ext()):
		what = "extended headers"
	case p.r.p.PayloadLen() != r.p.PayloadLen():
		what = "length"
	default:
		h.changedPayload(p, r)
		return
	}
	h.contradict(p.r, "OR-036", r, "sent again with another %s than in frame %d", what, p.r.Number)
}

// changedPayload judges a packet that is sent again with other bytes: it is read from memory again,
// where something may have landed.
func (h *half) changedPayload(p *packet, r *rec) {
	if at := h.j.landed(h.s.src, h.s.name, p.r.Time-h.j.o.flight(), r.Time); at > 0 && h.complete() {
		h.j.constant(Inconclusive, "OR-036", r, h.s.name, "sent again with another payload than in frame %d, but frame %d brought bytes that may lie in the memory that it is read from",
			p.r.Number, at)
		return
	}
	h.report(Violation, "OR-036", r, "sent again with another payload than in frame %d", p.r.Number)
}

// insideRead judges a request whose PSN lies within those that a READ reserves.
func (h *half) insideRead(p *packet, r *rec, pos int64) {
	if r.info.Class != roce.ClassReadRequest {
		h.reserved(p, "OR-028", r, "%s at PSN %#06x, which the READ of frame %d reserves", r.info.Name, r.psn, p.r.Number)
		return
	}
	if p.class() != roce.ClassReadRequest {
		return
	}
	was, is := p.r.p.RETH(), r.p.RETH()
	skip := uint64(pos-p.pos) * uint64(h.pathMTU())
	if is.VA() != was.VA()+skip || uint64(is.Length()) != uint64(was.Length())-skip || is.RKey() != was.RKey() {
		h.reserved(p, "OR-037", r, "READ of %d bytes at %#x goes on with %d bytes at %#x, %d packets later",
			was.Length(), was.VA(), is.Length(), is.VA(), pos-p.pos)
	}
}

// reserved gives a verdict on a request within the PSNs of a READ, whose number follows from the
// path MTU.
func (h *half) reserved(p *packet, rule string, r *rec, format string, a ...any) {
	if h.guessed {
		h.report(Violation, rule, r, format, a...)
		return
	}
	h.contradict(p.r, rule, r, format, a...)
}
