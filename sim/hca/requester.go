package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
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
	dammed bool         // counts as sent, and is not sent again after an RNR NAK
	srqn   uint32       // XRC: that the WQE has named
	vendor uint16       // vendor byte of fail, plus 1; 0: that of the syndrome
	stream uint16       // of a DCI
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
	segAt           int32
	puGroup         uint16      // number of the processing units that may work on it
	nbb             uint16      // blocks of the WQE at the cursor, as runnable found them
	burst           int32       // packets since the PU took the QP
	rest            memoryRange // of segment segAt, where the packet before has ended in it

	open            bool  // the WQE at the cursor is being sent
	halt            bool  // nothing more is sent: a WQE failed by itself
	draining        bool  // in state SQD, with messages under way
	running, queued bool  // on a PU; in the ready queue
	waiting         bool  // for RNR, or for the reaction to a NAK
	timerSet        bool  // an event looks at deadline, at timerAt
	timerLong       bool  // it was set for a wait that may end before
	backoff         uint8 // ACK timeouts in a row
	repairing       bool  // selective repeat: one packet is sent again
	skipAcked       bool  // the WQE at the cursor goes on at skipTo
	exact           bool  // a READ or an atomic was asked for again: only its next response counts
	scripted        bool  // FailNext has asked for an error
	paging          bool  // waits for pages
	dams            bool  // waits for RNR, and takes up what is posted
	dammed          bool  // a message may be

	retryMax, retry uint32
	rnrMax, rnr     uint32
	txq             list
	sinceAR         int32    // packets since one with AckReq
	reads           int32    // READs and atomics outstanding
	timeout         sim.Time // 0: no timer
	deadline        sim.Time
	readyAt         sim.Time
	puOwed          sim.Time // work on answers that its PU does next
	puBusy          sim.Time // that processing units have worked for the QP
	puFree          sim.Time // when such work is done that began while the QP had no PU
	*sendRare
}

// sendRare is what few messages need of a requester.
type sendRare struct {
	drainEvent bool     // the end of draining is to be reported
	lsn        uint32   // limit of ssn by credits
	unlimited  bool     // the responder announces none
	resentFrom uint32   // the oldest packet without an answer when the requester went back last,
	resends    uint32   // how often it went back to that one in a row,
	failedSent uint32   // and how often what failed was sent
	timerWaits sim.Time // for ACK timers that have run out
	readMax    int
	landing    []landing
	waitEnd    sim.Time
	ack        ackTimer // by which timeout is chosen
	timerAt    sim.Time
	after      uint32 // selective repeat: PSN at the cursor before a packet was sent again
	skipTo     uint32
	sack       *sackState  // nil until the first NAK with SACK
	csReq      int         // bytes of a response that may be scattered to a CQE
	paths      *avPaths    // of a UD QP, which has them instead of a peer, and of a DCI
	dci        *initiator  // nil of others
	streams    *streams    // nil of what is no DCI with streams
	umr        *umrQueue   // nil until the first UMR
	copy       *copies     // nil until the first copy
	faults     [2]pageWait // on GatherSide and on LandingSide
	refused    mkey.Result // of the local key that was refused last
	headGone   bool        // a request has completed in error, or was flushed
	headFails  bool        // the oldest request has failed, and has yet to complete
	nakked     bool        // a NAK has ended it
	lastLeave  bool        // what was prepared for the port still leaves
	rung       uint16      // ERR: producer index by the doorbell register,
	record     uint16      // and by the record
	psnInError uint32      // send PSN that a query gives
	landed     uint64      // bytes of responses to READs since reset
	out        uint64      // bytes of SENDs and WRITEs sent since reset, those sent again too
	askAt      sim.Time    // a landing that waits for pages is asked for again then
}

