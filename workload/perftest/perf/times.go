package perf

import (
	"math"
	"time"
)

// times are the stamps of one measurement.
type times struct {
	// posted are the times before each post, where a peak is searched or latencies are measured;
	// else the first alone.
	posted []time.Duration
	// done are completions: how many messages are complete, and when that was seen.
	done []done
	// first and last are the ends of the measured time where no peak is searched.
	first, last time.Duration
}

type done struct {
	n  uint64
	at time.Duration
}

// span is the measured time.
func (m *times) span(peak bool) time.Duration {
	if !peak {
		return m.last - m.first
	}
	if len(m.posted) == 0 || len(m.done) == 0 {
		return 0
	}
	return m.done[len(m.done)-1].at - m.posted[0]
}

// point is a post or a completion as a point of a plane: messages to the right, time upwards.
type point struct{ x, y float64 }

func slope(a, b point) float64 { return (b.y - a.y) / (b.x - a.x) }

// bestWindow is the shortest mean time of a message, in nanoseconds, over all windows from the post
// of a message, of which each step-th counts, to a completion (print_report_bw). Perftest tries all
// pairs; here posts that cannot begin the best window leave an upper convex hull, on which the best
// is found by bisection.
func (m *times) bestWindow(step int) float64 {
	best := math.Inf(1)
	var hull []point
	next := 0
	for _, d := range m.done {
		end := point{float64(d.n), float64(d.at)}
		for ; next < len(m.posted) && uint64(next) < d.n; next += step {
			p := point{float64(next), float64(m.posted[next])}
			for len(hull) > 1 && slope(hull[len(hull)-2], hull[len(hull)-1]) <= slope(hull[len(hull)-1], p) {
				hull = hull[:len(hull)-1]
			}
			hull = append(hull, p)
		}
		lo, hi := 0, len(hull)-1
		for lo < hi { // slopes to the end fall along the hull to the point of contact, and rise behind it
			mid := (lo + hi) / 2
			if slope(hull[mid], end) > slope(hull[mid+1], end) {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if len(hull) > 0 {
			best = min(best, slope(hull[lo], end))
		}
	}
	return best
}

// phase is where a timed test is (catch_alarm).
type phase int

const (
	starting phase = iota
	sampling
	stopping
	over
)

// clock is the time of a timed test: a margin, the time that counts, and a margin.
type clock struct {
	on             bool
	began          time.Duration
	margin, sample time.Duration
}

func (e *End) newClock(began time.Duration) clock {
	if !e.o.Timed {
		return clock{}
	}
	return clock{true, began, time.Duration(e.o.Margin) * time.Second, e.o.sample()}
}

func (c *clock) phase(now time.Duration) phase {
	switch d := now - c.began; {
	case !c.on || d < c.margin:
		return starting
	case d < c.margin+c.sample:
		return sampling
	case d < 2*c.margin+c.sample:
		return stopping
	}
	return over
}

// left is how long it takes until the phase changes.
func (c *clock) left(now time.Duration) time.Duration {
	d := now - c.began
	for _, edge := range []time.Duration{c.margin, c.margin + c.sample, 2*c.margin + c.sample} {
		if d < edge {
			return edge - d
		}
	}
	return time.Nanosecond
}

// finish sets the ends of the measured time, which are those of the clock.
func (c *clock) finish(m *times) {
	m.first = c.began + c.margin
	m.last = m.first + c.sample
}

// batch is how many completions a poll takes: a fixed number, or one that follows what polls find
// (update_dyn_poll).
type batch struct {
	size    int
	dynamic bool
	until   uint64 // completions after which it stays
	equal   int
}

// Bounds of a batch that adapts itself, and what changes it.
const (
	batchMost      = 1024
	batchStable    = 10
	batchAdaptions = 16384
)

func (e *End) newBatch() batch {
	o := e.o
	if !o.Dynamic {
		n := o.CQEPoll
		if n == pollBatch && o.QPs > 2048 && e.size > modLimit {
			n = 64
		}
		return batch{size: n}
	}
	until := uint64(batchAdaptions)
	if !o.Timed {
		until = min(o.Iters/4, until)
	}
	return batch{size: batchMost, dynamic: true, until: until}
}

// found adapts the batch to what a poll has found, with so many completions so far.
func (b *batch) found(n int, total uint64) {
	if !b.dynamic || n == 0 {
		return
	}
	if total >= b.until {
		b.dynamic = false
		return
	}
	old := b.size
	switch {
	case n >= b.size:
		b.size = min((b.size+batchMost+1)/2, batchMost)
	case n*100 < b.size*85:
		b.size = max((b.size+n)/2, pollBatch)
	}
	if b.equal++; b.size != old {
		b.equal = 0
	}
	b.dynamic = b.equal < batchStable
}
