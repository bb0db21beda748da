package oracle

import (
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
)

// A capture that is not complete may lack any frame: it begins late, ends early, shows one
// direction, or its tap has lost some. What was not seen is then no proof that it was not sent, and
// most rules of a connection rest on just that: a retransmission has no cause, an answer no
// request, an MSN no message. Their verdicts are inconclusive. A violation is what no frame that
// may be missing excuses:
//
//   - what a frame shows by itself;
//   - what contradicts a frame that was seen, of the same connection: two requests with one PSN, or
//     with PSNs that follow each other, an answer that its request does not have.
//
// Queue pairs that are connected anew count from any PSN. That takes a while in which neither side
// sends, so frames are known to be of one connection where no pause lies between them.

// history is what is known of the connection from its frames alone.
type history struct {
	unbroken int   // number of the frame since which no pause was long enough for a new connection
	alive    int64 // time of the last frame that is certainly of this connection
	lacking  bool  // frames are missing, though the capture is declared to be complete
	shifted  int   // packets that were moved to take in those that come out of order
	slack    int64 // PSNs that are missing, each of which may have been a request
	low      int64 // least and most that the MSN was when our count began
	high     int64
	partial  account
}

// account is what a flow says about frames that are missing.
type account struct {
	gaps  []Gap
	count int
	until int // the last frame that was judged
}

// Bounds of what is kept of a flow: gaps that are named, and work for packets that come out of
// order, which a forged capture can have many of.
const (
	mostGaps    = 5
	mostShifted = 1 << 27
)

// complete says whether what was not seen was not sent.
func (h *half) complete() bool { return h.j.o.Complete && !h.lacking }

// watch notes a frame of the connection.
func (h *half) watch(r *rec, certain bool) {
	if !certain {
		return
	}
	if h.unbroken == 0 || r.Time-h.alive >= h.j.o.flight()/2 {
		h.unbroken = r.Number
	}
	h.alive = r.Time
}

// current says whether a frame that was seen is certainly of the connection as it is now.
func (h *half) current(r *rec) bool { return h.complete() || r.Number >= h.unbroken }

// paired says whether the peer certainly answers this stream.
func (h *half) paired() bool { return h.complete() || h.s.byPort }

// report gives a verdict by a rule that rests on what was not seen.
func (h *half) report(k Kind, rule string, r *rec, format string, a ...any) {
	switch {
	case h.complete():
		h.j.verdict(k, rule, r.Number, h.s.name, format, a...)
	case k == Note:
		h.j.verdict(k, rule, r.Number, h.s.name, format, a...)
	case k == Inconclusive:
		h.j.constant(k, rule, r, h.s.name, format, a...)
	default:
		h.j.unproved(k, rule, r, h.s.name, format, a...)
	}
}

// unproved gives a verdict that only holds if no frame is missing.
func (j *judge) unproved(k Kind, rule string, r *rec, flow, format string, a ...any) {
	if k == Violation {
		j.res.Unproved++
	}
	j.constant(Inconclusive, rule, r, flow, "%s, unless frames are missing", fmt.Sprintf(format, a...))
}

// contradict gives a verdict on a frame that contradicts another one, of the same direction.
func (h *half) contradict(seen *rec, rule string, r *rec, format string, a ...any) {
	if h.current(seen) {
		h.j.verdict(Violation, rule, r.Number, h.s.name, format, a...)
		return
	}
	h.report(Violation, rule, r, format, a...)
}

// wrong gives a verdict on a response that contradicts its request.
func (h *half) wrong(p *packet, rule string, r *rec, format string, a ...any) {
	if h.paired() {
		h.contradict(p.r, rule, r, format, a...)
		return
	}
	h.report(Violation, rule, r, format, a...)
}

// missing notes where the frames show that some are missing.
func (h *half) missing(r *rec, format string, a ...any) {
	if h.partial.count++; len(h.partial.gaps) < mostGaps {
		h.partial.gaps = append(h.partial.gaps, Gap{r.Number, fmt.Sprintf(format, a...)})
	}
}

// disprove ends the belief that the capture is complete, which is only declared. It reports whether
// it is none now.
func (h *half) disprove(r *rec, format string, a ...any) bool {
	if h.j.o.Complete && !h.j.o.Declared {
		return false
	}
	if h.complete() {
		h.lacking, h.low, h.high = true, h.base, h.base
	}
	h.missing(r, format, a...)
	return true
}

// stop ends the judgement of a flow: what follows is only counted.
func (h *half) stop(r *rec) {
	if !h.blind {
		h.blind, h.partial.until = true, r.Number
	}
}

// countOnly takes a request that is not judged.
func (h *half) countOnly(r *rec) {
	if !h.begun {
		h.beginConnection(r)
	}
	pos := h.position(r.psn)
	if pos < h.next && !(r.info.First && r.Time-h.seen >= h.j.o.flight()/2 && len(h.pk) > 0 && pos == h.pk[0].pos) {
		h.resent++
		return
	}
	h.next = h.endOf(r, pos)
}

// endOf is behind the last position that a request at a position reserves.
func (h *half) endOf(r *rec, pos int64) int64 {
	if r.info.Class == roce.ClassReadRequest {
		return pos + int64(roce.PacketsOf(r.p.RETH().Length(), h.pathMTU()))
	}
	return pos + 1
}

