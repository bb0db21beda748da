package oracle

import "slices"

// A requester acts on a response when it has arrived, not when it is sent. Until then it goes on as
// before, and what it does looks as if it had not heard of the response. What may be explained in
// this way is kept here.

// inFlight is what a requester may still do because of what it has not heard yet.
type inFlight struct {
	// passNext is where the retransmission under way was when a response moved it on, -1: its
	// requester goes on there until that response has arrived, and behind it where the ones before
	// have moved it; the last one arrives at passUntil at the latest.
	passNext, passUntil int64
	naks                []heldNAK
	landed              int64 // behind the last answer of a READ or ATOMIC that was not dropped
}

// heldNAK is a sequence NAK that a requester may follow until a time, though newer responses take
// its place, or though its packet was sent before it can have come.
type heldNAK struct {
	pos, until int64
	superseded bool // a requester that acts on it later goes back to what is the oldest outstanding request by then
}

// mostHeldNAKs bounds what is remembered of them; a connection has one or two at once.
const mostHeldNAKs = 16

// moved notes that a response has moved the retransmission that was due at a position.
func (f *inFlight) moved(from, until int64) {
	if f.passNext < 0 {
		f.passNext = from
	}
	f.passUntil = until
}

// goesOn says whether a packet before the one that is due is what a requester sends next that has
// not heard of the newest responses.
func (f *inFlight) goesOn(pos, end, due, now int64) bool {
	if f.passNext < 0 || pos < f.passNext || pos >= due || now > f.passUntil {
		return false
	}
	f.passNext = end
	return true
}

// hold keeps a NAK that may be followed until a time.
func (f *inFlight) hold(pos, until, now int64, superseded bool) {
	keep := slices.DeleteFunc(f.naks, func(n heldNAK) bool { return n.until < now || n.pos == pos })
	if len(keep) == mostHeldNAKs {
		keep = keep[:copy(keep, keep[1:])]
	}
	f.naks = append(keep, heldNAK{pos, until, superseded})
}

// follows says whether a packet is what one of these NAKs asks for, and takes that NAK. The oldest
// outstanding request may be any up to the one that the newest responses leave, which may be on
// their way.
func (f *inFlight) follows(pos, unacked, now int64) bool {
	for i, n := range f.naks {
		if now <= n.until && (n.pos == pos || n.superseded && pos > n.pos && pos <= unacked) {
			f.naks = append(f.naks[:i], f.naks[i+1:]...)
			return true
		}
	}
	return false
}

// landsAt is the answer for a position of a READ, or that of an ATOMIC, which its requester takes.
func (h *half) landsAt(p *packet, pos, now int64) {
	was := p.got < p.end
	p.got, p.heard, h.landed = pos+1, now, max(h.landed, pos+1)
	if was && p.got == p.end {
		h.unanswered--
	}
}

// forget makes an answer one that has not come, from a position on.
func (h *half) forget(p *packet, pos int64) {
	if p.responds() && p.got == p.end && pos < p.end {
		h.unanswered++
	}
	p.got = pos
}

// askedAgain is a request for an answer that has come, of a requester that pages. One that has not
// heard of that answer yet may ask for another reason, and go on with new requests when it has;
// what it keeps is known when it asks later.
func (h *half) askedAgain(p *packet, r *rec, pos int64) {
	if r.Time-p.heard > h.j.o.flight() {
		h.takeBack(p, r, pos)
		return
	}
	h.report(Note, "OR-041", r, "asked for again while or after its answer comes, as a requester may whose pages were not there")
	h.rnrPos, h.nakPos = -1, -1
}

// takeBack is an answer that has found no page to land on: its requester drops it and all behind
// it, and asks again.
func (h *half) takeBack(p *packet, r *rec, pos int64) {
	h.report(Note, "OR-041", r, "asked for again after its answer, as a requester does whose pages were not there")
	h.unackedIndex = min(h.unackedIndex, h.index(pos))
	h.unacked, h.acked = pos, min(h.acked, pos)
	h.forget(p, pos)
	for _, later := range h.pk[h.unackedIndex:] {
		if later.pos >= h.landed {
			break
		}
		if later.pos > pos {
			h.forget(later, later.pos)
		}
	}
	h.landed = pos
	h.rnrPos, h.nakPos = -1, -1
}
