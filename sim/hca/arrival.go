package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// receiveEngine takes packets in two pipelines, of requests and of responses.
type receiveEngine struct {
	reqAt, rspAt sim.Time // the last request, the last response takes effect then
	drained      sim.Time // the engine took the last packet out of the port's buffer then
	arrivals     arrivals
	effects      sim.Lane // received packets that take effect
}

// arrivals are the packets between port and receive engine.
//
// A planned frame has one event, at the earliest instant at which it can take effect. Its
// arrival, which takes time of the receive engine and looks at the caches, is carried out
// when somebody looks at what it changes (settle), never before its instant: others may use
// the engine and the caches until then. When it then turns out that the packet takes effect
// later, its event is set again.
type arrivals struct {
	all  sim.Slab[arrival]
	n    uint64      // packets that have arrived
	wait [2][]uint32 // of each pipeline, by the time at which they take effect: from done on
	done [2]int

	// What a further frame will find at the least: when each pipeline is free, and when its
	// last packet takes effect.
	free, last [2]sim.Time
}

// arrival is a packet until its event.
type arrival struct {
	slot int32
	at   sim.Time // it takes effect; 0 before it has arrived
	turn uint64   // its number
	past bool     // it has taken effect, or never will
}

// The pipelines of the receive engine.
const (
	requests = iota
	responses
)

func pipeline(p *roce.Packet) int {
	if p.Info().Kind == roce.KindRequest {
		return requests
	}
	return responses
}

// Plan sets the event of a frame that is on its way. A device whose engines may stand
// still, or that pauses the other end by what has arrived, plans nothing.
func (d *Device) Plan(f *roce.Frame, tail sim.Time) (word uint64, ok bool) {
	if d.lateWire == nil || d.pauser != nil || d.p.RNRStall > 0 {
		return 0, false
	}
	var p roce.Packet
	if f.Decode(&p) != nil || p.Info().Kind == roce.KindNotification {
		return 0, false
	}
	at := d.foresee(&p, tail)
	if at <= tail {
		return 0, false
	}
	d.nextArrival = min(d.nextArrival, tail)
	word = d.newArrival(d.getSlot(f))
	d.effects.At(at, d.h.rx, word)
	return word, true
}

func (d *Device) newArrival(slot int32) (word uint64) {
	k := d.arrivals.all.Get()
	*d.arrivals.all.At(k) = arrival{slot: slot}
	return uint64(k)
}

// Arrive takes a frame, which reaches the receive engine at t, through it.
func (d *Device) Arrive(word uint64, t sim.Time) {
	p := d.packet(d.arrivals.all.At(uint32(word)).slot)
	d.arrive(word, &p, t)
}

// arrive is Arrive of a frame that was decoded.
func (d *Device) arrive(word uint64, p *roce.Packet, t sim.Time) {
	a := &d.arrivals
	x := a.all.At(uint32(word))
	x.at = d.pass(p, t)
	a.n++
	x.turn = a.n
	k := pipeline(p)
	a.wait[k] = append(a.wait[k], uint32(word))
}

// Lost is a planned frame that does not arrive.
func (d *Device) Lost(word uint64) *roce.Frame {
	a := &d.arrivals
	a.free, a.last = [2]sim.Time{}, [2]sim.Time{}
	x := a.all.At(uint32(word))
	x.past = true
	f := d.slot(x.slot).f
	d.putSlot(x.slot)
	return f
}

// onRx is the event of a packet. Those of one instant take effect in the order in which
// they arrived, whichever has its event first.
func (d *Device) onRx(word uint64) {
	d.settle()
	a := &d.arrivals
	x := a.all.At(uint32(word))
	if !x.past && x.at > d.e.Now() {
		d.effects.At(x.at, d.h.rx, word)
		return
	}
	for !x.past {
		y := a.first()
		y.past = true
		d.effect(y.slot)
	}
	a.all.Put(uint32(word))
}

// first takes out the packet that takes effect first.
func (a *arrivals) first() *arrival {
	k, x := requests, a.head(requests)
	if y := a.head(responses); x == nil || y != nil && (y.at < x.at || y.at == x.at && y.turn < x.turn) {
		k, x = responses, y
	}
	if a.done[k]++; a.done[k] == len(a.wait[k]) {
		a.wait[k], a.done[k] = a.wait[k][:0], 0
	} else if a.done[k] >= 64 && 2*a.done[k] >= len(a.wait[k]) {
		a.wait[k], a.done[k] = a.wait[k][:copy(a.wait[k], a.wait[k][a.done[k]:])], 0
	}
	return x
}

