package cm

import (
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// Times of Linux: until a REP is sent again, and how often a REQ is sent.
const (
	repInterval = 4096 * time.Millisecond
	reqSends    = 16
)

// reqInterval is the time until a REQ is sent again: that of an answer, and that of two packets on
// the path of an id, whose lifetime is 16 on RoCE (4608 ms in all), and what the subnet
// administrator says on InfiniBand.
func reqInterval(c *spec.C, id verbs.CMID) time.Duration {
	paths, err := id.QueryPath(c.T)
	kit.Must(c, "query of the paths", err)
	c.Equal("number of paths", len(paths), 1)
	return 2*lifetimeOf(paths[0].Lifetime) + repInterval
}

// dropMADs drops datagrams to QP1: count of them behind the first skip.
func dropMADs(skip, count int) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: roce.GSIQPN, Skip: skip, Count: count, Action: verbs.WireDrop}
}

// near says that a time is one of Linux's timers: not before it, and not much later.
func near(c *spec.C, step string, got, want time.Duration) {
	late := want / 4
	c.True(step, got >= want-kit.TimerSlack(c) && got <= want+late, "%v, want %v", got, want)
}

// backlog has two clients ask a listener that takes nothing: the second request gets no answer
// until it is sent again.
func backlog(c *spec.C) {
	e := open(c)
	f := serve(c, verbs.PortSpaceTCP, 1)
	first, second := e.resolved(c, verbs.PortSpaceTCP, f.at), e.resolved(c, verbs.PortSpaceTCP, f.at)
	newQueue(c, first)
	newQueue(c, second)
	packets := kit.TapAll(c, func() {
		for _, id := range []verbs.CMID{first, second} {
			kit.Must(c, "connect", id.Connect(c.T, param(nil)))
			c.T.Sleep(kit.QuietPeriod)
		}
		r, _ := f.request(c)
		f.quiet(c, "another request")
		f.accept(c, r.Values["id"], nil)
		ev := e.event(c, verbs.CMEstablished, 0)
		c.Equal("the first connects first", ev.ID == first, true)
		f.event(c, verbs.CMEstablished, 0)
		r, _ = f.request(c)
		f.accept(c, r.Values["id"], nil)
		ev = e.event(c, verbs.CMEstablished, 0)
		c.Equal("the second connects", ev.ID == second, true)
		f.event(c, verbs.CMEstablished, 0)
	})
	reqs := of(messages(packets), mad.AttrREQ)
	c.Equal("REQs", len(reqs), 3)
	near(c, "time until the second is sent again", reqs[2].p.At-reqs[1].p.At, reqInterval(c, second))
}

func lostAnswers(c *spec.C) {
	e := open(c)
	f := serve(c, verbs.PortSpaceTCP, 0)
	for _, lost := range []struct {
		what string
		skip int
	}{{"REP", 1}, {"RTU", 2}} {
		id := e.resolved(c, verbs.PortSpaceTCP, f.at)
		p := &pair{end: e, far: f, id: id, q: newQueue(c, id)}
		kit.Inject(c, dropMADs(lost.skip, 1))
		packets := kit.TapAll(c, func() {
			kit.Must(c, "connect", id.Connect(c.T, param(nil)))
			p.establish(c)
		})
		kit.ClearRules(c)
		reps := of(messages(packets), mad.AttrREP)
		c.Equal("REPs when the "+lost.what+" is lost", len(reps), 2)
		near(c, "time until the REP is sent again", reps[1].p.At-reps[0].p.At, repInterval)
		c.Equal("the same REP", string(reps[0].MAD) == string(reps[1].MAD), true)
		c.Equal("RTUs", len(of(messages(packets), mad.AttrRTU)), lost.skip)
	}
}

func lostRequests(c *spec.C) {
	e, f, id, _ := client(c)
	interval := reqInterval(c, id)
	kit.Inject(c, dropMADs(0, 0))
	start := c.T.Now()
	packets := kit.TapAll(c, func() {
		kit.Must(c, "connect", id.Connect(c.T, param(nil)))
		e.eventWithin(c, giveUp, verbs.CMUnreachable, -int(syscall.ETIMEDOUT))
	})
	took := c.T.Now() - start
	reqs := of(messages(packets), mad.AttrREQ)
	c.Equal("REQs", len(reqs), reqSends)
	for i := 1; i < len(reqs); i++ {
		near(c, "time between two", reqs[i].p.At-reqs[i-1].p.At, interval)
	}
	near(c, "time until the event", took, reqSends*interval)
	f.quiet(c, "events there")
}

// lateAccept has a server take its time: what the client sends again is answered by a MRA.
func lateAccept(c *spec.C) {
	e, f, id, _ := client(c)
	packets := kit.TapAll(c, func() {
		kit.Must(c, "connect", id.Connect(c.T, param(nil)))
		r, _ := f.request(c)
		c.T.Sleep(2*reqInterval(c, id) + 3*time.Second)
		f.accept(c, r.Values["id"], nil)
		e.event(c, verbs.CMEstablished, 0)
		f.event(c, verbs.CMEstablished, 0)
	})
	msgs := messages(packets)
	c.Equal("REQs", len(of(msgs, mad.AttrREQ)), 2)
	m := one(c, "MRAs", msgs, mad.AttrMRA)
	c.Equal("what the MRA is about", mad.MRA(m.Body()).About(), uint8(mad.AboutREQ))
	c.Equal("service timeout", mad.MRA(m.Body()).ServiceTimeout(), uint8(24))
	c.Equal("transaction of the MRA is the REQ's", m.TID() == of(msgs, mad.AttrREQ)[0].TID(), true)
}

