package hca

import (
	"github.com/rdmasim/rdmasim/roce"
)

// An event names a queue by its word, number and generation: it finds nothing when the queue
// is gone. What it finds does the work.

// qpArg is the QP of an event word, or nil when it is gone.
func (d *queuePairs) qpArg(arg uint64) *qp {
	q := d.qpn(uint32(arg & 0xffffff))
	if q == nil || q.arg != arg {
		return nil
	}
	return q
}

// requesterArg is the requester of the QP of an event word, or nil when it is gone.
func (d *queuePairs) requesterArg(arg uint64) *requester {
	if q := d.qpArg(arg); q != nil {
		return &q.requester
	}
	return nil
}

// responderArg is the responder likewise.
func (d *queuePairs) responderArg(arg uint64) *responder {
	if q := d.qpArg(arg); q != nil {
		return &q.responder
	}
	return nil
}

func (d *queuePairs) onTimer(arg uint64) {
	if q := d.requesterArg(arg); q != nil {
		q.onTimer()
	}
}

func (d *queuePairs) onWait(arg uint64) {
	if q := d.requesterArg(arg); q != nil {
		q.onWait()
	}
}

func (d *queuePairs) onFetch(x uint64) {
	if q := d.requesterArg(x & (1<<fetchShift - 1)); q != nil {
		q.onFetch(int(x >> fetchShift))
	}
}

func (d *queuePairs) onRecord(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onRecord()
	}
}

func (d *queuePairs) onPoll(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onPoll()
	}
}

func (d *queuePairs) onAck(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onAck()
	}
}

func (d *queuePairs) onNak(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onNak()
	}
}

func (d *queuePairs) onRaise(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onRaise()
	}
}

func (d *queuePairs) onPace(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onPace()
	}
}

func (d *queuePairs) onRQRecord(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onRQRecord()
	}
}

func (d *queuePairs) onRQFetch(x uint64) {
	if q := d.responderArg(x & (1<<fetchShift - 1)); q != nil {
		q.onRQFetch(int(x >> fetchShift))
	}
}

func (d *queuePairs) onRespond(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onRespond()
	}
}

// An SRQ asks for its QPs by their event words.

func (d *queuePairs) resumeRecv(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.resumeRecv()
	}
}

func (d *queuePairs) lookedInVain(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.rq.looked = true
	}
}

// departed is a packet of an unreliable QP that leaves the port. Nobody acknowledges
// it: the message is done when its last packet is gone.
func (d *queuePairs) departed(s *slot) {
	arg, epoch := s.left, s.epoch
	s.left = 0
	if s.group {
		d.echo(s.f)
	}
	q := d.requesterArg(arg)
	if q == nil || q.epoch != epoch {
		return
	}
	q.una = roce.AddPSN(s.f.BTH().PSN(), 1)
	q.complete()
	q.kick()
}

// goOn is an engine that has waited for room.
func (d *queuePairs) goOn(word uint64) {
	if word&responderBit != 0 {
		d.onRespond(word &^ responderBit)
	} else {
		d.onPU(word)
	}
}

// lookUp is what a packet that arrives costs in look-ups: the context of its QP, and
// what a WRITE names. A READ's are made when its data is fetched.
func (d *queuePairs) lookUp(p *roce.Packet) (m miss) {
	q := d.qpn(p.BTH().DestQP())
	info := p.Info()
	if q == nil || info.Class == roce.ClassReadRequest {
		return m
	}
	d.caches.touchQP(q.cachedQP, &m)
	if info.Headers.Has(roce.HasRETH) {
		if h := p.RETH(); h.Length() > 0 {
			d.caches.touchKey(h.RKey(), h.VA(), &m)
		}
	}
	return m
}

func (d *queuePairs) awaitsAtomic(arg uint64, epoch uint32) bool {
	q := d.responderArg(arg)
	return q != nil && q.epoch == epoch && q.takesRequests()
}

func (d *queuePairs) finishAtomic(arg uint64, op roce.Opcode, old uint64) {
	d.responderArg(arg).finishAtomic(op, old)
}

// grant is an idle processing unit for a QP that waits for one.
func (d *queuePairs) grant(arg uint64) {
	if q := d.requesterArg(arg); q != nil {
		q.granted()
	}
}

// onPU is a processing unit that has done a piece of work for a QP.
func (d *queuePairs) onPU(arg uint64) {
	if q := d.requesterArg(arg); q != nil {
		q.work()
		return
	}
	d.idlePUs++
	d.dispatch()
}

// loseRecv is a QP whose receive WQEs have left the device for those of others.
func (d *queuePairs) loseRecv(n uint32) {
	if q := d.qpn(n); q != nil {
		q.responder.rq.lose()
	}
}

// congested is a received CNP for QP q.
func (d *queuePairs) congested(q *qp, p *roce.Packet) {
	if !d.p.Congestion.DCQCN || !q.takesResponses() || !q.fromPeer(p) {
		d.c.RpCNPIgnored++
		return
	}
	q.notified()
}
