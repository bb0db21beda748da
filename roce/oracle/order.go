package oracle

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce"
)

// A tap with several receive queues may hand frames over in another order than they had on the
// wire, and stamp them in that order. Nothing mends that afterwards, and what it shows cannot be
// told from a broken queue pair: the connection is not judged.

// mixedUp says that a connection is not judged, if the order of its events, requests and the
// responses to them, cannot be right: some frame stands where no requester or responder sends it,
// and belongs before one that is at most the time of a flight older.
func (j *judge) mixedUp(s *stream, events []*rec) bool {
	if j.o.Complete {
		return false
	}
	o := order{flight: j.o.flight()}
	for i, r := range events {
		var before *rec
		if r.kind == roce.KindRequest {
			before = o.request(r, events[i+1:])
		} else {
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
	last    *rec   // the newest request
	next    uint32 // the PSN behind all requests
	skips   *rec   // the newest request before which another PSN was due
	due     uint32 // that PSN
	answer  *rec   // the newest response
	nak     *rec   // the newest of them that is no ACK
	early   *rec   // a response to a PSN that had not been sent yet
	repeats bool   // a request was sent again: its answer may come out of order
}

// beforeFirst is how many PSNs before the first of the capture may be shown behind it.
const beforeFirst = 64

// request takes a request, which rest follows, and returns the frame before which it belongs.
func (o *order) request(r *rec, rest []*rec) *rec {
	last := o.last
	o.last = r
	switch {
	case last == nil:
		o.skips, o.due = r, roce.AddPSN(r.psn, -beforeFirst)
	case last.info.Class == roce.ClassReadRequest: // how many PSNs it reserves is not known yet
	case roce.CmpPSN(r.psn, last.psn) > 1:
		o.skips, o.due = r, roce.AddPSN(last.psn, 1)
	}
	isNew := last == nil || roce.CmpPSN(r.psn, o.next) >= 0
	if e := o.early; isNew && e != nil && r.psn == e.psn && r.Time-e.Time <= o.flight {
		return e
	}
	if isNew {
		o.next, o.early = roce.AddPSN(r.psn, 1), nil
		return nil
	}
	o.repeats = true
	// One that was left out: sent now, or shown now. A requester that goes back sends again what
	// follows, and one that repeats single packets waits for a NAK.
	m := o.skips
	if r.Time-m.Time > o.flight || roce.CmpPSN(r.psn, o.due) < 0 || roce.CmpPSN(r.psn, m.psn) >= 0 || o.nak != nil && o.nak.Number > m.Number {
		return nil
	}
	if i := slices.IndexFunc(rest, func(q *rec) bool { return q.kind == roce.KindRequest }); i >= 0 && roce.CmpPSN(rest[i].psn, last.psn) <= 0 {
		return nil
	}
	return m
}

// response takes a response, and returns the frame before which it belongs.
func (o *order) response(r *rec) *rec {
	last := o.answer
	o.answer = r
	if r.info.Headers.Has(roce.HasAETH) && r.p.AETH().Syndrome().Type() != roce.SyndromeTypeAck {
		o.nak = r
	} else if o.last == nil || roce.CmpPSN(r.psn, o.next) >= 0 && o.last.info.Class != roce.ClassReadRequest {
		o.early = r
	}
	if last != nil && !o.repeats && r.Time-last.Time <= o.flight && roce.CmpPSN(r.psn, last.psn) < 0 {
		return last
	}
	return nil
}
