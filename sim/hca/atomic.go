package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Atomics are a DMA read and a DMA write, under a lock that addresses with the same
// low bits share: one at a time on each of Params.AtomicSlots.

// atomicUnit carries out atomics.
type atomicUnit struct {
	atomics []atomicSlot
	aops    sim.Slab[atomicOp]
}

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

// atomicSize is the size of all atomics.
const atomicSize = 8

// execAtomic starts an atomic where the check has found that it goes; the QP's later packets
// wait until it is done.
func (q *responder) execAtomic(p *roce.Packet) {
	d, h, pa := q.d, p.AtomicETH(), q.d.runs[0].PA
	i := d.aops.Get()
	o := d.aops.At(i)
	*o = atomicOp{
		qp: q.arg, epoch: q.epoch, pa: pa, op: p.Op, swap: h.SwapAdd(), compare: h.Compare(),
		slot: uint32(pa>>3) & uint32(len(d.atomics)-1),
	}
	q.atomicBusy = true
	s := &d.atomics[o.slot]
	if s.busy && !q.breaks(rule.AtomicsExcludeEachOther) {
		d.c.AtomicWaits++
		s.waiting.push(uint64(i))
		return
	}
	d.startAtomic(uint64(i))
}

func (d *Device) startAtomic(i uint64) {
	o := d.aops.At(uint32(i))
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
	o := d.aops.At(uint32(i))
	q := d.responderArg(o.qp)
	if q != nil && q.epoch == o.epoch && q.takesRequests() {
		old := host64(o.buf[:])
		v, write := old+o.swap, true
		if o.op == roce.RCCmpSwap {
			v, write = o.swap, old == o.compare || q.breaks(rule.SwapNeedsTheCompared)
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
	s := &d.atomics[d.aops.At(uint32(i)).slot]
	d.aops.Put(uint32(i))
	s.busy = false
	if s.waiting.len() > 0 {
		d.startAtomic(s.waiting.pop())
	}
}

// finishAtomic accepts the packet at the head of the waiting ones and answers it.
func (q *responder) finishAtomic(op roce.Opcode, old uint64) {
	d := q.d
	q.atomicBusy = false
	if q.hold.head < 0 {
		d.bug("QP %#x: an atomic without its packet", q.num)
	}
	q.qs.add(prm.QCRxAtomicRequests)
	psn := q.epsn
	p := d.packet(q.hold.head)
	q.accept(&p, 1, 1)
	i := q.save(savedOp{op: op, unsent: true, psn: psn, n: 1, value: old})
	q.due(response{kind: answerAtomic, psn: psn, msn: q.msn, value: old, saved: i})
	q.unhold(false)
}
