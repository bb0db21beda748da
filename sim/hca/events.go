package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// An event names a queue by its word, number and generation: it finds nothing when the queue
// is gone. What it finds does the work.

// qpArg is the QP of an event word, or nil when it is gone.
func (v *queuePairs) qpArg(arg uint64) *qp {
	q := v.qpn(uint32(arg & 0xffffff))
	if q == nil || q.arg != arg {
		return nil
	}
	return q
}

// requesterArg is the requester of the QP of an event word, or nil when it is gone.
func (v *queuePairs) requesterArg(arg uint64) *requester {
	if q := v.qpArg(arg); q != nil {
		return &q.requester
	}
	return nil
}

// responderArg is the responder likewise.
func (v *queuePairs) responderArg(arg uint64) *responder {
	if q := v.qpArg(arg); q != nil {
		return &q.responder
	}
	return nil
}

func (v *queuePairs) onTimer(arg uint64) {
	if q := v.requesterArg(arg); q != nil {
		q.onTimer()
	}
}

func (v *queuePairs) onWait(arg uint64) {
	if q := v.requesterArg(arg); q != nil {
		q.onWait()
	}
}

func (v *queuePairs) onAsk(arg uint64) {
	if q := v.requesterArg(arg); q != nil {
		q.onAsk()
	}
}

func (v *queuePairs) onFetch(x uint64) {
	if q := v.requesterArg(x & (1<<fetchShift - 1)); q != nil {
		q.onFetch(int(x >> fetchShift))
	}
}

func (v *queuePairs) onList(arg uint64) {
	if q := v.requesterArg(arg); q != nil {
		q.onList()
	}
}

func (v *queuePairs) onCopied(arg uint64) {
	if q := v.requesterArg(arg); q != nil {
		q.onCopied()
	}
}

func (v *queuePairs) onRecord(arg uint64) {
	if q := v.qpArg(arg); q != nil {
		q.onRecord()
	}
}

func (v *queuePairs) onPoll(arg uint64) {
	if q := v.qpArg(arg); q != nil {
		q.onPoll()
	}
}

func (v *queuePairs) onAck(arg uint64) {
	if q := v.responderArg(arg); q != nil {
		q.onAck()
	}
}

func (v *queuePairs) onHush(arg uint64) {
	if q := v.responderArg(arg); q != nil {
		q.onHush()
	}
}

func (v *queuePairs) onSACK(arg uint64) {
	if q := v.responderArg(arg); q != nil {
		q.onSACK()
	}
}

func (v *queuePairs) onNak(arg uint64) {
	if q := v.responderArg(arg); q != nil {
		q.onNak()
	}
}

func (v *queuePairs) onRaise(arg uint64) {
	if q := v.qpArg(arg); q != nil {
		q.onRaise()
	}
}

func (v *queuePairs) onPace(arg uint64) {
	if q := v.qpArg(arg); q != nil {
		q.onPace()
	}
}

func (v *queuePairs) onRQRecord(arg uint64) {
	if q := v.responderArg(arg); q != nil {
		q.onRQRecord()
	}
}

func (v *queuePairs) onRQFetch(x uint64) {
	if q := v.responderArg(x & (1<<fetchShift - 1)); q != nil {
		q.onRQFetch(int(x >> fetchShift))
	}
}

func (v *queuePairs) onRespond(arg uint64) {
	if q := v.responderArg(arg); q != nil {
		q.onRespond()
	}
}

// An SRQ asks for its QPs by their event words.

func (v *queuePairs) resumeRecv(arg uint64, s *srq) {
	if q := v.responderArg(arg); q != nil && q.srq == s {
		q.resumeRecv()
	}
}

func (v *queuePairs) lookedInVain(arg uint64, s *srq) {
	if q := v.responderArg(arg); q != nil && q.srq == s {
		q.rq.looked = true
	}
}

// departed is a packet of an unreliable QP that leaves the port. Nobody acknowledges
// it: the message is done when its last packet is gone.
func (v *queuePairs) departed(s *slot) {
	arg, epoch := s.left, s.epoch
	s.left = 0
	if s.group {
		v.echo(s.f)
	}
	q := v.requesterArg(arg)
	if q == nil || q.epoch != epoch {
		return
	}
	q.una = roce.AddPSN(s.f.BTH().PSN(), 1)
	q.complete()
	q.kick()
}

// goOn is an engine that has waited for room.
func (v *queuePairs) goOn(word uint64) {
	if word&responderBit != 0 {
		v.onRespond(word &^ responderBit)
	} else {
		v.h.pu(word)
	}
}

// lookUp is what a packet that arrives costs in look-ups: the context of its QP, and
// what a WRITE names. A READ's are made when its data is fetched.
func (v *queuePairs) lookUp(p *roce.Packet) (m miss) {
	q := v.qpn(p.BTH().DestQP())
	info := p.Info()
	if q == nil && p.Op.Transport() == roce.DC {
		q = v.connected(p)
	}
	if q == nil || info.Class == roce.ClassReadRequest {
		return m
	}
	m = v.caches.findQP(q.cachedQP, m)
	if info.Headers.Has(roce.HasRETH) {
		if h := p.RETH(); h.Length() > 0 {
			return v.caches.findKey(h.RKey(), h.VA(), m)
		}
	}
	return m
}

func (v *queuePairs) awaitsAtomic(arg uint64, epoch uint32) bool {
	q := v.responderArg(arg)
	return q != nil && q.epoch == epoch && q.takesRequests()
}

func (v *queuePairs) finishAtomic(arg uint64, op roce.Opcode, old uint64) {
	v.responderArg(arg).finishAtomic(op, old)
}

func (v *queuePairs) againAtomic(arg uint64) { v.responderArg(arg).againAtomic() }

// grant is an idle processing unit for a QP that waits for one.
func (v *queuePairs) grant(arg uint64) {
	if q := v.requesterArg(arg); q != nil {
		q.granted()
	}
}

// onPU is a processing unit that has done a piece of work for a QP.
//
//go:noinline
func (v *queuePairs) onPU() sim.Handler {
	return func(arg uint64) {
		if q := v.requesterArg(arg); q != nil {
			q.work()
			return
		}
		g := &v.sendEngine.groups[v.groupOf(uint32(arg&0xffffff))]
		g.idle++
		g.dispatch()
	}
}

// loseRecv is a QP whose receive WQEs have left the device for those of others.
func (v *queuePairs) loseRecv(n uint32) {
	if q := v.qpn(n); q != nil {
		q.responder.rq.dropReadAhead()
	}
}

// congested is a received CNP for QP q.
func (v *queuePairs) congested(q *qp, p *roce.Packet) {
	if !v.p.Congestion.DCQCN || !q.takesResponses() || !q.fromPeer(p) {
		v.c.RpCNPIgnored++
		return
	}
	q.notified()
}

// Resumed gives the driver's answer to the engine of the QP that has waited.
func (v *queuePairs) Resumed(queue uint64, s odp.Side, wqe, failed bool) {
	q := v.qpArg(queue)
	switch {
	case q == nil:
	case s.Remote():
		q.responder.pagesCame(s, wqe, failed)
	default:
		q.requester.pagesCame(s, failed)
	}
}
