package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// port is the way to the wire.
type port struct {
	portFree sim.Time // it is busy until then
	paced    int      // frames that wait for it
	serN     int      // serialisation time of the last frame length
	serT     sim.Time
	wire     Wire
	looper   Looper // wire, if it is one
	pauser   Pauser // wire, if it has priority flow control
	linkDown bool
	mute     bool // an InfiniBand port that the subnet manager has not armed
	tap      func(t sim.Time, f *roce.Frame)
}

// ser is how long the port is busy with a frame of n bytes. Streams have few lengths,
// so the last one is kept.
func (d *Device) ser(n int) sim.Time {
	if n != d.serN {
		d.serN, d.serT = n, sim.Time(uint64(n+d.p.WireOverhead)*8*uint64(sim.Second)/d.p.WireRate)
	}
	return d.serT
}

// onGather is the end of one DMA read into a slot's frame.
func (d *Device) onGather(i uint64) {
	s := d.slot(int32(i))
	s.pending--
	if s.pending > 0 {
		return
	}
	if s.q == nil {
		d.dropSlot(int32(i))
		return
	}
	s.q.flushOrder(s.order)
}

// enqueue sends a frame in the order of list l: at once when nothing is ahead of
// it and it is complete.
func (q *connection) enqueue(l *list, i int32) {
	s := q.d.slot(i)
	if l.head < 0 && s.pending == 0 {
		q.d.transmit(i, q)
		return
	}
	s.q, s.order = q, l
	q.d.pushSlot(l, i)
	if s.pending == 0 {
		q.flushOrder(l)
	}
}

// flushOrder sends the frames at the head of l that are complete.
func (q *connection) flushOrder(l *list) {
	for l.head >= 0 && q.d.slot(l.head).pending == 0 {
		q.d.transmit(q.d.popSlot(l), q)
	}
}

// abandon drops the frames of l that have not left.
func (q *connection) abandon(l *list) {
	for l.head >= 0 {
		i := q.d.popSlot(l)
		if s := q.d.slot(i); s.pending > 0 {
			s.q = nil
		} else {
			q.d.dropSlot(i)
		}
	}
}

// transmit puts a complete frame on the port.
func (d *Device) transmit(i int32, q *connection) {
	s := d.slot(i)
	s.q = nil
	delay := d.occupy(s.f)
	if q.st != prm.STUD {
		s.loop = q.loop
	}
	if q.st != prm.STRC && s.f.BTH().Opcode() != roce.CNPacket {
		s.left, s.epoch = q.arg, q.epoch
	}
	switch {
	case s.loop && d.looper == nil:
		d.c.Loopback++
		d.see(s.f)
		if s.left != 0 {
			d.departed(s)
		}
		d.receive(i, delay+d.p.LoopbackLatency)
	case (d.wire == nil || d.mute) && !s.loop:
		d.c.TxNoWire++
		if s.left != 0 {
			d.departed(s)
		}
		d.dropSlot(i)
	case d.paced == 0 && (delay == 0 || s.bytes == 0 && s.left == 0):
		// The wire has its own queue: a frame without gathered payload need not wait
		// here, unless it would overtake one that does, or its leaving completes a request.
		d.send(i)
	default:
		d.paced++
		d.e.After(delay, d.h.send, uint64(i))
	}
}

// occupy takes the port for a frame, counts it, and returns how long the frame waits.
func (d *Device) occupy(f *roce.Frame) (delay sim.Time) {
	now := d.e.Now()
	n := len(f.B)
	start := max(now, d.portFree)
	d.portFree = start + d.ser(n)
	d.c.TxPackets++
	d.c.TxOctets += uint64(n)
	d.c.TxPadBytes += uint64(f.PadCount())
	if f.Op().Info().Kind == roce.KindRequest {
		d.c.TxRequests++
	}
	return start - now
}

// free says whether a complete frame of an RC queue, in the order of list l, can go to
// the wire without a slot: nothing is ahead of it, and the wire has its own queue.
func (q *connection) free(l *list) bool {
	return l.head < 0 && q.st == prm.STRC && !q.loop && q.d.paced == 0 && q.d.wire != nil
}

// leave gives such a frame to the wire.
func (d *Device) leave(f *roce.Frame) {
	d.occupy(f)
	d.see(f)
	d.wire.Send(f)
}

// onSend is the turn of a frame that waited for the port.
func (d *Device) onSend(i uint64) {
	d.paced--
	// What waits for the room of this frame goes on here, without an event of its own.
	resume := !d.resuming && d.slot(int32(i)).bytes > 0 && d.stalled.len() > 0
	d.resuming = d.resuming || resume
	d.send(int32(i))
	if resume {
		d.onResume(0)
	}
}

// send gives a frame to the wire.
func (d *Device) send(i int32) {
	s := d.slot(i)
	f, loop := s.f, s.loop
	if s.left != 0 {
		d.departed(s)
	}
	d.txDone(s)
	d.putSlot(i)
	d.see(f)
	if loop {
		d.c.Loopback++
		d.looper.Loopback(f, d.p.LoopbackLatency)
		return
	}
	d.wire.Send(f)
}

// see shows a frame to the tap.
func (d *Device) see(f *roce.Frame) {
	if d.tap != nil {
		f.FinishICRC()
		d.tap(d.e.Now(), f)
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
