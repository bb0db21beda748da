package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
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

// requester is the send side of a QP. WQE indexes count basic blocks modulo 2^16.
type requester struct {
	sqOff  uint64 // of the SQ in the ring
	sqSize uint32 // basic blocks
	pi     uint16 // behind the last WQE known to be posted
	ci     uint16 // of the WQE at the cursor
	got    uint16 // blocks ci..got-1 are in buf
	buf    []byte
	fetch  bool     // a WQE fetch is under way
	stale  bool     // its result must not be used
	split  [2]int   // lengths of the two reads that the next fetch is made of, or zeros
	rung   []uint16 // producer indexes of doorbells whose WQEs are to be fetched

	msgs            []msg // power of two
	head, cur, tail uint32
	nbb             int    // blocks of the WQE at the cursor, as runnable found them
	open            bool   // the WQE at the cursor is being sent
	pkt             uint32 // its next packet
	segAt           int    // its next payload byte: segment, and place in it
	segPos          uint32
	burst           int
	halt            bool // nothing more is sent: a WQE failed by itself
	draining        bool // in state SQD, with messages under way
	drainEvent      bool // the end of it is to be reported

	psn       uint32 // next to assign
	una       uint32 // oldest unacknowledged
	sent      uint32 // behind the highest that was sent
	ssn       uint32
	lsn       uint32 // limit of ssn by credits
	unlimited bool   // the responder announces none
	sinceAR   int    // packets since one with AckReq
	reads     int    // READs and atomics outstanding
	readMax   int
	landing   []landing

	kept   []int32  // places of WQEs in the cache, by block; nil: none yet
	puOwed sim.Time // work on answers that its PU does next
	puFree sim.Time // when such work is done that began while the QP had no PU

	running, queued bool // on a PU; in the ready queue
	readyAt         sim.Time
	waiting         bool // for RNR, or for the reaction to a NAK
	waitEnd         sim.Time
	waitEvents      int
	timeout         sim.Time // 0: no timer
	exactTimeout    sim.Time // of the connection; timeout is an adaptive part of it
	backoff         uint8    // adaptive: timeouts in a row
	deadline        sim.Time
	one, skipping   bool   // selective repeat: one packet is sent again; the WQE at the cursor goes on at skipTo
	after, skipTo   uint32 // PSN at the cursor before it was sent again
	exact           bool   // a READ or an atomic was asked for again: only its next response counts
	timerSet        bool
	retryMax, retry uint32
	rnrMax, rnr     uint32
	txq             list

	flushPoll sim.Time // ERR: distance to the next look at the doorbell record
	flushRead bool
	flushSet  bool
}

