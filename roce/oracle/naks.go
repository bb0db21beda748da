package oracle

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce"
)

// rnr judges an RNR NAK.
func (h *half) rnr(r *rec, p *packet, pos int64) {
	code := int(r.p.AETH().Syndrome().Value())
	if !p.r.info.TakesReceive {
		k := Violation
		if h.j.o.ODP {
			k = Note
		}
		if k == Violation {
			h.wrong(p, "OR-068", r, "RNR NAK for the %s of frame %d", p.r.info.Name, p.r.Number)
		} else {
			h.report(k, "OR-068", r, "RNR NAK for the %s of frame %d", p.r.info.Name, p.r.Number)
		}
	}
	if want := h.j.o.RNRTimer; want != nil && *want != code {
		h.j.verdict(Violation, "OR-069", r.Number, h.s.name, "timer code %d, min_rnr_timer is %d", code, *want)
	} else if want == nil && h.timerCode != 0 && h.timerCode != code+1 {
		h.report(Note, "OR-069", r, "timer code %d, before %d", code, h.timerCode-1)
	}
	h.timerCode = code + 1
	switch {
	case pos <= h.proved:
		h.report(Violation, "OR-075", r, "RNR NAK for PSN %#06x, which was executed", r.psn)
	case pos == h.inOrder+1 && p.refusals < p.arrivals: // it came again before the NAK before this one left
	case pos > h.inOrder && !h.uncertain:
		h.report(Violation, "OR-070", r, "RNR NAK for PSN %#06x, expected is %#06x", r.psn, psn(h.inOrder+1))
	}
	p.refusals++
	h.nakMSN(r, pos, "OR-070")
	h.rewindResponder(pos)
	h.rnrOut = pos
	if r.Fate.arrives() {
		h.advance(pos, r.Time)
		h.nakPos = -1
		// Otherwise it is an implied NAK of a READ or ATOMIC before it, or the NAK of a second try
		// that was on its way: the time of the first one runs.
		if h.unacked == pos && !(h.rnrPos == pos && r.Time < h.rnrUntil) {
			h.rnrPos, h.rnrAt, h.rnrFrame = pos, r.Time, r.Number
			h.rnrUntil = r.Time + roce.RNRTimer(uint8(code))
		}
	}
}

// nakMSN judges the MSN of a NAK: exactly what is complete before its PSN.
func (h *half) nakMSN(r *rec, pos int64, rule string) {
	if !h.based || !h.complete() {
		h.checkMSN(r, h.before(pos), h.before(pos))
		return
	}
	want := h.base + h.before(pos)
	got := int64(r.p.AETH().MSN())
	if roce.CmpPSN(uint32(got), uint32(want)) != 0 {
		h.report(Violation, rule, r, "a NAK with MSN %d, before PSN %#06x %d requests are complete", got, r.psn, want&roce.PSNMask)
	}
	h.lastMSN = got
}

// rewindResponder makes the responder expect pos again: what arrived behind it was dropped.
func (h *half) rewindResponder(pos int64) {
	h.proved = max(h.proved, pos-1)
	h.lastPos = max(h.lastPos, pos-1)
	if !h.uncertain {
		h.inOrder = pos - 1
	}
	h.runs = slices.DeleteFunc(h.runs, func(x *run) bool { return x.first >= pos })
	h.gapAt = 0
}

// impliedToo is how long a NAK may be followed that is an implied one too: there is a timer in it.
const impliedToo = 10_000_000_000

// sequenceNAK judges a NAK for a PSN that is missing.
func (h *half) sequenceNAK(r *rec, p *packet, pos int64) {
	switch {
	case h.uncertain:
	case h.rnrOut == pos:
		h.report(Violation, "OR-067", r, "sequence NAK for PSN %#06x, which drew an RNR NAK and was not sent since", r.psn)
	case h.nakOut == pos && !(h.duplicate && h.duplicateAt+h.j.o.flight() >= h.nakOutAt): // a duplicate that comes behind the NAK has it sent again
		h.report(Violation, "OR-065", r, "a second NAK for PSN %#06x, which was not sent since", r.psn)
	case pos <= h.proved:
		h.report(Violation, "OR-064", r, "NAK for PSN %#06x, which was executed", r.psn)
	case pos > h.inOrder+1:
		h.report(Violation, "OR-064", r, "NAK for PSN %#06x, expected is %#06x", r.psn, psn(h.inOrder+1))
	case h.arrived <= p.end-1:
		h.report(h.violationUnlessLost(), "OR-064", r, "NAK for PSN %#06x, and nothing behind it has arrived", r.psn)
	case pos <= h.inOrder && h.j.o.Delivered:
		h.report(Violation, "OR-064", r, "NAK for PSN %#06x, which has arrived", r.psn)
	}
	h.nakMSN(r, pos, "OR-061")
	if pos > h.inOrder || !h.complete() { // otherwise the NAK waited behind READ responses, and its PSN has come
		h.rewindResponder(pos)
	}
	h.nakOut, h.nakOutAt = pos, r.Time
	if r.Fate.arrives() {
		h.advance(pos, r.Time)
		switch {
		case pos > h.unacked && h.j.o.Sender != GoBackN: // it is an implied NAK too, of a READ or ATOMIC before it, which may be all that is followed
			h.hold(pos, r.Time+impliedToo, r.Time, false)
		case pos >= h.unacked:
			if h.nakPos >= 0 && h.nakPos != pos {
				h.supersedeNAK(r.Time)
			}
			h.nakPos, h.nakAt, h.nakFrame = pos, r.Time, r.Number
		}
	}
}

