package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// port is the way to the wire.
type port struct {
	*core
	store    *frameStore
	users    portUsers
	portFree sim.Time // it is busy until then
	paced    int      // frames that wait for it
	serN     int      // serialisation time of the last frame length
	serT     sim.Time
	wire     Wire
	looper   Looper // wire, if it is one
	linkDown bool
	mute     bool // an InfiniBand port that the subnet manager has not armed
	tap      func(t sim.Time, f *roce.Frame)
}

// portUsers is what lies above the port.
type portUsers interface {
	// receive takes a frame that loops back into the receive engine, which it reaches delay from
	// now; its slot is given back when it takes effect.
	receive(f *roce.Frame, slot int32, delay sim.Time)
	// departed is a packet of an unreliable QP that leaves the port.
	departed(s *slot)
}

// ser is how long the port is busy with a frame of n bytes. Streams have few lengths,
// so the last one is kept.
func (o *port) ser(n int) sim.Time {
	if n != o.serN {
		o.serN, o.serT = n, sim.BytesTime(uint64(n+o.p.WireOverhead), o.p.WireRate)
	}
	return o.serT
}

// onGather is the end of one DMA read into a slot's frame.
//
//go:noinline
func (o *port) onGather() sim.Handler {
	return func(i uint64) {
		s := o.store.slot(int32(i))
		s.pending--
		if s.pending > 0 {
			return
		}
		if s.q == nil {
			o.store.dropSlot(int32(i))
			return
		}
		o.flushOrder(s.q, s.order)
	}
}

// enqueue sends a frame in the order of list l: at once when nothing is ahead of
// it and it is complete.
func (o *port) enqueue(q *sender, l *list, i int32) {
	s := o.store.slot(i)
	if l.head < 0 && s.pending == 0 {
		o.transmit(i, q)
		return
	}
	s.q, s.order = q, l
	o.store.pushSlot(l, i)
	if s.pending == 0 {
		o.flushOrder(q, l)
	}
}

// flushOrder sends the frames at the head of l that are complete.
func (o *port) flushOrder(q *sender, l *list) {
	for l.head >= 0 && o.store.slot(l.head).pending == 0 {
		o.transmit(o.store.popSlot(l), q)
	}
}

// transmit puts a complete frame on the port.
func (o *port) transmit(i int32, q *sender) {
	s := o.store.slot(i)
	s.q = nil
	delay := o.occupy(s.f)
	if q.st != prm.STUD {
		s.loop = q.loop
	}
	if !q.reliable() && s.f.BTH().Opcode() != roce.CNPacket {
		s.left, s.epoch = q.arg, q.epoch
	}
	switch {
	case s.loop && o.looper == nil:
		o.c.Loopback++
		o.see(s.f)
		if s.left != 0 {
			o.users.departed(s)
		}
		o.users.receive(s.f, i, delay+o.p.LoopbackLatency)
	case (o.wire == nil || o.mute && !o.manages(s.f)) && !s.loop:
		o.c.TxNoWire++
		if s.left != 0 {
			o.users.departed(s)
		}
		o.store.dropSlot(i)
	case o.paced == 0 && (delay == 0 || s.bytes == 0 && s.left == 0):
		// The wire has its own queue: a frame without gathered payload need not wait
		// here, unless it would overtake one that does, or its leaving completes a request.
		o.send(i)
	default:
		o.paced++
		o.e.After(delay, o.h.send, uint64(i))
	}
}

// manages says whether a frame is of the lane for subnet management, which needs no subnet manager.
func (o *port) manages(f *roce.Frame) bool {
	return o.p.LinkLayer == InfiniBand && roce.LRH(f.B).VL() == roce.ManagementVL
}

// occupy takes the port for a frame, counts it, and returns how long the frame waits.
func (o *port) occupy(f *roce.Frame) (delay sim.Time) {
	now := o.e.Now()
	n := len(f.B)
	start := max(now, o.portFree)
	o.portFree = start + o.ser(n)
	o.c.TxPackets++
	o.c.TxOctets += uint64(n)
	o.c.TxPadBytes += uint64(f.PadCount())
	if f.Op.Info().Kind == roce.KindRequest {
		o.c.TxRequests++
	}
	return start - now
}

// free says whether a complete frame of a reliable queue, in the order of list l, can go to
// the wire without a slot: nothing is ahead of it, and the wire has its own queue.
func (o *port) free(q *sender, l *list) bool {
	return l.head < 0 && q.reliable() && !q.loop && o.paced == 0 && o.wire != nil
}

// leave gives such a frame to the wire.
func (o *port) leave(f *roce.Frame) {
	o.occupy(f)
	if o.tap != nil {
		o.see(f)
	}
	o.wire.Send(f)
}

// onSend is the turn of a frame that waited for the port.
//
//go:noinline
func (o *port) onSend() sim.Handler {
	return func(i uint64) {
		o.paced--
		// What waits for the room of this frame goes on here, without an event of its own.
		resume := !o.store.resuming && o.store.slot(int32(i)).bytes > 0 && o.store.stalled.Len() > 0
		o.store.resuming = o.store.resuming || resume
		o.send(int32(i))
		if resume {
			o.store.onResume(0)
		}
	}
}

// send gives a frame to the wire.
func (o *port) send(i int32) {
	s := o.store.slot(i)
	f, loop := s.f, s.loop
	if s.left != 0 {
		o.users.departed(s)
	}
	o.store.txDone(s)
	o.store.clearSlot(s, i)
	o.see(f)
	if loop {
		o.c.Loopback++
		o.looper.Loopback(f, o.p.LoopbackLatency)
		return
	}
	o.wire.Send(f)
}

// see shows a frame to the tap.
func (o *port) see(f *roce.Frame) {
	if o.tap != nil {
		f.FinishICRC()
		o.tap(o.e.Now(), f)
	}
}
