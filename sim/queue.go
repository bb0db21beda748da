package sim

import (
	"fmt"
	"math"
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
	now Time  // nothing is pushed that is due before it
	cur *node // the first, or end
	// bound is min(restAt, until): an event of cur before it is the next one.
	bound  Time
	free   *node  // unused nodes
	tick   uint64 // of the bucket that was opened last
	end    *node  // stands behind each list, at Never
	until  Time   // no later event is taken
	restAt Time   // of the first of rest, Never if there is none
	rest   heap
	made   int  // nodes
	taken  node // out of rest

	// nonEmpty has a bit for each bucket of the wheel, nonEmptyWords one for each of its words.
	nonEmptyWords uint64
	nonEmpty      [wheelSize / 64]uint64
	// head is the first event of each bucket, or end.
	head [wheelSize]*node
}

// node is an event in a list.
type node struct {
	event
	next *node
}

const (
	tickShift = 13 // a tick is 8 ns, the wheel 34 us
	wheelSize = 4096
	wheelMask = wheelSize - 1
	maxSteps  = 24 // at most this many events are compared with a new one
)

// init makes the queue empty.
func (q *queue) init() {
	q.end = &node{event: event{t: Never, seq: math.MaxUint64}}
	q.cur, q.restAt = q.end, Never
	for b := range q.head {
		q.head[b] = q.end
	}
	q.limitTo(Never)
}

// limitTo has take give out no event that is later than until.
func (q *queue) limitTo(until Time) { q.until, q.bound = until, min(q.restAt, until) }

func tickOf(t Time) uint64 { return uint64(t) >> tickShift }

// empty says whether no event is pending.
func (q *queue) empty() bool { return q.cur == q.end && q.nonEmptyWords == 0 && q.restAt == Never }

// n counts the events.
func (q *queue) n() int {
	n := len(q.rest.ev)
	for x := q.cur; x != q.end; x = x.next {
		n++
	}
	for _, x := range q.head {
		for ; x != q.end; x = x.next {
			n++
		}
	}
	return n
}

// push adds an event. One at Never does not happen, and is not kept. Nothing of push is needed
// after a call of another function, so that it keeps its values in registers.
func (q *queue) push(t Time, seq uint64, h Handler, arg uint64) {
	nd := q.free
	if t < q.now || nd == nil {
		q.pushSlowly(t, seq, h, arg)
		return
	}
	tick := tickOf(t)
	at := &q.cur
	if tick > q.tick {
		if tick-q.tick >= wheelSize {
			q.pushRest(t, seq, h, arg)
			return
		}
		b := tick & wheelMask
		if at = &q.head[b]; *at == q.end {
			q.nonEmpty[b/64] |= 1 << (b % 64)
			q.nonEmptyWords |= 1 << (b / 64)
		}
	}
	// The place behind those that come before it is found by their times, nearly always.
	next := *at
	for steps := 0; t > next.t || t == next.t && seq > next.seq; steps++ {
		if steps == maxSteps {
			q.pushRest(t, seq, h, arg)
			return
		}
		at, next = &next.next, next.next
	}
	q.free = nd.next
	nd.t, nd.seq, nd.h, nd.arg, nd.next = t, seq, h, arg, next
	*at = nd
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
	q.rest.push(event{t, seq, h, arg})
	q.restAt = q.rest.ev[0].t
	q.limitTo(q.until)
}

// grow makes free nodes.
func (q *queue) grow() {
	nodes := make([]node, max(64, q.made))
	q.made += len(nodes)
	for i := range nodes {
		nodes[i].next, q.free = q.free, &nodes[i]
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
	q.cur, q.head[b] = q.head[b], q.end
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
	if q.cur == q.end {
		q.open()
	}
	if x := q.cur; x.t < q.restAt || x.t == q.restAt && x.before(&q.rest.ev[0]) {
		return x.t, x.seq
	}
	return q.restAt, q.rest.ev[0].seq
}

// take takes the next event out, and returns nil if there is none that is not later than until.
// Engine.Run has it written out. What it returns is good until the next push or take.
func (q *queue) take() *node {
	if x := q.cur; x.t < q.bound {
		q.drop(x)
		return x
	}
	return q.takeSlowly()
}

// drop takes x, the first of cur, out.
func (q *queue) drop(x *node) { q.cur, x.next, q.free = x.next, q.free, x }

// takeSlowly is take where cur is empty, or its first event may not be the next one.
//
//go:noinline
func (q *queue) takeSlowly() *node {
	if q.cur == q.end {
		q.open()
	}
	x := q.cur
	if x.t >= q.restAt && (q.restAt == Never || !x.before(&q.rest.ev[0])) {
		return q.takeRest()
	}
	if x.t > q.until {
		return nil
	}
	q.drop(x)
	return x
}

// takeRest is take where the next event is the first of rest, or there is none.
func (q *queue) takeRest() *node {
	if q.restAt > q.until || q.restAt == Never {
		return nil
	}
	q.taken.event = q.rest.pop()
	if q.restAt = Never; len(q.rest.ev) > 0 {
		q.restAt = q.rest.ev[0].t
	}
	q.limitTo(q.until)
	if q.cur == q.end { // no bucket is left before it
		q.tick = max(q.tick, tickOf(q.taken.t))
	}
	return &q.taken
}
