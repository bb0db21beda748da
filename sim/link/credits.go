package link

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Drainer is a Receiver that says when the frame that Receive got last has left the
// port's buffer. One that is not takes frames out at once.
type Drainer interface {
	Drained() sim.Time
}

// lanes is what a port of an InfiniBand link has beside one of Ethernet: the credits
// of each lane, which stand for room in the buffer at the other end. A packet takes
// credits when it begins to be sent; they come back a propagation after the packet has
// left that buffer. So no packet is ever lost for want of room.
//
// Returns are kept as times, not as events; there is an event only while a lane waits.
// The packets that carry credits take no time of the line.
type lanes struct {
	p     *Port
	total int
	vl    []lane
	wake  sim.Handler // of a lane that waits

	Stalls   uint64 // packets that had to wait for credits
	StallFor sim.Time
}

// lane is the sending side of one lane.
type lane struct {
	avail  int
	back   []credit // on their way here, by time
	head   int
	queue  sim.FIFO[blocked] // packets without credits, in order
	waking bool
	epoch  uint32
}

// credit is blocks that come back at a time.
type credit struct {
	at     sim.Time
	blocks int
}

// blocked is a packet that lacks credits.
type blocked struct {
	f              *roce.Frame
	earliest, tail sim.Time
	bad            bool
	from           *Port // whose buffer holds it in a switch; nil: no one's
	since          sim.Time
}

func newLanes(p *Port, ib *IBParams) *lanes {
	l := &lanes{p: p, total: ib.Credits, vl: make([]lane, ib.VLs)}
	for i := range l.vl {
		l.vl[i].avail = l.total
	}
	l.wake = l.onWake
	return l
}

// lane is that of a packet; the lanes that a link does not have share the first.
func (l *lanes) lane(f *roce.Frame) uint8 {
	if vl := roce.LRH(f.B).VL(); int(vl) < len(l.vl) {
		return vl
	}
	return 0
}

// send puts a packet on the line when its lane has credits, or has it wait for them.
func (l *lanes) send(w blocked) {
	p := l.p
	if !p.cable.up || len(w.f.B) < roce.LRHSize || len(w.f.B) > maxIBPacket {
		p.C.TxDiscards++
		l.leave(&w, p.e.Now())
		w.f.Release()
		return
	}
	n := l.lane(w.f)
	if v := &l.vl[n]; v.queue.Len() > 0 || !l.take(v, &w) {
		w.since = p.e.Now()
		l.Stalls++
		*v.queue.Extend() = w
		if !v.waking {
			l.plan(n)
		}
		return
	}
	l.transmit(&w, n)
}

// take takes the credits of a packet that would begin to be sent as soon as the line
// is free.
func (l *lanes) take(v *lane, w *blocked) bool {
	start := max(w.earliest, l.p.free)
	for v.head < len(v.back) && v.back[v.head].at <= start {
		v.avail = min(v.avail+v.back[v.head].blocks, l.total)
		v.head++
	}
	if v.head > 32 && 2*v.head > len(v.back) {
		v.back = v.back[:copy(v.back, v.back[v.head:])]
		v.head = 0
	}
	n := blocks(len(w.f.B))
	if v.avail < n {
		return false
	}
	v.avail -= n
	return true
}

// transmit is Port.send of a packet that has its credits.
func (l *lanes) transmit(w *blocked, n uint8) {
	p, f := l.p, w.f
	bits, line := p.times(len(f.B))
	start := max(w.earliest, p.free, w.tail-bits)
	p.free = start + line
	p.countTx(f)
	p.C.TxWireBytes += uint64(len(f.B) + p.p.Preamble + p.p.FCS + p.p.Gap)
	l.leave(w, start+bits)
	head := start + p.p.Propagation
	if len(p.taps) == 0 && p.script.Empty() {
		p.peer.expectOn(f, head, head+bits, w.bad, n, true)
		return
	}
	size := len(f.B)
	f, extra, twice, bad := p.disturb(f, start, false)
	if f == nil { // it never arrives, and its room is free
		l.refund(n, blocks(size), head+bits)
		return
	}
	if cut := blocks(size) - blocks(len(f.B)); cut > 0 { // truncated by a rule
		l.refund(n, cut, head+bits)
	}
	head += extra
	if twice {
		p.peer.expectOn(f.Retain(), head, head+bits, w.bad || bad, n, false)
	}
	p.peer.expectOn(f, head, head+bits, w.bad || bad, n, true)
	if p.held != nil {
		p.release(head + bits)
	}
}

// leave gives back the room that a packet had in the switch that forwards it.
func (l *lanes) leave(w *blocked, at sim.Time) {
	if w.from != nil {
		w.from.drained(w.f, at)
	}
}

// expectOn is expect of a packet on an InfiniBand lane; paid says that it holds credits.
func (p *Port) expectOn(f *roce.Frame, head, tail sim.Time, bad bool, vl uint8, paid bool) {
	at := tail
	if p.head != nil {
		at = min(tail, head+p.headIn)
	}
	p.place(flight{f: f, tail: tail, epoch: p.cable.epoch, bad: bad, vl: vl, free: !paid}, at)
}

// drained tells the sender that a packet has left, or will leave, this port's buffer.
func (p *Port) drained(f *roce.Frame, at sim.Time) {
	s := p.peer.lanes
	s.refund(s.lane(f), blocks(len(f.B)), at)
}

// refund takes credits for packets that left the other end's buffer at a time.
func (l *lanes) refund(n uint8, blocks int, at sim.Time) {
	v := &l.vl[n]
	at += l.p.p.Propagation
	if last := len(v.back); last > v.head && v.back[last-1].at > at {
		at = v.back[last-1].at // what an engine takes out of order counts in order
	}
	v.back = append(v.back, credit{at, blocks})
	if !v.waking && v.queue.Len() > 0 {
		l.plan(n)
	}
}

// plan sets the event of a lane that waits and has none: when the credits that its first packet
// lacks have come, as far as that is known.
func (l *lanes) plan(n uint8) {
	v := &l.vl[n]
	need := blocks(len(v.queue.Front().f.B)) - v.avail
	for _, c := range v.back[v.head:] {
		if need -= c.blocks; need <= 0 {
			v.waking = true
			l.p.e.At(max(c.at, l.p.e.Now()), l.wake, uint64(v.epoch)<<8|uint64(n))
			return
		}
	}
}

// onWake sends what waits on a lane and has its credits.
func (l *lanes) onWake(x uint64) {
	n, now := uint8(x), l.p.e.Now()
	v := &l.vl[n]
	if uint32(x>>8) != v.epoch {
		return
	}
	v.waking = false
	for v.queue.Len() > 0 {
		w := *v.queue.Front()
		w.earliest = max(w.earliest, now)
		if !l.take(v, &w) {
			if !v.waking { // by the room of a packet that a rule has dropped
				l.plan(n)
			}
			return
		}
		v.queue.Drop()
		l.StallFor += now - w.since
		l.transmit(&w, n)
	}
}

// reset is what a link does that trains again: buffers are empty, and what waited is lost.
func (l *lanes) reset() {
	for i := range l.vl {
		v := &l.vl[i]
		queue := v.queue
		*v = lane{avail: l.total, epoch: v.epoch + 1}
		for queue.Len() > 0 {
			w := queue.Pop()
			l.p.C.TxDiscards++
			if w.from != nil && w.from.cable.up {
				w.from.drained(w.f, l.p.e.Now())
			}
			w.f.Release()
		}
	}
}
