package hca

import "github.com/rdmasim/rdmasim/roce"

// An event names a queue by its word, number and generation: it finds nothing when the queue
// is gone. What it finds does the work.

// qpArg is the QP of an event word, or nil when it is gone.
func (d *tables) qpArg(arg uint64) *qp {
	q := d.qpn(uint32(arg & 0xffffff))
	if q == nil || q.arg != arg {
		return nil
	}
	return q
}

// requesterArg is the requester of the QP of an event word, or nil when it is gone.
func (d *tables) requesterArg(arg uint64) *requester {
	if q := d.qpArg(arg); q != nil {
		return &q.requester
	}
	return nil
}

// responderArg is the responder likewise.
func (d *tables) responderArg(arg uint64) *responder {
	if q := d.qpArg(arg); q != nil {
		return &q.responder
	}
	return nil
}

func (d *Device) onTimer(arg uint64) {
	if q := d.requesterArg(arg); q != nil {
		q.onTimer()
	}
}

func (d *Device) onWait(arg uint64) {
	if q := d.requesterArg(arg); q != nil {
		q.onWait()
	}
}

func (d *Device) onFetch(x uint64) {
	if q := d.requesterArg(x & (1<<fetchShift - 1)); q != nil {
		q.onFetch(int(x >> fetchShift))
	}
}

func (d *Device) onRecord(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onRecord()
	}
}

func (d *Device) onPoll(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onPoll()
	}
}

func (d *Device) onAck(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onAck()
	}
}

func (d *Device) onNak(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onNak()
	}
}

func (d *Device) onRaise(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onRaise()
	}
}

func (d *Device) onPace(arg uint64) {
	if q := d.qpArg(arg); q != nil {
		q.onPace()
	}
}

func (d *Device) onRQRecord(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onRQRecord()
	}
}

func (d *Device) onRQFetch(x uint64) {
	if q := d.responderArg(x & (1<<fetchShift - 1)); q != nil {
		q.onRQFetch(int(x >> fetchShift))
	}
}

func (d *Device) onRespond(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.onRespond()
	}
}

// An SRQ asks for its QPs by their event words.

func (d *Device) resumeRecv(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.resumeRecv()
	}
}

func (d *Device) lookedInVain(arg uint64) {
	if q := d.responderArg(arg); q != nil {
		q.rqLooked = true
	}
}

// departed is a packet of an unreliable QP that leaves the port. Nobody acknowledges
// it: the message is done when its last packet is gone.
func (d *Device) departed(s *slot) {
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
func (d *Device) goOn(word uint64) {
	if word&responderBit != 0 {
		d.onRespond(word &^ responderBit)
	} else {
		d.onPU(word)
	}
}

// lookUp is what a packet that arrives costs in look-ups: the context of its QP, and
// what a WRITE names. A READ's are made when its data is fetched.
func (d *Device) lookUp(p *roce.Packet) (m miss) {
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

func (d *Device) awaitsAtomic(arg uint64, epoch uint32) bool {
	q := d.responderArg(arg)
	return q != nil && q.epoch == epoch && q.takesRequests()
}

func (d *Device) finishAtomic(arg uint64, op roce.Opcode, old uint64) {
	d.responderArg(arg).finishAtomic(op, old)
}
