package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Atomics are a DMA read and a DMA write, under a lock that addresses with the same
// low bits share: one at a time on each of Params.AtomicSlots.

// atomicUnit carries out atomics.
type atomicUnit struct {
	*core
	dma   *dma
	users atomicUsers
	locks []atomicSlot
	aops  sim.Slab[atomicOp]
}

// atomicUsers are the responders that atomics are for, by the event words of their QPs.
type atomicUsers interface {
	// awaitsAtomic says whether a QP still waits: it was not reset since that epoch.
	awaitsAtomic(qp uint64, epoch uint32) bool
	// finishAtomic gives it the old value.
	finishAtomic(qp uint64, op roce.Opcode, old uint64)
	// againAtomic has it look at the request once more: its memory is not where it was.
	againAtomic(qp uint64)
}

// unlock makes all locks free; what is under way ends by itself.
func (u *atomicUnit) unlock() { u.locks = make([]atomicSlot, u.p.AtomicSlots) }

// atomicSlot is one lock.
type atomicSlot struct {
	busy    bool
	waiting sim.FIFO[uint64] // of atomic operations
}

// atomicOp is an atomic under way.
type atomicOp struct {
	qp            uint64 // event word of the QP
	epoch         uint32 // of the QP: a reset or an error ends the operation
	pa            mem.PA
	user          mkey.User // and the place by its key
	key           uint32
	va            uint64
	slot          uint32
	op            roce.Opcode
	swap, compare uint64
	started       sim.Time
	buf           [8]byte
}

// atomicSize is the size of all atomics.
const atomicSize = 8

// start begins an atomic, or has it wait for another on the same lock.
func (u *atomicUnit) start(op atomicOp) {
	op.slot = uint32(op.pa>>3) & uint32(len(u.locks)-1)
	i := u.aops.Get()
	*u.aops.At(i) = op
	s := &u.locks[op.slot]
	if s.busy && !u.breaks(rule.AtomicsExcludeEachOther) {
		u.c.AtomicWaits++
		s.waiting.Push(uint64(i))
		return
	}
	u.read(uint64(i))
}

// read takes the lock and fetches the old value.
func (u *atomicUnit) read(i uint64) {
	o := u.aops.At(uint32(i))
	u.locks[o.slot].busy = true
	o.started = u.e.Now()
	if o.pa >= onChip {
		u.dma.memory.read(uint64(o.pa-onChip), o.buf[:])
		u.e.After(u.p.AtomicOnChip, u.h.atomic, i)
		return
	}
	u.bus.ReadDMA(o.pa, o.buf[:], u.h.atomic, i)
}

// onRead has the old value: it writes the new one, answers, and frees the lock
// when its service time is over.
func (u *atomicUnit) onRead(i uint64) {
	o := u.aops.At(uint32(i))
	switch {
	case !u.users.awaitsAtomic(o.qp, o.epoch):
	case u.moved(o):
		u.users.againAtomic(o.qp)
	default:
		old := host64(o.buf[:])
		v, write := old+o.swap, true
		if u.breaks(rule.AdditionsCarry) {
			v = (old>>32+o.swap>>32)<<32 | uint64(uint32(old)+uint32(o.swap))
		}
		if o.op.Operation() == roce.OpCmpSwap {
			v, write = o.swap, old == o.compare || u.breaks(rule.SwapNeedsTheCompared) || u.breaks(rule.ComparisonsAreWhole) && uint32(old) == uint32(o.compare)
		}
		if write {
			putHost64(o.buf[:], v)
			u.dma.writeAt(o.pa, o.buf[:])
		}
		u.users.finishAtomic(o.qp, o.op, old)
	}
	if o.pa >= onChip {
		u.onFree(i)
		return
	}
	if t := o.started + u.p.AtomicService; t > u.e.Now() {
		u.e.At(t, u.h.atomicFree, i)
		return
	}
	u.onFree(i)
}

// moved says whether the driver has taken the page of an atomic away since it began: no write may reach it then.
func (u *atomicUnit) moved(o *atomicOp) bool {
	if !u.p.ODP.On() || o.pa >= onChip {
		return false
	}
	runs, r := u.dma.keys.Translate(o.user, o.key, o.va, atomicSize, mkey.RemoteAtomic, u.dma.runs[:0])
	return r != mkey.OK || runs[0].PA != o.pa
}

func (u *atomicUnit) onFree(i uint64) {
	s := &u.locks[u.aops.At(uint32(i)).slot]
	u.aops.Put(uint32(i))
	s.busy = false
	if s.waiting.Len() > 0 {
		u.read(s.waiting.Pop())
	}
}
