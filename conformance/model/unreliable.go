package model

import (
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// unreliable carries out a request of a UC or UD queue pair.
func (q *QP) unreliable(r *Request) {
	var f faults
	r.localFaults(&f)
	done := entry{id: r.ID, seq: r.seq, opcode: sendOpcode(r.Op), quiet: !q.SigAll && r.Flags&verbs.SendSignaled == 0, rule: &ruleSuccess}
	p, n := q.Peer, total(r.Local)
	arrives := p.State == verbs.QPSRTR || p.State == verbs.QPSRTS || p.State == verbs.QPSSQD || p.State == verbs.QPSSQE
	arrives = arrives && (q.Type != verbs.QPTUD || r.QKey == p.attr.QKey && (p.member || !r.Group)) // IBTA Q_Key check
	var g faults
	if arrives {
		p.responderFaults(r, n, &g)
	}
	if f.none() {
		done.statuses = set(verbs.WCSuccess)
		q.World.Vague = q.World.Vague || g.free() // a check that is left open, whose result no completion shows
		if arrives && g.none() {
			q.transfer(r)
		} else if arrives {
			p.dropped(r, n, &g)
		}
		if !done.quiet {
			q.sendDone.add(done)
		}
		return
	}
	if f.free() {
		q.World.Vague = true
	}
	done.quiet, done.statuses, done.rule = false, f.local, f.rule
	if arrives {
		p.dropped(r, n, &g)
	}
	q.may = []verbs.QPState{verbs.QPSSQE, verbs.QPSErr}
	q.sendDone.add(done)
}

// dropped is the receiver of a UC message that it cannot take, or of the beginning of one: nothing
// but bytes in its target, and perhaps ERR.
func (q *QP) dropped(r *Request, n int, f *faults) {
	need := right(r.Op)
	w := q.next()
	if t := r.target(); need != 0 && q.attr.Access&need != 0 {
		t.blur(need)
	}
	if received(r.Op) && need == 0 && w != nil {
		for _, x := range w.pieces {
			x.blur(verbs.AccessLocalWrite)
		}
		if f.remote != 0 { // it completes with an error, or is taken by the next message
			w.also |= set(verbs.WCLocLenErr, verbs.WCLocProtErr, verbs.WCLocAccessErr)
			q.RecvCQ.perhaps()
			q.World.Vague = q.World.Vague || q.SRQ != nil
		}
	}
	for _, t := range []verbs.EventType{verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventQPFatal} {
		q.World.allow(t, q, 0, &ruleUCDrop)
	}
	if f.remote != 0 {
		q.maybe(verbs.QPSErr)
	}
}

// Member reports whether the queue pair has joined the multicast group.
func (q *QP) Member() bool { return q.member }

// Attach judges ibv_attach_mcast of a queue pair that has not joined the group.
func (q *QP) Attach(err error) error {
	q.World.Cover.add(q.state(), OpGroup)
	q.member = err == nil
	return errnoIn(&ruleGroup, err, 0)
}

// Detach judges ibv_detach_mcast.
func (q *QP) Detach(err error) error {
	q.World.Cover.add(q.state(), OpGroup)
	if !q.member {
		return errnoIn(&ruleGroup, err, syscall.EINVAL)
	}
	q.member = false
	return errnoIn(&ruleGroup, err, 0)
}
