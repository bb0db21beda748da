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
// Returns are kept as times, not as events; there is an event only while a lane waits. Of packets
// whose arrival is planned (Planner) the receiver is asked when a lane lacks credits. While that is
// not known for a packet that waits, there is an event in the place of the next arrival. The
// packets that carry credits take no time of the line.
type lanes struct {
	p     *Port
	total int
	vl    []lane
	after sim.Time    // a packet left the other end's buffer, its credits come back
	wake  sim.Handler // of a lane that waits
	come  sim.Handler // and does not know how long: of a planned arrival

	Stalls   uint64 // packets that had to wait for credits
	StallFor sim.Time
}

// lane is the sending side of one lane.
type lane struct {
	avail  int
	next   sim.Time // of the first of back; Never: there is none
	last   sim.Time // of the last of back, if there is one
	back   returns
	queue  sim.FIFO[blocked] // packets without credits, in order
	waking bool
	awaits bool // a planned arrival
	epoch  uint32
}

// blocked is a packet that lacks credits.
type blocked struct {
	f              *roce.Frame
	earliest, tail sim.Time
	bad            bool
	from           room
	since          sim.Time
}

// room is what a packet in a switch holds of the buffer of the port that it came by. The zero room
// is none: that of a packet which took no credits for this way, such as the copy that a rule made.
// The lane and the credits are those that were taken, whatever becomes of the packet or, until it
// leaves, of the link.
type room struct {
	at     *Port
	blocks int
	epoch  uint32
	vl     uint8
}

// roomFor is what a packet takes that has come.
func (p *Port) roomFor(f *roce.Frame, m marks) room {
	if !m.has(paid) {
		return room{}
	}
	return room{p, blocks(len(f.B)), p.cable.epoch, uint8(m & laneMask)}
}

// leave tells the sender that a packet has left, or will leave, its room. A link that has trained
// again since has all its credits.
func (r *room) leave(at sim.Time) {
	if r.at != nil && r.epoch == r.at.cable.epoch {
		r.at.peer.lanes.refund(r.vl, r.blocks, at)
	}
}

func newLanes(p *Port, ib *IBParams) *lanes {
	l := &lanes{p: p, total: ib.Credits, vl: make([]lane, ib.VLs), after: p.p.Propagation}
	for i := range l.vl {
		l.vl[i].avail, l.vl[i].next = l.total, sim.Never
	}
	l.wake, l.come = l.onWake(), l.onCome
	return l
}

// lane is that of a packet; the lanes that a link does not have share the first.
func (l *lanes) lane(f *roce.Frame) uint8 {
	if vl := roce.LRH(f.B).VL(); int(vl) < len(l.vl) {
		return vl
	}
	return 0
}

// send puts a packet of the device that has the port on the line when its lane has credits, or has
// it wait for them.
func (l *lanes) send(f *roce.Frame, now sim.Time) {
	p := l.p
	if !l.fits(f) {
		l.discard(&blocked{f: f})
		return
	}
	if roce.LRH(f.B).VL() == roce.ManagementVL {
		l.management(f, now)
		return
	}
	n := l.lane(f)
	v := &l.vl[n]
	if v.queue.Len() == 0 && l.claim(v, blocks(len(f.B)), max(now, p.free)) {
		l.transmit(f, max(now, p.free), p.measure(len(f.B)), false, n, &room{})
		return
	}
	v.queue.Reserve()
	*v.queue.Extend() = blocked{f: f, earliest: now, tail: now, since: now}
	l.await(v, n)
}

