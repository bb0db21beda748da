package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// slot is a frame on its way through the device: in preparation by an engine, on
// the way out, or received and waiting for its turn.
type slot struct {
	f       *roce.Frame
	q       *qp         // whose order it keeps; nil once sent, or abandoned
	pkt     roce.Packet // of a received frame
	next    int32       // in a list of its QP, -1 at the end
	pending int32       // DMA reads that fill it
	bytes   int32       // counted in txBytes
	loop    bool
	group   bool     // to a multicast group
	waits   int8     // class of a received frame that is counted in the port's buffer, plus 1
	left    uint64   // event word of an unreliable QP that waits for it to leave; 0: none
	epoch   uint32   // of that QP
	tail    sim.Time // of a planned frame that has not taken effect; 0: none
}

// list is a list of slots through slot.next.
type list struct{ head, tail int32 }

var emptyList = list{-1, -1}

func (d *Device) pushSlot(l *list, i int32) {
	d.slots[i].next = -1
	if l.head < 0 {
		l.head = i
	} else {
		d.slots[l.tail].next = i
	}
	l.tail = i
}

func (d *Device) pushFront(l *list, i int32) {
	d.slots[i].next = l.head
	if l.head < 0 {
		l.tail = i
	}
	l.head = i
}

func (d *Device) popSlot(l *list) int32 {
	i := l.head
	l.head = d.slots[i].next
	return i
}

func (d *Device) getSlot(f *roce.Frame) int32 {
	if n := len(d.slotFre); n > 0 {
		i := d.slotFre[n-1]
		d.slotFre = d.slotFre[:n-1]
		d.slots[i].f = f
		return i
	}
	d.slots = append(d.slots, &slot{f: f})
	return int32(len(d.slots) - 1)
}

func (d *Device) putSlot(i int32) {
	s := d.slots[i]
	s.f, s.q, s.pending, s.bytes, s.loop, s.group, s.left, s.tail = nil, nil, 0, 0, false, false, 0, 0
	d.slotFre = append(d.slotFre, i)
}

// dropSlot releases a slot and its frame.
func (d *Device) dropSlot(i int32) {
	d.txDone(d.slots[i])
	d.slots[i].f.Release()
	d.putSlot(i)
}

// txDone takes a frame out of the count of what is in preparation, and lets an
// engine go on that waited for room.
func (d *Device) txDone(s *slot) {
	if s.bytes == 0 {
		return
	}
	d.txBytes -= int(s.bytes)
	s.bytes = 0
	d.resumeOne()
}

// resumeOne lets the engine go on that has waited longest for room.
func (d *Device) resumeOne() {
	if d.stalled.len() > 0 && !d.resuming {
		d.resuming = true
		d.e.After(0, d.h.resume, 0)
	}
}

// responderBit marks a responder in the queue of stalled engines.
const responderBit = 1 << 63

// onResume runs stalled engines, in turn, until one stalls again.
func (d *Device) onResume(uint64) {
	for more := true; more; {
		d.resuming = false
		before := d.stalled.len()
		if before == 0 {
			return
		}
		arg := d.stalled.pop()
		if arg&responderBit != 0 {
			d.onRespond(arg &^ responderBit)
		} else {
			d.onPU(arg)
		}
		more = d.stalled.len() < before && !d.resuming
	}
}

// room says whether a packet of n bytes may go into preparation; one always may. What a
// paused port holds back takes room too.
func (d *Device) room(n int) bool {
	used := d.txBytes
	if d.pauser != nil {
		used += d.pauser.Queued()
	}
	return n == 0 || used == 0 || used+n <= d.p.TxBuffer
}

// Relieved is told by a wire with flow control that a frame which waited there has left.
func (d *Device) Relieved() { d.resumeOne() }

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
	s := d.slots[i]
	s.pending--
	if s.pending > 0 {
		return
	}
	if s.q == nil {
		d.dropSlot(int32(i))
		return
	}
	q := s.q
	q.flushOrder(&q.txq)
	q.flushOrder(&q.rtx)
}

// enqueue sends a frame in the order of list l: at once when nothing is ahead of
// it and it is complete.
func (q *qp) enqueue(l *list, i int32) {
	s := q.d.slots[i]
	if l.head < 0 && s.pending == 0 {
		q.d.transmit(i, q)
		return
	}
	s.q = q
	q.d.pushSlot(l, i)
	if s.pending == 0 {
		q.flushOrder(l)
	}
}

// flushOrder sends the frames at the head of l that are complete.
func (q *qp) flushOrder(l *list) {
	for l.head >= 0 && q.d.slots[l.head].pending == 0 {
		q.d.transmit(q.d.popSlot(l), q)
	}
}

// abandon drops the frames of l that have not left.
func (q *qp) abandon(l *list) {
	for l.head >= 0 {
		i := q.d.popSlot(l)
		if s := q.d.slots[i]; s.pending > 0 {
			s.q = nil
		} else {
			q.d.dropSlot(i)
		}
	}
}

