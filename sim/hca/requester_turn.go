package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// runnable says whether the next packet of the QP can be made now; it starts the
// fetch of a WQE that is missing, and leaves the WQE's length in nbb.
func (q *requester) runnable() bool {
	if !q.sendsRequests() || q.waiting && !q.takesUp() || q.paging || q.halt && (q.cur == q.tail || q.msg(q.cur).fail != 0) {
		return false
	}
	if q.open { // its WQE is in the buffer
		return (q.reaction == nil || !q.paced()) && q.inWindow(q.msg(q.cur))
	}
	if q.sq.ci == q.sq.pi {
		return false
	}
	if q.sq.passed {
		return q.reaction == nil || !q.paced()
	}
	c, n := q.sq.first()
	if q.nbb = uint16(n); n == 0 {
		q.sq.fetchMore()
		return false
	}
	if q.reaction != nil && q.paced() {
		return false
	}
	// Again: it passed these checks the first time.
	return q.cur != q.tail || q.mayBegin(c.Opcode(), c.FMCESE())
}

// idle says whether the QP has nothing to send: it is not runnable, whatever else holds.
func (q *requester) idle() bool { return !q.open && q.sq.ci == q.sq.pi }

// inWindow says whether the next packet of an open message has a PSN that may be
// outstanding.
func (q *requester) inWindow(m *msg) bool {
	return m.kind != msgPush || roce.CmpPSN(roce.AddPSN(m.first, int32(q.pkt)), q.una) < q.u.window()
}

// pus are the processing units that may work on the QP.
func (q *requester) pus() *puGroup { return &q.u.groups[q.puGroup] }

// kick has the QP compete for a processing unit if it can go on.
func (q *requester) kick() {
	if q.running || q.queued || q.idle() || !q.runnable() {
		return
	}
	g := q.pus()
	q.readyAt = q.u.e.Now()
	if g.idle > 0 && g.ready.Len() == 0 {
		q.start()
		return
	}
	q.queued = true
	g.ready.Push(q.arg)
	if q.breaks(rule.WaitingQueuesTakeTurns) {
		for i := g.ready.Len() - 1; i > 0; i-- {
			last, before := g.ready.At(i), g.ready.At(i-1)
			*last, *before = *before, *last
		}
	}
	g.dispatch()
}

// granted is an idle processing unit for a QP that has waited for one.
func (q *requester) granted() {
	q.queued = false
	if !q.running && q.runnable() {
		q.start()
	}
}

// start gives the QP an idle processing unit. What the requester's pipeline takes
// beside the PU comes first, unless the QP has waited that long.
func (q *requester) start() {
	q.pus().idle--
	q.running, q.burst = true, 0
	q.service(q.readyAt + q.u.p.RequesterLatency)
}

// service starts the PU's next piece of work on the QP: a WQE, which is not done
// before a time, or a further packet.
func (q *requester) service(notBefore sim.Time) {
	u := q.u
	q.sq.passed = !q.open && !q.sq.cut && q.st != prm.STDCI
	if q.open {
		q.puBusy += u.p.PUPacket
		u.e.After(u.p.PUPacket, u.h.pu, q.arg)
		return
	}
	var m miss
	u.caches.touchQP(q.cachedQP, &m)
	missed := m.stall + u.xlate
	start, _ := u.issue.Take(u.e.Now(), u.p.IssueInterval+missed)
	u.missed.issue += missed
	u.xlate = 0
	work := u.p.PUService
	if q.reliable() {
		work += u.p.PUReliable
	}
	u.c.PUBusy += work
	q.puBusy += work + q.puOwed
	start = max(start, q.puFree) + q.puOwed
	q.puOwed = 0
	u.e.At(max(start+work, notBefore)+m.late, u.h.pu, q.arg)
}

// work is a processing unit that has done a piece of work for the QP.
func (q *requester) work() {
	if q.step() {
		return
	}
	q.running = false
	g := q.pus()
	g.idle++
	q.kick()
	g.dispatch()
}

// step makes one packet. It reports whether the PU stays with the QP.
func (q *requester) step() bool {
	u := q.u
	goes := q.runnable()
	q.sq.passed = false
	if !goes {
		return false
	}
	fresh := !q.open
	if fresh && !q.begin() {
		return false
	}
	if q.open {
		m := q.msg(q.cur)
		if m.kind == msgPush && !u.room(q.payload(m)) {
			u.stall(q.arg)
			return true
		}
		q.sendNext(m, fresh)
	}
	if q.open {
		q.burst++
		if int(q.burst) >= u.p.Quantum && q.pus().ready.Len() > 0 {
			return false
		}
	} else if q.pus().ready.Len() > 0 {
		return false
	}
	if q.idle() || !q.runnable() {
		return false
	}
	q.service(0)
	return true
}
