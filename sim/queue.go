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
	nodes []node // the first is not used
	rest  heap

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

func tickOf(t Time) uint64 { return uint64(t) >> tickShift }

func (q *queue) n() int { return q.size }

// push adds an event. One at Never does not happen, and is not kept.
func (q *queue) push(t Time, seq uint64, h Handler, arg uint64) {
	if t < q.now || t == Never {
		q.refuse(t)
		return
	}
	q.size++
	tick := tickOf(t)
	list := &q.cur
	if tick > q.tick {
		if tick-q.tick >= wheelSize {
			q.pushRest(t, seq, h, arg)
			return
		}
		b := tick & wheelMask
		list = &q.head[b]
		if *list == 0 {
			q.nonEmpty[b/64] |= 1 << (b % 64)
			q.nonEmptyWords |= 1 << (b / 64)
		}
	}
	k := q.free
	if k == 0 {
		k = q.grow()
	}
	prev, next := uint32(0), *list
	for steps := 0; next != 0; steps++ {
		nd := &q.nodes[next]
		if t < nd.t || t == nd.t && seq < nd.seq {
			break
		}
		if steps == maxSteps {
			q.pushRest(t, seq, h, arg)
			return
		}
		prev, next = next, nd.next
	}
	nd := &q.nodes[k]
	q.free = nd.next
	nd.t, nd.seq, nd.h, nd.arg, nd.next = t, seq, h, arg, next
	if prev == 0 {
		*list = k
	} else {
		q.nodes[prev].next = k
	}
}

//go:noinline
func (q *queue) refuse(t Time) {
	if t < q.now {
		q.past(t)
	}
}

func (q *queue) past(t Time) { panic(fmt.Sprintf("sim: at %v: event at %v is in the past", q.now, t)) }

// pushRest is not inlined, so that push keeps its values in registers.
//
//go:noinline
func (q *queue) pushRest(t Time, seq uint64, h Handler, arg uint64) {
	q.rest.push(event{t, seq, h, arg})
}

// popRest takes out the first of rest.
//
//go:noinline
func (q *queue) popRest() (t Time, seq uint64, h Handler, arg uint64, ok bool) {
	q.size--
	x := q.rest.pop()
	if q.cur == 0 { // no bucket is left before it
		q.tick = max(q.tick, tickOf(x.t))
	}
	return x.t, x.seq, x.h, x.arg, true
}

// grow makes free nodes.
//
//go:noinline
func (q *queue) grow() uint32 {
	n := max(1, len(q.nodes))
	q.nodes = append(q.nodes, make([]node, max(64, n))...)
	for i := len(q.nodes) - 1; i >= n; i-- {
		q.nodes[i].next, q.free = q.free, uint32(i)
	}
	return q.free
}

// open makes the next bucket that is not empty the current one, unless an event of rest
// comes before all of it. cur is empty; it stays so when the next event is one of rest,
// and the tick stays where it is: what is pushed meanwhile may come first.
func (q *queue) open() {
	tick := ^uint64(0)
	if q.nonEmptyWords != 0 {
		tick = q.nextTick()
	}
	if len(q.rest.ev) > 0 && tickOf(q.rest.ev[0].t) < tick {
		return
	}
	q.tick = tick
	b := tick & wheelMask
	q.cur = q.head[b]
	q.head[b] = 0
	if q.nonEmpty[b/64] &^= 1 << (b % 64); q.nonEmpty[b/64] == 0 {
		q.nonEmptyWords &^= 1 << (b / 64)
	}
}

// nextTick is the first tick after q.tick whose bucket is not empty. The wheel is
// not empty.
func (q *queue) nextTick() uint64 {
	from := (q.tick + 1) & wheelMask
	w := from / 64
	if m := q.nonEmpty[w] >> (from % 64); m != 0 {
		return q.tick + 1 + uint64(bits.TrailingZeros64(m))
	}
	// The words after w, then around to w itself: nonEmptyWords has a bit for each.
	d := uint64(bits.TrailingZeros64(bits.RotateLeft64(q.nonEmptyWords, -int(w+1)))) + 1
	w = (w + d) % 64
	b := w*64 + uint64(bits.TrailingZeros64(q.nonEmpty[w]))
	return q.tick + 1 + (b-from)&wheelMask
}

// min is the key of the next event; the queue is not empty.
func (q *queue) min() (t Time, seq uint64) {
	if q.cur == 0 {
		q.open()
	}
	if q.cur == 0 {
		return q.rest.ev[0].t, q.rest.ev[0].seq
	}
	nd := &q.nodes[q.cur]
	if len(q.rest.ev) > 0 && q.rest.ev[0].before(&nd.event) {
		return q.rest.ev[0].t, q.rest.ev[0].seq
	}
	return nd.t, nd.seq
}

// pop takes the next event out, if there is one and it is not later than until.
func (q *queue) pop(until Time) (t Time, seq uint64, h Handler, arg uint64, ok bool) {
	if q.cur == 0 {
		if q.size == 0 {
			return 0, 0, nil, 0, false
		}
		q.open()
	}
	if i := q.cur; i != 0 {
		nd := &q.nodes[i]
		if len(q.rest.ev) == 0 || nd.before(&q.rest.ev[0]) {
			if nd.t > until {
				return 0, 0, nil, 0, false
			}
			q.size--
			q.cur, nd.next, q.free = nd.next, q.free, i
			return nd.t, nd.seq, nd.h, nd.arg, true
		}
	}
	if q.rest.ev[0].t > until {
		return 0, 0, nil, 0, false
	}
	return q.popRest()
}
