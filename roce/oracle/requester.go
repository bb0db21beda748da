package oracle

import (
	"github.com/rdmasim/rdmasim/roce"
)

// requester is what the sending side of a half knows: from responses that arrived.
type requester struct {
	una     int64 // oldest position that no response acknowledges
	unaAt   int   // index of its packet
	acked   int64 // behind the last position that some response acknowledges
	since   int64 // when una last moved or a retransmission began
	cursor  int64 // next position of the retransmission under way, -1
	top     int64 // last position of it
	tries   int   // restarts of una by timer or NAK without progress
	rnrs    int
	lsn     int64 // the last request that credits allow
	limited bool  // the responder has announced some
	free    bool  // it has announced that it counts none

	nakPos, nakAt int64 // a sequence NAK that was not followed yet, and when it came
	rnrPos, rnrAt int64
	rnrUntil      int64
	deadAt        int64
	hole          bool // PSNs were skipped, or their frames are missing
	holeAt        int64
	holeRec       *rec
	lenient       bool // the next packet may be any of its message
	guessed       bool // the MTU was not seen
}

// mayGoOn judges whether a new request may be sent now.
func (h *half) mayGoOn(r *rec, pos int64) {
	o := &h.j.o
	switch late := r.Time - o.flight(); {
	case h.dead:
		if late > h.deadAt {
			h.say(Violation, "OR-049", r, "%s after a fatal NAK", r.info.Name)
		}
	case h.rnrPos >= 0 && late > h.rnrAt:
		if r.Time < h.rnrUntil-o.Tolerance {
			h.say(Violation, "OR-045", r, "a request %d ns before the RNR time is over", h.rnrUntil-r.Time)
		} else {
			h.say(Violation, "OR-046", r, "PSN %#06x is sent first after the RNR time, %#06x is due", r.psn, psn(h.rnrPos))
		}
		h.rnrPos = -1
	case h.nakPos >= 0 && late > h.nakAt:
		h.say(h.dagger(), "OR-043", r, "PSN %#06x after a NAK for %#06x", r.psn, psn(h.nakPos))
		h.nakPos = -1
	case h.cursor >= 0 && h.cursor < h.next && h.cursor >= h.una:
		h.skipsTo(r, pos)
	}
	if h.cursor >= 0 && pos >= h.next {
		h.cursor = -1
	}
	t, known := o.ackTimeout()
	if !known {
		t = roce.AckTimeout(14)
	}
	if n := len(h.pk); n > 0 {
		if p := h.pk[n-1]; p.r.info.Last && !p.ackReq && !p.responds() && r.Time-p.last > t {
			h.say(Warning, "OR-052", p.r, "nothing follows for %d ns and AckReq is not set", r.Time-p.last)
		}
	}
}

func (h *half) skipsTo(r *rec, pos int64) {
	k := Violation
	if h.j.o.Sender == SelectiveRepeat {
		k = Note
	}
	if k == Violation && h.pending(h.cursor, pos) == nil {
		return
	}
	h.say(k, "OR-044", r, "PSN %#06x, %#06x is next after going back", r.psn, psn(h.cursor))
}

// pending is an unanswered packet of a range.
func (h *half) pending(from, to int64) *packet {
	for i := max(h.index(from), 0); i < len(h.pk) && h.pk[i].pos < to; i++ {
		if p := h.pk[i]; p.end > from && p.end > h.acked || p.responds() && p.got < p.end {
			return p
		}
	}
	return nil
}

// outstanding judges the limits of what is under way.
func (h *half) outstanding(r *rec, p *packet) {
	if h.next-h.una > roce.MaxOutstandingPSN {
		h.say(Violation, "OR-038", r, "%d PSNs are outstanding", h.next-h.una)
	}
	h.atOnce(r, p, "OR-039", "max_rd_atomic", h.j.o.MaxRdAtomic)
	h.atOnce(r, p, "OR-040", "the responder's max_dest_rd_atomic", h.j.o.MaxDestRdAtomic)
	h.spend(r)
}

// atOnce judges a limit of the requests that have answers of their own.
func (h *half) atOnce(r *rec, p *packet, rule, name string, limit *int) {
	if limit == nil || !p.responds() {
		return
	}
	n := 0
	for _, q := range h.pk[h.unaAt:] {
		if q.responds() && q.got < q.end {
			n++
		}
	}
	if n > *limit {
		h.say(Violation, rule, r, "%d READs and ATOMICs are outstanding, %s is %d", n, name, *limit)
	}
}

// spend judges a whole request by the credits of the responder. One that takes no receive raises
// the limit.
func (h *half) spend(r *rec) {
	switch {
	case !r.info.Last:
	case !r.info.TakesReceive && r.info.Class != roce.ClassSend:
		h.lsn++
	case h.limited && !h.free && h.base+h.count > h.lsn+1 && r.Time > h.creditAt+h.j.o.flight():
		h.say(Violation, "OR-056", r, "request %d, the responder allows %d", h.base+h.count, h.lsn+1)
	}
}

