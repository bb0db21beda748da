// Package async holds the cases of area ASYNC: asynchronous events.
package async

import (
	"slices"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("ASYNC-001", accessError)
	s.Case("ASYNC-002", invalidRequest)
	s.Case("ASYNC-003", elementOfEvent)
	s.Case("ASYNC-004", otherContext)
	s.Case("ASYNC-005", twoReaders)
	s.Case("ASYNC-006", portEvents)
	s.Case("ASYNC-007", modifyToError)
	s.Case("ASYNC-008", unreadEvents, spec.Deadline(5*time.Minute))
	s.Case("ASYNC-009", eventTexts)
	s.Case("ASYNC-012", eventsOfTheDead)
	s.Case("ASYNC-013", unacknowledged)
	s.Case("ASYNC-014", inOrder)
}

// nextEvent takes the next event of a context and acknowledges it.
func nextEvent(c *spec.C, ctx verbs.Context, step string) verbs.AsyncEvent {
	ev, err := ctx.AsyncEvent(c.T, kit.CompletionTimeout)
	c.Errno(step, err, 0)
	ctx.AckAsyncEvent(c.T, ev)
	return ev
}

// drainEvents takes every event until none comes any more.
func drainEvents(c *spec.C, ctx verbs.Context) []verbs.AsyncEvent {
	return drainEventsFor(c, ctx, kit.QuietPeriod+10*kit.TimerSlack(c))
}

// drainEventsFor is drainEvents with another time to wait for a further event.
func drainEventsFor(c *spec.C, ctx verbs.Context, quiet time.Duration) (evs []verbs.AsyncEvent) {
	for {
		ev, err := ctx.AsyncEvent(c.T, quiet)
		if err != nil {
			if verbs.ErrnoOf(err) != syscall.EAGAIN {
				c.Errno("get_async_event", err, syscall.EAGAIN)
			}
			return evs
		}
		ctx.AckAsyncEvent(c.T, ev)
		evs = append(evs, ev)
	}
}

// typeNames are the names of the types of events, for the record.
func typeNames(evs []verbs.AsyncEvent) []string {
	out := []string{}
	for _, ev := range evs {
		out = append(out, ev.Type.String())
	}
	return out
}

// expectAtMostOne checks that there is no event, or one of the given type about the QP.
func expectAtMostOne(c *spec.C, step string, evs []verbs.AsyncEvent, typ verbs.EventType, qp verbs.QP) {
	c.Observe(step, typeNames(evs))
	c.True(step, len(evs) <= 1, "%d events", len(evs))
	for _, ev := range evs {
		c.Equal(step, ev.Type, typ)
		c.True(step, ev.QP == qp, "the event names another QP")
	}
}

// badWrite writes with an rkey that the other end does not know.
func badWrite(c *spec.C, p *kit.Pair, mem *kit.Buffer) {
	wr := kit.Write(1, mem, 32, mem.SGE(0, 8))
	wr.RKey ^= 0x100
	p.A.Post(c, wr)
}

func accessError(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	p := e.Pair(c, kit.Default())
	badWrite(c, p, mem)
	c.Status("write with a bad rkey, RC", kit.PollOne(c, p.A.SendCQ), verbs.WCRemAccessErr)
	expectAtMostOne(c, "events of RC", drainEvents(c, e.Ctx), verbs.EventQPAccessErr, p.B.QP)
	if !c.Has("uc") {
		return
	}
	o := kit.Default()
	o.Type = verbs.QPTUC
	p = e.Pair(c, o)
	badWrite(c, p, mem)
	c.Status("write with a bad rkey, UC", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
	expectAtMostOne(c, "events of UC", drainEvents(c, e.Ctx), verbs.EventQPAccessErr, p.B.QP)
}

func invalidRequest(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	off := 32
	for mem.Addr(off)%8 == 0 {
		off++
	}
	_, err := p.A.PostSend(c.T, []verbs.SendWR{kit.FetchAdd(1, mem, off, 1, mem.SGE(0, 8))})
	if c.ErrnoIn("post of an atomic on an address that is not aligned", err, 0, syscall.EINVAL) != 0 {
		return // a library that knows better: nothing was asked of the responder
	}
	c.Status("atomic on an address that is not aligned", kit.PollOne(c, p.A.SendCQ), verbs.WCRemInvReqErr)
	expectAtMostOne(c, "events", drainEvents(c, p.Ctx), verbs.EventQPReqErr, p.B.QP)
}

// overrun fills a small CQ beyond its end with completions that are not polled.
func overrun(c *spec.C, e *kit.Env, context any) verbs.CQ {
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 7, Context: context})
	kit.Must(c, "create_cq", err)
	kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
	o := kit.Default()
	o.SendCQ = cq
	p := e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for i := range uint64(4 * (cq.Cap() + 1)) {
		p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
	}
	return cq
}

