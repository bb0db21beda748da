package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// msgKind is what a send WQE asks for.
type msgKind uint8

const (
	msgLocal  msgKind = iota // nothing on the wire: a NOP, or a WQE that failed by itself
	msgPush                  // SEND, WRITE
	msgRead                  // READ
	msgAtomic                // atomics
)

// msg is a WQE that the requester has taken and not completed.
type msg struct {
	first  uint32 // PSN
	n      uint32 // PSNs that it has
	length uint32
	next   uint32 // READ: responses received; atomics: 1 when done
	idx    uint16
	nbb    uint8
	op     prm.WQEOpcode
	kind   msgKind
	signal bool
	fail   prm.Syndrome // not 0: the WQE failed by itself
	land   int16        // READ, atomics: its landing area
}

// landing is where the response of a READ or an atomic goes: the data segments of
// the WQE, kept until then.
type landing struct {
	wqe  []byte
	busy bool
}

// requester is the send side of a QP. WQE indexes count basic blocks modulo 2^16. What each
// message needs comes first, as in connection.
type requester struct {
	*connection
	msgs []msg // power of two
	sq   sendRing

	head, cur, tail uint32
	psn             uint32 // next to assign
	una             uint32 // oldest unacknowledged
	sent            uint32 // behind the highest that was sent
	ssn             uint32
	pkt             uint32 // next packet of the WQE that is being sent
	segPos          uint32 // its next payload byte: place in segment segAt
	segAt           int
	nbb             int // blocks of the WQE at the cursor, as runnable found them

	open            bool // the WQE at the cursor is being sent
	halt            bool // nothing more is sent: a WQE failed by itself
	draining        bool // in state SQD, with messages under way
	running, queued bool // on a PU; in the ready queue
	waiting         bool // for RNR, or for the reaction to a NAK
	timerSet        bool
	backoff         uint8 // adaptive: timeouts in a row
	repairing       bool  // selective repeat: one packet is sent again
	skipAcked       bool  // the WQE at the cursor goes on at skipTo
	exact           bool  // a READ or an atomic was asked for again: only its next response counts
	scripted        bool  // FailNext has asked for an error

	retryMax, retry uint32
	rnrMax, rnr     uint32
	txq             list
	sinceAR         int // packets since one with AckReq
	burst           int
	reads           int      // READs and atomics outstanding
	timeout         sim.Time // 0: no timer
	deadline        sim.Time
	readyAt         sim.Time
	puOwed          sim.Time // work on answers that its PU does next
	puFree          sim.Time // when such work is done that began while the QP had no PU
	*sendRare
}

// sendRare is what few messages need of a requester.
type sendRare struct {
	drainEvent   bool   // the end of draining is to be reported
	lsn          uint32 // limit of ssn by credits
	unlimited    bool   // the responder announces none
	readMax      int
	landing      []landing
	waitEnd      sim.Time
	exactTimeout sim.Time // of the connection; timeout is an adaptive part of it
	after        uint32   // selective repeat: PSN at the cursor before a packet was sent again
	skipTo       uint32
	csReq        int      // bytes of a response that may be scattered to a CQE
	paths        *avPaths // of a UD QP, which has them instead of a peer
}

// clear is the state after reset; what is under way stays marked.
func (r *requester) clear() {
	rare := r.sendRare
	*rare = sendRare{landing: rare.landing, paths: rare.paths}
	r.sq.clear()
	*r = requester{
		connection: r.connection, sendRare: rare,
		sq: r.sq, msgs: r.msgs,
		running: r.running, queued: r.queued, deadline: sim.Never, timerSet: r.timerSet, txq: emptyList,
		scripted: r.scripted,
	}
	for i := range r.landing {
		r.landing[i].busy = false
	}
}

func (r *requester) msg(i uint32) *msg { return &r.msgs[i&uint32(len(r.msgs)-1)] }

// oldest is the index of the oldest WQE that is not completed.
func (r *requester) oldest() uint16 {
	if r.head != r.tail {
		return r.msg(r.head).idx
	}
	return r.sq.ci
}

// connect takes from the context what the state RTS needs.
func (r *requester) connect() {
	c := r.context()
	r.psn = c.NextSendPSN()
	r.una, r.sent = r.psn, r.psn
	r.growLanding()
	r.takeRetries()
	r.csReq = 0
	if r.u.p.ScatterToCQE {
		r.csReq = inlineLimit(c.CSReq(), prm.CSReqUpTo32B, prm.CSReqUpTo64B, r.scq)
	}
}

// goOn is the return to RTS from a state that sends nothing new.
func (r *requester) goOn() {
	r.draining = false
	r.sq.readAhead()
	r.kick()
}

// report writes what a query of the context says of the send queue.
func (r *requester) report(c prm.QPC) {
	if r.state >= prm.QPStateRTS {
		c.SetNextSendPSN(r.psn)
		c.SetLastAckedPSN(roce.AddPSN(r.una, -1))
		c.SetSSN(r.ssn)
		c.SetCurRetryCount(min(r.retry, 7))
		c.SetCurRNRRetry(r.rnr)
	}
	c.SetHWSQWQEBBCounter(uint32(r.sq.ci))
	c.SetSWSQWQEBBCounter(uint32(r.sq.pi))
}

// stop drops what is under way.
func (r *requester) stop() {
	r.u.abandon(&r.txq)
	r.waiting, r.deadline = false, sim.Never
}

// fail is the state ERR: nothing is sent, and what was taken is flushed.
func (r *requester) fail() {
	r.stop()
	r.draining, r.open = false, false
	r.flushTaken()
}

// outstanding says whether something sent waits for an answer.
func (r *requester) outstanding() bool { return r.una != r.sent }

// sendsRequests says whether the state lets it send.
func (q *requester) sendsRequests() bool {
	return q.state == prm.QPStateRTS || q.draining && (q.open || q.cur != q.tail)
}
