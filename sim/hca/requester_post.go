package hca

import (
	"github.com/rdmasim/rdmasim/prm"
)

// posted is a doorbell or a push for the WQE at index idx with ds units.
func (q *requester) posted(idx uint16, ds int, wqe []byte) {
	if q.state != prm.QPStateRTS && q.state != prm.QPStateSQD && !q.flushes() || q.sq.size == 0 {
		q.u.c.DoorbellsState++
		return
	}
	n := uint16(max(1, (uint(ds)+segmentsPerBlock-1)/segmentsPerBlock))
	pi := idx + n
	if int16(pi-q.sq.pi) <= 0 || uint32(pi-q.oldest()) > q.sq.size {
		// Late, repeated, or made of stale bytes: the record knows.
		q.u.c.DoorbellsOdd++
		q.owner.readRecord()
		return
	}
	if wqe != nil && q.state == prm.QPStateRTS && idx == q.sq.pi && q.sq.got == idx && !q.sq.fetching && q.sq.take(idx, wqe) {
		q.u.c.WQEsPushed++
	}
	q.sq.pi = pi
	if q.st == prm.STRegUMR {
		q.noticeUMRs()
	}
	if q.flushes() {
		q.flushSQ()
		return
	}
	if wqe == nil && q.sq.got != pi && q.u.p.FetchPerDoorbell {
		q.sq.rung = append(q.sq.rung, pi)
	}
	q.sq.readAhead()
	q.kick()
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
