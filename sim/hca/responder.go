package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// responder is the receive side of a QP. What each message needs comes first, as in
// connection.
type responder struct {
	*connection
	epsn       uint32 // expected
	msn        uint32
	nak        sentNAK // which NAK is out, and epsn has not come since
	est        bool    // COMM_EST was reported
	in         inMessage
	busy       bool // the first of the packets that wait does so for a receive WQE or an atomic
	atomicBusy bool
	rre        bool // remote reads, writes, atomics are allowed
	rwe        bool
	rae        bool
	recvOpen   bool // a SEND has a receive WQE
	paging     bool // a fault is out on WriteSide
	ackDue     bool
	ackSet     bool // an ACK event is set
	nakSet     bool
	readSet    bool // a respond event is set
	readGrant  bool // the READ at the head may start
	stalled    bool // waits for TxBuffer
	hold       list // packets that wait; the first is the one that must wait
	ahead      list // packets that came before epsn, in their order; selective repeat
	rtx        list // frames in order, some waiting for data

	// The WRITE that is arriving.
	wva   uint64 // where the next packet goes
	wkey  uint32
	wlen  uint32
	wleft uint32
	got   uint64 // bytes of payload, of all messages since reset

	itemHead int
	items    []response // what is due, from itemHead on
	*recvRare
	rq recvQueue
}

// recvRare is what WRITEs do not need of a responder.
type recvRare struct {
	// The SEND that is arriving.
	recvIdx uint16
	recvGot uint32
	recvWQE []byte
	recvCap uint64
	recvAt  cursor

	csRes int                 // bytes that may be scattered to a CQE
	grh   *[roce.GRHSize]byte // of a UD QP: the routing header that a datagram begins with
	saved replays             // max_dest_rd_atomic of them

	srqs *sharedQueues // of an XRC target: the SRQs that a request may name; nil for others

	faults    [2]odp.Token // that are out, on WriteSide and on ReadSide
	hushed    bool         // the first of the packets that wait names a key that was deregistered a moment ago
	early     earlyNAKs
	held      bool // the READ whose response is due waits for its source
	heldFault bool // and it is its fault that is out on ReadSide, not that of a later READ
}

// sentNAK is a NAK after which the connection goes on.
type sentNAK uint8

const (
	noNAK       sentNAK = iota
	sequenceNAK         // asks for epsn
	rnrNAK              // has the peer send all from epsn on again
)

// inMessage is the kind of the message that is not complete.
type inMessage uint8

const (
	inNone inMessage = iota
	inSend
	inWrite
)

// clear is the state after reset; what is under way stays marked.
func (q *responder) clear() {
	rare := q.recvRare
	*rare = recvRare{recvWQE: rare.recvWQE[:0], grh: rare.grh, srqs: rare.srqs, early: earlyNAKs{psns: rare.early.psns[:0]}, saved: replays{ops: rare.saved.ops[:0]}}
	if q.srqs != nil {
		q.leave()
	}
	*q = responder{
		connection: q.connection, recvRare: rare,
		hold: emptyList, ahead: emptyList, rtx: emptyList, items: q.items[:0],
		ackSet: q.ackSet, nakSet: q.nakSet, readSet: q.readSet, stalled: q.stalled,
		rq: recvQueue{
			connection: q.connection, stride: q.rq.stride, size: q.rq.size, buf: q.rq.buf,
			reading: q.rq.reading, stale: q.rq.reading,
		},
	}
}

// setQueue takes the form of the receive queue from the context, and returns its bytes.
func (q *responder) setQueue(c prm.QPC) uint64 {
	if c.RQType() != prm.RQTypeRegular {
		return 0
	}
	q.rq.stride, q.rq.size = 16<<c.LogRQStride(), 1<<c.LogRQSize()
	return uint64(q.rq.size) * uint64(q.rq.stride)
}

// connect takes from the context what the state RTR needs.
func (q *responder) connect() {
	c := q.context()
	q.epsn = c.NextRcvPSN()
	q.saved.limit(1 << c.LogRRAMax())
	q.takeScatter()
}