// skipped takes a new request that is not the next one.
func (h *half) skipped(r *rec, pos int64) {
	h.report(Inconclusive, "OR-028", r, "PSN %#06x, the next is %#06x: those between were never sent, or are not in the capture", r.psn, psn(h.next))
	h.missing(r, "PSN %#06x to %#06x are missing before it", psn(h.next), psn(pos-1))
	h.slack += pos - h.next
}

// fill takes a request whose first transmission is missing, since a later one was seen before.
func (h *half) fill(r *rec, pos int64) {
	i := h.index(pos) + 1
	if h.shifted += len(h.pk) - i; h.shifted > mostShifted {
		h.report(Inconclusive, "OR-002", r, "too many requests come out of order: nothing more is judged")
		h.stop(r)
		return
	}
	p := &packet{pos: pos, end: h.endOf(r, pos), r: r, last: r.Time, sent: 1, ackReq: r.p.BTH().AckReq(), got: pos}
	if i > 0 { // at least: it is counted with those that are missing
		p.msn = h.pk[i-1].msn
	} else {
		p.msn = pos - h.pk[0].pos
	}
	if i < len(h.pk) {
		p.end = min(p.end, h.pk[i].pos)
	}
	h.pk = append(h.pk, nil)
	copy(h.pk[i+1:], h.pk[i:])
	h.pk[i] = p
	if p.end <= h.unacked {
		h.unackedIndex++
	} else {
		h.unackedIndex = min(h.unackedIndex, i)
	}
	if p.responds() {
		h.unanswered++
	}
	h.goBack(r, p.end)
	h.arriveAtResponder(p, r, pos)
}

// replace takes another request for the one with its PSN, which may have been of a connection
// before.
func (h *half) replace(p *packet, r *rec) {
	p.r, p.answered = r, false
	p.end = min(p.end, h.endOf(r, p.pos))
}

// unseen takes a response to a request that is missing.
func (h *half) unseen(r *rec, pos int64) {
	h.missing(r, "%s for PSN %#06x, which is missing", r.info.Name, r.psn)
	if r.info.Headers.Has(roce.HasAETH) {
		h.learnMSN(r, h.before(pos), h.before(h.highestInOrder+1))
	}
	if !r.Fate.arrives() {
		return
	}
	syn := roce.SyndromeAck
	if r.info.Class == roce.ClassAck {
		syn = r.p.AETH().Syndrome()
	}
	switch syn.Type() {
	case roce.SyndromeTypeRNR:
		h.advance(pos, r.Time)
		h.rnrPos, h.rnrAt, h.rnrFrame, h.rnrUntil = pos, r.Time, r.Number, r.Time+roce.RNRTimer(syn.Value())
	case roce.SyndromeTypeNAK:
		h.advance(pos, r.Time)
		h.nakPos, h.nakAt, h.nakFrame = pos, r.Time, r.Number
	default:
		h.advance(pos+1, r.Time)
		h.proved, h.lastPos, h.inOrder = max(h.proved, pos), max(h.lastPos, pos), max(h.inOrder, pos)
		h.highestInOrder = max(h.highestInOrder, h.inOrder)
	}
}

// answersSeen judges whether the request that a response belongs to was seen.
func (h *half) answersSeen(r *rec, pos int64) bool {
	if h.hole && pos >= h.holeAt && !h.holeDone {
		h.holeDone = true
		h.report(Inconclusive, "OR-002", r, "%s for PSN %#06x, and %#06x is not in the capture", r.info.Name, r.psn, psn(h.holeAt))
	}
	if pos >= h.pk[0].pos && pos < h.next {
		return true
	}
	where := "before the first request that was seen"
	if pos >= h.next {
		where = "which was not seen"
	} else {
		h.middle = true
	}
	h.report(Inconclusive, "OR-002", r, "%s for PSN %#06x, %s", r.info.Name, r.psn, where)
	h.missing(r, "%s for PSN %#06x, %s", r.info.Name, r.psn, where)
	if r.info.Headers.Has(roce.HasAETH) && pos < h.pk[0].pos {
		h.learnMSN(r, pos+1-h.pk[0].pos, h.before(h.highestInOrder+1))
	}
	return false
}

// learnMSN narrows what the MSN was when our count began: a response counts at least what its PSN
// proves, and at most what arrived.
func (h *half) learnMSN(r *rec, least, most int64) {
	got := int64(r.p.AETH().MSN())
	most = max(least, most+h.slack)
	if !h.based {
		h.low, h.high = got-most, got-least
		if h.low > 0 || h.high < 0 {
			h.report(Note, "OR-061", r, "the MSN is %d: the connection began before the capture", got)
			h.missing(r, "it counts %d requests, and %d at most were seen: the connection began before the capture", got, most)
		}
		h.based = true
	} else {
		near := h.low + least
		got = near + int64(roce.CmpPSN(uint32(got), uint32(near)&roce.PSNMask))
		low, high := max(h.low, got-most), min(h.high, got-least)
		if low > high {
			h.report(Violation, "OR-061", r, "MSN %d, at PSN %#06x %d to %d requests are complete",
				got&roce.PSNMask, r.psn, (h.low+least)&roce.PSNMask, (h.high+most)&roce.PSNMask)
			low, high = got-most, got-least
		}
		h.low, h.high = low, high
	}
	h.base, h.lastMSN = h.low, got&roce.PSNMask
}
