// Package link is the wire: cables that join two ports, a switch, taps that watch
// what ports send, and the script of what goes wrong. It moves whole frames; a
// frame costs one event per hop. It knows nothing of devices: whoever is attached
// to a port is a Receiver.
package link

import (
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
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
	receiveHead(f *roce.Frame, tail sim.Time, m marks)
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
	last   measures     // of the last frame length
	lanes  *lanes       // of an InfiniBand link
	sm     *SubnetManager
	taps   []Tap
	script *fault.Script
	rand   *sim.Rand

	arrived sim.Handler
	flight  []berth     // frames on the way to this port, by slot
	vacant  uint32      // the first that is free; the last of flight is never used
	planner Planner     // rx, if it plans arrivals
	drainer Drainer     // rx, if it is one
	held    *roce.Frame // kept back by a rule until another one leaves
	pfc     *lossless   // nil without priority flow control
	sender  Sender      // rx, if it is one and the port has flow control
	mac     roce.MAC    // source of pause frames
}

// flight is a frame on its way. It has no more fields than fit registers.
type flight struct {
	f     *roce.Frame
	tail  sim.Time
	epoch uint32
	marks marks
}

// marks are what is known of a frame on its way; the lowest bits are the lane of an InfiniBand
// link.
type marks uint32

const (
	laneMask marks = 0xff
	badFCS   marks = 0x100
	looped   marks = 0x200 // back to its sender, not from the cable
	paid     marks = 0x400 // it holds credits of an InfiniBand link
)

// with is m and, if it is to be, another mark.
func (m marks) with(x marks, set bool) marks {
	if set {
		m |= x
	}
	return m
}

// has says whether the frame has a mark.
func (m marks) has(x marks) bool { return m&x != 0 }

// berth is the memory of a flight, or free.
type berth struct {
	flight
	next uint32 // that is free
}

func newPort(e *sim.Engine, name string, p *Params, c *Cable) *Port {
	port := &Port{e: e, name: name, p: p, cable: c}
	port.arrived = port.onArrival()
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
		p.lanes.send(f, now)
		return
	}
	p.send(f, now, now, false)
}

// send transmits f not before earliest, and so that its last bit does not leave
// before tail (it is still coming in at a cut-through switch).
func (p *Port) send(f *roce.Frame, earliest, tail sim.Time, bad bool) {
	if p.pfc != nil {
		p.enqueue(waiting{f: f, tail: tail, bad: bad}, earliest)
		return
	}
	if !p.cable.up || p.limit > 0 && p.free-earliest > p.limit {
		p.C.TxDiscards++
		f.Release()
		return
	}
	m := p.measure(len(f.B))
	p.emit(f, max(earliest, p.free, tail-m.bits), m, bad)
}

// emit puts a frame on the line at start, when that is free.
func (p *Port) emit(f *roce.Frame, start sim.Time, m *measures, bad bool) {
	bits := m.bits
	p.free = start + m.line
	p.countTx(f, m)
	if len(p.taps) == 0 && p.script.Empty() {
		if tail := start + bits + p.p.Propagation; bad || !p.peer.foresee(f, tail) {
			p.peer.expect(f, start+p.p.Propagation, tail, bad)
		}
		return
	}
	p.inspect(f, start, bits, bad)
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
			p.place(flight{f: f.Retain(), tail: now + after, marks: looped}, now+after)
		}
	}
	p.place(flight{f: f, tail: now + after, marks: looped}, now+after)
}

// inspect is the path of a frame that somebody watches or disturbs.
func (p *Port) inspect(f *roce.Frame, start, bits sim.Time, bad bool) {
	f, extra, twice, spoiled := p.disturb(f, start, false)
	if f == nil {
		return
	}
	bad = bad || spoiled
	head := start + p.p.Propagation + extra
	if twice {
		p.peer.expect(f.Retain(), head, head+bits, bad)
	}
	p.peer.expect(f, head, head+bits, bad)
	if p.held != nil {
		p.release(head + bits)
	}
}

// expect schedules the arrival of a frame from the cable.
func (p *Port) expect(f *roce.Frame, head, tail sim.Time, bad bool) {
	p.place(flight{f, tail, p.cable.epoch, marks(0).with(badFCS, bad)}, p.due(head, tail))
}

// due is when a frame, whose first and last bit come at head and tail, needs its event.
func (p *Port) due(head, tail sim.Time) sim.Time {
	if p.head != nil {
		return min(tail, head+p.headIn)
	}
	return tail
}

// place sets the event of a frame that is on its way.
func (p *Port) place(fl flight, at sim.Time) { p.e.At(at, p.arrived, p.slot(fl)) }

// slot keeps a frame until its event.
func (p *Port) slot(fl flight) uint64 {
	if int(p.vacant)+1 >= len(p.flight) {
		p.moreSlots()
	}
	slot := p.vacant
	b := &p.flight[slot]
	p.vacant, b.flight = b.next, fl
	return uint64(slot)
}

// moreSlots makes free slots.
//
//go:noinline
func (p *Port) moreSlots() {
	n := len(p.flight)
	p.flight = append(p.flight, make([]berth, max(64, n))...)
	for i := n; i < len(p.flight); i++ {
		p.flight[i].next = uint32(i + 1)
	}
	p.vacant = uint32(max(n-1, 0))
}

// onArrival is the event of a frame that has come.
//
//go:noinline
func (p *Port) onArrival() sim.Handler {
	return func(slot uint64) {
		b := &p.flight[slot]
		fl := b.flight
		b.next, p.vacant = p.vacant, uint32(slot)
		if fl.marks.has(looped) {
			p.hand(fl.f)
			return
		}
		if fl.epoch != p.cable.epoch {
			p.C.LostInFlight++
			fl.f.Release()
			return
		}
		p.countRx(fl.f)
		if p.lanes != nil && p.head == nil && fl.marks&(badFCS|paid) == paid { // as nearly all of InfiniBand
			p.take(fl.f, uint8(fl.marks&laneMask))
			return
		}
		p.arriveElse(fl)
	}
}

// arriveElse is a frame that has come from the cable and was counted.
func (p *Port) arriveElse(fl flight) {
	bad := fl.marks.has(badFCS)
	if bad {
		p.C.RxCRCErrors++
	}
	if p.pfc != nil && !bad && p.paused(fl.f) {
		fl.f.Release()
		return
	}
	if p.head != nil {
		p.head.receiveHead(fl.f, fl.tail, fl.marks)
		return
	}
	switch n := blocks(len(fl.f.B)); {
	case !bad:
		p.hand(fl.f)
	case fl.marks.has(paid):
		fl.f.Release()
		p.settle()
		p.peer.lanes.refund(uint8(fl.marks&laneMask), n, p.e.Now())
	default:
		fl.f.Release()
	}
}

// hand gives a frame to the receiver.
func (p *Port) hand(f *roce.Frame) {
	if p.rx == nil {
		panic(fmt.Sprintf("link: at %v: frame at port %s, to which nothing is attached", p.e.Now(), p.name))
	}
	p.rx.Receive(f)
}

// take hands a packet of an InfiniBand link to the receiver and returns its credits.
func (p *Port) take(f *roce.Frame, vl uint8) {
	n, at := blocks(len(f.B)), p.e.Now()
	p.rx.Receive(f)
	if p.drainer != nil {
		at = max(at, p.drainer.Drained())
	}
	p.peer.lanes.refund(vl, n, at)
}

// InfiniBand says whether the port is of an InfiniBand link.
func (p *Port) InfiniBand() bool { return p.lanes != nil }