// forward is send of a packet that a switch has got.
func (l *lanes) forward(w blocked) {
	p := l.p
	if !l.fits(w.f) {
		l.discard(&w)
		return
	}
	if roce.LRH(w.f.B).VL() == roce.ManagementVL {
		w.from.leave(w.tail)
		l.management(w.f, w.tail)
		return
	}
	n := l.lane(w.f)
	v := &l.vl[n]
	if v.queue.Len() == 0 && l.claim(v, blocks(len(w.f.B)), max(w.earliest, p.free)) {
		m := p.measure(len(w.f.B))
		l.transmit(w.f, max(w.earliest, p.free, w.tail-m.bits), m, w.bad, n, &w.from)
		return
	}
	w.since = p.e.Now()
	v.queue.Reserve()
	*v.queue.Extend() = w
	l.await(v, n)
}

// fits says whether a packet can be sent at all.
func (l *lanes) fits(f *roce.Frame) bool {
	return l.p.cable.up && len(f.B) >= roce.LRHSize && len(f.B) <= maxIBPacket
}

// discard drops a packet that cannot be sent.
//
//go:noinline
func (l *lanes) discard(w *blocked) {
	l.p.C.TxDiscards++
	w.from.leave(l.p.e.Now())
	w.f.Release()
}

// await sees to the event of a lane on which a packet waits from now on.
func (l *lanes) await(v *lane, n uint8) {
	l.Stalls++
	if !v.waking {
		l.plan(v, n)
	}
}

// claim takes n credits of those that are here at start, when the line is free.
func (l *lanes) claim(v *lane, n int, start sim.Time) bool {
	if v.next <= start {
		v.collect(start, l.total)
	}
	if v.avail >= n {
		v.avail -= n
		return true
	}
	return l.p.peer.planner != nil && l.claimLate(v, n, start)
}

// claimLate is claim with what planned arrivals have returned that nobody has looked at.
func (l *lanes) claimLate(v *lane, n int, start sim.Time) bool {
	waking := v.waking
	v.waking = true // what comes back now wakes no lane that is awake
	l.p.peer.planner.Settle()
	v.waking = waking
	if v.next <= start {
		v.collect(start, l.total)
	}
	if v.avail < n {
		return false
	}
	v.avail -= n
	return true
}

// collect takes in the credits that are here at start.
func (v *lane) collect(start sim.Time, total int) {
	r, avail, next := &v.back, v.avail, sim.Never
	i := r.head
	for ; i != r.tail; i++ {
		c := r.at(i)
		if next = c.at; next > start {
			break
		}
		avail, next = min(avail+c.blocks, total), sim.Never
	}
	r.head, v.avail, v.next = i, avail, next
}

// transmit puts a packet on the line at start, when that is free. It leaves the room that it has in
// a switch.
func (l *lanes) transmit(f *roce.Frame, start sim.Time, m *measures, bad bool, n uint8, from *room) {
	p, bits := l.p, m.bits
	p.free = start + m.line
	p.C.sent(m)
	if roce.IsMulticastLID(roce.LRH(f.B).DLID()) {
		p.C.TxMulticast++
	}
	from.leave(start + bits)
	head := start + p.p.Propagation
	if len(p.taps) == 0 && p.script.Empty() {
		if bad || !p.peer.foresee(f, head+bits) {
			p.peer.expectOn(f, head, head+bits, marks(n).with(badFCS, bad)|paid)
		}
		return
	}
	l.inspect(f, start, bits, bad, n)
}

// inspect is transmit of a packet that somebody watches or disturbs.
func (l *lanes) inspect(f *roce.Frame, start, bits sim.Time, bad bool, n uint8) {
	p, size := l.p, len(f.B)
	p.peer.settle()
	head := start + p.p.Propagation
	f, extra, twice, spoiled := p.disturb(f, start, false)
	if f == nil { // it never arrives, and its room is free
		l.refund(n, blocks(size), head+bits)
		return
	}
	if cut := blocks(size) - blocks(len(f.B)); cut > 0 { // truncated by a rule
		l.refund(n, cut, head+bits)
	}
	head += extra
	m := marks(n).with(badFCS, bad || spoiled)
	if twice {
		p.peer.expectOn(f.Retain(), head, head+bits, m)
	}
	p.peer.expectOn(f, head, head+bits, m|paid)
	if p.held != nil {
		p.release(head + bits)
	}
}

