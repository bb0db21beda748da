package srq

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// drain sends n messages, each of which takes a request.
func (g *srqGroup) drain(c *spec.C, mem *kit.Buffer, n int) {
	for i := range n {
		c.Status("send", g.pairs[0].A.PostAndPoll(c, kit.Send(uint64(i), mem.SGE(0, 8))), verbs.WCSuccess)
	}
	kit.ExpectSuccess(c, g.rcq, n)
}

func (g *srqGroup) arm(c *spec.C, limit uint32) {
	c.NoErr("modify_srq", g.srq.Modify(c.T, verbs.SRQAttr{Limit: limit}, verbs.SRQMaskLimit))
}

// countLimitEvents counts the limit events that come.
func (g *srqGroup) countLimitEvents(c *spec.C) int {
	evs := g.EventsWithin(c, kit.QuietPeriod, verbs.EventSRQLimitReached)
	for _, ev := range evs {
		c.True("the event names the SRQ", ev.SRQ == g.srq.SRQ, "it names another object")
	}
	return len(evs)
}

func limitOnce(c *spec.C) {
	g := newSRQGroup(c, 1, 32, nil)
	mem := g.Buffer(c, firstSlot+8*32, kit.AllAccess)
	for round := range 2 {
		g.recvSlots(c, mem, 0, 10)
		g.arm(c, 5)
		c.Equal("events with 10 posted", g.countLimitEvents(c), 0)
		g.drain(c, mem, 5)
		c.Equal("events with 5 posted, which is the limit", g.countLimitEvents(c), 0)
		g.drain(c, mem, 1)
		c.Equal("events with 4 posted", g.countLimitEvents(c), 1)
		g.drain(c, mem, 3)
		c.Equal("events with 1 posted", g.countLimitEvents(c), 0)
		g.recvSlots(c, mem, 0, 9)
		g.drain(c, mem, 10)
		c.Equal("events after more were posted and used, not armed again", g.countLimitEvents(c), 0)
		c.Observe("round", round)
	}
}

func limitGone(c *spec.C) {
	g := newSRQGroup(c, 1, 32, nil)
	mem := g.Buffer(c, firstSlot+8*32, kit.AllAccess)
	g.recvSlots(c, mem, 0, 4)
	g.arm(c, 4)
	c.Equal("limit while armed", g.query(c).Limit, uint32(4))
	g.drain(c, mem, 1)
	c.Equal("events", g.countLimitEvents(c), 1)
	c.Equal("limit after the event", g.query(c).Limit, uint32(0))
}

func (g *srqGroup) query(c *spec.C) verbs.SRQAttr {
	a, err := g.srq.Query(c.T)
	c.NoErr("query_srq", err)
	return a
}

func limitTooHigh(c *spec.C) {
	g := newSRQGroup(c, 0, 20, nil)
	a := g.query(c)
	// query_srq may tell more than was granted: the driver keeps spare requests.
	c.True("max_wr", a.MaxWR >= g.srq.Caps().MaxWR, "query_srq returns %d, %d were granted", a.MaxWR, g.srq.Caps().MaxWR)
	for _, limit := range []uint32{a.MaxWR + 1, 1 << 20, 1<<32 - 1} {
		c.ErrnoIn("limit above max_wr", g.srq.Modify(c.T, verbs.SRQAttr{Limit: limit}, verbs.SRQMaskLimit), syscall.EINVAL)
	}
	c.Equal("limit after refusals", g.query(c).Limit, uint32(0))
}

func limitZero(c *spec.C) {
	g := newSRQGroup(c, 1, 32, nil)
	mem := g.Buffer(c, firstSlot+8*32, kit.AllAccess)
	g.recvSlots(c, mem, 0, 10)
	g.arm(c, 5)
	g.arm(c, 0)
	g.drain(c, mem, 10)
	c.Equal("events", g.countLimitEvents(c), 0)
}
