package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// receiveEngine takes packets in two pipelines, of requests and of responses.
type receiveEngine struct {
	*units
	qps          *queuePairs
	nic          *nic        // nil: RDMA only
	reqAt, rspAt sim.Time    // the last request, the last response takes effect then
	drained      sim.Time    // the engine took the last packet out of the port's buffer then
	lateWire     LateWire    // nil: no frame is planned
	agentsAnswer madAnswerer // nil: the port has no agents
	plans        bool        // frames of the wire are planned
	arrivals     arrivals
	effects      sim.Lane // received packets that take effect
}

// madAnswerer has the port's agents answer a packet to QP0 or QP1. It reports false for what the
// driver gets.
type madAnswerer interface {
	answersMAD(p *roce.Packet) bool
}

// Plan foresees a frame that is on its way. A device whose engines may stand still, that
// pauses the other end by what has arrived, or that is a network interface, plans nothing.
func (d *receiveEngine) Plan(f *roce.Frame, tail sim.Time) bool {
	if !d.plans || !f.Decoded() && !decodes(f) {
		return false
	}
	p := &f.Packet
	if d.ib != nil && !d.accepts(p) {
		return false
	}
	k, kind := responses, p.Info().Kind
	if kind == roce.KindRequest {
		k = requests
	} else if kind == roce.KindNotification {
		return false
	}
	at := d.foresee(k, p, tail)
	if at <= tail {
		return false
	}
	d.nextArrival = min(d.nextArrival, tail)
	l, place := &d.arrivals.pipes[k], d.e.Reserve(tail)
	if l.queue.Len() == l.here {
		l.next = place
	}
	l.queue.Reserve()
	x := l.queue.Extend()
	x.f, x.at, x.place, x.slot, x.pfc = f, at, place, -1, 0
	d.wake(at)
	return true
}

// Settle lets planned frames arrive that should have by now.
func (d *receiveEngine) Settle() { d.settle() }

// arriveLate takes the planned frames whose places have passed through the receive engine.
func (d *receiveEngine) arriveLate() (next sim.Time) {
	req, rsp := &d.arrivals.pipes[requests], &d.arrivals.pipes[responses]
	for {
		k, l := requests, req
		if rsp.next.Before(req.next) {
			k, l = responses, rsp
		}
		if !d.e.Passed(l.next) {
			return l.next.Time()
		}
		x := l.takeNext()
		d.arrive(k, x, x.place.Time())
		d.lateWire.Arrived(x.f, d.drained)
	}
}

// Unplan gives back the planned frames, in the order in which they would arrive: the link is down.
func (d *receiveEngine) Unplan(back func(f *roce.Frame, at sim.Place)) {
	a := &d.arrivals
	n := [2]int{a.pipes[requests].here, a.pipes[responses].here}
	for l := a.firstPlanned(); l.next != nowhere; l = a.firstPlanned() {
		x := l.takeNext()
		back(x.f, x.place)
	}
	for k := range a.pipes {
		l := &a.pipes[k]
		l.queue.Truncate(n[k])
		l.here, l.free, l.last = n[k], 0, 0
	}
}

// arrive takes a packet that reaches the receive engine at t through it.
func (d *receiveEngine) arrive(k int, x *arrival, t sim.Time) {
	x.at = d.pass(k, &x.f.Packet, t)
	d.arrivals.n++
	x.turn = d.arrivals.n
}

// wake sets the event of the first packet, if it may take effect before the one that is set.
func (d *receiveEngine) wake(at sim.Time) {
	if at < d.arrivals.alarm {
		d.setAlarm(at)
	}
}

func (d *receiveEngine) setAlarm(at sim.Time) {
	d.arrivals.alarm = at
	d.effects.At(at, d.h.rx, 0)
}

// onRx is the event of the first packet. Those of one instant take effect in the order in
// which they arrived.
//
//go:noinline
func (d *receiveEngine) onRx() sim.Handler {
	return func(uint64) {
		a, now := &d.arrivals, d.e.Now()
		if a.alarm != now {
			return // an earlier one was set since
		}
		a.alarm = sim.Never
		d.settle()
		if a.stalled > now {
			d.setAlarm(a.stalled)
			return
		}
		if l := a.first(); l.here > 0 {
			if x := l.queue.Front(); x.at <= now {
				l.queue.Drop()
				l.here--
				d.effect(x.f, x.slot, x.pfc)
			}
		}
		d.wake(max(min(a.pipes[requests].soonest(), a.pipes[responses].soonest()), now))
	}
}

// pass takes a packet through pipeline k of the receive engine, which it reaches at t, and
// returns when it takes effect.
func (d *receiveEngine) pass(k int, p *roce.Packet, t sim.Time) sim.Time {
	t += d.p.RoCEAdder
	m := d.qps.lookUp(p)
	if k == requests {
		d.missed.req += m.stall
		t, _ = d.rxReq.Take(t, d.rxRequest(p)+m.stall)
		d.drained = t
		// What waits for no context does not overtake what does.
		d.reqAt = max(t+d.p.ResponderLatency+m.late, d.reqAt)
		return d.reqAt
	}
	d.missed.rsp += m.stall
	t, _ = d.rxRsp.Take(t, d.p.RxAckInterval+m.stall)
	d.drained = t
	// The pipe is in order: an ACK does not overtake the data of a READ.
	d.rspAt = max(t+m.late+d.rxHandling(p), d.rspAt)
	return d.rspAt
}