// takeScatter reads how much data the CQEs of receives may carry.
func (q *responder) takeScatter() {
	q.csRes = 0
	if q.u.p.ScatterToCQE {
		q.csRes = inlineLimit(q.context().CSRes(), prm.CSResUpTo32B, prm.CSResUpTo64B, q.recvCQ())
	}
}

// takeRights reads the access flags of the context.
func (q *responder) takeRights() {
	c := q.context()
	q.rre, q.rwe, q.rae = c.RRE(), c.RWE(), c.RAE()
}

// report writes what a query of the context says of the receive queue.
func (q *responder) report(c prm.QPC) {
	if q.state >= prm.QPStateRTR {
		c.SetNextRcvPSN(q.epsn)
		c.SetRMSN(q.msn)
	}
	c.SetHWRQCounter(uint32(q.rq.ci))
	c.SetSWRQCounter(uint32(q.rq.pi))
}

// stop drops what is under way.
func (q *responder) stop() {
	q.u.abandon(&q.rtx)
	q.dropHeld()
	q.dropResponses()
	q.dropFaults()
}

// dropRequests is the state ERR: what has come is not executed any more.
func (q *responder) dropRequests() {
	q.busy, q.atomicBusy, q.hushed = false, false, false
	q.dropHeld()
	q.dropFaults()
}

// dropHeld forgets the packets that wait, and those that came early.
func (q *responder) dropHeld() {
	for q.hold.head >= 0 {
		q.u.dropSlot(q.u.popSlot(&q.hold))
	}
	q.dropAhead()
}

// flushOpen completes with a flush error the receive WQE that a message was filling.
func (q *responder) flushOpen() {
	if q.recvOpen {
		q.recvOpen = false
		q.errorCQE(prm.CQERespErr, q.recvIdx, 0, prm.SyndromeWRFlush)
	}
}

// request takes a request packet and its reference. Packets behind one that waits, wait too.
func (q *responder) request(f *roce.Frame) {
	if q.busy {
		q.wait(f)
		return
	}
	if q.u.p.SelectiveRepeat && q.keep(f) {
		return
	}
	if q.execute(&f.Packet) {
		q.busy = true
		q.wait(f)
		return
	}
	f.Release()
	if q.ahead.head >= 0 {
		q.catchUp()
	}
}

//go:noinline
func (q *responder) wait(f *roce.Frame) { q.u.pushSlot(&q.hold, q.u.getSlot(f)) }

// unhold goes on with the packets that waited. redo says that the first is looked
// at again; otherwise it is done.
func (q *responder) unhold(redo bool) {
	q.busy = false
	u := q.u
	for ; q.hold.head >= 0; redo = true {
		i := u.popSlot(&q.hold)
		if redo && q.takesRequests() {
			if f := u.slot(i).f; q.keep(f) {
				u.putSlot(i)
				continue
			}
			if q.execute(u.packet(i)) {
				q.busy = true
				u.pushFront(&q.hold, i)
				return
			}
		}
		u.dropSlot(i)
	}
	if q.ahead.head >= 0 {
		q.catchUp()
	}
}

// execute does what a request packet asks for. It reports true when the packet
// must wait, with nothing changed; it is then given again.
func (q *responder) execute(p *roce.Packet) (wait bool) {
	info := p.Info()
	switch v := q.check(p, info); v {
	case passed:
		if info.Class == roce.ClassWrite { // most are
			q.execWrite(p, info)
			return false
		}
		return q.carryOut(p, info)
	case mustWait:
		return true
	case noAccess:
		if q.staysSilent(p) {
			return true
		}
		q.countRefused(info)
		fallthrough
	default:
		q.refuse(v, p)
		return false
	}
}

// dropFaults is a queue that waits for pages no more. What was accepted before the state ERR is
// still answered, with the pages that it waits for.
func (q *responder) dropFaults() {
	for i := range q.faults {
		if q.faults[i] != 0 && !(q.heldFault && i == int(odp.ReadSide-odp.WriteSide)) {
			q.u.faults.Drop(q.faults[i])
			q.faults[i] = 0
		}
	}
	q.paging = false
	q.resumeHeld()
}

// denied is the verdict on an access that a translation has refused.
func (q *responder) denied(operation uint32) verdict {
	if q.pages(q.u.dma.result, operation) && !q.breaks(waitRule(operation)) {
		return noPage
	}
	return noAccess
}
