package provider

import (
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// AsyncEvent is ibv_get_async_event with a deadline; EAGAIN when it passes.
func (c *Context) AsyncEvent(vt verbs.Thread, timeout time.Duration) (verbs.AsyncEvent, error) {
	t := Of(vt)
	if err := c.noQueues(); err != nil {
		return verbs.AsyncEvent{}, err
	}
	e, err := c.u.WaitAsync(t.caller, t.until(timeout))
	if err != nil {
		return verbs.AsyncEvent{}, err
	}
	ev := verbs.AsyncEvent{Type: e.Type, Port: e.Port}
	switch e.Type {
	case verbs.EventCQErr:
		if cq := c.cqOf(e.Cookie); cq != nil {
			ev.CQ = cq
		}
	case verbs.EventSRQLimitReached, verbs.EventSRQErr:
		if s := c.srqOf(e.Cookie); s != nil {
			ev.SRQ = s
		}
	case verbs.EventQPFatal, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventCommEst, verbs.EventSQDrained,
		verbs.EventPathMig, verbs.EventPathMigErr, verbs.EventQPLastWQEReached:
		if ev.XRCQPN = e.QPN; e.QPN != 0 {
			break
		}
		if qp := c.qpOf(e.Cookie); qp != nil {
			ev.QP = qp
		}
	}
	return ev, nil
}

// AckAsyncEvent is ibv_ack_async_event: it lets a destroy that waits for it go on.
func (c *Context) AckAsyncEvent(vt verbs.Thread, ev verbs.AsyncEvent) {
	t := c.enter(vt)
	if q, ok := ev.QP.(*QP); ok && q != nil {
		q.acks.ack(t, 1)
	}
	if q, ok := ev.QP.(*TargetQP); ok && q != nil {
		q.acks.ack(t, 1)
	}
	if q, ok := ev.CQ.(*CQ); ok && q != nil {
		q.asyncAcks.ack(t, 1)
	}
	if s, ok := ev.SRQ.(*SRQ); ok && s != nil {
		s.asyncs.ack(t, 1)
	}
}