// cause judges why a request is sent again.
func (h *half) cause(p *packet, r *rec, pos int64) {
	o := &h.j.o
	end := p.end
	if h.dead && r.Time-o.flight() > h.deadAt {
		h.say(Violation, "OR-049", r, "%s is sent again after a fatal NAK", r.info.Name)
		return
	}
	if h.rnrPos >= 0 && pos != h.rnrPos && r.Time-o.flight() > h.rnrAt && h.cursor != pos {
		if r.Time < h.rnrUntil-o.Tolerance {
			h.say(Violation, "OR-045", r, "a request %d ns before the RNR time is over", h.rnrUntil-r.Time)
		} else {
			h.say(Violation, "OR-046", r, "PSN %#06x is sent first after the RNR time, %#06x is due", r.psn, psn(h.rnrPos))
		}
		h.rnrPos = -1
		h.goBack(r, end)
		return
	}
	switch {
	case pos == h.rnrPos:
		if r.Time < h.rnrUntil-o.Tolerance {
			h.say(Violation, "OR-045", r, "%d ns before the RNR time is over", h.rnrUntil-r.Time)
		}
		h.rnrs++
		if limit := o.RNRRetry; limit != nil && *limit < 7 && h.rnrs > *limit {
			h.say(Violation, "OR-048", r, "RNR retry %d, rnr_retry is %d", h.rnrs, *limit)
		}
		h.rnrPos = -1
	case pos == h.nakPos:
		h.nakPos = -1
		h.retry(r)
	case pos == h.cursor:
		h.cursor = end
		return
	case h.nakPos >= 0 && r.Time-o.flight() > h.nakAt && pos != h.una:
		h.say(Violation, "OR-043", r, "PSN %#06x after a NAK for %#06x", r.psn, psn(h.nakPos))
		h.nakPos = -1
	case p.responds() && h.acked > pos && p.got <= pos:
		h.retry(r) // an implied NAK: something later was acknowledged
	case h.cursor >= 0 && pos > h.cursor && pos <= h.top:
		if h.pending(h.cursor, pos) != nil {
			h.skipsTo(r, pos)
		}
	default:
		h.timer(p, r, pos)
	}
	h.goBack(r, end)
}

func (h *half) goBack(r *rec, end int64) {
	h.cursor, h.top, h.since = end, h.next-1, r.Time
}

// retry counts restarts without progress.
func (h *half) retry(r *rec) {
	h.tries++
	if limit := h.j.o.RetryCount; limit != nil && h.tries > *limit {
		h.say(Violation, "OR-047", r, "retry %d without progress, retry_cnt is %d", h.tries, *limit)
	}
}

// timer judges a restart that only the timer can explain.
func (h *half) timer(p *packet, r *rec, pos int64) {
	o := &h.j.o
	t, known := o.ackTimeout()
	if !known {
		t = roce.AckTimeout(1) // no timer is shorter
	}
	from := max(p.last, h.since)
	switch elapsed := r.Time - from; {
	case elapsed < t-o.Tolerance:
		h.say(Violation, "OR-041", r, "sent again %d ns after the timer began, no NAK asks for it; the timer is %d ns", elapsed, t)
		return
	case known && elapsed > 4*t+o.Tolerance:
		h.say(Warning, "OR-042", r, "sent again after %d ns, the timer is %d ns", elapsed, t)
	}
	if o.Sender == GoBackN && o.Delivered && !h.uncertain {
		switch {
		case pos > h.una:
			h.say(Violation, "OR-044", r, "the timer restarts at PSN %#06x, the oldest outstanding is %#06x", r.psn, psn(h.una))
		case pos < h.una:
			h.say(Violation, "OR-041", r, "PSN %#06x is sent again and was acknowledged", r.psn)
		}
	}
	h.retry(r)
	h.owed(r)
}

// owed judges, when a timer ran out, whose fault that was: the requester never asked,
// or the responder never answered.
func (h *half) owed(r *rec) {
	asked := false
	for _, p := range h.pk[min(h.unaAt, len(h.pk)):] {
		asked = asked || p.ackReq || p.responds()
	}
	if !asked && h.una < h.next {
		h.say(Violation, "OR-051", r, "the timer ran out and no outstanding packet asks for an ACK")
	}
	h.blame = ""
	if !h.uncertain && h.answers > 0 {
		for _, p := range h.pk[min(h.unaAt, len(h.pk)):] {
			if p.ackReq && !p.responds() && p.pos <= h.upper && p.pos > h.proved {
				h.blame, h.blameRec = "OR-060", p.r
				return
			}
			if p.ackReq && p.sent > 1 && p.pos <= h.proved && p.askedSince > h.lastSent {
				h.blame, h.blameRec = "OR-077", p.r
				return
			}
		}
		if h.gapAt > 0 && r.Time-h.gapAt > h.j.o.flight() && h.gapAt > h.lastSent {
			h.blame, h.blameRec = "OR-066", h.gapRec
		}
	}
}

// learnsOf is what the requester makes of a response that arrives: everything before
// pos is acknowledged, as far as no READ or ATOMIC lacks its own response.
func (h *half) learnsOf(pos, now int64) {
	h.acked = max(h.acked, pos)
	moved := false
	for h.unaAt < len(h.pk) {
		p := h.pk[h.unaAt]
		if p.responds() {
			if p.got > h.una {
				h.una, moved = p.got, true
			}
			if p.got < p.end {
				break
			}
		} else if p.end > h.acked {
			break
		}
		h.una, moved = p.end, true
		h.unaAt++
	}
	if moved {
		h.tries, h.rnrs, h.since = 0, 0, now
		if h.cursor >= 0 && h.cursor < h.una {
			h.cursor = h.una
		}
	}
}

// end judges what the end of the capture leaves open.
func (h *half) end() {
	if h.blind || len(h.pk) == 0 {
		return
	}
	if h.hole && !h.holeDone {
		h.say(Violation, "OR-028", h.holeRec, "PSN %#06x, the next is %#06x", h.holeRec.psn, psn(h.holeAt))
	}
	p := h.pk[len(h.pk)-1]
	if p.r.info.Last && !p.ackReq && !p.responds() && !h.dead {
		h.say(Warning, "OR-052", p.r, "nothing follows and AckReq is not set")
	}
}
