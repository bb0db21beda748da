// Package link is the wire: cables that join two ports, a switch, taps that watch
// what ports send, and the script of what goes wrong. It moves whole frames; a
// frame costs one event per hop. It knows nothing of devices: whoever is attached
// to a port is a Receiver.
package link

import (
	"fmt"

	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Receiver takes frames that have arrived whole, at the time of the last bit. It
// owns one reference to each and releases it.
type Receiver interface {
	Receive(f *roce.Frame)
}

// Sender is a Receiver that is notified when a port with priority flow control holds back
// fewer bytes than before.
type Sender interface {
	Relieved()
}

// LinkWatcher is a Receiver that is notified when its link goes down or up.
type LinkWatcher interface {
	LinkChanged(up bool)
}

// headReceiver is called with a frame when its header has arrived, and with tail, the time
// at which its last bit will have. Only switches are.
type headReceiver interface {
	receiveHead(f *roce.Frame, tail sim.Time, badFCS bool)
}

// Port is one end of a cable.
type Port struct {
	C Counters

	e      *sim.Engine
	name   string
	p      *Params
	cable  *Cable
	peer   *Port
	rx     Receiver
	head   headReceiver // instead of rx
	headIn sim.Time     // from the first bit to the call of the headReceiver
	free   sim.Time     // when the line can take the next frame
	limit  sim.Time     // backlog beyond which Send drops; 0: none
	lastN  int          // serialisation times of the last frame length
	lastT  sim.Time
	lastL  sim.Time
	lanes  *lanes // of an InfiniBand link
	sm     *SubnetManager
	taps   []Tap
	script *fault.Script
	rand   *sim.Rand

	arrived sim.Handler
	flight  []flight // frames on the way to this port, by slot
	vacant  []uint32
	planner Planner     // rx, if it plans arrivals
	drainer Drainer     // rx, if it is one
	held    *roce.Frame // kept back by a rule until another one leaves
	pfc     *lossless   // nil without priority flow control
	sender  Sender      // rx, if it is one and the port has flow control
	mac     roce.MAC    // source of pause frames
}

// flight is a frame on its way.
type flight struct {
	f     *roce.Frame
	tail  sim.Time
	epoch uint32
	bad   bool // wrong FCS
	loop  bool // looped back, not from the cable
	vl    uint8
	free  bool // it holds no credits of an InfiniBand link
}

func newPort(e *sim.Engine, name string, p *Params, c *Cable) *Port {
	port := &Port{e: e, name: name, p: p, cable: c}
	port.arrived = port.arrive
	port.rand = sim.NewRand(e.Seed(), "link/"+name)
	if p.PFC {
		port.pfc = newLossless(port)
	}
	return port
}

// Name is the port's name in taps and rules ("host0/mlx5_0").
func (p *Port) Name() string { return p.name }

// Peer is the port at the other end of the cable.
func (p *Port) Peer() *Port { return p.peer }

// Attach names who gets the frames that arrive here.
func (p *Port) Attach(r Receiver) {
	p.rx = r
	p.drainer, _ = r.(Drainer)
	if p.pfc != nil {
		p.sender, _ = r.(Sender)
	}
	if !p.e.Lockstep() {
		p.planner, _ = r.(Planner)
	}
}

// Up says whether the link is up.
func (p *Port) Up() bool { return p.cable.up }

// SetLink takes the cable down or up, at both ends.
func (p *Port) SetLink(up bool) { p.cable.SetLink(up) }

// Tap adds an observer of what the port sends.
func (p *Port) Tap(t Tap) { p.taps = append(p.taps, t) }

// Tapped says whether anybody watches.
func (p *Port) Tapped() bool { return len(p.taps) > 0 }

// SetScript makes s rule over what the port sends; nil ends it.
func (p *Port) SetScript(s *fault.Script) { p.script = s }

// SetMAC gives the port the address that its pause frames come from.
func (p *Port) SetMAC(m roce.MAC) { p.mac = m }

// FreeAt is when the line could take another frame; not after now when idle.
func (p *Port) FreeAt() sim.Time { return p.free }

// Send puts a frame on the line, behind those that were sent before, and takes
// over the caller's reference. On a link that is down the frame is discarded.
func (p *Port) Send(f *roce.Frame) {
	now := p.e.Now()
	if p.lanes != nil {
		p.lanes.send(blocked{f: f, earliest: now, tail: now})
		return
	}
	p.send(f, now, now, false)
}

// send transmits f not before earliest, and so that its last bit does not leave
// before tail (it is still coming in at a cut-through switch).
func (p *Port) send(f *roce.Frame, earliest, tail sim.Time, badFCS bool) {
	if p.pfc != nil {
		p.enqueue(waiting{f: f, tail: tail, bad: badFCS}, earliest)
		return
	}
	if !p.cable.up || p.limit > 0 && p.free-earliest > p.limit {
		p.C.TxDiscards++
		f.Release()
		return
	}
	bits, line := p.times(len(f.B))
	p.emit(f, max(earliest, p.free, tail-bits), bits, line, badFCS)
}

// emit puts a frame on the line at start, when that is free.
func (p *Port) emit(f *roce.Frame, start, bits, line sim.Time, badFCS bool) {
	p.free = start + line
	p.countTx(f)
	p.C.TxWireBytes += uint64(p.p.Preamble + max(len(f.B), p.p.MinFrame) + p.p.FCS + p.p.Gap)
	if len(p.taps) == 0 && p.script.Empty() {
		if tail := start + bits + p.p.Propagation; badFCS || !p.peer.foresee(f, tail) {
			p.peer.expect(f, start+p.p.Propagation, tail, badFCS)
		}
		return
	}
	p.inspect(f, start, bits, badFCS)
}

// times are how long a frame of n bytes takes from its first to its last bit, and
// how long it keeps the line. Streams have few lengths, so the last one is kept.
func (p *Port) times(n int) (bits, line sim.Time) {
	if n != p.lastN {
		body := p.p.Preamble + max(n, p.p.MinFrame) + p.p.FCS
		p.lastN, p.lastT, p.lastL = n, p.p.bytesTime(body), p.p.bytesTime(body+p.p.Gap)
	}
	return p.lastT, p.lastL
}

// countTx counts a frame that is sent.
func (p *Port) countTx(f *roce.Frame) {
	p.C.TxPackets++
	p.C.TxBytes += uint64(max(len(f.B), p.p.MinFrame) + p.p.FCS)
	if p.maybeToGroup(f) {
		p.countGroup(f, &p.C.TxMulticast, &p.C.TxBroadcast)
	}
}

// countRx counts a frame that has come.
func (p *Port) countRx(f *roce.Frame) {
	p.C.RxPackets++
	p.C.RxBytes += uint64(max(len(f.B), p.p.MinFrame) + p.p.FCS)
	if p.maybeToGroup(f) {
		p.countGroup(f, &p.C.RxMulticast, &p.C.RxBroadcast)
	}
}

// maybeToGroup says whether a frame need be looked at closer to know where it goes: those
// that go to one address need not.
func (p *Port) maybeToGroup(f *roce.Frame) bool {
	if p.lanes != nil {
		return roce.IsMulticastLID(roce.LRH(f.B).DLID())
	}
	return len(f.B) >= roce.EthernetSize && roce.Ethernet(f.B).ToGroup()
}

// countGroup counts a frame that goes to a group, if it does.
//
//go:noinline
func (p *Port) countGroup(f *roce.Frame, multicast, broadcast *uint64) {
	if p.lanes != nil {
		*multicast++
		return
	}
	if dst := roce.Ethernet(f.B).Dst(); dst.IsBroadcast() {
		*broadcast++
	} else if dst.IsGroup() {
		*multicast++
	}
}

// Loopback hands a frame back to the port's own receiver after the given time,
// without the wire: what a device does that sends to its own address. Taps and
// rules see it like a frame that is sent. The reference passes to the receiver.
func (p *Port) Loopback(f *roce.Frame, after sim.Time) {
	now := p.e.Now()
	p.C.Loopback++
	if len(p.taps) > 0 || !p.script.Empty() {
		var extra sim.Time
		twice, bad := false, false
		f, extra, twice, bad = p.disturb(f, now, true)
		if f == nil {
			return
		}
		if bad {
			// There is no FCS inside a device; the frame is lost all the same.
			p.C.ScriptLost++
			f.Release()
			return
		}
		after += extra
		if twice {
			p.place(flight{f: f.Retain(), tail: now + after, loop: true}, now+after)
		}
	}
	p.place(flight{f: f, tail: now + after, loop: true}, now+after)
}

// inspect is the path of a frame that somebody watches or disturbs.
func (p *Port) inspect(f *roce.Frame, start, bits sim.Time, badFCS bool) {
	f, extra, twice, bad := p.disturb(f, start, false)
	if f == nil {
		return
	}
	head := start + p.p.Propagation + extra
	if twice {
		p.peer.expect(f.Retain(), head, head+bits, badFCS || bad)
	}
	p.peer.expect(f, head, head+bits, badFCS || bad)
	if p.held != nil {
		p.release(head + bits)
	}
}

// expect schedules the arrival of a frame from the cable.
func (p *Port) expect(f *roce.Frame, head, tail sim.Time, badFCS bool) {
	at := tail
	if p.head != nil {
		at = min(tail, head+p.headIn)
	}
	p.place(flight{f: f, tail: tail, epoch: p.cable.epoch, bad: badFCS, free: true}, at)
}

// place sets the event of a frame that is on its way.
func (p *Port) place(fl flight, at sim.Time) { p.e.At(at, p.arrived, p.slot(fl)) }

// slot keeps a frame until its event.
func (p *Port) slot(fl flight) uint64 {
	var slot uint32
	if n := len(p.vacant); n > 0 {
		slot = p.vacant[n-1]
		p.vacant = p.vacant[:n-1]
		p.flight[slot] = fl
	} else {
		slot = uint32(len(p.flight))
		p.flight = append(p.flight, fl)
	}
	return uint64(slot)
}

// arrive is the event of a frame that has come.
func (p *Port) arrive(slot uint64) {
	fl := p.flight[slot]
	p.vacant = append(p.vacant, uint32(slot))
	if !fl.loop {
		if fl.epoch != p.cable.epoch {
			p.C.LostInFlight++
			fl.f.Release()
			return
		}
		p.countRx(fl.f)
		if fl.bad {
			p.C.RxCRCErrors++
		}
		if p.pfc != nil && !fl.bad && p.paused(fl.f) {
			fl.f.Release()
			return
		}
		if p.head != nil {
			p.head.receiveHead(fl.f, fl.tail, fl.bad)
			return
		}
		if p.lanes != nil {
			p.take(&fl)
			return
		}
		if fl.bad {
			fl.f.Release()
			return
		}
	}
	if p.rx == nil {
		panic(fmt.Sprintf("link: at %v: frame at port %s, to which nothing is attached", p.e.Now(), p.name))
	}
	p.rx.Receive(fl.f)
}

// take hands a packet of an InfiniBand link to the receiver and returns its credits.
func (p *Port) take(fl *flight) {
	s := p.peer.lanes
	n, at := blocks(len(fl.f.B)), p.e.Now()
	if fl.bad {
		fl.f.Release()
	} else {
		p.rx.Receive(fl.f)
		if p.drainer != nil {
			at = max(at, p.drainer.Drained())
		}
	}
	if !fl.free {
		s.refund(fl.vl, n, at)
	}
}

// Cable joins two ports.
type Cable struct {
	p     Params
	ends  [2]*Port
	up    bool
	epoch uint32 // counts the times that the link went down
}

// NewCable makes a cable that is up. The names are those of its ports. Params must
// pass Check.
func NewCable(e *sim.Engine, p Params, a, b string) *Cable {
	if p.InfiniBand {
		return newIBCable(e, p, a, b)
	}
	if err := p.Check(); err != nil {
		panic(err.Error())
	}
	c := &Cable{p: p, up: true}
	c.ends[0], c.ends[1] = newPort(e, a, &c.p, c), newPort(e, b, &c.p, c)
	c.ends[0].peer, c.ends[1].peer = c.ends[1], c.ends[0]
	return c
}

func newIBCable(e *sim.Engine, p Params, a, b string) *Cable {
	if err := p.IB.Check(); err != nil {
		panic(err.Error())
	}
	c := &Cable{p: p.IB.framing(p.Propagation), up: true}
	c.ends[0], c.ends[1] = newPort(e, a, &c.p, c), newPort(e, b, &c.p, c)
	for i, q := range c.ends {
		q.peer = c.ends[1-i]
		q.lanes = newLanes(q, &p.IB)
	}
	return c
}

// InfiniBand says whether the port is of an InfiniBand link.
func (p *Port) InfiniBand() bool { return p.lanes != nil }

// End is port 0 or 1 of the cable.
func (c *Cable) End(i int) *Port { return c.ends[i] }

// Up says whether the link is up.
func (c *Cable) Up() bool { return c.up }

// SetLink pulls the cable or puts it back. What is on the way is lost; receivers
// that are LinkWatchers are notified of a change.
func (c *Cable) SetLink(up bool) {
	if up == c.up {
		return
	}
	if !up {
		for _, p := range c.ends {
			p.unplan()
		}
		c.epoch++
	}
	c.up = up
	for _, p := range c.ends {
		if !up {
			p.C.LinkDownEvents++
			p.free = min(p.free, p.e.Now())
			if p.lanes != nil {
				p.lanes.reset()
			}
		}
		if w, ok := p.rx.(LinkWatcher); ok {
			w.LinkChanged(up)
		}
	}
	for _, p := range c.ends {
		if p.sm != nil {
			p.sm.linkChanged()
			return
		}
	}
}
