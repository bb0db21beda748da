package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// qp is a queue pair: a connection and the two engines that serve it. An engine knows the
// connection, and nothing of the other engine; what concerns both is here, and an engine
// asks for it by the calls of owner.
type qp struct {
	connection
	requester requester
	responder responder

	joined int // multicast groups
	flush  flush
	umems  umemUse // of a program's own commands
}

// joinDomain gives a QP of XRC the SRQ of its context, which may be nil, and a target those that
// requests may name.
func (q *qp) joinDomain(spare *srq, srqs *sharedQueues) {
	q.spare = spare
	if q.target() {
		q.responder.srqs = srqs
	}
}

// reset is what 2RST does: every WQE is dropped without a CQE, counters are 0.
func (q *qp) reset() {
	q.stop()
	q.setState(prm.QPStateRST)
	q.flush.interval, q.flush.looks = 0, 0
	q.requester.clear()
	q.responder.clear()
}

// stop drops what the engines have under way; completions that sessions hold back are
// written.
func (q *qp) stop() {
	q.scq.settle()
	if c := q.recvCQ(); c != nil {
		c.settle()
	}
	q.epoch++
	q.reaction = nil
	q.requester.stop()
	q.responder.stop()
}

// toError moves the QP to ERR: what the requester has taken is flushed in order,
// then, when the doorbell record has been read, what was posted behind it and the
// receive queue. Responses that are due still leave.
func (q *qp) toError() {
	if q.state == prm.QPStateERR {
		return
	}
	q.setState(prm.QPStateERR)
	q.epoch++
	q.responder.dropRequests()
	q.requester.fail()
	q.responder.flushOpen()
	if q.st == prm.STDCT { // what a target has of one initiator; it has no queue, and no event of its own
		return
	}
	if (q.srq != nil || q.target()) && !q.u.breaks(rule.LastWQEIsReported) { // its WQEs stay for others; this QP takes no more
		q.u.events.ofQP(prm.EventSRQLastWQE, q.num)
	}
	if !q.target() { // which has no queue and no record
		q.flush.interval = q.u.p.FlushPoll
		q.readRecord()
	}
}

func (q *qp) abort() {
	q.responder.silence()
	q.toError()
}

func (q *qp) rateReturned() {
	q.responder.rateReturned()
	q.requester.kick()
}

// repath makes the headers of a QP again, after a change of the port or of its P_Key
// index.
func (q *qp) repath() {
	switch q.st {
	case prm.STRegUMR: // it has no peer
	case prm.STDCT: // made anew with each connection
	case prm.STUD, prm.STDCI:
		q.pkey = q.u.pkeyAt(q.context().PrimaryPath())
		q.requester.paths.forget()
	default:
		q.setIBPath()
	}
}

// flush is how a QP in ERR finds out what is posted: it looks at its doorbell record.
type flush struct {
	interval sim.Time // to the next look
	looks    int      // at a record that is behind
	again    bool     // a look was asked for while one was under way
	reading  bool
	waiting  bool // an event is set for the next look
	record   [prm.DBRecSize]byte
}

// readRecord reads the doorbell record: to find out what was posted when a
// doorbell does not say, or what is left to flush.
func (q *qp) readRecord() {
	if q.flush.reading {
		q.flush.again = true
		return
	}
	q.flush.reading = true
	q.u.bus.ReadDMA(q.dbr, q.flush.record[:], q.u.h.record, q.arg)
}

func (q *qp) onRecord() {
	q.flush.reading = false
	if q.state != prm.QPStateRTS && !q.flushes() {
		return // reset since: the record is of the life before
	}
	rec := prm.QPDBRec(q.flush.record[:])
	follows := q.requester.followsRecord()
	if !follows {
		q.requester.sq.learn(rec.Send(), q.requester.oldest())
	}
	switch q.state {
	case prm.QPStateRTS:
		q.requester.kick()
	case prm.QPStateSQER:
		q.requester.flushSQ()
	case prm.QPStateERR:
		found := follows && q.requester.flushTo(rec.Send()) || q.requester.sq.ci != q.requester.sq.pi && !follows
		if q.responder.rq.flush(rec.Recv()) {
			found = true
		}
		q.requester.flushSQ()
		if q.flush.again {
			q.flush.again = false
			q.readRecord()
		}
		q.pollAgain(found)
	}
}

// maxFlushPoll ends the looks at a doorbell record: the last interval is the first
// times this. On a device whose programs are paced they do not end, and pacedFlushPoll
// bounds the interval.
const (
	maxFlushPoll   = 1 << 20
	pacedFlushPoll = 4 * sim.Millisecond
)

// pollAgain sets the next look at the doorbell record of a queue in ERR. Receives
// that are posted then ring no doorbell, and must be flushed all the same (drivers
// drain a QP that way). The interval doubles, so that a QP left in ERR costs a
// bounded number of events.
func (q *qp) pollAgain(found bool) {
	f, first := &q.flush, q.u.p.FlushPoll
	if found {
		f.interval = first
	}
	if q.requester.awaitsRecord() && f.looks < recordLooks {
		f.looks++
		f.interval = recordLook
	}
	if q.u.id.Paced {
		f.interval = min(f.interval, pacedFlushPoll)
	}
	if f.waiting || f.interval > first*maxFlushPoll {
		return
	}
	f.waiting = true
	q.u.e.After(f.interval, q.u.h.poll, q.arg)
	f.interval *= 2
}

func (q *qp) onPoll() {
	q.flush.waiting = false
	if q.state == prm.QPStateERR {
		q.readRecord()
	}
}
