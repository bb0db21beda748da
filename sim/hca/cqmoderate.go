package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
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
	if m := c.heldCount(x.CQMaxCount()); m > 0 && n >= m {
		return false
	}
	now, period := c.e.Now(), sim.Time(x.CQPeriod())*sim.Microsecond
	if period == 0 {
		return true
	}
	switch {
	case c.due == 0:
		c.due = now + period
		c.e.At(c.due, c.h.cqModerate, c.arg)
	case now >= c.due:
		return false
	case x.CQPeriodMode() == prm.CQPeriodFromCQE:
		c.due = now + period
	}
	return true
}

// heldCount is how many completions end the wait; 0: no number does.
func (c *cq) heldCount(most uint32) uint32 {
	switch {
	case most > 1 && c.breaks(rule.ModerationWaitsForItsCount):
		return most - 1
	case most > 1 && c.breaks(rule.ModerationReachesItsCount):
		return most + 1
	}
	return most
}

// onCQModerate is the end of a timer, or of one that was set anew meanwhile.
func (v *completionQueues) onModerate(arg uint64) {
	c := v.named(arg)
	if c == nil || c.due == 0 {
		return
	}
	if v.e.Now() < c.due {
		v.e.At(c.due, v.h.cqModerate, arg)
		return
	}
	if !c.breaks(rule.ModerationPeriodEnds) {
		c.fire()
	}
}
