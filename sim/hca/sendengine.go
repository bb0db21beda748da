package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// sendEngine is what all requesters share: the processing units, which work on one QP each at
// a time.
type sendEngine struct {
	idlePUs int
	ready   argQueue // QPs that wait for a PU
	issue   sim.Server
	xlate   sim.Time // what misses of the last WQE's keys hold up the send engine
	answers bool     // READs and atomics that are answered cost something: time of a PU, or a look-up
}

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
	d.caches.touchQP(q.cachedQP, &m)
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
			d.stall(q.arg)
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