// clear is the state after reset; what is under way stays marked.
func (q *requester) clear() {
	rare := q.sendRare
	*rare = sendRare{timerAt: rare.timerAt, landing: rare.landing, paths: rare.paths, umr: rare.umr, copy: rare.copy, dci: rare.dci, streams: rare.streams, sack: rare.sack}
	if rare.sack != nil {
		*rare.sack = sackState{bits: rare.sack.bits}
		rare.sack.forget(0)
	}
	if rare.streams != nil {
		rare.streams.failed = rare.streams.failed[:0]
	}
	if rare.umr != nil {
		rare.umr.reset()
	}
	if rare.copy != nil {
		rare.copy.reset()
	}
	q.sq.clear()
	*q = requester{
		connection: q.connection, sendRare: rare,
		sq: q.sq, msgs: q.msgs, puGroup: q.puGroup,
		running: q.running, queued: q.queued, deadline: sim.Never, timerSet: q.timerSet, timerLong: q.timerLong, txq: emptyList,
		scripted: q.scripted,
	}
	for i := range q.landing {
		q.landing[i].busy = false
	}
}

func (q *requester) msg(i uint32) *msg { return &q.msgs[i&uint32(len(q.msgs)-1)] }

// oldest is the index of the oldest WQE that is not completed.
func (q *requester) oldest() uint16 {
	if q.head != q.tail {
		return q.msg(q.head).idx
	}
	return q.sq.ci
}

// connect takes from the context what the state RTS needs.
func (q *requester) connect() {
	c := q.context()
	q.psn = c.NextSendPSN()
	q.una, q.sent = q.psn, q.psn
	if q.sack != nil {
		q.sack.forget(q.una)
	}
	q.growLanding()
	q.takeRetries()
	q.csReq = 0
	if q.u.p.ScatterToCQE {
		q.csReq = inlineLimit(c.CSReq(), prm.CSReqUpTo32B, prm.CSReqUpTo64B, q.scq)
	}
}

// goOn is the return to RTS from a state that sends nothing new.
func (q *requester) goOn() {
	q.headGone = false
	q.draining, q.sq.passed = false, false
	q.sq.readAhead()
	q.kick()
}

// report writes what a query of the context says of the send queue.
func (q *requester) report(c prm.QPC) {
	if q.state >= prm.QPStateRTS {
		c.SetNextSendPSN(q.psn)
		if q.followsRecord() {
			c.SetNextSendPSN(q.psnInError)
		}
		c.SetLastAckedPSN(roce.AddPSN(q.una, -1))
		c.SetSSN(q.ssn)
		c.SetCurRetryCount(min(q.retry, 7))
		c.SetCurRNRRetry(q.rnr)
	}
	c.SetHWSQWQEBBCounter(uint32(q.sq.ci))
	c.SetSWSQWQEBBCounter(uint32(q.sq.pi))
	if q.followsRecord() {
		c.SetSWSQWQEBBCounter(uint32(q.record))
	}
}

// stop drops what is under way.
func (q *requester) stop() {
	if !q.lastLeave {
		q.u.abandon(&q.txq)
	}
	q.waiting, q.dams, q.deadline = false, false, sim.Never
	q.dropFaults()
	if q.dci != nil {
		q.disconnect()
	}
}

// fail is the state ERR: nothing is sent, and what was taken is flushed.
func (q *requester) fail() {
	q.psnInError = q.standsAt()
	q.stop()
	q.draining, q.open = false, false
	if q.followsRecord() {
		q.hold()
		return
	}
	q.flushTaken()
}

// outstanding says whether something sent waits for an answer.
func (q *requester) outstanding() bool { return q.una != q.sent }

// sendsRequests says whether the state lets it send.
func (q *requester) sendsRequests() bool {
	return q.state == prm.QPStateRTS || q.draining && (q.open || q.cur != q.tail)
}

// pageWait is a fault of a requester that is out: its token, 0 if there is none, and the message
// that it is about.
type pageWait struct {
	token odp.Token
	msg   uint32
}

// landingWaits says whether a READ or an atomic waits for pages where its response lands.
func (q *requester) landingWaits() bool { return q.paging && q.faults[odp.LandingSide].token != 0 }

// dropFaults is a queue that waits for pages no more.
func (q *requester) dropFaults() {
	if !q.paging {
		return
	}
	for i := range q.faults {
		q.u.faults.Drop(q.faults[i].token)
		q.faults[i] = pageWait{}
	}
	q.paging = false
}
