package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// posted is a doorbell or a push for the WQE at index idx with ds units.
func (q *requester) posted(idx uint16, ds int, wqe []byte) {
	ready := q.state == prm.QPStateRTS
	if !ready && q.state != prm.QPStateSQD && !q.flushes() || q.sq.size == 0 {
		q.u.c.DoorbellsState++
		return
	}
	if idx != q.sq.pi && q.breaks(rule.DoorbellCoversThoseBefore) {
		return
	}
	if !ready && q.followsRecord() {
		q.rung = idx + uint16(max(1, (uint(ds)+segmentsPerBlock-1)/segmentsPerBlock))
		q.owner.readRecord()
		return
	}
	n := uint16(max(1, (uint(ds)+segmentsPerBlock-1)/segmentsPerBlock))
	pi := idx + n
	if int16(pi-q.sq.pi) <= 0 || uint32(pi-q.oldest()) > q.sq.size {
		q.oddDoorbell()
		return
	}
	if wqe != nil && ready && idx == q.sq.pi && q.sq.got == idx && !q.sq.fetching && q.sq.take(idx, wqe) {
		q.u.c.WQEsPushed++
	}
	q.sq.pi = pi
	if (!ready || q.st == prm.STRegUMR) && q.postedElse() {
		return
	}
	if wqe == nil && q.sq.got != pi && q.u.p.FetchPerDoorbell {
		q.sq.note(pi)
	}
	q.sq.readAhead()
	q.kick()
}

// oddDoorbell is one that is late, repeated, or made of stale bytes: the record knows.
//
//go:noinline
func (q *requester) oddDoorbell() {
	q.u.c.DoorbellsOdd++
	q.owner.readRecord()
}

// postedElse is what posted does for a queue of UMRs, and for one that is not in state RTS. It
// reports whether nothing is sent.
//
//go:noinline
func (q *requester) postedElse() (done bool) {
	if q.st == prm.STRegUMR {
		q.noticeUMRs()
	}
	if q.flushes() {
		q.flushSQ()
		return true
	}
	return false
}

// onFetch is n basic blocks that have come.
func (q *requester) onFetch(n int) {
	q.sq.fetched(n)
	if q.flushes() {
		q.flushSQ()
		return
	}
	q.sq.readAhead()
	q.kick()
}
