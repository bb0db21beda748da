package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// sendEngine is what all requesters share: the processing units, which work on one QP each at
// a time, and the room for packets in preparation.
type sendEngine struct {
	idlePUs  int
	ready    argQueue // QPs that wait for a PU
	stalled  argQueue // QPs that wait for TxBuffer, with the engine in bit 63
	txBytes  int      // payload in preparation
	resuming bool     // a resume event is set
	issue    sim.Server
	xlate    sim.Time // what misses of the last WQE's keys hold up the send engine
	answers  bool     // READs and atomics that are answered cost something: time of a PU, or a look-up
}

// argQueue is a first-in-first-out queue of event words that reuses its memory.
type argQueue struct {
	q    []uint64
	head int
}

func (a *argQueue) len() int      { return len(a.q) - a.head }
func (a *argQueue) push(x uint64) { a.q = append(a.q, x) }
func (a *argQueue) pop() uint64 {
	x := a.q[a.head]
	a.head++
	switch {
	case a.head == len(a.q):
		a.q, a.head = a.q[:0], 0
	case a.head >= 64 && 2*a.head >= len(a.q):
		a.q = a.q[:copy(a.q, a.q[a.head:])]
		a.head = 0
	}
	return x
}

// responderBit marks a responder in the queue of stalled engines.
const responderBit = 1 << 63

// runnable says whether the next packet of the QP can be made now; it starts the
// fetch of a WQE that is missing, and leaves the WQE's length in nbb.
func (q *requester) runnable() bool {
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
	return q.mayBegin(c)
}

// inWindow says whether the next packet of an open message has a PSN that may be
// outstanding.
func (q *requester) inWindow(m *msg) bool {
	return m.kind != msgPush || roce.CmpPSN(roce.AddPSN(m.first, int32(q.pkt)), q.una) < roce.MaxOutstandingPSN
}

// kick has the QP compete for a processing unit if it can go on.
func (q *requester) kick() {
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
func (q *requester) start() {
	q.d.idlePUs--
	q.running, q.burst = true, 0
	q.service(q.readyAt + q.d.p.RequesterLatency)
}

// dispatch gives idle processing units to waiting QPs.
func (d *Device) dispatch() {
	for d.idlePUs > 0 && d.ready.len() > 0 {
		q := d.requesterArg(d.ready.pop())
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
func (q *requester) service(notBefore sim.Time) {
	d := q.d
	if q.open {
		d.e.After(d.p.PUPacket, d.h.pu, q.arg)
		return
	}
	var m miss
	d.touchQP(q.connection, &m)
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
	q := d.requesterArg(arg)
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
func (q *requester) step() bool {
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

// txDone takes a frame out of the count of what is in preparation, and lets an
// engine go on that waited for room.
func (d *Device) txDone(s *slot) {
	if s.bytes == 0 {
		return
	}
	d.txBytes -= int(s.bytes)
	s.bytes = 0
	d.resumeOne()
}

// resumeOne lets the engine go on that has waited longest for room.
func (d *Device) resumeOne() {
	if d.stalled.len() > 0 && !d.resuming {
		d.resuming = true
		d.e.After(0, d.h.resume, 0)
	}
}

// onResume runs stalled engines, in turn, until one stalls again.
func (d *Device) onResume(uint64) {
	for more := true; more; {
		d.resuming = false
		before := d.stalled.len()
		if before == 0 {
			return
		}
		arg := d.stalled.pop()
		if arg&responderBit != 0 {
			d.onRespond(arg &^ responderBit)
		} else {
			d.onPU(arg)
		}
		more = d.stalled.len() < before && !d.resuming
	}
}

// room says whether a packet of n bytes may go into preparation; one always may. What a
// paused port holds back takes room too.
func (d *Device) room(n int) bool {
	used := d.txBytes
	if d.pauser != nil {
		used += d.pauser.Queued()
	}
	return n == 0 || used == 0 || used+n <= d.p.TxBuffer
}

// Relieved is called by a wire with flow control when a frame that waited there has left.
func (d *Device) Relieved() { d.resumeOne() }
