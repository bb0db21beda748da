package oracle

import "slices"

// Retransmission is a run of requests that a requester sent again without a new one between them.
type Retransmission struct {
	Frame    int    `json:"frame"`   // the first of them
	Time     int64  `json:"time_ns"` // in the time of the file
	PSN      uint32 `json:"psn"`
	Packets  int    `json:"packets"`
	Sending  int    `json:"sending"` // 2: the first packet is sent for the second time
	Cause    Cause  `json:"cause"`
	NAK      int    `json:"nak_frame,omitempty"` // the frame that asked for it
	Lost     Loss   `json:"lost"`
	WaitedNS int64  `json:"waited_ns"` // since the first packet was sent before
	end      int64
	last     int64
}

// Cause says why requests were sent again.
type Cause string

// Causes. Where a capture may lack frames, a timeout is what no frame of it explains otherwise.
const (
	SequenceNAK   Cause = "sequence NAK"
	RNRNAK        Cause = "RNR NAK"
	MissingAnswer Cause = "missing answer" // a later request was acknowledged, an earlier READ or atomic was not answered
	Timeout       Cause = "timeout"
	NoNAKSeen     Cause = "timeout, or a NAK that is not in the file"
)

// Loss says which frame was lost, as far as the capture shows it.
type Loss string

// What was lost.
const (
	NothingLost Loss = "nothing: no receive, or no page"
	RequestLost Loss = "request"
	RequestLate Loss = "request, lost or late" // it was not there in its turn
	AnswerLost  Loss = "answer"
	LostUnknown Loss = "request or answer"
)

// mostRetransmissions is how many are kept of a flow; a forged capture could have one for each
// frame.
const mostRetransmissions = 1000

// resends keeps the retransmissions of a flow.
type resends struct {
	runs   []Retransmission
	more   int
	open   *Retransmission // the run under way
	unkept Retransmission
	lostNS int64
}

// account notes that a packet is sent again, before it is judged.
func (h *half) account(p *packet, r *rec, pos int64) {
	a := &h.resends
	asked := pos == h.nakPos || pos == h.rnrPos
	if e := a.open; e != nil && !asked && pos >= e.end && r.Time-e.last < max(h.j.o.flight(), r.Time-p.last) {
		e.Packets, e.end, e.last = e.Packets+1, p.end, r.Time
		return
	}
	e := Retransmission{Frame: r.Number, Time: r.Time, PSN: r.psn, Packets: 1, Sending: p.sent + 1, WaitedNS: r.Time - p.last, end: p.end, last: r.Time}
	a.lostNS += e.WaitedNS
	if len(a.runs) == mostRetransmissions { // to explain it takes a look at all that is outstanding
		a.more++
		a.unkept = e
		a.open = &a.unkept
		return
	}
	e.Cause, e.NAK, e.Lost = h.explain(p, pos)
	a.runs = append(a.runs, e)
	a.open = &a.runs[len(a.runs)-1]
}

// explain says why a packet is sent again and what was lost, by what was seen before.
func (h *half) explain(p *packet, pos int64) (Cause, int, Loss) {
	switch {
	case pos == h.rnrPos:
		return RNRNAK, h.rnrFrame, NothingLost
	case pos == h.nakPos:
		if p.delivered {
			return SequenceNAK, h.nakFrame, RequestLate
		}
		return SequenceNAK, h.nakFrame, RequestLost
	case p.responds() && h.acked > pos && p.got <= pos:
		return MissingAnswer, 0, AnswerLost
	}
	cause := Timeout
	if !h.complete() {
		cause = NoNAKSeen
	}
	switch {
	case h.complete() && slices.ContainsFunc(h.pk[max(h.index(pos), 0):], func(p *packet) bool { return !p.delivered }):
		return cause, 0, RequestLost
	case pos <= h.proved, p.responds() && p.got > pos:
		return cause, 0, AnswerLost
	case h.j.o.Delivered && h.complete() && !h.uncertain && pos <= h.inOrder:
		return cause, 0, AnswerLost
	case h.j.o.Delivered && h.complete() && !h.uncertain && pos > h.inOrder+1: // a request before it is missing
		return cause, 0, RequestLost
	}
	return cause, 0, LostUnknown
}