// foresee is pass when nothing but planned frames uses the engine from now on, and nothing
// is missing in the caches: the packet does not take effect before that.
func (d *receiveEngine) foresee(k int, p *roce.Packet, t sim.Time) sim.Time {
	t += d.p.RoCEAdder
	if k == requests {
		return d.arrivals.pipes[k].foresee(max(t, d.rxReq.FreeAt()), d.rxRequest(p), d.p.ResponderLatency, d.reqAt)
	}
	return d.arrivals.pipes[k].foresee(max(t, d.rxRsp.FreeAt()), d.p.RxAckInterval, d.rxHandling(p), d.rspAt)
}

// rxRequest is how long a request keeps the engine.
func (d *receiveEngine) rxRequest(p *roce.Packet) sim.Time {
	if d.p.RxScatter > 0 && p.Info().Class == roce.ClassSend && p.PayloadLen() > 0 {
		return d.p.RxInterval + d.p.RxScatter
	}
	return d.p.RxInterval
}

// rxHandling is how long a response takes behind the engine.
func (d *receiveEngine) rxHandling(p *roce.Packet) sim.Time {
	if op := p.Op.Operation(); op == roce.OpAcknowledge || p.Op == roce.CNPacket || op == roce.OpSelectiveNAK {
		return d.p.AckHandling
	}
	return d.p.ReadHandling
}

// Stall keeps packets from taking effect before t: what they bring finds no room on the bus.
func (d *receiveEngine) Stall(t sim.Time) {
	d.arrivals.stalled = max(d.arrivals.stalled, t)
}

// Drained is when the packet that Receive got last is out of the port's buffer.
func (d *receiveEngine) Drained() sim.Time { return d.drained }

// Receive is a frame that arrives at the port now. The device takes over the
// reference.
func (d *receiveEngine) Receive(f *roce.Frame) { d.receive(f, -1, 0) }

// receive takes a frame that reaches the receive engine delay from now. It has a slot if the
// device sends it to itself.
func (d *receiveEngine) receive(f *roce.Frame, slot int32, delay sim.Time) {
	d.settle()
	if (d.nic != nil || !f.Decoded()) && d.receiveElse(f, slot) {
		return
	}
	p := &f.Packet
	if !d.forPort(p) {
		d.c.RxAddress++
		d.returned(slot)
		f.Release()
		return
	}
	pfc := int8(0)
	if d.pauser != nil {
		class := roce.ClassOf(f.B)
		pfc = int8(class) + 1
		d.pauser.Buffered(class, len(f.B))
	}
	k := pipelineOf(p)
	a := d.arrivals.pipes[k].add()
	a.f, a.slot, a.pfc = f, slot, pfc
	d.arrive(k, a, d.e.Now()+delay)
	d.wake(a.at)
}

// forPort says whether a packet is for the port, as far as that is not known from its being here.
func (d *receiveEngine) forPort(p *roce.Packet) bool {
	return d.ib == nil && p.Framing != roce.InfiniBand || d.accepts(p)
}

// NextArrival is the place of the planned frame that arrives next.
func (d *receiveEngine) NextArrival() sim.Place {
	return d.arrivals.firstPlanned().next
}

// receiveElse takes a frame that is for the network interface or no whole packet. It reports false
// for others, which are decoded.
//
//go:noinline
func (d *receiveEngine) receiveElse(f *roce.Frame, slot int32) bool {
	_, err := f.Decode()
	if d.nic != nil && slot < 0 && d.nic.takes(f, err) {
		d.nic.arrive(f)
		return true
	}
	if err == nil {
		return false
	}
	if r, ok := err.(roce.DropReason); ok {
		d.c.RxDropped[r]++
	}
	d.returned(slot)
	f.Release()
	return true
}

// returned gives back the slot of a frame that the device sent to itself.
func (d *receiveEngine) returned(slot int32) {
	if slot >= 0 {
		d.giveBack(slot)
	}
}

//go:noinline
func (d *receiveEngine) giveBack(slot int32) {
	s := d.slot(slot)
	d.txDone(s)
	d.clearSlot(s, slot)
}

// effect is a received packet at the point where it takes effect.
func (d *receiveEngine) effect(f *roce.Frame, slot int32, pfc int8) {
	d.returned(slot)
	if pfc > 0 {
		d.pauser.Buffered(uint8(pfc-1), -len(f.B))
	}
	d.c.RxPackets++
	d.c.RxOctets += uint64(len(f.B))
	p := &f.Packet
	q := d.qps.qpn(p.BTH().DestQP())
	if q == nil || p.Op == roce.CNPacket || !f.ICRCOK() && !q.breaks(rule.BrokenPacketsAreDropped) || !q.admits(p) {
		d.stray(f, q)
		return
	}
	if d.p.Congestion.DCQCN && isMarked(p) {
		q.marked()
	}
	if p.Info().Kind == roce.KindResponse {
		q.requester.response(p)
		f.Release()
		return
	}
	q.responder.request(f)
}

// stray is a packet that is broken, that the QP which it names (q, if there is one) does not
// admit, or that is about congestion.
//
//go:noinline
func (d *receiveEngine) stray(f *roce.Frame, q *qp) {
	p := &f.Packet
	dest := p.BTH().DestQP()
	switch {
	case !f.ICRCOK():
		d.c.RxDropped[roce.DropICRC]++
	case p.Op == roce.CNPacket && q != nil && q.st != prm.STUD:
		d.qps.congested(q, p)
	case dest == multicastQPN:
		d.qps.toGroup(f)
		return
	case dest <= gsiQPN && d.agentsAnswer != nil && d.agentsAnswer.answersMAD(p):
	case dest <= gsiQPN && d.qps.special[dest] != nil && d.qps.special[dest].admits(p):
		d.qps.special[dest].responder.request(f)
		return
	case p.Op.Transport() == roce.DC:
		d.qps.toTarget(f)
		return
	default:
		d.c.RxNoQP++
	}
	f.Release()
}
