package sim

import (
	"fmt"
	"math/bits"
)

// queue holds the pending events and returns them in the order of (t, seq):
//
//   - the wheel: one list for each of the next wheelSize ticks, in order. Few events
//     share a tick, so the place of a new one is found by a few steps from the front.
//   - cur: the list of the events that are due in the current tick or before.
//   - rest: a heap of the events that lie beyond the wheel, or whose place in their list
//     was too far from the front. This bounds the cost when all events fall into one tick.
//
// The next event is the first of cur or of rest.
type queue struct {
	now   Time // nothing is pushed that is due before it
	size  int
	tick  uint64 // of the bucket that was opened last
	cur   uint32 // index of the first node; 0: none
	free  uint32 // as cur, the unused nodes
	nodes []node // the first stands behind an empty list: it is at Never
	rest  heap
	// restAt is the time of the first of rest, Never if there is none.
	restAt Time
	taken  event // out of rest

	// nonEmpty has a bit for each bucket of the wheel, nonEmptyWords one for each of its words.
	nonEmptyWords uint64
	nonEmpty      [wheelSize / 64]uint64
	// head is the first event of each bucket.
	head [wheelSize]uint32
}

// node is an event in a list.
type node struct {
	event
	next uint32 // index; 0: none
}

const (
	tickShift = 12 // a tick is 4 ns, the wheel 17 us
	wheelSize = 4096
	wheelMask = wheelSize - 1
	maxSteps  = 24 // at most this many events are compared with a new one
)

func newQueue() queue {
	return queue{nodes: []node{{event: event{t: Never}}}, restAt: Never}
}

func tickOf(t Time) uint64 { return uint64(t) >> tickShift }

func (q *queue) n() int { return q.size }

// push adds an event. One at Never does not happen, and is not kept. Nothing of push is needed
// after a call of another function, so that it keeps its values in registers.
func (q *queue) push(t Time, seq uint64, h Handler, arg uint64) {
	k := q.free
	if t < q.now || k == 0 {
		q.pushSlowly(t, seq, h, arg)
		return
	}
	tick := tickOf(t)
	list := &q.cur
	if tick > q.tick {
		if tick-q.tick >= wheelSize {
			q.pushRest(t, seq, h, arg)
			return
		}
		b := tick & wheelMask
		if list = &q.head[b]; *list == 0 {
			q.nonEmpty[b/64] |= 1 << (b % 64)
			q.nonEmptyWords |= 1 << (b / 64)
		}
	}
	// The place behind those that come before it is found by their times, nearly always.
	nodes, at := q.nodes, list
	for steps := 0; ; steps++ {
		i := *at
		x := &nodes[i] // the first node is at Never
		if t < x.t || t == x.t && seq < x.seq || i == 0 {
			break
		}
		if steps == maxSteps {
			q.pushRest(t, seq, h, arg)
			return
		}
		at = &x.next
	}
	nd := &nodes[k]
	next := *at
	*at, q.free = k, nd.next
	nd.t, nd.seq, nd.h, nd.arg, nd.next = t, seq, h, arg, next
	q.size++
}

// pushSlowly is push when no node is free.
//
//go:noinline
func (q *queue) pushSlowly(t Time, seq uint64, h Handler, arg uint64) {
	if t < q.now {
		q.past(t)
	}
	q.grow()
	q.push(t, seq, h, arg)
}

//go:noinline
func (q *queue) past(t Time) { panic(fmt.Sprintf("sim: at %v: event at %v is in the past", q.now, t)) }

// pushRest is push of an event that no list takes.
//
//go:noinline
func (q *queue) pushRest(t Time, seq uint64, h Handler, arg uint64) {
	if t == Never {
		return
	}
	q.size++
	q.rest.push(event{t, seq, h, arg})
	q.restAt = q.rest.ev[0].t
}

// grow makes free nodes.
func (q *queue) grow() {
	n := len(q.nodes)
	q.nodes = append(q.nodes, make([]node, max(64, n))...)
	for i := len(q.nodes) - 1; i >= n; i-- {
		q.nodes[i].next, q.free = q.free, uint32(i)
	}
}

// open makes the next bucket that is not empty the current one, unless an event of rest
// comes before all of it. cur is empty; it stays so when the next event is one of rest,
// and the tick stays where it is: what is pushed meanwhile may come first.
func (q *queue) open() {
	from := q.tick + 1
	tick := from
	if m := q.nonEmpty[from&wheelMask/64] >> (from % 64); m != 0 {
		tick += uint64(bits.TrailingZeros64(m))
	} else if tick = q.furtherTick(from); tick == 0 {
		return
	}
	if tickOf(q.restAt) < tick {
		return
	}
	q.tick = tick
	b := tick & wheelMask
	q.cur, q.head[b] = q.head[b], 0
	if q.nonEmpty[b/64] &^= 1 << (b % 64); q.nonEmpty[b/64] == 0 {
		q.nonEmptyWords &^= 1 << (b / 64)
	}
}

// furtherTick is the first tick from a tick on whose bucket is not empty, where those of the rest
// of its word are: it looks at the words after it, then around to the word itself.
// nonEmptyWords has a bit for each. 0: all are empty.
func (q *queue) furtherTick(from uint64) uint64 {
	if q.nonEmptyWords == 0 {
		return 0
	}
	w := from & wheelMask / 64
	d := uint64(bits.TrailingZeros64(bits.RotateLeft64(q.nonEmptyWords, -int(w+1)))) + 1
	w = (w + d) % 64
	b := w*64 + uint64(bits.TrailingZeros64(q.nonEmpty[w]))
	return from + (b-from)&wheelMask
}

// min is the key of the next event; the queue is not empty.
func (q *queue) min() (t Time, seq uint64) {
	if q.cur == 0 {
		q.open()
	}
	nd := &q.nodes[q.cur]
	if nd.t < q.restAt || nd.t == q.restAt && nd.before(&q.rest.ev[0]) {
		return nd.t, nd.seq
	}
	return q.restAt, q.rest.ev[0].seq
}

// take takes the next event out, and returns nil if there is none that is not later than until.
// What it returns is good until the next push or take.
func (q *queue) take(until Time) *event {
	if q.cur == 0 {
		q.open()
	}
	i := q.cur
	nd := &q.nodes[i]
	if nd.t >= q.restAt && (q.restAt == Never || !nd.before(&q.rest.ev[0])) {
		return q.takeRest(until)
	}
	if nd.t > until {
		return nil
	}
	q.size--
	q.cur, nd.next, q.free = nd.next, q.free, i
	return &nd.event
}

// takeRest is take where the next event is the first of rest, or there is none.
//
//go:noinline
func (q *queue) takeRest(until Time) *event {
	if q.restAt > until || q.restAt == Never {
		return nil
	}
	q.size--
	q.taken = q.rest.pop()
	if q.restAt = Never; len(q.rest.ev) > 0 {
		q.restAt = q.rest.ev[0].t
	}
	if q.cur == 0 { // no bucket is left before it
		q.tick = max(q.tick, tickOf(q.taken.t))
	}
	return &q.taken
}
