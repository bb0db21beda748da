package model

import "github.com/rdmasim/rdmasim/verbs"

// Attr returns the attributes of the queue pair as they were last set.
func (q *QP) Attr() *verbs.QPAttr { return &q.attr }

// Sure reports whether a request would succeed if it were posted now, whatever the device's
// choices. A request that consumes a receive is never sure.
func (q *QP) Sure(r *Request) bool {
	var f faults
	p := q.Peer
	if !reliableType(q.Type) || q.State != verbs.QPSRTS || p.State < verbs.QPSRTR || p.State > verbs.QPSSQD || received(r.Op) ||
		r.Bind != nil || q.refuses(r) || q.mayRefuse(r, 0) || !q.Plain() || !p.Quiet() {
		return false
	}
	r.localFaults(&f)
	p.responderFaults(r, total(r.Local), &f)
	return f.none()
}

// Interrupted tells the model of requests that were posted while Sure held for each, and were in
// flight when the queue pair went to ERR or was destroyed: each has succeeded or is flushed, and
// all behind a flushed one are flushed (IBTA error state). The caller reports the transition or
// destruction next.
func (q *QP) Interrupted(list []Request) {
	for i := range list {
		r := &list[i]
		q.World.Cover.add(q.state(), opOf(r.Op))
		t := r.target()
		if r.Op == verbs.WRRDMARead || atomic(r.Op) {
			blurAll(r.Local, t.Len, true)
		}
		if r.Op != verbs.WRRDMARead {
			t.Mem.blur(t.Off, t.Off+t.Len)
		}
		e := entry{id: r.ID, seq: q.posted, opcode: sendOpcode(r.Op), quiet: !q.SigAll && r.Flags&verbs.SendSignaled == 0,
			statuses: set(verbs.WCSuccess, verbs.WCWRFlushErr), rule: &ruleInterrupted}
		from := r.ID
		e.decided = func(ok bool) {
			if !ok {
				q.flushBehind(from, list)
			}
		}
		q.posted++
		if q.sendDone.add(e); e.quiet {
			q.SendCQ.perhaps()
		}
	}
}

// flushBehind says that the requests of a list behind the one are flushed, as it was.
func (q *QP) flushBehind(id uint64, list []Request) {
	behind := false
	for i := range list {
		for j := range q.sendDone.entries {
			if e := &q.sendDone.entries[j]; behind && e.id == list[i].ID {
				e.statuses, e.quiet, e.decided = set(verbs.WCWRFlushErr), false, nil
			}
		}
		behind = behind || list[i].ID == id
	}
}
