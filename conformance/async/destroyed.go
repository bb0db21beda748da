package async

import (
	"sync/atomic"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// refusedPair is a pair whose responder has refused a request, and has an event to report where a
// device reports that.
func refusedPair(c *spec.C, e *kit.Env, mem *kit.Buffer) *kit.Pair {
	p := e.Pair(c, kit.Default())
	badWrite(c, p, mem)
	c.Status("write with a bad rkey", kit.PollOne(c, p.A.SendCQ), verbs.WCRemAccessErr)
	return p
}

// eventsOfTheDead destroys a QP, an SRQ and a CQ with events that nobody has read: they go with the
// object.
func eventsOfTheDead(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	p := refusedPair(c, e, mem)
	c.T.Sleep(kit.QuietPeriod)
	p.A.DestroyNow(c)
	p.B.DestroyNow(c)
	c.Equal("events of a QP that is gone", typeNames(drainEvents(c, e.Ctx)), []string{})
	if c.Has("srq") {
		s := e.CreateSRQ(c, 16, 1)
		o := kit.Default()
		o.SRQ = s.SRQ
		p := e.Pair(c, o)
		s.RecvInto(c, 1, mem.SGE(32, 8))
		kit.Must(c, "modify_srq", s.Modify(c.T, verbs.SRQAttr{Limit: 1}, verbs.SRQMaskLimit))
		p.A.Post(c, kit.Send(1, mem.SGE(0, 8)))
		kit.ExpectSuccess(c, p.A.SendCQ, 1)
		c.T.Sleep(kit.QuietPeriod)
		p.A.DestroyNow(c)
		p.B.DestroyNow(c)
		s.DestroyNow(c)
		c.Equal("events of an SRQ that is gone", typeNames(drainEvents(c, e.Ctx)), []string{})
	}
	if c.Has("overrun") {
		cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 7})
		kit.Must(c, "create_cq", err)
		destroy := kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
		o := kit.Default()
		o.SendCQ = cq
		p := e.Pair(c, o)
		for i := range uint64(4 * (cq.Cap() + 1)) {
			p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
		}
		c.T.Sleep(kit.QuietPeriod)
		p.A.DestroyNow(c)
		p.B.DestroyNow(c)
		destroy(c)
		c.Equal("events of a CQ that is gone", typeNames(drainEvents(c, e.Ctx)), []string{})
	}
}

// unacknowledged destroys a QP of which a program has read an event and not acknowledged it.
func unacknowledged(c *spec.C) {
	e := kit.Open(c)
	p := refusedPair(c, e, e.Buffer(c, 64, kit.AllAccess))
	ev, err := e.Ctx.AsyncEvent(c.T, kit.QuietPeriod)
	if err != nil {
		c.Observe("event of a refused request", "none")
		return
	}
	c.Equal("the event names the QP", ev.QP == p.B.QP, true)
	var done atomic.Bool
	destroyer := c.Go("destroyer", -1, func(c *spec.C) {
		p.B.DestroyNow(c)
		done.Store(true)
	})
	c.T.Sleep(kit.QuietPeriod)
	c.True("destroy_qp waits", !done.Load(), "destroy_qp returned with an event that was not acknowledged")
	e.Ctx.AckAsyncEvent(c.T, ev)
	kit.JoinThreads(c, destroyer)
}

// inOrder reads the events of several QPs in the order in which they came.
func inOrder(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	var pairs []*kit.Pair
	for range 4 {
		pairs = append(pairs, refusedPair(c, e, mem))
	}
	evs := drainEvents(c, e.Ctx)
	c.Observe("events", typeNames(evs))
	for i, ev := range evs {
		c.Equal("it is of the next QP", i < len(pairs) && ev.QP == pairs[i].B.QP, true)
	}
}