// head is the first packet of a pipeline, or nil.
func (a *arrivals) head(k int) *arrival {
	if a.done[k] == len(a.wait[k]) {
		return nil
	}
	return a.all.At(a.wait[k][a.done[k]])
}

// pass takes a packet through the receive engine, which it reaches at t, and returns
// when it takes effect.
func (d *Device) pass(p *roce.Packet, t sim.Time) sim.Time {
	t += d.p.RoCEAdder
	m := d.lookUp(p)
	if pipeline(p) == requests {
		t, _ = d.rxReq.Take(t, d.rxRequest(p)+m.stall)
		d.drained = t
		// What waits for no context does not overtake what does.
		d.reqAt = max(t+d.p.ResponderLatency+m.late, d.reqAt)
		return d.reqAt
	}
	t, _ = d.rxRsp.Take(t, d.p.RxAckInterval+m.stall)
	d.drained = t
	// The pipe is in order: an ACK does not overtake the data of a READ.
	d.rspAt = max(t+m.late+d.rxHandling(p), d.rspAt)
	return d.rspAt
}

// foresee is pass when nothing but planned frames uses the engine from now on, and nothing
// is missing in the caches: the packet does not take effect before that.
func (d *Device) foresee(p *roce.Packet, t sim.Time) sim.Time {
	a, k := &d.arrivals, pipeline(p)
	busy, latency, free, last := d.p.RxAckInterval, sim.Time(0), d.rxRsp.FreeAt(), d.rspAt
	if k == requests {
		busy, latency, free, last = d.rxRequest(p), d.p.ResponderLatency, d.rxReq.FreeAt(), d.reqAt
	} else {
		latency = d.rxHandling(p)
	}
	start := max(t+d.p.RoCEAdder, free, a.free[k])
	a.free[k], a.last[k] = start+busy, max(start+latency, last, a.last[k])
	return a.last[k]
}

// rxRequest is how long a request keeps the engine.
func (d *Device) rxRequest(p *roce.Packet) sim.Time {
	if d.p.RxScatter > 0 && p.Info().Class == roce.ClassSend && p.PayloadLen() > 0 {
		return d.p.RxInterval + d.p.RxScatter
	}
	return d.p.RxInterval
}

// rxHandling is how long a response takes behind the engine.
func (d *Device) rxHandling(p *roce.Packet) sim.Time {
	if p.Op == roce.RCAcknowledge || p.Op == roce.CNPacket {
		return d.p.AckHandling
	}
	return d.p.ReadHandling
}

// Drained is when the packet that Receive got last is out of the port's buffer.
func (d *Device) Drained() sim.Time { return d.drained }

// Receive is a frame that arrives at the port now. The device takes over the
// reference.
func (d *Device) Receive(f *roce.Frame) { d.receive(d.getSlot(f), 0) }

// receive takes a frame that reaches the receive engine delay from now.
func (d *Device) receive(i int32, delay sim.Time) {
	d.settle()
	s := d.slot(i)
	var p roce.Packet
	if err := s.f.Decode(&p); err != nil {
		if r, ok := err.(roce.DropReason); ok {
			d.c.RxDropped[r]++
		}
		d.dropSlot(i)
		return
	}
	if (d.ib != nil || p.Framing == roce.InfiniBand) && !d.accepts(&p) {
		d.c.RxAddress++
		d.dropSlot(i)
		return
	}
	if d.pauser != nil {
		class := roce.ClassOf(s.f.B)
		s.waits = int8(class) + 1
		d.pauser.Buffered(class, len(s.f.B))
	}
	k := d.newArrival(i)
	d.arrive(k, &p, d.e.Now()+delay)
	d.effects.At(d.arrivals.all.At(uint32(k)).at, d.h.rx, k)
}

// effect is a received packet at the point where it takes effect.
func (d *Device) effect(i int32) {
	s := d.slot(i)
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
	p := d.packet(i)
	dest := p.BTH().DestQP()
	q := d.qpn(dest)
	if p.Op == roce.CNPacket && q != nil && q.st != prm.STUD {
		d.congested(q, &p)
		d.dropSlot(i)
		return
	}
	if q == nil || !q.admits(&p) {
		if dest == multicastQPN {
			d.toGroup(i)
			return
		}
		d.c.RxNoQP++
		d.dropSlot(i)
		return
	}
	if d.p.Congestion.DCQCN && isMarked(&p) {
		q.marked()
	}
	if p.Info().Kind == roce.KindResponse {
		q.requester.response(&p)
		d.dropSlot(i)
		return
	}
	q.responder.request(i, &p)
}
