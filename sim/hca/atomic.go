package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// Atomics are a DMA read and a DMA write, under a lock that addresses with the same
// low bits share: one at a time on each of Params.AtomicSlots.

// atomicSlot is one lock.
type atomicSlot struct {
	busy    bool
	waiting argQueue // of atomic operations
}

// atomicOp is an atomic under way.
type atomicOp struct {
	qp            uint64 // event word of the QP
	epoch         uint32 // of the QP: a reset or an error ends the operation
	pa            mem.PA
	slot          uint32
	op            roce.Opcode
	swap, compare uint64
	started       sim.Time
	buf           [8]byte
}

// execAtomic starts an atomic; the QP's later packets wait until it is done. It
// reports whether it was started.
func (q *qp) execAtomic(p *roce.Packet) bool {
	d := q.d
	h := p.AtomicETH()
	if h.VA()&7 != 0 || !d.p.Atomics {
		q.fatal(roce.NAKInvalidRequest)
		return false
	}
	runs, r := d.keys.Translate(q.user, h.RKey(), h.VA(), 8, odp.RemoteAtomic, d.runs[:0])
	if r != odp.OK || runs[0].Len != 8 {
		q.fatal(roce.NAKRemoteAccess)
		return false
	}
	d.runs = runs
	var i uint32
	if n := len(d.aopFre); n > 0 {
		i = d.aopFre[n-1]
		d.aopFre = d.aopFre[:n-1]
	} else {
		i = uint32(len(d.aops))
		d.aops = append(d.aops, &atomicOp{})
	}
	o := d.aops[i]
	*o = atomicOp{
		qp: q.arg, epoch: q.epoch, pa: runs[0].PA, op: p.Op, swap: h.SwapAdd(), compare: h.Compare(),
		slot: uint32(runs[0].PA>>3) & uint32(len(d.atomics)-1),
	}
	q.atomicBusy = true
	s := &d.atomics[o.slot]
	if s.busy {
		d.c.AtomicWaits++
		s.waiting.push(uint64(i))
		return true
	}
	d.startAtomic(uint64(i))
	return true
}

func (d *Device) startAtomic(i uint64) {
	o := d.aops[i]
	d.atomics[o.slot].busy = true
	o.started = d.e.Now()
	if o.pa >= onChip {
		d.memory.read(uint64(o.pa-onChip), o.buf[:])
		d.e.After(d.p.AtomicOnChip, d.h.atomic, i)
		return
	}
	d.bus.ReadDMA(o.pa, o.buf[:], d.h.atomic, i)
}

// onAtomic has the old value: it writes the new one, answers, and frees the lock
// when its service time is over.
func (d *Device) onAtomic(i uint64) {
	o := d.aops[i]
	q := d.qpArg(o.qp)
	if q != nil && q.epoch == o.epoch && q.takesRequests() {
		old := host64(o.buf[:])
		v, write := old+o.swap, true
		if o.op == roce.RCCmpSwap {
			v, write = o.swap, old == o.compare
		}
		if write {
			putHost64(o.buf[:], v)
			d.writeAt(o.pa, o.buf[:])
		}
		q.finishAtomic(o.op, old)
	}
	if o.pa >= onChip {
		d.onAtomicFree(i)
		return
	}
	if t := o.started + d.p.AtomicService; t > d.e.Now() {
		d.e.At(t, d.h.atomicFree, i)
		return
	}
	d.onAtomicFree(i)
}

func (d *Device) onAtomicFree(i uint64) {
	s := &d.atomics[d.aops[i].slot]
	d.aopFre = append(d.aopFre, uint32(i))
	s.busy = false
	if s.waiting.len() > 0 {
		d.startAtomic(s.waiting.pop())
	}
}

// finishAtomic accepts the packet at the head of the waiting ones and answers it.
func (q *qp) finishAtomic(op roce.Opcode, old uint64) {
	d := q.d
	q.atomicBusy = false
	if q.hold.head < 0 {
		d.bug("QP %#x: an atomic without its packet", q.num)
	}
	q.qs.add(prm.QCRxAtomicRequests)
	psn := q.epsn
	q.accept(&d.slots[q.hold.head].pkt, 1, 1)
	i := q.save(savedOp{op: op, unsent: true, psn: psn, n: 1, value: old})
	q.due(response{kind: answerAtomic, psn: psn, msn: q.msn, value: old, saved: i})
	q.unhold(false)
}
