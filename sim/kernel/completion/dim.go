package completion

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/os"
)

// dim is RDMA DIM (lib/dim/rdma_dim.c): it tries moderation profiles, and keeps what brings more
// completions.
type dim struct {
	q         *CQ
	profile   int
	step      int // direction: 1 or -1
	events    int
	comps     int
	start     sim.Time
	prevRate  int64 // completions per ms of the last sample
	prevRatio int64 // completions for 100 events
	have      bool
	changing  bool
	work      *os.Work
}

// profiles of rdma_dim: period in microseconds, and completions.
var profiles = [...][2]int64{{1, 1}, {1, 4}, {2, 4}, {2, 8}, {4, 8}, {16, 8}, {16, 16}, {32, 16}, {32, 32}}

// sampleEvents is how many events make a sample.
const sampleEvents = 64

func newDIM(q *CQ) *dim {
	d := &dim{q: q, step: 1}
	d.work = &os.Work{Run: d.modify}
	q.set(0)
	return d
}

// set has a profile take effect.
func (q *CQ) set(profile int) {
	q.period, q.count = sim.Time(profiles[profile][0])*sim.Microsecond, uint64(profiles[profile][1])
}

// update takes a call of the poll handler with its completions into account. A nil dim does
// nothing.
func (d *dim) update(c *os.Context, completions int) {
	if d == nil || d.changing {
		return
	}
	if d.events == 0 {
		d.start = c.Now()
	}
	d.events++
	d.comps += completions
	if d.events < sampleEvents {
		return
	}
	us := int64((c.Now() - d.start) / sim.Microsecond)
	if us == 0 {
		return
	}
	next := d.decide(int64(d.comps)*1000/us, max(int64(d.events)*1000/us, 1))
	d.events, d.comps = 0, 0
	if next != d.profile {
		d.profile, d.changing = next, true
		c.Queue(d.q.a.unbound, d.work)
	}
}

// decide is the profile after a sample of so many completions and events per millisecond.
func (d *dim) decide(rate, events int64) int {
	ratio := 100 * rate / events
	better := 0
	switch {
	case !d.have:
	case differ(rate, d.prevRate):
		better = sign(rate - d.prevRate)
	case differ(ratio, d.prevRatio):
		better = sign(ratio - d.prevRatio)
	}
	d.have, d.prevRate, d.prevRatio = true, rate, ratio
	switch better {
	case 0:
		if ratio <= 50*int64(d.profile) {
			return 0
		}
		return d.profile
	case -1:
		d.step = -d.step
	}
	next := d.profile + d.step
	if next < 0 || next >= len(profiles) {
		d.step = -d.step
		next = d.profile
	}
	return next
}

// differ says whether a sample is more than 10 % away from the last one.
func differ(now, before int64) bool {
	d := now - before
	return max(d, -d)*10 > before
}

func sign(n int64) int {
	if n < 0 {
		return -1
	}
	return 1
}

// modify is the work item that issues MODIFY_CQ.
func (d *dim) modify(t *os.Thread) {
	p := &d.q.a.par
	t.Run(p.ModifyCQCPU)
	t.Delay(p.ModifyCQ)
	d.q.a.ModifyCQs++
	d.q.set(d.profile)
	d.changing = false
}
