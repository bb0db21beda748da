package sim

import (
	"math/bits"
	"slices"
)

// queue holds the pending events in three tiers by distance, and gives them out by
// (t, seq) whichever tier they were in:
//
//   - run and late: what is due in the current tick. run is the bucket that was
//     opened, sorted: keys only, the events stay in their nodes; late is a heap of
//     what was pushed since.
//   - the wheel: one list for each of the next wheelSize ticks, unsorted.
//   - far: a heap of everything beyond.
//
// A push into the wheel and the opening of a bucket with few events are O(1); when
// all events crowd into one tick, the heap bounds the cost.
type queue struct {
	size int
	tick uint64 // of the bucket that was opened last
	run  []due  // the first is at the end
	late heap
	far  heap

	head  [wheelSize]int32 // node + 1
	words [wheelSize / 64]uint64
	sum   uint64 // which of the 32 words have bits
	nodes []node
	free  int32 // node + 1
}

// node is an event in a bucket's list.
type node struct {
	event
	next int32 // node + 1
}

// due is the key of an event in run. It holds no pointer, so that sorting moves plain
// words.
type due struct {
	t    Time
	seq  uint64
	node int32 // + 1
}

func (a *due) before(t Time, seq uint64) bool { return a.t < t || a.t == t && a.seq < seq }

const (
	tickShift = 12 // a tick is 4.1 ns, the wheel 8.4 us
	wheelSize = 2048
	wheelMask = wheelSize - 1
)

func tickOf(t Time) uint64 { return uint64(t) >> tickShift }

func (q *queue) n() int { return q.size }

func (q *queue) push(t Time, seq uint64, h Handler, arg uint64) {
	q.size++
	tick := tickOf(t)
	if tick-q.tick-1 < wheelSize-1 { // one of the wheel's ticks: the rule
		q.place(t, seq, h, arg)
		return
	}
	x := event{t, seq, h, arg}
	if tick <= q.tick {
		q.late.push(x)
	} else {
		q.far.push(x)
	}
}

// place puts an event into the bucket of its tick.
func (q *queue) place(t Time, seq uint64, h Handler, arg uint64) {
	if q.free == 0 {
		q.grow()
	}
	i := q.free
	nd := &q.nodes[i-1]
	q.free = nd.next
	b := tickOf(t) & wheelMask
	nd.t, nd.seq, nd.h, nd.arg, nd.next = t, seq, h, arg, q.head[b]
	q.head[b] = i
	q.words[b/64] |= 1 << (b % 64)
	q.sum |= 1 << (b / 64)
}

// grow makes free nodes.
func (q *queue) grow() {
	n := len(q.nodes)
	q.nodes = append(q.nodes, make([]node, max(64, n))...)
	for i := len(q.nodes) - 1; i >= n; i-- {
		q.nodes[i].next, q.free = q.free, int32(i+1)
	}
}

// nextTick is the first tick after q.tick whose bucket is not empty. The wheel is
// not empty.
func (q *queue) nextTick() uint64 {
	from := (q.tick + 1) & wheelMask
	w := from / 64
	if m := q.words[w] >> (from % 64); m != 0 {
		return q.tick + 1 + uint64(bits.TrailingZeros64(m))
	}
	// The words after w, then around to w itself: sum holds 32 bits, so it fits twice.
	const words = wheelSize / 64
	rot := (q.sum | q.sum<<words) >> (w + 1)
	d := uint64(bits.TrailingZeros64(rot)) + 1
	w = (w + d) % words
	b := w*64 + uint64(bits.TrailingZeros64(q.words[w]))
	return q.tick + 1 + (b-from)&wheelMask
}

// min is the key of the next event; the queue is not empty.
func (q *queue) min() (t Time, seq uint64) {
	if len(q.run) == 0 {
		if len(q.late.ev) > 0 {
			return q.late.ev[0].t, q.late.ev[0].seq
		}
		if q.sum == 0 {
			return q.far.ev[0].t, q.far.ev[0].seq
		}
		q.open(q.nextTick())
	}
	x := &q.run[len(q.run)-1]
	if len(q.late.ev) > 0 && !x.before(q.late.ev[0].t, q.late.ev[0].seq) {
		return q.late.ev[0].t, q.late.ev[0].seq
	}
	return x.t, x.seq
}

// pop takes the next event out, if there is one and it is not later than until.
func (q *queue) pop(until Time) (t Time, h Handler, arg uint64, ok bool) {
	if len(q.run) == 0 && len(q.late.ev) == 0 {
		switch {
		case q.sum != 0:
			q.open(q.nextTick())
		case len(q.far.ev) > 0 && q.far.ev[0].t <= until:
			q.tick = tickOf(q.far.ev[0].t)
			q.refill()
		default:
			return 0, nil, 0, false
		}
	}
	if last := len(q.run) - 1; last >= 0 {
		x := &q.run[last]
		if len(q.late.ev) == 0 || x.before(q.late.ev[0].t, q.late.ev[0].seq) {
			if x.t > until {
				return 0, nil, 0, false
			}
			q.size--
			q.run = q.run[:last]
			nd := &q.nodes[x.node-1]
			nd.next, q.free = q.free, x.node
			return x.t, nd.h, nd.arg, true
		}
	}
	if q.late.ev[0].t > until {
		return 0, nil, 0, false
	}
	q.size--
	x := q.late.pop()
	return x.t, x.h, x.arg, true
}

// open makes a bucket the current one: the keys of its events, sorted, become run.
func (q *queue) open(tick uint64) {
	q.tick = tick
	b := tick & wheelMask
	i := q.head[b]
	q.head[b] = 0
	if q.words[b/64] &^= 1 << (b % 64); q.words[b/64] == 0 {
		q.sum &^= 1 << (b / 64)
	}
	for i != 0 {
		nd := &q.nodes[i-1]
		q.run = append(q.run, due{nd.t, nd.seq, i})
		i = nd.next
	}
	if len(q.run) > 1 {
		sortDown(q.run)
	}
	if len(q.far.ev) > 0 && tickOf(q.far.ev[0].t)-tick < wheelSize {
		q.refill()
	}
}

// refill brings what is no longer far into the wheel.
func (q *queue) refill() {
	for len(q.far.ev) > 0 {
		tick := tickOf(q.far.ev[0].t)
		if tick > q.tick && tick-q.tick >= wheelSize {
			return
		}
		x := q.far.pop()
		if tick <= q.tick {
			q.late.push(x)
		} else {
			q.place(x.t, x.seq, x.h, x.arg)
		}
	}
}

// sortDown sorts by descending (t, seq): insertion while there are few.
func sortDown(ev []due) {
	if len(ev) > 32 {
		slices.SortFunc(ev, func(a, b due) int {
			if a.before(b.t, b.seq) {
				return 1
			}
			return -1
		})
		return
	}
	for i := 1; i < len(ev); i++ {
		x := ev[i]
		k := i
		for k > 0 && ev[k-1].before(x.t, x.seq) {
			ev[k] = ev[k-1]
			k--
		}
		ev[k] = x
	}
}
