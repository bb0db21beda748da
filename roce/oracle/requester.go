package oracle

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce"
)

// requester is what the sending side of a half knows from the responses that arrived.
type requester struct {
	unacked      int64 // oldest position that no response acknowledges
	unackedIndex int   // index of its packet
	unanswered   int   // READs, ATOMICs and the like that were sent and not answered to their end
	acked        int64 // behind the last position that some response acknowledges
	since        int64 // when una last moved or a retransmission began
	resendNext   int64 // next position of the retransmission under way, -1
	resendLast   int64 // last position of it
	inFlight
	// unheard is behind the last request that was sent when an implied NAK showed that an answer is
	// missing, 0: none. Its requester may have taken none of the answers behind that one, and may
	// send all of those requests again, until it has answers to all and goes on.
	unheard    int64
	retries    int // restarts of una by timer or NAK without progress
	rnrRetries int
	lsn        int64 // the last request that credits allow
	limited    bool  // the responder has announced some
	unlimited  bool  // it has announced that credits are not counted

	nakPos, nakAt int64 // a sequence NAK that was not followed yet, and when it came
	rnrPos, rnrAt int64
	nakFrame      int // of the NAKs at nakPos and rnrPos
	rnrFrame      int
	rnrUntil      int64
	deadAt        int64
	sacked        int64 // behind the highest position that a SACK has named
	hole          bool  // PSNs were skipped, or their frames are missing
	holeAt        int64
	holeRec       *rec
	lenient       bool // the next packet may be any of its message
	guessed       bool // the MTU was not seen
}

// checkNewRequest judges whether a new request may be sent now.
func (h *half) checkNewRequest(r *rec, pos int64) {
	o := &h.j.o
	switch late := r.Time - o.flight(); {
	case h.dead:
		if late > h.deadAt {
			h.report(h.unlessLate(), "OR-049", r, "%s after a fatal NAK", r.info.Name)
		}
	case h.rnrPos >= 0 && late > h.rnrAt:
		h.insteadOfRNR(r)
	case h.nakPos >= 0 && late > h.nakAt:
		h.report(h.violationUnlessLost(), "OR-043", r, "PSN %#06x after a NAK for %#06x", r.psn, psn(h.nakPos))
		h.nakPos = -1
	case h.resendNext >= 0 && h.resendNext < h.next && h.resendNext >= h.unacked:
		h.checkGoBack(r, pos)
	}
	if h.resendNext >= 0 && pos >= h.next {
		h.resendNext = -1
	}
	if h.unacked == h.next {
		h.unheard = 0
	}
	t, known := o.ackTimeout()
	if !known {
		t = roce.AckTimeout(14)
	}
	if n := len(h.pk); n > 0 {
		if p := h.pk[n-1]; p.r.info.Last && !p.ackReq && !p.responds() && r.Time-p.last > t {
			h.report(Warning, "OR-052", p.r, "nothing follows for %d ns and AckReq is not set", r.Time-p.last)
		}
	}
}

// insteadOfRNR judges another request than the one that an RNR NAK asks for.
func (h *half) insteadOfRNR(r *rec) {
	if r.Time < h.rnrUntil-h.j.o.Tolerance {
		h.report(h.unlessLate(), "OR-045", r, "a request %d ns before the RNR time is over", h.rnrUntil-r.Time)
	} else {
		h.report(h.unlessLate(), "OR-046", r, "PSN %#06x is sent first after the RNR time, %#06x is due", r.psn, psn(h.rnrPos))
	}
	h.rnrPos = -1
}

