package hca

import "github.com/rdmasim/rdmasim/prm"

// eventQueues are the EQs of a device.
type eventQueues struct {
	*core
	eqs     []*eq
	numbers numbers
	entry   [prm.EQESize]byte // the event that is being reported
}

func newEventQueues(k *core) eventQueues {
	return eventQueues{core: k, numbers: numbers{next: 1, limit: 1 << k.p.LogMaxEQ}}
}

// eq is an event queue.
type eq struct {
	*core
	num    uint32
	ctx    [prm.EQCSize]byte
	mask   [4]uint64
	ring   ring
	size   uint32
	uar    uint32
	vector int
	refs   int
	pi, ci uint32
	armed  bool
}

// at is the EQ with a number, or nil.
func (v *eventQueues) at(n uint32) *eq {
	if uint64(n) >= uint64(len(v.eqs)) {
		return nil
	}
	return v.eqs[n]
}

// event is the entry for an event, to be filled in and given to report.
func (v *eventQueues) event(t prm.EventType) prm.EQE {
	clear(v.entry[:])
	e := prm.EQE(v.entry[:])
	e.SetType(t)
	return e
}

// push writes an entry and, when the queue is armed, interrupts. Without room the
// event is lost.
func (q *eq) push(e prm.EQE) {
	if (q.pi-q.ci)&queueIndexMask >= q.size {
		q.c.EQEsLost++
		prm.EQC(q.ctx[:]).SetStatus(prm.EQStatusWriteFail)
		return
	}
	e.SetOwner(prm.EQEOwner(q.pi, q.size))
	pa, _ := q.ring.at(uint64(q.pi&(q.size-1))*prm.EQESize, prm.EQESize)
	q.bus.WriteDMA(pa, e)
	q.c.EQEs++
	q.pi = (q.pi + 1) & queueIndexMask
	if q.armed {
		q.armed = false
		q.bus.Interrupt(q.vector)
	}
}

// consumed is a doorbell: software has taken the entries before ci. With arm the
// next entry interrupts, or one that is already there does at once.
func (q *eq) consumed(ci uint32, arm bool) {
	if (q.pi-ci)&queueIndexMask > q.size {
		q.c.DoorbellsOdd++
		return
	}
	q.ci = ci
	if !arm {
		return
	}
	if q.ci != q.pi {
		q.armed = false
		q.bus.Interrupt(q.vector)
		return
	}
	q.armed = true
}

// wanted is the EQ that asked for events of a type, or nil.
func (v *eventQueues) wanted(t prm.EventType) *eq {
	for _, q := range v.eqs {
		if q != nil && q.mask[t>>6]>>(t&63)&1 != 0 {
			return q
		}
	}
	return nil
}

// report gives an event to the EQ that asked for its type; without one it is dropped.
func (v *eventQueues) report(e prm.EQE) {
	if q := v.wanted(e.Type()); q != nil {
		q.push(e)
		return
	}
	v.c.EventsUnwanted++
}

// ofQP reports an event of a QP.
func (v *eventQueues) ofQP(t prm.EventType, qpn uint32) {
	e := v.event(t)
	e.SetQueueType(prm.EventQueueQP)
	e.SetQPSRQN(qpn)
	v.report(e)
}

// ofDCT reports an event of a target of the dynamically connected transport.
func (v *eventQueues) ofDCT(t prm.EventType, dctn uint32) {
	e := v.event(t)
	e.SetQueueType(prm.EventQueueDCT)
	e.SetQPSRQN(dctn)
	v.report(e)
}

// ofPort reports a change of the port.
func (v *eventQueues) ofPort(sub uint8) {
	e := v.event(prm.EventPortChange)
	e.SetSubType(sub)
	e.SetPort(1)
	v.report(e)
}

// WantsPageFaults says whether an event queue takes page faults.
func (v *eventQueues) WantsPageFaults() bool { return v.wanted(prm.EventPageFault) != nil }

// PageFault reports a page fault.
func (v *eventQueues) PageFault(put func(e prm.EQE)) {
	e := v.event(prm.EventPageFault)
	put(e)
	v.report(e)
}
