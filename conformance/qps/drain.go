package qps

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

func registerDrain(s *spec.Suite) {
	s.Case("QPS-024", drains)
	s.Case("QPS-025", resumes)
	s.Case("QPS-026", changesWhileDrained)
}

// drain asks for SQD with its event.
func drain(c *spec.C, q *kit.QP) {
	c.NoErr("RTS to SQD", q.Modify(c.T, &verbs.QPAttr{State: verbs.QPSSQD, EnSQDAsyncNotify: true}, verbs.QPMaskState|verbs.QPMaskEnSQDAsyncNotify))
}

// awaitDrained takes the event that reports the end.
func awaitDrained(c *spec.C, e *kit.Env, q *kit.QP) {
	ev, err := e.Ctx.AsyncEvent(c.T, kit.CompletionTimeout)
	c.NoErr("get_async_event", err)
	c.True("the event is SQ_DRAINED of the queue", ev.Type == verbs.EventSQDrained && ev.QP != nil && ev.QP.QPN() == q.QPN(), "event %v", ev.Type)
	e.Ctx.AckAsyncEvent(c.T, ev)
}

// draining queries the state and whether the queue still drains.
func draining(c *spec.C, q *kit.QP) bool {
	a, _, err := q.Query(c.T, verbs.QPMaskState|verbs.QPMaskEnSQDAsyncNotify)
	c.NoErr("query_qp", err)
	c.Equal("state", a.State, verbs.QPSSQD)
	return a.SQDraining
}

// drained waits until a queue in SQD says that it has drained: only then it may go back.
func drained(c *spec.C, q *kit.QP) (a verbs.QPAttr) {
	c.Eventually("query_qp of a queue with nothing outstanding", func() verbs.QPAttr {
		var err error
		a, _, err = q.Query(c.T, allMask)
		kit.Must(c, "query_qp", err)
		return a
	}).Within(kit.CompletionTimeout).ProbeEvery(kit.QuietPeriod / 20).Should(match.Satisfy("attributes with sq_draining 0", func(a verbs.QPAttr) bool { return !a.SQDraining }))
	return a
}

func drains(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout = 12 // 16.8 ms
	if !c.Has(kit.ExactTime) {
		o.Timeout = 16
	}
	a, b := e.RemotePair(c, o)
	mem, far := e.Buffer(c, 8192, kit.AllAccess), b.Process.Buffer(c, 8192, kit.AllAccess, 0)
	const n = 4
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: b.QPN, Count: n, Action: verbs.WireDrop})
	for i := range uint64(n) {
		a.Post(c, far.WriteTo(i, 0, mem.SGE(0, 8)))
	}
	c.T.Sleep(time.Millisecond)
	drain(c, a)
	c.True("sq_draining", draining(c, a), "the queue says that it has drained, with %d writes lost on the way", n)
	a.Post(c, far.WriteTo(n, 64, mem.SGE(0, 8))) // it waits
	_, err := e.Ctx.AsyncEvent(c.T, 5*time.Millisecond)
	c.True("no event before the end", err != nil, "an event came while writes were outstanding")
	awaitDrained(c, e, a)
	wc := kit.PollWithin(c, a.SendCQ, n+1, time.Microsecond)
	c.Equal("completions at the event", len(wc), n)
	for _, w := range wc {
		c.Status("outstanding write", w, verbs.WCSuccess)
	}
	c.True("sq_draining", !draining(c, a), "the queue still drains after its event")
	kit.ExpectNoCompletion(c, a.SendCQ, kit.QuietPeriod)
}

func resumes(c *spec.C) {
	e := kit.Open(c)
	p := e.Pair(c, kit.Default())
	mem := e.Buffer(c, 4096, kit.AllAccess)
	want := mem.FillRandom(c)[:64]
	drain(c, p.A)
	awaitDrained(c, e, p.A)
	p.A.Post(c, kit.Write(1, mem, 1024, mem.SGE(0, 64)), kit.Write(2, mem, 2048, mem.SGE(0, 64)))
	c.Status("the other way meanwhile", p.B.PostAndPoll(c, kit.Write(3, mem, 3072, mem.SGE(0, 64))), verbs.WCSuccess)
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
	c.NoErr("SQD to RTS", p.A.Modify(c.T, &verbs.QPAttr{State: verbs.QPSRTS}, verbs.QPMaskState))
	wcs, all := kit.AwaitCompletions(c, "completions in RTS", p.A.SendCQ, 2)
	if !all {
		return
	}
	for _, w := range wcs {
		c.Status("write posted in SQD", w, verbs.WCSuccess)
	}
	for _, at := range []int{1024, 2048, 3072} {
		c.Equal("bytes", mem.Get(c, at, 64), want)
	}
	c.Equal("state", p.A.QueryState(c), verbs.QPSRTS)
}

func changesWhileDrained(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout, o.RetryCnt = 14, 7
	a, b := e.RemotePair(c, o)
	mem, far := e.Buffer(c, 64, kit.AllAccess), b.Process.Buffer(c, 64, kit.AllAccess, 0)
	c.Status("write", a.PostAndPoll(c, far.WriteTo(1, 0, mem.SGE(0, 8))), verbs.WCSuccess)
	drain(c, a)
	awaitDrained(c, e, a)
	attr, _, err := a.Query(c.T, allMask)
	c.NoErr("query_qp", err)
	timer := uint8(10)
	if !c.Has(kit.ExactTime) {
		timer = 16
	}
	attr.State, attr.Timeout, attr.RetryCnt = verbs.QPSSQD, timer, 2
	attr.AH.GRH.TrafficClass = 40 // the hop limit is the route's
	c.NoErr("SQD to SQD", a.Modify(c.T, &attr, verbs.QPMaskState|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|verbs.QPMaskAV))
	got := drained(c, a)
	c.Equal("timeout", got.Timeout, timer)
	c.Equal("retry_cnt", got.RetryCnt, uint8(2))
	c.Equal("traffic class", got.AH.GRH.TrafficClass, uint8(40))
	c.NoErr("SQD to RTS", a.Modify(c.T, &verbs.QPAttr{State: verbs.QPSRTS}, verbs.QPMaskState))
	kit.Inject(c, kit.DropTo(b.QPN))
	packets := kit.Tap(c, func() {
		c.Status("write into the void", a.PostAndPoll(c, far.WriteTo(2, 0, mem.SGE(0, 8))), verbs.WCRetryExcErr)
	})
	kit.ClearRules(c)
	sent := kit.PacketsTo(packets, b.QPN, roce.RCWriteOnly)
	c.Equal("transmissions", len(sent), 3)
	for _, p := range sent {
		c.Equal("traffic class on the wire", p.TrafficClass()>>2, uint8(40>>2))
	}
	least := time.Duration(roce.AckTimeout(timer)) - kit.TimerSlack(c)
	for i := 1; i < len(sent); i++ {
		gap := sent[i].At - sent[i-1].At
		c.True("timer", gap >= least, "sent again after %v, before the new timer of %v", gap, least)
	}
}
