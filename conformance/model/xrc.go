package model

import "github.com/rdmasim/rdmasim/verbs"

// NewTarget adds the target of an XRC connection in RESET. named are the SRQs of its domain, each
// with its CQ: a request names the one that it uses.
func (w *World) NewTarget(q *QP, named []*SRQ) *QP {
	q.World, q.Type, q.named = w, verbs.QPTXRCRecv, named
	q.sendDone = &workQueue{qp: q}
	for _, s := range named {
		done := &workQueue{qp: q, recv: true, srq: s}
		s.CQ.queues = append(s.CQ.queues, done)
		q.namedDone = append(q.namedDone, done)
	}
	q.recvDone = q.namedDone[0]
	w.qps = append(w.qps, q)
	return q
}

// aim has the target of an XRC connection use the SRQ that a request names. It has no receives for
// a request that names none.
func (q *QP) aim(r *Request) {
	p := q.Peer
	if q.Type != verbs.QPTXRCSend {
		return
	}
	p.SRQ = r.SRQ
	for i, s := range p.named {
		if s == r.SRQ {
			p.recvDone = p.namedDone[i]
		}
	}
}

// queues are where completions of the queue pair's receives go.
func (q *QP) queues() []*workQueue {
	if q.namedDone != nil {
		return q.namedDone
	}
	return []*workQueue{q.recvDone}
}

// reliableType reports whether requests of the type are answered.
func reliableType(t verbs.QPType) bool { return t == verbs.QPTRC || t == verbs.QPTXRCSend }
