package srq

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func empty(c *spec.C) {
	g := newSRQGroup(c, 1, 16, func(o *kit.Options) { o.MinRNRTimer = 10 })
	mem := g.Buffer(c, firstSlot+8*16, kit.AllAccess)
	impatient := g.join(c, func(o *kit.Options) { o.RNRRetry = 0 })
	c.Status("send with rnr_retry 0", impatient.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCRNRRetryExcErr)
	want := mem.FillRandom(c)[:8]
	a := g.pairs[0].A
	a.Post(c, kit.Send(2, mem.SGE(0, 8)))
	kit.ExpectNoCompletion(c, a.SendCQ, 20*time.Millisecond) // many periods of the timer
	kit.ExpectNoCompletion(c, g.rcq, 0)
	g.recvSlots(c, mem, 3, 4)
	c.Status("send", kit.PollOne(c, a.SendCQ), verbs.WCSuccess)
	wc := kit.ExpectSuccess(c, g.rcq, 1)[0]
	c.Equal("wr_id", wc.ID, uint64(3))
	c.Equal("bytes", mem.Get(c, firstSlot+8*3, 8), want)
}

func lastWQE(c *spec.C) {
	g := newSRQGroup(c, 2, 16, nil)
	mem := g.Buffer(c, firstSlot+8*16, kit.AllAccess)
	g.recvSlots(c, mem, 0, 8)
	g.drain(c, mem, 2)
	dying := g.pairs[0].B
	dying.ModifyState(c, verbs.QPSErr)
	wait := kit.QuietPeriod + 10*kit.TimerSlack(c)
	evs := g.EventsWithin(c, wait, verbs.EventQPLastWQEReached)
	c.Equal("events", len(evs), 1)
	for _, ev := range evs {
		c.True("the event names the QP", ev.QP != nil && ev.QP.QPN() == dying.QPN(), "it names another QP")
	}
	kit.ExpectNoCompletion(c, g.rcq, kit.QuietPeriod) // requests of an SRQ are not flushed
	dying.ModifyState(c, verbs.QPSErr)
	c.Equal("events after it goes to ERR again", len(g.EventsWithin(c, wait, verbs.EventQPLastWQEReached)), 0)
	dying.DestroyNow(c)
	c.Status("send to the other QP", g.pairs[1].A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("wr_id", kit.ExpectSuccess(c, g.rcq, 1)[0].ID, uint64(2))
}

func errorOfOne(c *spec.C) {
	g := newSRQGroup(c, 3, 16, nil)
	mem := g.Buffer(c, firstSlot+8*16, kit.AllAccess)
	g.recvSlots(c, mem, 0, 10)
	bad := g.pairs[1]
	c.Status("send too long", bad.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCRemInvReqErr)
	wc := kit.PollOne(c, g.rcq)
	c.Status("receive", wc, verbs.WCLocLenErr)
	c.Equal("QP of the failed receive", wc.QPN == bad.B.QPN(), true)
	c.Equal("state of the QP", bad.B.QueryState(c), verbs.QPSErr)
	for i := range 8 {
		p := g.pairs[i%2*2]
		c.Status("send to another QP", p.A.PostAndPoll(c, kit.Send(2, mem.SGE(0, 8))), verbs.WCSuccess)
		wc := kit.ExpectSuccess(c, g.rcq, 1)[0]
		c.Equal("wr_id", wc.ID, uint64(1+i))
		c.Equal("QP", wc.QPN == p.B.QPN(), true)
	}
	g.EventsWithin(c, kit.QuietPeriod)
}

func postedBefore(c *spec.C) {
	g := newSRQGroup(c, 0, 16, nil)
	mem := g.Buffer(c, firstSlot+8*16, kit.AllAccess)
	want := mem.FillRandom(c)[:8]
	g.recvSlots(c, mem, 0, 4)
	g.join(c, nil)
	for i := range 4 {
		c.Status("send", g.pairs[0].A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCSuccess)
		c.Equal("wr_id", kit.ExpectSuccess(c, g.rcq, 1)[0].ID, uint64(i))
		c.Equal("bytes", mem.Get(c, firstSlot+8*i, 8), want)
	}
}

// badKey uses messages that are too long for a completion to carry: the device does not
// touch the memory of shorter ones.
func badKey(c *spec.C) {
	const n = 256
	g := newSRQGroup(c, 2, 16, nil)
	mem := g.Buffer(c, 2*n, kit.AllAccess)
	broken := mem.SGE(n, n)
	broken.LKey ^= 0xff00
	g.srq.RecvInto(c, 0, broken)
	for i := range uint64(4) {
		g.srq.RecvInto(c, 1+i, mem.SGE(n, n))
	}
	c.StatusIn("send to the QP that takes it", g.pairs[0].A.PostAndPoll(c, kit.Send(1, mem.SGE(0, n))), verbs.WCRemOpErr)
	wc := kit.PollOne(c, g.rcq)
	c.StatusIn("receive", wc, verbs.WCLocProtErr)
	c.Equal("wr_id", wc.ID, uint64(0))
	c.Equal("QP", wc.QPN == g.pairs[0].B.QPN(), true)
	for i := range 4 {
		c.Status("send to the other QP", g.pairs[1].A.PostAndPoll(c, kit.Send(2, mem.SGE(0, n))), verbs.WCSuccess)
		c.Equal("wr_id", kit.ExpectSuccess(c, g.rcq, 1)[0].ID, uint64(1+i))
	}
	g.EventsWithin(c, kit.QuietPeriod)
}

func threads(c *spec.C) {
	const posters, each = 4, 50
	g := newSRQGroup(c, 4, 256, func(o *kit.Options) { o.MinRNRTimer = 1 })
	mem := g.Buffer(c, firstSlot, kit.AllAccess)
	kit.RunThreads(c, posters+len(g.pairs), func(c *spec.C, i int) {
		if i < posters {
			for k := range each {
				g.srq.RecvInto(c, uint64(i*each+k), mem.SGE(0, 8))
			}
			return
		}
		a := g.pairs[i-posters].A
		for k := range each {
			c.T.Work(time.Duration(k%7) * 100 * time.Nanosecond)
			a.Post(c, kit.Send(uint64(k), mem.SGE(32, 8)))
			kit.ExpectSuccess(c, a.SendCQ, 1)
		}
	})
	seen, of := make([]int, posters*each), map[uint32]int{}
	for _, wc := range kit.ExpectSuccess(c, g.rcq, posters*each) {
		seen[wc.ID]++
		of[wc.QPN]++
	}
	for id, n := range seen {
		if n != 1 {
			c.Failf("request %d completed %d times", id, n)
		}
	}
	for _, p := range g.pairs {
		c.Equal("messages of each QP", of[p.B.QPN()], each)
	}
	kit.ExpectNoCompletion(c, g.rcq, kit.QuietPeriod)
}
