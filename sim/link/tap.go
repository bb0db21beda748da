package link

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
)

// Sent is a frame as its port sends it, before any rule acts.
type Sent struct {
	At       sim.Time // when its first bit leaves: not before the present, later when the line is busy
	Port     string
	Frame    *roce.Frame // with its ICRC filled in; Retain it to keep it
	Acted    fault.Action
	Loopback bool
}

// Tap watches what a port sends. It is called when the frame is handed to the
// port, so the times of several ports are not in order; see Ordered.
type Tap func(Sent)

// disturb shows a frame to the taps and does what the script says. A nil frame
// was dropped; extra is how much later it arrives, twice whether it does so twice,
// bad whether with a wrong FCS.
func (p *Port) disturb(f *roce.Frame, at sim.Time, loop bool) (out *roce.Frame, extra sim.Time, twice, bad bool) {
	var rule *fault.Rule
	if !p.script.Empty() {
		if pk, err := f.Parse(); err == nil {
			bth := pk.BTH()
			rule = p.script.Decide(&fault.Frame{
				Port: p.name, Opcode: uint8(bth.Opcode()), DestQP: bth.DestQP(), PSN: bth.PSN(),
				Response: pk.Info().Kind == roce.KindResponse, First: pk.Info().First,
			}, p.rand.Uint64)
		}
	}
	action := fault.Pass
	if rule != nil && !(rule.Action == fault.Truncate && rule.Keep >= len(f.B)) { // which leaves the frame as it is
		action = rule.Action
	}
	if len(p.taps) > 0 {
		f.FinishICRC()
		for _, t := range p.taps {
			t(Sent{At: at, Port: p.name, Frame: f, Acted: action, Loopback: loop})
		}
	}
	switch action {
	case fault.Drop:
		p.C.ScriptLost++
		f.Release()
		return nil, 0, false, false
	case fault.Corrupt:
		f = p.writable(f)
		corrupt(f)
	case fault.Edit, fault.Spoil:
		f = p.writable(f)
		edit(f, rule)
	case fault.CorruptFCS:
		bad = true
	case fault.Delay:
		extra = sim.Time(rule.Delay)
	case fault.Duplicate:
		twice = true
	case fault.Reorder:
		if !loop { // nothing overtakes a frame that does not leave
			p.hold(f)
			return nil, 0, false, false
		}
	case fault.Mark:
		f = p.writable(f)
		mark(f)
	case fault.Truncate:
		f = p.writable(f)
		f.Touch()
		f.B = f.B[:min(rule.Keep, len(f.B))]
	}
	return f, extra, twice, bad
}

// hold keeps a frame back until the port has sent another one. Only one is held: an
// earlier one is lost.
func (p *Port) hold(f *roce.Frame) {
	if p.held != nil {
		p.C.ScriptLost++
		p.held.Release()
	}
	p.held = f
}

// release sends the held frame behind one whose last bit arrives at tail.
func (p *Port) release(tail sim.Time) {
	if f := p.held; f != nil {
		p.held = nil
		bits := p.measure(len(f.B)).bits
		p.peer.expect(f, tail, tail+bits, false)
	}
}

// mark sets the congestion bits of a frame.
func mark(f *roce.Frame) {
	if pk, err := f.Parse(); err == nil {
		pk.MarkCongestion()
	}
}

// markable says whether the sender of a frame heeds marks (ECT) and it has none yet.
func markable(f *roce.Frame) bool {
	pk, err := roce.Parse(f.B)
	if err != nil {
		return false
	}
	ecn := pk.TrafficClass() & 3
	return ecn == 1 || ecn == 2
}

// writable is f if nobody else holds it, else a copy.
func (p *Port) writable(f *roce.Frame) *roce.Frame {
	f.FinishICRC()
	if f.Refs() == 1 {
		return f
	}
	g := f.Pool().Copy(f)
	f.Release()
	return g
}

// corrupt makes the ICRC of a frame wrong.
func corrupt(f *roce.Frame) {
	if pk, err := f.Parse(); err == nil {
		f.Touch()
		pk.Corrupt()
	}
}

// edit sets bytes and, unless they are to spoil the frame, makes the ICRC right again.
func edit(f *roce.Frame, rule *fault.Rule) {
	pk, err := f.Parse()
	if err != nil {
		return
	}
	f.Touch()
	for _, e := range rule.Edits {
		pk.SetByte(e.Offset, e.Value)
	}
	pk.FixChecksum()
	if rule.Action == fault.Edit {
		pk.FixICRC()
	}
}

// Ordered puts the frames of any number of ports in the order of their times and
// hands each on once no earlier one can come. Close hands on the rest.
type Ordered struct {
	e    *sim.Engine
	sink Tap
	heap []ordered
	seq  uint64
}

type ordered struct {
	s   Sent
	seq uint64
}

// NewOrdered makes one; use its Tap method as the tap of the ports. sink gets
// frames that it may Retain.
func NewOrdered(e *sim.Engine, sink Tap) *Ordered { return &Ordered{e: e, sink: sink} }

// Tap takes a frame and holds on to it: a rule that changes it then finds it
// shared and changes a copy.
func (o *Ordered) Tap(s Sent) {
	o.flush(o.e.Now())
	s.Frame.Retain()
	o.seq++
	o.push(ordered{s, o.seq})
}

// Close hands on what is left, also what had not begun to be sent.
func (o *Ordered) Close() { o.flush(sim.Never) }

// flush hands on frames before t: none that comes later can be before now.
func (o *Ordered) flush(t sim.Time) {
	for len(o.heap) > 0 && o.heap[0].s.At < t {
		x := o.pop()
		o.sink(x.s)
		x.s.Frame.Release()
	}
}

func (a *ordered) before(b *ordered) bool {
	return a.s.At < b.s.At || a.s.At == b.s.At && a.seq < b.seq
}

func (o *Ordered) push(x ordered) {
	o.heap = append(o.heap, x)
	h, i := o.heap, len(o.heap)-1
	for i > 0 && h[i].before(&h[(i-1)/2]) {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
}

func (o *Ordered) pop() ordered {
	h := o.heap
	x, n := h[0], len(h)-1
	h[0] = h[n]
	h[n] = ordered{}
	o.heap = h[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&h[i]) {
			break
		}
		h[c], h[i] = h[i], h[c]
		i = c
	}
	return x
}
