package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Atomics are a DMA read and a DMA write. They enter the unit in order of arrival,
// Params.AtomicInterval apart. Those whose addresses share a slot are carried out one after the
// other, Params.AtomicService apart, and a slot holds Params.AtomicsPerSlot of them: the next one
// for it waits at the entry, where it fetches its value already, and with it all atomics behind it,
// and READs where Params.AtomicsHoldReads says so. That a value passes from one atomic to the next
// of the same address without its way through memory is a hypothesis too.

// atomicUnit carries out atomics.
type atomicUnit struct {
	*core
	dma      *dma
	users    atomicUsers
	slots    []atomicSlot
	ops      sim.Slab[atomicOp]
	entered  sim.Server            // those on host memory that have passed the entry
	inFlight int                   // of them have not ended
	entry    sim.FIFO[atomicEntry] // what waits for room in a slot, and what is behind it
	held     sim.Waiting           // something waits for room in a slot
	resets   uint32                // counts those of the device
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

// atomicSlot has the atomics of one slot in order. The first is carried out next.
type atomicSlot struct {
	queue sim.FIFO[uint32] // of ops
	free  sim.Time         // when the next may be carried out
	busy  sim.Time
}

// atomicEntry is an atomic that waits to enter the unit, or a READ behind one.
type atomicEntry struct {
	arg  uint64   // op, or the event word of the READ's QP
	at   sim.Time // of a READ: when its engine has its turn
	read bool
}

// atomicOp is an atomic under way.
type atomicOp struct {
	qp            uint64 // event word of the QP
	epoch         uint32 // of the QP: a reset or an error ends the operation
	resets        uint32 // of the device
	pa            mem.PA
	user          mkey.User // and the place by its key
	key           uint32
	va            uint64
	slot          uint32
	op            roce.Opcode
	alone         bool // it knows of no other
	begun         bool // it fetches the old value
	have          bool // the old value is in buf
	swap, compare uint64
	buf           [8]byte
}

// atomicSize is the size of all atomics.
const atomicSize = 8

// reset empties the unit; the DMA that is under way ends by itself.
func (u *atomicUnit) reset() {
	u.resets++
	u.slots, u.inFlight = make([]atomicSlot, u.p.AtomicSlots), 0
	for u.entry.Len() > 0 {
		if x := u.entry.Pop(); !x.read && !u.ops.At(uint32(x.arg)).begun { // else until its value comes
			u.ops.Put(uint32(x.arg))
		}
	}
	u.held.Set(u.e.Now(), false)
}

// slotOf is the slot of an address: its low bits, of bytes or of words of 8.
func (u *atomicUnit) slotOf(pa mem.PA) uint32 {
	if u.p.AtomicIndex == IndexWords {
		pa >>= 3
	}
	return uint32(pa) & uint32(len(u.slots)-1)
}

// start begins an atomic, or has it wait for room.
func (u *atomicUnit) start(op atomicOp) {
	op.slot, op.resets = u.slotOf(op.pa), u.resets
	op.alone = u.breaks(rule.AtomicsExcludeEachOther)
	i := u.ops.Get()
	*u.ops.At(i) = op
	switch {
	case op.alone:
		u.fetch(i)
	case u.entry.Len() > 0 || !u.room(i):
		u.c.AtomicEntryWaits++
		u.entry.Push(atomicEntry{arg: uint64(i)})
		u.held.Set(u.e.Now(), true)
		if u.entry.Len() == 1 {
			u.begin(i)
		}
	default:
		u.admit(i)
	}
}

// room says whether the slot of an atomic has room for it.
func (u *atomicUnit) room(i uint32) bool {
	return u.p.AtomicsPerSlot == 0 || u.slots[u.ops.At(i).slot].queue.Len() < u.p.AtomicsPerSlot
}

// delays has a READ whose engine has its turn at a time wait behind atomics, if some wait at the
// entry.
func (u *atomicUnit) delays(arg uint64, at sim.Time) bool {
	if u.entry.Len() == 0 || !u.p.AtomicsHoldReads {
		return false
	}
	u.c.ReadsBehindAtomics++
	u.entry.Push(atomicEntry{arg: arg, at: at, read: true})
	return true
}

// admitWaiting takes in what waits, in order, as far as there is room.
func (u *atomicUnit) admitWaiting() {
	for u.entry.Len() > 0 && (u.entry.Front().read || u.room(uint32(u.entry.Front().arg))) {
		if x := u.entry.Pop(); x.read {
			u.e.At(max(x.at, u.e.Now()), u.h.respond, x.arg)
		} else {
			u.admit(uint32(x.arg))
		}
	}
	u.held.Set(u.e.Now(), u.entry.Len() > 0)
	if u.entry.Len() > 0 { // an atomic
		u.begin(uint32(u.entry.Front().arg))
	}
}

// admit puts an atomic behind those of its slot.
func (u *atomicUnit) admit(i uint32) {
	if !u.begin(i) { // it takes its time at the entry all the same
		u.enters(i)
	}
	u.inFlight++
	s := &u.slots[u.ops.At(i).slot]
	if s.queue.Len() > 0 {
		u.c.AtomicWaits++
	}
	s.queue.Push(i)
	if s.queue.Len() == 1 && u.ops.At(i).have {
		u.turn(s, i)
	}
}

// begin has an atomic fetch the old value when its turn comes, unless one before it in its slot
// will have it. It reports whether the atomic fetches.
func (u *atomicUnit) begin(i uint32) bool {
	o := u.ops.At(i)
	if o.begun {
		return true
	}
	s := &u.slots[o.slot]
	if _, follows := u.sameAddress(s, o.pa, s.queue.Len()); follows {
		return false
	}
	o.begun = true
	if at := u.enters(i); at > u.e.Now() {
		u.e.At(at, u.h.atomicBegin, uint64(i))
	} else {
		u.fetch(i)
	}
	return true
}

// enters takes the time of an atomic at the entry, and returns when that begins.
func (u *atomicUnit) enters(i uint32) (at sim.Time) {
	at = u.e.Now()
	if u.ops.At(i).pa < onChip {
		at, _ = u.entered.Take(at, u.p.AtomicInterval)
	}
	return at
}

// onBegin is the turn of an atomic that fetches behind others.
func (u *atomicUnit) onBegin(arg uint64) {
	if i := uint32(arg); u.ops.At(i).resets == u.resets {
		u.fetch(i)
	} else {
		u.ops.Put(i)
	}
}

// sameAddress finds the first of the n first atomics of a slot that is for an address.
func (u *atomicUnit) sameAddress(s *atomicSlot, pa mem.PA, n int) (i uint32, ok bool) {
	for k := range n {
		if i = *s.queue.At(k); u.ops.At(i).pa == pa {
			return i, true
		}
	}
	return 0, false
}

// fetch reads the old value.
func (u *atomicUnit) fetch(i uint32) {
	o := u.ops.At(i)
	if o.pa >= onChip {
		u.e.After(u.p.AtomicOnChip, u.h.atomic, uint64(i))
		return
	}
	u.bus.ReadDMA(o.pa, o.buf[:], u.h.atomic, uint64(i))
}

// onRead has the old value of an atomic.
func (u *atomicUnit) onRead(arg uint64) {
	i := uint32(arg)
	o := u.ops.At(i)
	switch {
	case o.resets != u.resets:
		u.ops.Put(i)
	case o.alone:
		u.onChipValue(o)
		done := *o
		u.ops.Put(i)
		u.carryOut(&done)
	default:
		u.onChipValue(o)
		o.have = true
		if s := &u.slots[o.slot]; s.queue.Len() > 0 && *s.queue.Front() == i {
			u.turn(s, i)
		}
	}
}

// onChipValue reads memory of the device, at no cost of its own.
func (u *atomicUnit) onChipValue(o *atomicOp) {
	if o.pa >= onChip {
		u.dma.memory.read(uint64(o.pa-onChip), o.buf[:])
	}
}

// turn carries out the first atomic of a slot, which has its value, or waits until the slot is
// free.
func (u *atomicUnit) turn(s *atomicSlot, i uint32) {
	if s.free > u.e.Now() {
		u.e.At(s.free, u.h.atomicFree, uint64(i))
		return
	}
	u.onFree(uint64(i))
}

// onFree carries out the first atomic of its slot, gives its value to the next one of the address,
// and lets others in.
func (u *atomicUnit) onFree(arg uint64) {
	i := uint32(arg)
	o := *u.ops.At(i)
	u.ops.Put(i)
	if o.resets != u.resets {
		return
	}
	s := &u.slots[o.slot]
	s.queue.Pop()
	service := u.service(o.pa)
	s.free, s.busy = u.e.Now()+service, s.busy+service
	u.inFlight--
	next, follows := u.follower(s, &o) // of those that did not fetch; the answer may bring more
	written := u.carryOut(&o)
	if follows {
		n := u.ops.At(next)
		if n.begun = true; written {
			n.buf, n.have = o.buf, true
		} else {
			u.fetch(next)
		}
	}
	if s.queue.Len() > 0 {
		if first := *s.queue.Front(); u.ops.At(first).have {
			u.turn(s, first)
		}
	}
	u.admitWaiting()
}

// follower finds the atomic that comes after one that leaves its slot and is of the same address:
// in the slot, or at the entry.
func (u *atomicUnit) follower(s *atomicSlot, o *atomicOp) (i uint32, ok bool) {
	if i, ok = u.sameAddress(s, o.pa, s.queue.Len()); ok || u.entry.Len() == 0 || u.entry.Front().read {
		return i, ok
	}
	i = uint32(u.entry.Front().arg)
	return i, u.ops.At(i).pa == o.pa
}

// service is the time between two atomics of a slot.
func (u *atomicUnit) service(pa mem.PA) sim.Time {
	if pa >= onChip {
		return u.p.AtomicOnChip
	}
	return u.p.AtomicService
}

// carryOut writes the new value and answers. It reports whether the value in the atomic's buffer is
// the one in memory.
func (u *atomicUnit) carryOut(o *atomicOp) (known bool) {
	switch {
	case !u.users.awaitsAtomic(o.qp, o.epoch):
		return false
	case u.moved(o):
		u.users.againAtomic(o.qp)
		return false
	}
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
	return true
}

// moved says whether the driver has taken the page of an atomic away since it began: no write may
// reach it then.
func (u *atomicUnit) moved(o *atomicOp) bool {
	if !u.p.ODP.On() || o.pa >= onChip {
		return false
	}
	runs, r := u.dma.keys.Translate(o.user, o.key, o.va, atomicSize, u.needs(mkey.RemoteAtomic, rule.AtomicsNeedTheirRight), u.dma.runs[:0])
	return r != mkey.OK || runs[0].PA != o.pa
}
