package hca

import "github.com/rdmasim/rdmasim/prm"

// eq is an event queue.
type eq struct {
	d      *Device
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

func (d *tables) eqn(n uint32) *eq {
	if uint64(n) >= uint64(len(d.eqs)) {
		return nil
	}
	return d.eqs[n]
}

// newEQE clears the scratch entry for an event.
func (d *Device) newEQE(t prm.EventType) prm.EQE {
	clear(d.eqe[:])
	e := prm.EQE(d.eqe[:])
	e.SetType(t)
	return e
}

// push writes an entry and, when the queue is armed, interrupts. Without room the
// event is lost.
func (q *eq) push(e prm.EQE) {
	if (q.pi-q.ci)&cqIndexMask >= q.size {
		q.d.c.EQEsLost++
		prm.EQC(q.ctx[:]).SetStatus(prm.EQStatusWriteFail)
		return
	}
	e.SetOwner(prm.EQEOwner(q.pi, q.size))
	pa, _ := q.ring.at(uint64(q.pi&(q.size-1))*prm.EQESize, prm.EQESize)
	q.d.bus.WriteDMA(pa, e)
	q.d.c.EQEs++
	q.pi = (q.pi + 1) & cqIndexMask
	if q.armed {
		q.armed = false
		q.d.bus.Interrupt(q.vector)
	}
}

// consumed is a doorbell: software has taken the entries before ci. With arm the
// next entry interrupts, or one that is already there does at once.
func (q *eq) consumed(ci uint32, arm bool) {
	if (q.pi-ci)&cqIndexMask > q.size {
		q.d.c.DoorbellsOdd++
		return
	}
	q.ci = ci
	if !arm {
		return
	}
	if q.ci != q.pi {
		q.armed = false
		q.d.bus.Interrupt(q.vector)
		return
	}
	q.armed = true
}

// asyncEvent gives an event to the EQ that asked for its type; without one it is
// dropped.
func (d *Device) asyncEvent(e prm.EQE) {
	t := e.Type()
	for _, q := range d.eqs {
		if q != nil && q.mask[t>>6]>>(t&63)&1 != 0 {
			q.push(e)
			return
		}
	}
	d.c.EventsUnwanted++
}

// qpEvent reports an event of a QP.
func (d *Device) qpEvent(t prm.EventType, qpn uint32) {
	e := d.newEQE(t)
	e.SetQueueType(prm.EventQueueQP)
	e.SetQPSRQN(qpn)
	d.asyncEvent(e)
}