// clear is the state after reset; what is under way stays marked.
func (r *requester) clear() {
	*r = requester{
		sqOff: r.sqOff, sqSize: r.sqSize, buf: r.buf, fetch: r.fetch, stale: r.fetch, msgs: r.msgs, landing: r.landing, rung: r.rung[:0],
		running: r.running, queued: r.queued, waitEvents: r.waitEvents, deadline: sim.Never, timerSet: r.timerSet,
		txq: emptyList, flushRead: r.flushRead, flushSet: r.flushSet,
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
	return r.ci
}

// outstanding says whether something sent waits for an answer.
func (r *requester) outstanding() bool { return r.una != r.sent }

// posted is a doorbell or a push for the WQE at index idx with ds units.
func (q *qp) posted(idx uint16, ds int, wqe []byte) {
	if q.state != prm.QPStateRTS && q.state != prm.QPStateSQD && !q.flushes() || q.sqSize == 0 {
		q.d.c.DoorbellsState++
		return
	}
	n := uint16(max(1, (ds*prm.DSSize+prm.WQEBBSize-1)/prm.WQEBBSize))
	pi := idx + n
	if int16(pi-q.pi) <= 0 || uint32(pi-q.oldest()) > q.sqSize {
		// Late, repeated, or made of stale bytes: the record knows.
		q.d.c.DoorbellsOdd++
		q.readRecord()
		return
	}
	if wqe != nil && q.state == prm.QPStateRTS && idx == q.pi && q.got == idx && !q.fetch && q.take(idx, wqe) {
		q.d.c.WQEsPushed++
	}
	q.pi = pi
	if q.flushes() {
		q.flushSQ()
		return
	}
	if wqe == nil && q.got != pi && q.d.p.FetchPerDoorbell {
		q.rung = append(q.rung, pi)
	}
	q.readAhead()
	q.kick()
}

// take puts a pushed WQE into the buffer if there is room.
func (q *qp) take(idx uint16, wqe []byte) bool {
	n := uint16(len(wqe) / prm.WQEBBSize)
	if int(idx+n-q.ci) > q.d.p.WQEBuffer {
		return false
	}
	q.needBuf()
	at := int(idx) * prm.WQEBBSize & (len(q.buf) - 1)
	k := copy(q.buf[at:], wqe)
	copy(q.buf, wqe[k:])
	q.got = idx + n
	if len(q.d.sendWQEs.nodes) > 0 {
		q.keepWQE(idx)
	}
	return true
}

func (q *qp) needBuf() {
	if q.buf == nil {
		q.buf = make([]byte, q.d.p.WQEBuffer*prm.WQEBBSize)
	}
}

// readAhead fetches WQEs before the cursor needs them: when less than half of the
// buffer is filled.
func (q *qp) readAhead() {
	if q.state == prm.QPStateRTS && int(q.got-q.ci) < q.d.p.WQEBuffer/2 {
		q.fetchWQEs()
	}
}

// fetchWQEs starts a DMA read of what is posted and not in the buffer: as much as
// there is room for, contiguous, up to FetchLimit; with FetchPerDoorbell by a read for
// each doorbell that is waiting.
func (q *qp) fetchWQEs() {
	if q.fetch || q.got == q.pi {
		return
	}
	d := q.d
	room := d.p.WQEBuffer - int(q.got-q.ci)
	n := min(int(q.pi-q.got), room, d.p.FetchLimit)
	if n <= 0 {
		return
	}
	q.needBuf()
	at := int(q.got) * prm.WQEBBSize & (len(q.buf) - 1)
	slot := uint32(q.got) & (q.sqSize - 1)
	n = min(n, (len(q.buf)-at)/prm.WQEBBSize, int(q.sqSize-slot))
	pa, bytes := q.ring.at(q.sqOff+uint64(slot)*prm.WQEBBSize, n*prm.WQEBBSize)
	q.fetch, q.stale = true, false
	d.c.WQEFetches++
	d.c.WQEBlocksFetched += uint64(bytes / prm.WQEBBSize)
	x := q.arg | uint64(bytes/prm.WQEBBSize)<<fetchShift
	head, data := q.split[0], q.split[1]
	q.split = [2]int{}
	if head > 0 && head+data <= bytes {
		d.bus.ReadDMA(pa, q.buf[at:at+head], d.h.none, 0)
		d.bus.ReadDMA(pa+mem.PA(head), q.buf[at+head:at+head+data], d.h.fetch, x)
		return
	}
	from, done := q.got, 0
	for _, pi := range q.rung {
		k := int(int16(pi-from)) * prm.WQEBBSize
		if k > bytes {
			break
		}
		done++
		if 0 < k && k < bytes {
			d.bus.ReadDMA(pa, q.buf[at:at+k], d.h.none, 0)
			pa, at, bytes, from = pa+mem.PA(k), at+k, bytes-k, pi
		}
	}
	q.rung = q.rung[:copy(q.rung, q.rung[done:])]
	d.bus.ReadDMA(pa, q.buf[at:at+bytes], d.h.fetch, x)
}

// fetchShift is where the event word of a fetch holds its number of blocks: above
// a generation of 30 bits.
const fetchShift = 54

func (d *Device) onFetch(x uint64) {
	q := d.qpArg(x & (1<<fetchShift - 1))
	if q == nil {
		return
	}
	q.fetch = false
	if q.stale {
		q.stale = false
	} else {
		q.got += uint16(x >> fetchShift)
	}
	if q.flushes() {
		q.flushSQ()
		return
	}
	q.readAhead()
	q.kick()
}

// whole is the WQE of n blocks at the cursor in one piece, which must be in the
// buffer.
func (q *qp) whole(n int) []byte {
	at := int(q.ci) * prm.WQEBBSize & (len(q.buf) - 1)
	if at+n*prm.WQEBBSize <= len(q.buf) {
		return q.buf[at : at+n*prm.WQEBBSize]
	}
	w := q.d.wqe[:n*prm.WQEBBSize]
	k := copy(w, q.buf[at:])
	copy(w[k:], q.buf)
	return w
}

// blocks is the length of the WQE at the cursor, 0 while it is not all there.
func (q *qp) blocks() int {
	have := int(q.got - q.ci)
	if have == 0 {
		return 0
	}
	at := int(q.ci) * prm.WQEBBSize & (len(q.buf) - 1)
	n := max(1, (prm.CtrlSegment(q.buf[at:]).DS()*prm.DSSize+prm.WQEBBSize-1)/prm.WQEBBSize)
	if int(q.pi-q.ci) < n {
		n = int(q.pi - q.ci) // it names more than was posted: malformed
	}
	if have < n {
		return 0
	}
	return n
}

// runnable says whether the next packet of the QP can be made now; it starts the
// fetch of a WQE that is missing, and leaves the WQE's length in nbb.
func (q *qp) runnable() bool {
	if !q.sendsRequests() || q.waiting || q.halt && (q.cur == q.tail || q.msg(q.cur).fail != 0) {
		return false
	}
	if q.ci == q.pi {
		return false
	}
	if q.nbb = q.blocks(); q.nbb == 0 {
		q.fetchWQEs()
		return false
	}
	if q.reaction != nil && q.paced() {
		return false
	}
	if q.open {
		return q.inWindow(q.msg(q.cur))
	}
	at := int(q.ci) * prm.WQEBBSize & (len(q.buf) - 1)
	c := prm.CtrlSegment(q.buf[at:])
	if q.cur != q.tail {
		return true // again: it passed these checks the first time
	}
	if c.FMCESE()&prm.CtrlFenceMask >= prm.CtrlFence && q.reads > 0 || q.d.p.Credits && q.limited(c.Opcode()) {
		return false
	}
	switch c.Opcode() {
	case prm.WQEOpRDMARead, prm.WQEOpAtomicCS, prm.WQEOpAtomicFA, prm.WQEOpAtomicWrite:
		if q.reads >= q.readMax {
			return false
		}
	}
	return roce.CmpPSN(q.psn, q.una) < roce.MaxOutstandingPSN/2
}

// inWindow says whether the next packet of an open message has a PSN that may be
// outstanding.
func (q *qp) inWindow(m *msg) bool {
	return m.kind != msgPush || roce.CmpPSN(roce.AddPSN(m.first, int32(q.pkt)), q.una) < roce.MaxOutstandingPSN
}

// kick has the QP compete for a processing unit if it can go on.
func (q *qp) kick() {
	if q.running || q.queued || !q.runnable() {
		return
	}
	d := q.d
	q.readyAt = d.e.Now()
	if d.idlePUs > 0 && d.ready.len() == 0 {
		q.start()
		return
	}
	q.queued = true
	d.ready.push(q.arg)
	d.dispatch()
}

// start gives the QP an idle processing unit. What the requester's pipeline takes
// beside the PU comes first, unless the QP has waited that long.
func (q *qp) start() {
	q.d.idlePUs--
	q.running, q.burst = true, 0
	q.service(q.readyAt + q.d.p.RequesterLatency)
}

// dispatch gives idle processing units to waiting QPs.
func (d *Device) dispatch() {
	for d.idlePUs > 0 && d.ready.len() > 0 {
		q := d.qpArg(d.ready.pop())
		if q == nil {
			continue
		}
		q.queued = false
		if q.running || !q.runnable() {
			continue
		}
		q.start()
	}
}

// service starts the PU's next piece of work on the QP: a WQE, which is not done
// before a time, or a further packet.
func (q *qp) service(notBefore sim.Time) {
	d := q.d
	if q.open {
		d.e.After(d.p.PUPacket, d.h.pu, q.arg)
		return
	}
	var m miss
	d.touchQP(q, &m)
	start, _ := d.issue.Take(d.e.Now(), d.p.IssueInterval+m.stall+d.xlate)
	d.xlate = 0
	work := d.p.PUService
	if q.st == prm.STRC {
		work += d.p.PUReliable
	}
	d.c.PUBusy += work
	start = max(start, q.puFree) + q.puOwed
	q.puOwed = 0
	d.e.At(max(start+work, notBefore)+m.late, d.h.pu, q.arg)
}

// onPU is a processing unit that has done a piece of work for a QP.
func (d *Device) onPU(arg uint64) {
	q := d.qpArg(arg)
	if q == nil || !q.step() {
		if q != nil {
			q.running = false
		}
		d.idlePUs++
		if q != nil {
			q.kick()
		}
		d.dispatch()
	}
}

// step makes one packet. It reports whether the PU stays with the QP.
func (q *qp) step() bool {
	d := q.d
	if !q.runnable() {
		return false
	}
	fresh := !q.open
	if fresh && !q.begin() {
		return false
	}
	if q.open {
		m := q.msg(q.cur)
		if m.kind == msgPush && !d.room(q.payload(m)) {
			d.c.TxStalls++
			d.stalled.push(q.arg)
			return true
		}
		q.sendNext(m, fresh)
	}
	if q.open {
		q.burst++
		if q.burst >= d.p.Quantum && d.ready.len() > 0 {
			return false
		}
	} else if d.ready.len() > 0 {
		return false
	}
	if !q.runnable() {
		return false
	}
	q.service(0)
	return true
}