// transmit puts a complete frame on the port.
func (d *Device) transmit(i int32, q *qp) {
	s := d.slots[i]
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
	start := max(now, d.port)
	d.port = start + d.ser(n)
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
func (q *qp) free(l *list) bool {
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
	resume := !d.resuming && d.slots[i].bytes > 0 && d.stalled.len() > 0
	d.resuming = d.resuming || resume
	d.send(int32(i))
	if resume {
		d.onResume(0)
	}
}

// send gives a frame to the wire.
func (d *Device) send(i int32) {
	s := d.slots[i]
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

// Drained is when the packet that Receive got last is out of the port's buffer.
func (d *Device) Drained() sim.Time { return d.drained }

// Receive is a frame that arrives at the port now. The device takes over the
// reference.
func (d *Device) Receive(f *roce.Frame) { d.receive(d.getSlot(f), 0) }

// receive takes a frame that reaches the receive engine delay from now.
func (d *Device) receive(i int32, delay sim.Time) {
	s := d.slots[i]
	if err := s.f.Decode(&s.pkt); err != nil {
		if r, ok := err.(roce.DropReason); ok {
			d.c.RxDropped[r]++
		}
		d.dropSlot(i)
		return
	}
	if (d.ib != nil || s.pkt.Framing == roce.InfiniBand) && !d.accepts(&s.pkt) {
		d.c.RxAddress++
		d.dropSlot(i)
		return
	}
	if d.pauser != nil {
		class := roce.ClassOf(s.f.B)
		s.waits = int8(class) + 1
		d.pauser.Buffered(class, len(s.f.B))
	}
	d.e.At(d.pass(&s.pkt, d.e.Now()+delay), d.h.rx, uint64(i))
}

// Plan is a frame that will have arrived at tail, behind all that were planned
// before: the receive engine's time for it is reserved now, so that arrival and effect
// are one event. A device that also sends to itself plans nothing, for what comes from
// inside would wait for what is still on the cable; nor does one whose engines may stand still.
func (d *Device) Plan(f *roce.Frame, tail sim.Time) bool {
	if d.loops || d.pauser != nil || d.p.RNRStall > 0 {
		return false
	}
	i := d.getSlot(f)
	s := d.slots[i]
	if f.Decode(&s.pkt) != nil || s.pkt.Info().Kind == roce.KindNotification {
		d.putSlot(i)
		return false
	}
	s.tail = tail
	d.e.At(d.pass(&s.pkt, tail), d.h.rx, uint64(i))
	return true
}

// Pulled marks the planned frames that were on the cable when it was pulled.
func (d *Device) Pulled(lost func(f *roce.Frame)) {
	for _, s := range d.slots {
		if s.tail > d.e.Now() && s.tail != lostFrame {
			s.tail = lostFrame
			lost(s.f)
		}
	}
}

// lostFrame is the tail of a planned frame that does not arrive.
const lostFrame = sim.Never

// pass takes a packet through the receive engine, which it reaches at t, and returns
// when it takes effect.
func (d *Device) pass(p *roce.Packet, t sim.Time) sim.Time {
	t += d.p.RoCEAdder
	m := d.lookUp(p)
	if p.Info().Kind == roce.KindRequest {
		busy := d.p.RxInterval + m.stall
		if d.p.RxScatter > 0 && p.Info().Class == roce.ClassSend && p.PayloadLen() > 0 {
			busy += d.p.RxScatter
		}
		t, _ = d.rxReq.Take(t, busy)
		d.drained = t
		// What waits for no context does not overtake what does.
		t = max(t+d.p.ResponderLatency+m.late, d.reqAt)
		d.reqAt = t
		return t
	}
	t, _ = d.rxRsp.Take(t, d.p.RxAckInterval+m.stall)
	d.drained = t
	t += m.late
	if p.Op == roce.RCAcknowledge || p.Op == roce.CNPacket {
		t += d.p.AckHandling
	} else {
		t += d.p.ReadHandling
	}
	// The pipe is in order: an ACK does not overtake the data of a READ.
	t = max(t, d.rspAt)
	d.rspAt = t
	return t
}

// onRx is a received packet at the point where it takes effect.
func (d *Device) onRx(x uint64) {
	i := int32(x)
	s := d.slots[i]
	if s.tail == lostFrame {
		d.dropSlot(i)
		return
	}
	s.tail = 0
	d.txDone(s)
	if s.waits > 0 {
		d.pauser.Buffered(uint8(s.waits-1), -len(s.f.B))
		s.waits = 0
	}
	d.c.RxPackets++
	d.c.RxOctets += uint64(len(s.f.B))
	if !s.f.ICRCOK() {
		d.c.RxDropped[roce.DropICRC]++
		d.dropSlot(i)
		return
	}
	dest := s.pkt.BTH().DestQP()
	q := d.qpn(dest)
	if s.pkt.Op == roce.CNPacket && q != nil && q.st != prm.STUD {
		d.congested(q, &s.pkt)
		d.dropSlot(i)
		return
	}
	if q == nil || !q.admits(&s.pkt) {
		if dest == multicastQPN {
			d.toGroup(i)
			return
		}
		d.c.RxNoQP++
		d.dropSlot(i)
		return
	}
	if d.p.Congestion.DCQCN && isMarked(&s.pkt) {
		q.marked()
	}
	if s.pkt.Info().Kind == roce.KindResponse {
		q.response(&s.pkt)
		d.dropSlot(i)
		return
	}
	q.request(i)
}