// expectOn is expect of a packet on an InfiniBand lane.
func (p *Port) expectOn(f *roce.Frame, head, tail sim.Time, m marks) {
	p.place(flight{f, tail, p.cable.epoch, m}, p.due(head, tail))
}

// refund takes credits for packets that left the other end's buffer at a time.
func (l *lanes) refund(n uint8, blocks int, at sim.Time) {
	v := &l.vl[n]
	r := &v.back
	if r.full() {
		r.grow()
		l.refund(n, blocks, at)
		return
	}
	at += l.after
	if v.next == sim.Never {
		v.next = at
	} else {
		at = max(at, v.last) // what an engine takes out of order counts in order
	}
	v.last = at
	*r.at(r.tail) = credit{at, blocks}
	r.tail++
	if !v.waking && v.queue.Len() > 0 {
		l.plan(v, n)
	}
}

// plan sets the event of a lane that waits and has none: when the credits that its first packet
// lacks have come, as far as that is known.
func (l *lanes) plan(v *lane, n uint8) {
	need := blocks(len(v.queue.Front().f.B)) - v.avail
	r := &v.back
	for i := r.head; i != r.tail; i++ {
		c := r.at(i)
		if need -= c.blocks; need <= 0 {
			v.waking = true
			l.p.e.At(max(c.at, l.p.e.Now()), l.wake, uint64(v.epoch)<<8|uint64(n))
			return
		}
	}
	if l.p.peer.planner != nil && !v.awaits {
		l.awaitArrival(v, n)
	}
}

// awaitArrival sets an event in the place of the next planned arrival, if there is one.
func (l *lanes) awaitArrival(v *lane, n uint8) {
	if at := l.p.peer.planner.NextArrival(); at.Time() != sim.Never {
		v.awaits = true
		l.p.e.AtPlace(at, l.come, uint64(v.epoch)<<8|uint64(n))
	}
}

// onCome is a planned arrival: its credits may be what a lane waits for.
func (l *lanes) onCome(x uint64) {
	n := uint8(x)
	v := &l.vl[n]
	if uint32(x>>8) != v.epoch {
		return
	}
	v.awaits = false
	l.p.peer.settle()
	if v.queue.Len() > 0 && !v.waking && !v.awaits {
		l.plan(v, n)
	}
}

// onWake sends what waits on a lane and has its credits.
//
//go:noinline
func (l *lanes) onWake() sim.Handler {
	return func(x uint64) {
		n := uint8(x)
		v := &l.vl[n]
		if uint32(x>>8) != v.epoch {
			return
		}
		v.waking = false
		for l.resume(v, n) && v.queue.Len() > 0 {
		}
	}
}

// resume sends the packet that waits longest on a lane, if its credits are here.
func (l *lanes) resume(v *lane, n uint8) bool {
	if v.queue.Len() == 0 {
		return false
	}
	p, w := l.p, v.queue.Front()
	now, size := p.e.Now(), len(w.f.B)
	start := max(w.earliest, now, p.free)
	if !l.claim(v, blocks(size), start) {
		if !v.waking {
			l.plan(v, n) // not yet, unless by the room of a packet that a rule has dropped
		}
		return false
	}
	v.queue.Drop()
	l.StallFor += now - w.since
	m := p.measure(size)
	l.transmit(w.f, max(start, w.tail-m.bits), m, w.bad, n, &w.from)
	return true
}

// reset is what a link does that trains again: buffers are empty, and what waited is lost.
func (l *lanes) reset() {
	for i := range l.vl {
		v := &l.vl[i]
		queue := v.queue
		*v = lane{avail: l.total, next: sim.Never, epoch: v.epoch + 1}
		for queue.Len() > 0 {
			w := queue.Pop()
			l.p.C.TxDiscards++
			w.from.leave(l.p.e.Now())
			w.f.Release()
		}
	}
}