// elementOfEvent provokes an event of each kind that the target has: of a CQ by an
// overrun, of a QP by an access error and by a packet before RTS.
func elementOfEvent(c *spec.C) {
	e := kit.Open(c)
	type own struct{ name string }
	if c.Has("overrun") {
		mine := &own{"CQ"}
		cq := overrun(c, e, mine)
		ev := nextEvent(c, e.Ctx, "get_async_event after an overrun")
		c.Equal("type", ev.Type, verbs.EventCQErr)
		c.True("element", ev.CQ == cq && ev.QP == nil && ev.SRQ == nil, "the event names another object")
		c.True("context", ev.CQ.Context() == any(mine), "the CQ's context is %v", ev.CQ.Context())
		drainEvents(c, e.Ctx)
	}
	mine := &own{"QP"}
	mem := e.Buffer(c, 64, kit.AllAccess)
	o := kit.Default()
	a, b := e.CreateQP(c, o), ownQP(c, e, o, mine)
	b.BringUp(c, a.Peer(), verbs.QPSRTR)
	a.BringUp(c, b.Peer(), verbs.QPSRTS)
	about := func(step string, evs []verbs.AsyncEvent) {
		c.Observe(step, typeNames(evs))
		for _, ev := range evs {
			c.True("element", ev.QP == b.QP && ev.CQ == nil && ev.SRQ == nil, "%v names another object", ev.Type)
			c.True("context", ev.QP.Context() == any(mine), "the QP's context is %v", ev.QP.Context())
		}
	}
	c.Status("write to a QP in RTR", a.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
	about("events of a packet in RTR", drainEvents(c, e.Ctx))
	badWrite(c, &kit.Pair{Env: e, A: a, B: b}, mem)
	c.Status("write with a bad rkey", kit.PollOne(c, a.SendCQ), verbs.WCRemAccessErr)
	about("events of an access error", drainEvents(c, e.Ctx))
}

// ownQP creates a QP with a qp_context.
func ownQP(c *spec.C, e *kit.Env, o kit.Options, context any) *kit.QP {
	q := &kit.QP{Env: e, Opt: o, SendCQ: e.CreateCQ(c, o.CQE), RecvCQ: e.CreateCQ(c, o.CQE)}
	a := q.InitAttr()
	a.Context = context
	qp, err := e.PD.CreateQP(c.T, a)
	kit.Must(c, "create_qp", err)
	q.QP = qp
	q.DestroyNow = kit.DestroyOnce(c, "destroy_qp", qp.Destroy)
	return q
}

func otherContext(c *spec.C) {
	mine, other := kit.Open(c), kit.Open(c)
	provoke, typ := eventSource(c, mine)
	provoke(c)
	c.Equal("the event", nextEvent(c, mine.Ctx, "get_async_event of the context").Type, typ)
	_, err := other.Ctx.AsyncEvent(c.T, kit.QuietPeriod)
	c.Errno("get_async_event of the other context", err, syscall.EAGAIN)
}

// eventSource finds a way to cause exactly one event about an object of the context,
// again and again, and returns its type: an access error if that raises one, else the
// overrun of a CQ, else the limit of an SRQ.
func eventSource(c *spec.C, e *kit.Env) (func(c *spec.C), verbs.EventType) {
	mem := e.Buffer(c, 64, kit.AllAccess)
	p := e.Pair(c, kit.Default())
	access := func(c *spec.C) {
		for _, q := range []*kit.QP{p.A, p.B} {
			if q.State() != verbs.QPSReset {
				q.ModifyState(c, verbs.QPSReset)
			}
		}
		p.Connect(c)
		badWrite(c, p, mem)
		if wc := kit.PollOne(c, p.A.SendCQ); wc.Status != verbs.WCRemAccessErr {
			c.Status("write with a bad rkey", wc, verbs.WCRemAccessErr)
		}
	}
	access(c)
	if evs := drainEvents(c, e.Ctx); len(evs) == 1 {
		return access, evs[0].Type
	}
	full := func(c *spec.C) { overrun(c, e, nil) }
	full(c)
	evs := drainEvents(c, e.Ctx)
	if len(evs) == 1 {
		return full, evs[0].Type
	}
	if !c.Has("srq") {
		c.Errorf("no way is known to provoke one event at a time: an access error raises none, an overrun %v", typeNames(evs))
	}
	return limitEventSource(c, e, mem), verbs.EventSRQLimitReached
}

// limitEventSource arms the limit of an SRQ and lets it be reached.
func limitEventSource(c *spec.C, e *kit.Env, mem *kit.Buffer) func(c *spec.C) {
	s := e.CreateSRQ(c, 16, 1)
	o := kit.Default()
	o.SRQ = s.SRQ
	p := e.Pair(c, o)
	s.RecvInto(c, 0, mem.SGE(32, 8)) // stays
	return func(c *spec.C) {
		s.RecvInto(c, 1, mem.SGE(32, 8))
		kit.Must(c, "modify_srq", s.Modify(c.T, verbs.SRQAttr{Limit: 2}, verbs.SRQMaskLimit))
		p.A.Post(c, kit.Send(1, mem.SGE(0, 8)))
		kit.ExpectSuccess(c, p.A.SendCQ, 1)
		kit.ExpectSuccess(c, p.B.RecvCQ, 1)
	}
}

func twoReaders(c *spec.C) {
	e := kit.Open(c)
	provoke, typ := eventSource(c, e)
	const total = 20
	var got [2][]verbs.AsyncEvent
	var readers [2]verbs.Thread
	for i := range readers {
		readers[i] = c.Go("reader", -1, func(c *spec.C) { got[i] = drainEventsFor(c, e.Ctx, 100*kit.QuietPeriod) })
	}
	for range total {
		provoke(c)
	}
	kit.JoinThreads(c, readers[:]...)
	all := slices.Concat(got[0], got[1])
	c.Equal("events", len(all), total)
	for _, ev := range all {
		if ev.Type != typ {
			c.Equal("type", ev.Type, typ)
		}
	}
}

// setLink moves the first host's link; the case's end puts it back.
func setLink(c *spec.C, up bool) {
	w := c.TB.Wire()
	if w == nil {
		c.Errorf("the testbed gives no wire")
	}
	kit.Must(c, "move the link", w.SetLink(c.T, 0, 1, up))
	c.Defer(func() { _ = w.SetLink(c.T, 0, 1, true) })
}

func portEvents(c *spec.C) {
	var envs []*kit.Env
	for range 3 {
		envs = append(envs, kit.Open(c))
	}
	for _, up := range []bool{false, true} {
		want := verbs.EventPortErr
		if up {
			want = verbs.EventPortActive
		}
		setLink(c, up)
		for _, e := range envs {
			ev := kit.AwaitPortEvent(c, e, want)
			c.Equal("type", ev.Type, want)
			c.Equal("port", ev.Port, int(e.Port))
		}
	}
}

func modifyToError(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.A.RecvInto(c, 1, mem.SGE(0, 8))
	p.A.ModifyState(c, verbs.QPSErr)
	p.B.ModifyState(c, verbs.QPSErr)
	c.Equal("events", typeNames(drainEvents(c, p.Ctx)), []string{})
	kit.ExpectFlushed(c, p.A.RecvCQ, 1)
}

func unreadEvents(c *spec.C) {
	const events = 1000
	e := kit.Open(c)
	provoke, typ := eventSource(c, e)
	mem := e.Buffer(c, 64, kit.AllAccess)
	traffic := e.Pair(c, kit.Default())
	for i := range events {
		provoke(c)
		if wc := traffic.A.PostAndPoll(c, kit.Write(uint64(i), mem, 32, mem.SGE(0, 8))); wc.Status != verbs.WCSuccess {
			c.Status("traffic with unread events", wc, verbs.WCSuccess)
		}
	}
	got := drainEvents(c, e.Ctx)
	c.Equal("events", len(got), events)
	for _, ev := range got {
		if ev.Type != typ {
			c.Equal("type", ev.Type, typ)
		}
	}
}

func eventTexts(c *spec.C) {
	ctx := c.Open()
	neutral := ctx.EventTypeStr(1 << 20)
	c.True("text of an unknown type", neutral != "", "there is none")
	seen := map[string]verbs.EventType{}
	for t := verbs.EventCQErr; t <= verbs.EventWQFatal; t++ {
		s := ctx.EventTypeStr(t)
		was, twice := seen[s]
		c.True("text of an event type", s != "" && s != neutral && !twice, "type %v: %q, type %v has it too: %t", t, s, was, twice)
		seen[s] = t
	}
	for _, t := range []verbs.EventType{verbs.EventWQFatal + 1, 100, 1 << 16, 1<<31 - 1} {
		c.Equal("text of an unknown type", ctx.EventTypeStr(t), neutral)
	}
	unknown := ctx.WCStatusStr(1 << 20)
	c.True("text of an unknown status", unknown != "", "there is none")
	for s := verbs.WCSuccess; s <= verbs.WCTMRndvIncomplete; s++ {
		got := ctx.WCStatusStr(s)
		c.True("text of a status", got != "" && got != unknown, "status %v: %q", s, got)
	}
}
