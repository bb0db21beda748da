package workload

import (
	"math"
	"time"
)

// meter counts what one thread of a load delivers in the measured time. A completion says what has
// been delivered since the one before it, so a delivery is an interval of time: of one that lies
// across an edge of the measured time, the part inside counts. It ends when the device wrote the
// completion, where the queue knows that (verbs.TimedCQ). Else it ends at the poll, and what is
// counted differs from what was delivered by what waits in the queue at the edges, which polls that
// come back full do not empty.
type meter struct {
	// begin and stop are the measured time; stop 0: until all messages are delivered.
	begin, stop time.Duration
	// bins are parts of the measured time, of equal width from its beginning. If it has no end,
	// two become one whenever all are full.
	bins  [64]bin
	width time.Duration
	// cur is the bin that was added to last, which lies from lo to hi.
	cur    *bin
	lo, hi time.Duration
}

// bin is a part of the measured time.
type bin struct {
	delivered float64
	polled    bool // some delivery ends in it
}

// openWidth is the width of bins at first, in a load without end.
const openWidth = 100 * time.Nanosecond

// newMeter is a meter for a time that lasts for long; 0 leaves its end open.
func newMeter(begin, long time.Duration) *meter {
	m := &meter{begin: begin, width: openWidth}
	if n := time.Duration(len(m.bins)); long > 0 {
		m.stop, m.width = begin+long, (long+n-1)/n
	}
	m.seek(begin)
	return m
}

// add counts n messages that were delivered after from, up to to, and returns how many of them
// belong to the measured time.
func (m *meter) add(from, to time.Duration, n uint64) float64 {
	if m.lo <= from && from < to && to <= m.hi { // nearly always
		m.cur.delivered += float64(n)
		m.cur.polled = true
		return float64(n)
	}
	if from = min(from, to-1); to <= m.begin || m.stop > 0 && from >= m.stop {
		return 0 // at one instant: in the nanosecond before it
	}
	each := float64(n) / float64(to-from)
	at, end := max(from, m.begin), to
	if m.stop > 0 {
		end = min(end, m.stop)
	}
	counted := 0.0
	for at < end {
		m.seek(at)
		upto := min(end, m.hi)
		m.cur.delivered += each * float64(upto-at)
		counted += each * float64(upto-at)
		m.cur.polled = m.cur.polled || upto == to
		at = upto
	}
	return counted
}

// seek finds the bin of a time within the measured time.
func (m *meter) seek(at time.Duration) {
	i := int((at - m.begin) / m.width)
	for i >= len(m.bins) {
		half := len(m.bins) / 2
		for j := range half {
			a, b := m.bins[2*j], m.bins[2*j+1]
			m.bins[j] = bin{a.delivered + b.delivered, a.polled || b.polled}
		}
		clear(m.bins[half:])
		m.width *= 2
		i = int((at - m.begin) / m.width)
	}
	m.cur, m.lo = &m.bins[i], m.begin+time.Duration(i)*m.width
	m.hi = m.lo + m.width
	if m.stop > 0 {
		m.hi = min(m.hi, m.stop)
	}
}

// quarters are the messages delivered in each quarter of the time from begin to end, and
// whether some delivery ended in it.
func (m *meter) quarters(end time.Duration) (q [parts]float64, polled [parts]bool) {
	span := float64(end - m.begin)
	for i := range m.bins {
		from := float64(i) * float64(m.width) * parts / span // in quarters
		to := min(float64(i+1)*float64(m.width)*parts/span, parts)
		for k := range q {
			if in := min(to, float64(k+1)) - max(from, float64(k)); in > 0 {
				q[k] += m.bins[i].delivered * in / (to - from)
				polled[k] = polled[k] || m.bins[i].polled
			}
		}
	}
	return q, polled
}

// student is the 97.5 % point of Student's t distribution with 3 degrees of freedom.
const student = 3.182

// batch is a part of the measured time.
type batch struct {
	delivered float64
	polled    bool // some thread saw a delivery in it
}

// batchesOf are the four quarters of the time until end, by the completions that threads saw.
func batchesOf(meters []*meter, end time.Duration) (all [parts]batch) {
	for _, m := range meters {
		q, p := m.quarters(end)
		for k := range all {
			all[k].delivered += q[k]
			all[k].polled = all[k].polled || p[k]
		}
	}
	return all
}

// confidence is half the width of the 95 % confidence interval of the rate, as a share
// of the rate, by the method of batch means (Law, Simulation Modeling and Analysis, chapter 9)
// with the four quarters of the time as batches. It is infinite if there is a quarter in which
// no thread saw a delivery: such a quarter says nothing.
func confidence(all [parts]batch) float64 {
	mean, polled := 0.0, true
	for _, b := range all {
		mean += b.delivered / parts
		polled = polled && b.polled
	}
	if !polled || mean == 0 {
		return math.Inf(1)
	}
	var delivered [parts]float64
	for k, b := range all {
		delivered[k] = b.delivered
	}
	return HalfOfQuarters(delivered) / mean
}

// Quarters is the number of equal parts of a load's measured time, or of its messages, from which
// the confidence interval of a figure is computed.
const Quarters = parts

// HalfOfQuarters is half the width of the 95 % confidence interval of the mean of the figures of
// four quarters.
func HalfOfQuarters(each [Quarters]float64) float64 {
	mean, squares := 0.0, 0.0
	for _, v := range each {
		mean += v / parts
	}
	for _, v := range each {
		squares += (v - mean) * (v - mean)
	}
	return student * math.Sqrt(squares/(parts-1)/parts)
}
