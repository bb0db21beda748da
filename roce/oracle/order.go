package oracle

import "github.com/rdmasim/rdmasim/roce"

// A tap with several receive queues may hand frames over in another order than they had on the wire, and stamp them in that order.
// Nothing mends that afterwards, and what it shows cannot be told from a broken queue pair: the connection is not judged.

// mixedUp says that a connection is not judged, if the order of its events, requests and the responses to them, cannot be right: some frame
// stands where no requester or responder sends it, and belongs before one that is at most the time of a flight older.
func (j *judge) mixedUp(s *stream, events []*rec) bool {
	if j.o.Complete {
		return false
	}
	o := order{flight: j.o.flight()}
	for i, r := range events {
		var before *rec
		if r.kind == roce.KindRequest {
			before = o.request(r, events[i+1:])
		} else if r.info.Headers.Has(roce.HasAETH) {
			before = o.response(r)
		}
		if before != nil {
			j.verdict(Inconclusive, "OR-001", r.Number, s.name, "this frame belongs before frame %d, which has a time stamp not later than it: the tap, or adaptive routing, has changed the order, and reordercap "+
				"cannot mend it. Capture with the time stamps of the adapter (tcpdump -j adapter_unsynced) or with one receive queue (ethtool -L); the connection is not judged", before.Number)
			return true
		}
	}
	return false
}

// order is what a connection has shown so far.
type order struct {
	flight  int64
	newest  *rec   // the request with the highest PSN
	next    uint32 // the PSN behind it
	skips   *rec   // the last request that came where another PSN was due
	due     uint32 // that PSN
	answer  *rec   // the newest response with an MSN
	early   *rec   // an ACK of a PSN that had not been sent yet
	repeats bool   // a request was sent again: its answer may come out of order
}

// request takes a request, which rest follows, and returns the frame before which it belongs.
func (o *order) request(r *rec, rest []*rec) *rec {
	if o.newest == nil || roce.CmpPSN(r.psn, o.next) >= 0 {
		if e := o.early; e != nil && r.psn == e.psn && r.Time-e.Time <= o.flight {
			return e
		}
		if o.newest != nil && r.psn != o.next {
			o.skips, o.due = r, o.next
		}
		o.newest, o.next, o.early = r, roce.AddPSN(r.psn, 1), nil
		return nil
	}
	o.repeats = true
	// One that was left out: sent now, or shown now. A requester that goes back sends again what follows, and one that repeats single
	// packets waits for a NAK.
	m := o.skips
	if m == nil || r.Time-m.Time > o.flight || roce.CmpPSN(r.psn, o.due) < 0 || roce.CmpPSN(r.psn, m.psn) >= 0 || m.info.Class == roce.ClassReadRequest {
		return nil
	}
	if a := o.answer; a != nil && a.Number > m.Number && a.p.AETH().Syndrome().Type() != roce.SyndromeTypeAck {
		return nil
	}
	for _, q := range rest {
		if q.kind == roce.KindRequest && roce.CmpPSN(q.psn, o.next) < 0 && roce.CmpPSN(q.psn, o.due) > 0 && q.psn != r.psn {
			return nil
		}
		if q.kind == roce.KindRequest {
			break
		}
	}
	return m
}

// response takes a response with an MSN, and returns the frame before which it belongs.
func (o *order) response(r *rec) *rec {
	last := o.answer
	o.answer = r
	if a := r.p.AETH(); o.newest != nil && roce.CmpPSN(r.psn, o.next) >= 0 && o.newest.info.Class != roce.ClassReadRequest && a.Syndrome().Type() == roce.SyndromeTypeAck {
		o.early = r
	}
	if last != nil && !o.repeats && r.Time-last.Time <= o.flight && roce.CmpPSN(r.psn, last.psn) < 0 && roce.CmpPSN(r.p.AETH().MSN(), last.p.AETH().MSN()) < 0 {
		return last
	}
	return nil
}
