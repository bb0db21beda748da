package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// frameStore holds the frames that are on their way through the device.
type frameStore struct {
	txRoom
	frames roce.Pool
	slots  sim.Slab[slot]
}

// slot is a frame that the device keeps: in preparation by an engine, on the way out, or
// received and waiting for its turn in a QP.
type slot struct {
	f       *roce.Frame
	q       *sender // whose it is; nil once sent, or abandoned
	order   *list   // of q, that it keeps
	next    int32   // in a list of its QP, -1 at the end
	pending int32   // DMA reads that fill it
	bytes   int32   // counted in txBytes
	epoch   uint32  // of the QP in left
	left    uint64  // event word of an unreliable QP that waits for it to leave; 0: none
	loop    bool
	group   bool    // to a multicast group
	_       [8]byte // to a whole cache line: many may be on their way at once
}

// sender is a QP as the port sees it.
type sender struct {
	arg   uint64 // generation << 24 | number: the event word
	epoch uint32 // counts resets and errors
	st    uint8  // service type
	loop  bool   // the peer is on this port
}

// reliable says whether the peer acknowledges what is sent.
func (q *sender) reliable() bool { return reliableTypes>>(q.st&15)&1 != 0 }

const reliableTypes = 1<<prm.STRC | 1<<prm.STXRC | 1<<prm.STDCI | 1<<prm.STDCT

func (d *frameStore) slot(i int32) *slot { return d.slots.At(uint32(i)) }

// packet is the received frame of slot i, decoded.
func (d *frameStore) packet(i int32) *roce.Packet { return &d.slot(i).f.Packet }

// list is a list of slots through slot.next.
type list struct{ head, tail int32 }

var emptyList = list{-1, -1}

func (d *frameStore) pushSlot(l *list, i int32) {
	d.slot(i).next = -1
	if l.head < 0 {
		l.head = i
	} else {
		d.slot(l.tail).next = i
	}
	l.tail = i
}

func (d *frameStore) pushFront(l *list, i int32) {
	d.slot(i).next = l.head
	if l.head < 0 {
		l.tail = i
	}
	l.head = i
}

func (d *frameStore) popSlot(l *list) int32 {
	i := l.head
	l.head = d.slot(i).next
	return i
}

func (d *frameStore) getSlot(f *roce.Frame) int32 {
	i := d.slots.Get()
	d.slots.At(i).f = f
	return int32(i)
}

func (d *frameStore) putSlot(i int32) { d.clearSlot(d.slot(i), i) }

// clearSlot is putSlot of slot i, which is s.
func (d *frameStore) clearSlot(s *slot, i int32) {
	s.f, s.q, s.pending, s.bytes, s.loop, s.group, s.left = nil, nil, 0, 0, false, false, 0
	d.slots.Put(uint32(i))
}

// dropSlot releases a slot and its frame.
func (d *frameStore) dropSlot(i int32) {
	s := d.slot(i)
	d.txDone(s)
	s.f.Release()
	d.clearSlot(s, i)
}

// txDone takes a frame out of the count of what is in preparation, and lets an
// engine go on that waited for room.
func (d *frameStore) txDone(s *slot) {
	if s.bytes == 0 {
		return
	}
	d.txBytes -= int(s.bytes)
	s.bytes = 0
	d.resumeOne()
}

// abandon drops the frames of l that have not left.
func (d *frameStore) abandon(l *list) {
	for l.head >= 0 {
		d.dropUnsent(d.popSlot(l))
	}
}

// dropUnsent drops a frame that is not to leave, once no DMA fills it any more.
func (d *frameStore) dropUnsent(i int32) {
	if s := d.slot(i); s.pending > 0 {
		s.q = nil
	} else {
		d.dropSlot(i)
	}
}