// selectiveNAK judges a NAK with SACK: the PSN that is expected, and one behind it that has
// arrived.
func (h *half) selectiveNAK(r *rec, pos int64) {
	if s := r.p.AETH().Syndrome(); s != roce.NAKSequence {
		h.report(Violation, "OR-079", r, "a NAK with SACK whose syndrome is %v", s)
		return
	}
	sack := r.p.SACKETH().PSN()
	got := h.position(sack)
	p := h.at(got)
	switch {
	case got <= pos || got >= h.next && h.complete():
		h.report(Violation, "OR-064", r, "NAK for PSN %#06x with a SACK of PSN %#06x", r.psn, sack)
		return
	case h.uncertain || p == nil:
	case pos <= h.proved:
		h.report(Violation, "OR-064", r, "NAK for PSN %#06x, which was executed", r.psn)
	case pos > h.inOrder+1:
		h.report(Violation, "OR-064", r, "NAK for PSN %#06x, expected is %#06x", r.psn, psn(h.inOrder+1))
	case p.arrivals == 0:
		h.report(h.violationUnlessLost(), "OR-064", r, "NAK with a SACK of PSN %#06x, which has not arrived", sack)
	}
	h.nakMSN(r, pos, "OR-061")
	h.gapAt = 0
	if r.Fate.arrives() {
		h.advance(pos, r.Time)
		h.sacked = max(h.sacked, got+1)
	}
}

// fatal judges a NAK that ends the connection.
func (h *half) fatal(r *rec, p *packet, pos int64) {
	syn := r.p.AETH().Syndrome()
	switch {
	case pos <= h.proved:
		h.report(Violation, "OR-075", r, "%v for PSN %#06x, which was executed", syn, r.psn)
	case h.j.o.ODP && pos == h.rnrOut: // its pages cannot be had, which the responder learns before the peer tries again
	case pos > h.inOrder && !h.uncertain:
		h.report(Violation, "OR-071", r, "%v for PSN %#06x, expected is %#06x", syn, r.psn, psn(h.inOrder+1))
	}
	class := p.class()
	switch {
	case syn == roce.NAKRemoteAccess && p.r.info.Headers.Has(roce.HasXRCETH): // it names no SRQ of the target's domain, whatever it asks
	case class == roce.ClassSend && syn == roce.NAKRemoteAccess && !p.r.info.Headers.Has(roce.HasIETH): // a key that cannot be invalidated
		h.wrong(p, "OR-071", r, "%v for a SEND", syn)
	case syn == roce.NAKRemoteAccess && zeroLength(p.r):
		h.wrong(p, "OR-074", r, "%v for a request of length 0", syn)
	case class == roce.ClassSend && h.j.o.Receive > 0 && h.sendLength(p) > h.j.o.Receive && syn != roce.NAKInvalidRequest:
		h.wrong(p, "OR-071", r, "%v for a SEND of %d bytes into a receive of %d: an invalid request", syn, h.sendLength(p), h.j.o.Receive)
	case class == roce.ClassAtomic && syn == roce.NAKInvalidRequest && p.r.p.AtomicETH().VA()&7 != 0:
		h.j.verdict(Warning, "OR-035", p.r.Number, h.s.name, "an atomic at %#x", p.r.p.AtomicETH().VA())
	case syn == roce.NAKInvalidRD:
		h.j.verdict(Violation, "OR-071", r.Number, h.s.name, "%v on a connection", syn)
	}
	h.nakMSN(r, pos, "OR-061")
	h.rewindResponder(pos)
	h.dead, h.deadRec, h.deadAt = true, r, r.Time
	if r.Fate.arrives() {
		h.advance(pos, r.Time)
	}
}

func zeroLength(r *rec) bool {
	return r.info.Headers.Has(roce.HasRETH) && r.p.RETH().Length() == 0
}

// sendLength is how many bytes a SEND has up to and with a packet.
func (h *half) sendLength(p *packet) int {
	n := 0
	for i := h.index(p.pos); i >= 0; i-- {
		if !h.current(h.pk[i].r) || i < h.index(p.pos) && h.pk[i].end != h.pk[i+1].pos { // of another connection, or behind a gap
			break
		}
		n += h.pk[i].r.p.PayloadLen()
		if h.pk[i].r.info.First {
			break
		}
	}
	return n
}
