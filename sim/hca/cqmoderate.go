package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// moderated says whether events of the CQ wait for more completions.
func (c *cq) moderated() bool {
	x := prm.CQC(c.ctx[:])
	return x.CQMaxCount() > 1 || x.CQPeriod() > 0
}

// holdBack says whether the event for n completions is to wait: until there are
// cq_max_count of them, or cq_period microseconds have passed since the first, in mode
// "from CQE" since the last (ibv_modify_cq(3); when the timer starts is an
// assumption). A zero in either field leaves the decision to the other.
func (c *cq) holdBack(n uint32) bool {
	x := prm.CQC(c.ctx[:])
	if m := x.CQMaxCount(); m > 0 && n >= m {
		return false
	}
	now, period := c.d.e.Now(), sim.Time(x.CQPeriod())*sim.Microsecond
	if period == 0 {
		return true
	}
	switch {
	case c.due == 0:
		c.due = now + period
		c.d.e.At(c.due, c.d.h.cqModerate, c.arg)
	case now >= c.due:
		return false
	case x.CQPeriodMode() == prm.CQPeriodFromCQE:
		c.due = now + period
	}
	return true
}

// onCQModerate is the end of a timer, or of one that was set anew meanwhile.
func (d *Device) onCQModerate(arg uint64) {
	c := d.cqn(uint32(arg & cqIndexMask))
	if c == nil || c.arg != arg || c.due == 0 {
		return
	}
	if d.e.Now() < c.due {
		d.e.At(c.due, d.h.cqModerate, arg)
		return
	}
	c.fire()
}
