package os

import "github.com/rdmasim/rdmasim/sim"

// fair is what the fair class (EEVDF of Linux 6.6 and later) knows of a thread. Virtual time is in
// picoseconds of nice 0.
type fair struct {
	v, deadline, lag sim.Time
	weight           int64
}

// unitWeight is the weight of nice 0.
const unitWeight = 1024

// weights of nice -20 to 19 (sched_prio_to_weight of kernel/sched/core.c).
var weights = [...]int64{88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15}

func niceWeight(n int) int64 { return weights[max(-20, min(n, 19))+20] }

// update charges the current thread for its time since the last update. One that has used its slice
// up is to give way.
func (c *CPU) update() {
	now := c.m.eng.Now()
	if c.cur != nil {
		f := &c.cur.fair
		if f.v += (now - c.vtime) * unitWeight / sim.Time(f.weight); f.v >= f.deadline {
			f.deadline = f.v + c.m.par.Slice*unitWeight/sim.Time(f.weight)
			c.resched = c.resched || len(c.rq) > 0
		}
	}
	c.vtime = now
}

// average is the mean of the virtual times of all that can run, by weight.
func (c *CPU) average() sim.Time {
	var base, sum, weight int64
	seen := false
	add := func(f *fair) {
		if !seen {
			base, seen = int64(f.v), true
		}
		sum += (int64(f.v) - base) / unitWeight * f.weight
		weight += f.weight
	}
	if c.cur != nil {
		add(&c.cur.fair)
	}
	for _, t := range c.rq {
		add(&t.fair)
	}
	if !seen {
		return 0
	}
	return sim.Time(base + sum/weight*unitWeight)
}

// sleep keeps the lag of a thread that goes to sleep.
func (f *fair) sleep(average sim.Time) { f.lag = average - f.v }

// place gives a thread that wakes its virtual time.
func (f *fair) place(average, slice sim.Time) {
	f.v = average - f.lag
	f.deadline = f.v + slice*unitWeight/sim.Time(f.weight)
}

// next is which thread of the queue is to run: of those that are not ahead of the average, the one
// whose deadline comes first.
func (c *CPU) next() int {
	avg, best := c.average(), -1
	for i, t := range c.rq {
		if f := &t.fair; f.v <= avg && (best < 0 || f.deadline < c.rq[best].fair.deadline) {
			best = i
		}
	}
	return max(best, 0)
}

// preempts says whether a thread that has come is to run instead of the current one: only if that
// has had its share (RUN_TO_PARITY).
func (c *CPU) preempts(t *Thread) bool {
	f := &c.cur.fair
	return f.v > c.average() && t.fair.v <= c.average()
}