// lifetimeOf is a time by its code, as the connection manager has it: of an ACK how long timewait
// lasts.
func lifetimeOf(timeout uint8) time.Duration { return time.Millisecond << max(int(timeout)-8, 0) }

func disconnect(c *spec.C) {
	p := connected(c)
	b := p.env.BufferOn(c, p.q.pd, 64, kit.AllAccess)
	_, err := p.q.PostRecv(c.T, []verbs.RecvWR{{ID: 7, SGEs: []verbs.SGE{b.SGE(0, 64)}}})
	kit.Must(c, "post_recv", err)
	a, _, err := p.q.Query(c.T, verbs.QPMaskTimeout)
	kit.Must(c, "query_qp", err)
	c.NoErr("disconnect", p.id.Disconnect(c.T))
	c.Equal("QP here", state(c, p.q), "ERR")
	c.Status("receive", kit.PollOne(c, p.q.cq), verbs.WCWRFlushErr)
	p.far.event(c, verbs.CMDisconnected, 0)
	start := c.T.Now()
	p.far.do(c, player.CMDisconnect, p.farID)
	p.event(c, verbs.CMDisconnected, 0)
	p.event(c, verbs.CMTimewaitExit, 0)
	near(c, "time in timewait", c.T.Now()-start, lifetimeOf(a.Timeout))
	p.far.event(c, verbs.CMTimewaitExit, 0)
	p.quiet(c, "events after it")
	p.far.quiet(c, "events there after it")
}

func disconnectTwice(c *spec.C) {
	p := connected(c)
	c.NoErr("disconnect", p.id.Disconnect(c.T))
	c.NoErr("disconnect again", p.id.Disconnect(c.T))
	p.far.event(c, verbs.CMDisconnected, 0)
	p.far.do(c, player.CMDisconnect, p.farID)
	p.event(c, verbs.CMDisconnected, 0)
	c.NoErr("disconnect once more", p.id.Disconnect(c.T))
	p.event(c, verbs.CMTimewaitExit, 0)
	p.far.event(c, verbs.CMTimewaitExit, 0)
	p.quiet(c, "events after it")
	// Both at once: the first DREQ is late.
	p = p.end.connect(c, p.far)
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: roce.GSIQPN, Count: 1, Action: verbs.WireDelay, Delay: 200 * time.Millisecond})
	c.NoErr("disconnect here", p.id.Disconnect(c.T))
	p.far.do(c, player.CMDisconnect, p.farID)
	p.event(c, verbs.CMDisconnected, 0)
	p.far.event(c, verbs.CMDisconnected, 0)
	p.quiet(c, "events when both have disconnected")
	p.far.quiet(c, "events there when both have disconnected")
}

// answerOfDisconnect looks when a DREP leaves.
func answerOfDisconnect(c *spec.C) {
	p := connected(c)
	packets := kit.TapAll(c, func() {
		kit.Must(c, "disconnect", p.id.Disconnect(c.T))
		p.far.event(c, verbs.CMDisconnected, 0)
		c.T.Sleep(time.Second)
		p.far.do(c, player.CMDisconnect, p.farID)
		p.event(c, verbs.CMDisconnected, 0)
	})
	msgs := messages(packets)
	dreq, drep := one(c, "DREQs", msgs, mad.AttrDREQ), one(c, "DREPs", msgs, mad.AttrDREP)
	c.Equal("QPN of the DREQ", mad.DREQ(dreq.Body()).QPN() == p.farQP.QPN, true)
	c.Equal("transaction of the DREP is the DREQ's", drep.TID() == dreq.TID(), true)
	waited, least := drep.p.At-dreq.p.At, time.Second
	if !c.Has(kit.ExactTime) {
		least /= 2 // on a busy machine the clock of the wire is behind the program's
	}
	c.True("time until the DREP", waited >= least, "%v, and the program waited %v", waited, time.Second)
}

func killedPeer(c *spec.C) {
	e := open(c)
	before := ids(c)
	f := serve(c, verbs.PortSpaceTCP, 0)
	p := e.connect(c, f)
	f.Kill(c)
	p.event(c, verbs.CMDisconnected, 0)
	c.NoErr("disconnect", p.id.Disconnect(c.T))
	p.event(c, verbs.CMTimewaitExit, 0)
	kit.Must(c, "rdma_destroy_qp", p.id.DestroyQP(c.T))
	kit.Must(c, "destroy_id", p.id.Destroy(c.T))
	for i, n := range ids(c) {
		c.Equal("ids of a host", n, before[i])
	}
}

// ids are how many ids of the connection manager the hosts have, where they tell.
func ids(c *spec.C) (n []int) {
	r, ok := c.TB.(verbs.ResourceCounter)
	if !ok {
		return nil
	}
	for h := range c.TB.Hosts() {
		counts, err := r.ResourceCounts(c.T, h)
		kit.Must(c, "count of resources", err)
		n = append(n, counts["cm_id"])
	}
	return n
}

// staleConnection asks for a connection by a QP that the server knows to be connected, as after a
// crash of the client.
func staleConnection(c *spec.C) {
	p := connected(c)
	other := p.resolved(c, verbs.PortSpaceTCP, p.far.at)
	q := param(nil)
	q.QPN = p.q.QPN()
	kit.Must(c, "connect", other.Connect(c.T, q))
	ev := p.event(c, verbs.CMRejected, mad.RejStale)
	c.Equal("the new one is rejected", ev.ID == other, true)
	ev = p.event(c, verbs.CMDisconnected, 0)
	c.Equal("the old one is disconnected", ev.ID == p.id, true)
	kit.Must(c, "disconnect", p.id.Disconnect(c.T))
	p.far.event(c, verbs.CMDisconnected, 0)
	p.far.quiet(c, "events there after it")
}
