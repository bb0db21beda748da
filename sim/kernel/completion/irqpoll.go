package completion

import (
	"slices"

	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// irqPoll is a CQ's place in the list of a CPU (lib/irq_poll.c).
type irqPoll struct{ scheduled bool }

// pollList are the CQs that the softirq of a CPU has to poll.
type pollList struct{ cqs []*CQ }

func listOf(c *os.Context) *pollList {
	slot := c.PollList()
	if *slot == nil {
		*slot = &pollList{}
	}
	return (*slot).(*pollList)
}

// schedIRQPoll is irq_poll_sched.
func (q *CQ) schedIRQPoll(c *os.Context) {
	if q.poll.scheduled && !q.a.broken.Has(rule.IRQPollIsScheduledOnce) {
		return
	}
	q.poll.scheduled = true
	l := listOf(c)
	l.cqs = append(l.cqs, q)
	c.RaiseSoftirq(os.IRQPoll)
}

// irqPoll is the softirq: it polls the CQs of the list in turn, within the budget of all and a
// jiffy.
func (a *Adapter) irqPoll(c *os.Context) {
	l, budget := listOf(c), a.budgetIRQ
	jiffy := a.m.Params().Jiffy
	start := c.Now() / jiffy
	for len(l.cqs) > 0 {
		if (budget <= 0 || c.Now()/jiffy > start) && !a.broken.Has(rule.IRQPollHasABudget) {
			c.RaiseSoftirq(os.IRQPoll)
			return
		}
		q := l.cqs[0]
		n := q.pollSoftirq(c, l)
		budget -= n
		if n >= a.budgetIRQ {
			l.remove(q)
			l.cqs = append(l.cqs, q)
		}
	}
}

// pollSoftirq is ib_poll_handler: it takes the CQ off the list and arms it if it has not used its
// budget up.
func (q *CQ) pollSoftirq(c *os.Context, l *pollList) int {
	budget := q.a.budgetIRQ
	if q.a.broken.Has(rule.IRQPollHasABudget) {
		budget = budgetWorkqueue
	}
	n := q.process(c, (*context)(c), budget, q.wcs)
	if n < budget {
		c.Sync()
		l.remove(q)
		q.poll.scheduled = false
		if q.notify(c, true) {
			q.schedIRQPoll(c)
		}
	}
	q.dim.update(c, n)
	return n
}

func (l *pollList) remove(q *CQ) {
	if i := slices.Index(l.cqs, q); i >= 0 {
		l.cqs = append(l.cqs[:i], l.cqs[i+1:]...)
	}
}