func (h *half) checkGoBack(r *rec, pos int64) {
	k := h.unlessLate()
	if h.j.o.Sender != GoBackN {
		k = Note
	}
	if k != Note && h.pending(h.resendNext, pos) == nil {
		return
	}
	h.report(k, "OR-044", r, "PSN %#06x, %#06x is next after going back", r.psn, psn(h.resendNext))
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

// checkLimits judges the limits of outstanding requests.
func (h *half) checkLimits(r *rec, p *packet) {
	if h.next-h.unacked > roce.MaxOutstandingPSN {
		h.report(Violation, "OR-038", r, "%d PSNs are outstanding", h.next-h.unacked)
	}
	h.checkOutstanding(r, p, "OR-039", "max_rd_atomic", h.j.o.MaxRdAtomic)
	h.checkOutstanding(r, p, "OR-040", "the responder's max_dest_rd_atomic", h.j.o.MaxDestRdAtomic)
	h.checkCredits(r)
}

// checkOutstanding judges a limit of the requests that have answers of their own.
func (h *half) checkOutstanding(r *rec, p *packet, rule, name string, limit *int) {
	if limit == nil || !p.responds() {
		return
	}
	if h.unanswered > *limit {
		h.report(Violation, rule, r, "%d READs and ATOMICs are outstanding, %s is %d", h.unanswered, name, *limit)
	}
}

// checkCredits judges a whole request by the credits of the responder. One that takes no receive
// raises the limit.
func (h *half) checkCredits(r *rec) {
	switch {
	case !r.info.Last:
	case !r.info.TakesReceive && r.info.Class != roce.ClassSend:
		h.lsn++
	case h.limited && !h.unlimited && h.base+h.count > h.lsn+1 && r.Time > h.creditAt+h.j.o.flight():
		h.report(Violation, "OR-056", r, "request %d, the responder allows %d", h.base+h.count, h.lsn+1)
	}
}

// checkRetransmission judges why a request is sent again.
func (h *half) checkRetransmission(p *packet, r *rec, pos int64) {
	o := &h.j.o
	end := p.end
	if h.dead && r.Time-o.flight() > h.deadAt {
		h.report(h.unlessLate(), "OR-049", r, "%s is sent again after a fatal NAK", r.info.Name)
		return
	}
	if o.ODP && p.responds() && p.got > pos && pos < h.unacked && pos != h.resendNext {
		h.askedAgain(p, r, pos)
		h.goBack(r, end)
		return
	}
	if h.rnrPos >= 0 && pos != h.rnrPos && r.Time-o.flight() > h.rnrAt && h.resendNext != pos {
		h.insteadOfRNR(r)
		h.goBack(r, end)
		return
	}
	switch {
	case pos == h.rnrPos && pos == h.resendNext && r.Time < h.rnrUntil-o.Tolerance && r.Time-o.flight() <= h.rnrAt: // the NAK is on its way
		h.resendNext, h.passNext = end, -1
		return
	case pos == h.rnrPos:
		if r.Time < h.rnrUntil-o.Tolerance {
			h.report(h.unlessLate(), "OR-045", r, "%d ns before the RNR time is over", h.rnrUntil-r.Time)
		}
		h.rnrRetries++
		if limit := o.RNRRetry; limit != nil && *limit < 7 && h.rnrRetries > *limit {
			h.report(h.unlessLate(), "OR-048", r, "RNR retry %d, rnr_retry is %d", h.rnrRetries, *limit)
		}
		h.rnrPos = -1
	case o.Sender == SelectiveAck && (pos < h.sacked || pos == h.unacked && !p.responds()): // missing behind a SACK, or behind a repair; and a timer of its own
	case pos == h.nakPos:
		h.nakPos = -1
		if r.Time-o.flight() <= h.nakAt { // it may have been on its way already
			h.hold(pos, h.nakAt+2*o.flight(), r.Time, false)
		}
		h.checkRetries(r)
	case pos == h.resendNext:
		h.resendNext, h.passNext = end, -1
		return
	case h.nakPos >= 0 && r.Time-o.flight() > h.nakAt && pos != h.unacked && pos >= min(h.unheard, h.nakPos):
		h.report(h.unlessLate(), "OR-043", r, "PSN %#06x after a NAK for %#06x", r.psn, psn(h.nakPos))
		h.nakPos = -1
	case p.responds() && h.acked > pos && p.got <= pos:
		h.checkRetries(r) // an implied NAK: something later was acknowledged
	case p.responds() && h.lastPos >= pos && !h.complete() && !o.Delivered:
		h.checkRetries(r) // the same, if a response was lost behind the tap
	case h.goesOn(pos, end, h.resendNext, r.Time):
		h.resendNext = max(h.resendNext, end) // a whole READ, of which some answers had moved it on
		return
	case h.follows(pos, h.unacked, r.Time):
		h.checkRetries(r)
	case h.resendNext >= 0 && pos > h.resendNext && pos <= h.resendLast:
		if h.pending(h.resendNext, pos) != nil {
			h.checkGoBack(r, pos)
		}
	case pos < h.unheard:
	default:
		h.checkTimer(p, r, pos)
	}
	h.goBack(r, end)
}

func (h *half) goBack(r *rec, end int64) {
	h.resendNext, h.resendLast, h.passNext, h.since = end, h.next-1, -1, r.Time
}

// checkRetries counts restarts without progress.
func (h *half) checkRetries(r *rec) {
	h.retries++
	if limit, known := h.j.o.mostRetries(); known && h.retries > limit {
		h.report(h.unlessLate(), "OR-047", r, "retry %d without progress, retry_cnt is %d", h.retries, *h.j.o.RetryCount)
	}
}

// checkTimer judges a restart that only the timer can explain.
func (h *half) checkTimer(p *packet, r *rec, pos int64) {
	o := &h.j.o
	t, known := o.ackTimeout()
	if !known {
		t = roce.AckTimeout(1) // no timer is shorter
	}
	from := max(p.last, h.since)
	elapsed := r.Time - from
	early := elapsed < t-o.Tolerance
	switch {
	case early && p.end == h.next && r.p.BTH().AckReq() && !p.ackReq && !p.responds():
		h.report(Note, "OR-041", r, "the last packet is sent again to ask for the ACK that nothing had asked for")
		return
	case elapsed < o.leastWait(t):
		h.report(h.unlessLate(), "OR-041", r, "sent again %d ns after the timer began, no NAK asks for it; the timer is %d ns", elapsed, t)
		return
	case early:
		h.j.res.Early++
		h.report(Note, "OR-041", r, "sent again %d ns after the timer began, no NAK asks for it; the timer is %d ns, and ConnectX-5 and later may retransmit adaptively before", elapsed, t)
	case known && elapsed > o.longestWait(t):
		h.report(Warning, "OR-042", r, "sent again after %d ns, the timer is %d ns", elapsed, t)
	}
	if o.Sender == GoBackN && o.Delivered && !h.uncertain {
		switch {
		case pos > h.unacked:
			h.report(Violation, "OR-044", r, "the timer restarts at PSN %#06x, the oldest outstanding is %#06x", r.psn, psn(h.unacked))
		case pos < h.unacked:
			h.report(Violation, "OR-041", r, "PSN %#06x is sent again and was acknowledged", r.psn)
		}
	}
	h.checkRetries(r)
	h.blameTimeout(r)
}

// blameTimeout judges which side made a timer run out: the requester, which never asked for an
// ACK, or the responder, which never answered.
func (h *half) blameTimeout(r *rec) {
	asked := slices.ContainsFunc(h.pk[min(h.unackedIndex, len(h.pk)):], func(p *packet) bool { return p.ackReq || p.responds() })
	if !asked && h.unacked < h.next && !h.j.o.ODP { // a requester that pages may stand still within a message
		h.report(h.unlessLate(), "OR-051", r, "the timer ran out and no outstanding packet asks for an ACK")
	}
	h.blame = ""
	if !h.uncertain && h.answers > 0 {
		for _, p := range h.pk[min(h.unackedIndex, len(h.pk)):] {
			if p.ackReq && !p.responds() && p.pos <= h.inOrder && p.pos > h.proved {
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

// advance takes a response that arrives: everything before pos is acknowledged, up to the
// first READ or ATOMIC that lacks its own response.
func (h *half) advance(pos, now int64) {
	h.acked = max(h.acked, pos)
	moved, before := false, h.unacked
	for h.unackedIndex < len(h.pk) {
		p := h.pk[h.unackedIndex]
		if p.responds() {
			if p.got > h.unacked {
				h.unacked, moved = p.got, true
			}
			if p.got < p.end {
				if h.acked >= p.end {
					h.unheard = h.next
				}
				break
			}
		} else if p.end > h.acked {
			break
		}
		h.unacked, moved = p.end, true
		h.unackedIndex++
	}
	if moved {
		h.retries, h.rnrRetries, h.since = 0, 0, now
		if h.j.o.Sender == SelectiveAck { // what seemed missing may be sent again until this has arrived
			h.hold(before, now+h.j.o.flight(), now, true)
		}
		if h.resendNext >= 0 && h.resendNext < h.unacked {
			h.moved(h.resendNext, now+h.j.o.flight())
			h.resendNext = h.unacked
		}
		if h.nakPos >= 0 && h.nakPos < h.unacked {
			h.supersedeNAK(now)
		}
	}
}

// supersedeNAK is a response behind a NAK, which the requester follows only if it has not come yet.
func (h *half) supersedeNAK(now int64) {
	h.hold(h.nakPos, now+h.j.o.flight(), now, true)
	h.nakPos = -1
}

// end judges what is unfinished at the end of the capture.
func (h *half) end() {
	if h.blind || len(h.pk) == 0 {
		return
	}
	if h.complete() && h.hole && !h.holeDone {
		h.report(Violation, "OR-028", h.holeRec, "PSN %#06x, the next is %#06x", h.holeRec.psn, psn(h.holeAt))
	}
	p := h.pk[len(h.pk)-1]
	if h.complete() && p.r.info.Last && !p.ackReq && !p.responds() && !h.dead {
		h.report(Warning, "OR-052", p.r, "nothing follows and AckReq is not set")
	}
}
