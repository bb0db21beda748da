package model

import "github.com/rdmasim/rdmasim/verbs"

// Attr are the attributes of the queue pair that were set last.
func (q *QP) Attr() *verbs.QPAttr { return &q.attr }

// Sure reports whether a request that the queue pair posts now succeeds, whatever a device is free to do. One that
// takes a receive never is.
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

// Interrupted is requests that were posted, each of which was Sure, and were under way when the queue pair went to ERR
// or ended: each has succeeded or is flushed, and behind one that is flushed all are (IBTA error state). The caller
// tells of that end next.
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
