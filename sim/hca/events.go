package hca

import "github.com/rdmasim/rdmasim/sim"

// handlers are the device's event handlers, bound once.
type handlers struct {
	pu, fetch, wait, timer, record, poll sim.Handler // of a QP's requester
	rqRecord, rqFetch, ack, nak, respond sim.Handler // of its responder
	srqRecord, srqFetch                  sim.Handler
	gather, send, rx                     sim.Handler // of a slot
	atomic, atomicFree                   sim.Handler
	cqRecord, cqModerate, cqSession      sim.Handler
	bfExpire, bfLate, bfReturn, none     sim.Handler
	resume                               sim.Handler
	raise, pace                          sim.Handler // of a QP's reaction point
}

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

// srqArg is the SRQ of an event word, or nil when it is gone.
func (d *tables) srqArg(arg uint64) *srq {
	s := d.srqn(uint32(arg & 0xffffff))
	if s == nil || s.arg != arg {
		return nil
	}
	return s
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

func (d *Device) onSRQRecord(arg uint64) {
	if s := d.srqArg(arg); s != nil {
		s.onRecord()
	}
}

func (d *Device) onSRQFetch(x uint64) {
	if s := d.srqArg(x & (1<<fetchShift - 1)); s != nil {
		s.onFetch(int(x >> fetchShift))
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
