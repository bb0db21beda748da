package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// failAt has message i end in error s, when those before it are done; nothing is
// sent behind it.
func (q *qp) failAt(i uint32, s prm.Syndrome) {
	q.msg(i).fail = s
	q.halt, q.open = true, false
	q.complete()
}

// failHead ends the oldest message with an error CQE, whether it was signalled or
// not, and moves the QP to ERR, an unreliable one to SQER.
func (q *qp) failHead(s prm.Syndrome) {
	if q.head == q.tail {
		q.d.bug("QP %#x: %v with nothing outstanding", q.num, s)
	}
	m := q.msg(q.head)
	switch s {
	case prm.SyndromeLocalQPOp:
		q.qs.add(prm.QCLocalOperationError)
	case prm.SyndromeLocalLength:
		q.qs.add(prm.QCReqLocalLengthError)
	case prm.SyndromeMWBind:
		q.qs.add(prm.QCReqMWBinding)
	case prm.SyndromeLocalProt:
		q.qs.add(prm.QCReqLocalProtection)
	}
	q.errorCQE(prm.CQEReqErr, m.idx, m.op, s)
	end := m.idx + uint16(m.nbb)
	q.head++
	if q.head == q.tail {
		q.cur = q.tail
		q.open = false
		q.moveCursor(end)
	}
	if q.st != prm.STRC {
		q.toSQError()
		return
	}
	q.silence()
	q.toError()
}

// silence drops the responses that are due.
func (q *qp) silence() {
	q.dropResponses()
	q.abandon(&q.rtx)
}

// toError moves the QP to ERR: what the requester has taken is flushed in order,
// then, when the doorbell record has been read, what was posted behind it and the
// receive queue. Responses that are due still leave.
func (q *qp) toError() {
	if q.state == prm.QPStateERR {
		return
	}
	d := q.d
	q.setState(prm.QPStateERR)
	q.epoch++
	q.busy, q.atomicBusy = false, false
	q.abandon(&q.txq)
	for q.hold.head >= 0 {
		d.dropSlot(d.popSlot(&q.hold))
	}
	q.dropAhead()
	q.draining = false
	q.waiting, q.deadline, q.open = false, sim.Never, false
	q.flushTaken()
	if q.recvOpen {
		q.recvOpen = false
		q.errorCQE(prm.CQERespErr, q.recvIdx, 0, prm.SyndromeWRFlush)
	}
	if q.srq != nil { // its WQEs stay for others; this QP takes no more
		d.qpEvent(prm.EventSRQLastWQE, q)
	}
	q.flushPoll = d.p.FlushPoll
	q.readRecord()
}

// readRecord reads the doorbell record: to find out what was posted when a
// doorbell does not say, or what is left to flush.
func (q *qp) readRecord() {
	if q.flushRead {
		return
	}
	q.flushRead = true
	q.d.bus.ReadDMA(q.dbr, q.dbrec[prm.DBRecSize:], q.d.h.record, q.arg)
}

func (d *Device) onRecord(arg uint64) {
	q := d.qpArg(arg)
	if q == nil {
		return
	}
	q.flushRead = false
	if q.state != prm.QPStateRTS && q.state != prm.QPStateSQER && q.state != prm.QPStateERR {
		return // reset since: the record is of the life before
	}
	rec := prm.QPDBRec(q.dbrec[prm.DBRecSize:])
	if pi := rec.Send(); q.sqSize > 0 && pi != q.pi && uint32(pi-q.oldest()) <= q.sqSize && uint32(pi-q.oldest()) > uint32(q.pi-q.oldest()) {
		q.pi = pi
	}
	switch q.state {
	case prm.QPStateRTS:
		q.kick()
	case prm.QPStateSQER:
		q.flushSQ()
	case prm.QPStateERR:
		found := q.ci != q.pi
		if q.flushRQ(rec.Recv()) {
			found = true
		}
		q.flushSQ()
		q.pollAgain(found)
	}
}

// maxFlushPoll ends the looks at a doorbell record: the last distance is the first
// times this.
const maxFlushPoll = 1 << 20

// pollAgain sets the next look at the doorbell record of a queue in ERR. Receives
// that are posted then ring no doorbell, and must be flushed all the same (drivers
// drain a QP that way). The distance doubles, so that a QP left in ERR costs a
// bounded number of events.
func (q *qp) pollAgain(found bool) {
	if found {
		q.flushPoll = q.d.p.FlushPoll
	}
	if q.flushSet || q.flushPoll > q.d.p.FlushPoll*maxFlushPoll {
		return
	}
	q.flushSet = true
	q.d.e.After(q.flushPoll, q.d.h.poll, q.arg)
	q.flushPoll *= 2
}

func (d *Device) onPoll(arg uint64) {
	q := d.qpArg(arg)
	if q == nil {
		return
	}
	q.flushSet = false
	if q.state == prm.QPStateERR {
		q.readRecord()
	}
}

// flushSQ completes with a flush error what is posted and was never started. The
// WQEs are fetched, since only they say how long they are.
func (q *qp) flushSQ() {
	for q.ci != q.pi {
		n := q.blocks()
		if n == 0 {
			q.fetchWQEs()
			return
		}
		at := int(q.ci) * prm.WQEBBSize & (len(q.buf) - 1)
		q.errorCQE(prm.CQEReqErr, q.ci, prm.CtrlSegment(q.buf[at:]).Opcode(), prm.SyndromeWRFlush)
		q.ci += uint16(n)
	}
}

// flushRQ completes with a flush error the receive WQEs up to the record's counter.
func (q *qp) flushRQ(posted uint16) bool {
	n := min(uint32(posted-q.rqCI), q.rqSize)
	for range n {
		q.errorCQE(prm.CQERespErr, q.rqCI, 0, prm.SyndromeWRFlush)
		q.rqCI++
	}
	return n > 0
}
