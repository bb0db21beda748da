package qps

import (
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func registerLife(s *spec.Suite) {
	s.Case("QPS-027", localFailure)
	s.Case("QPS-028", resetDiscards)
	s.Case("QPS-029", numberReuse)
	s.Case("QPS-030", destroyOutstanding)
	s.Case("QPS-031", destroyInGroup)
	s.Case("QPS-032", manyCycles, spec.Deadline(4*time.Minute)) // an emulated machine takes some 8 ms for each
}

func resetDiscards(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.SendCQ = e.CreateCQ(c, 255)
	p, other := e.Pair(c, o), e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	const each = 5
	for i := range uint64(each) {
		p.A.Post(c, kit.Write(100+i, mem, 32, mem.SGE(0, 8)))
		other.A.Post(c, kit.Write(200+i, mem, 40, mem.SGE(8, 8)))
	}
	c.T.Sleep(kit.QuietPeriod)
	p.A.ModifyState(c, verbs.QPSReset)
	stale, next := 0, uint64(200)
	for _, w := range kit.PollWithin(c, o.SendCQ, 2*each, kit.QuietPeriod) {
		if w.ID < 200 {
			stale++
			continue
		}
		c.Equal("wr_id of the other QP", w.ID, next)
		next++
	}
	c.Equal("completions of the other QP", next-200, uint64(each))
	c.True("none of the QP that was reset", stale == 0, "%d of its completions are still there", stale)
}

func destroyOutstanding(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.SendCQ = e.CreateCQ(c, 255)
	p := e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	// There is no receive at the other side, and the requester waits for ever.
	for i := range uint64(8) {
		p.A.Post(c, kit.Send(i, mem.SGE(0, 8)))
	}
	c.T.Sleep(time.Millisecond)
	p.A.DestroyNow(c)
	c.NoErr("destroy_qp with outstanding sends", nil)
	p.B.RecvInto(c, 1, mem.SGE(32, 8))
	kit.ExpectNoCompletion(c, o.SendCQ, kit.QuietPeriod)
}

// cycles of creation.
const cycles = 10_000

// manyCycles cannot count the kernel's objects through verbs. It holds that every
// destroy succeeds, that the PD and the CQ lose their last user, and that the device
// does not run dry.
func manyCycles(c *spec.C) {
	c.Observe("cycles", cycles)
	e := kit.Open(c)
	pd, err := e.Ctx.AllocPD(c.T)
	c.NoErr("alloc_pd", err)
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 16})
	c.NoErr("create_cq", err)
	for range cycles {
		qp, err := pd.CreateQP(c.T, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq,
			Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
		kit.Must(c, "create_qp", err)
		kit.Must(c, "destroy_qp", qp.Destroy(c.T))
	}
	c.NoErr("destroy_cq", cq.Destroy(c.T))
	c.NoErr("dealloc_pd", pd.Dealloc(c.T))
	p := e.Pair(c, kit.Default())
	mem := e.Buffer(c, 64, kit.AllAccess)
	c.Status("write afterwards", p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
}

// localFailure has no expectation for the state: the specification says SQE, many devices
// go to ERR.
func localFailure(c *spec.C) {
	e := kit.Open(c)
	a, b := e.NewUD(c), e.NewUD(c)
	mem := e.Buffer(c, 512, kit.AllAccess)
	want := mem.FillRandom(c)[:8]
	ah := e.CreateAH(c, e.PathTo(e.LocalAddr))
	bad := kit.Datagram(1, ah, b.QPN(), mem.SGE(0, 8))
	bad.SGEs[0].LKey ^= 0xffffff00
	a.RecvInto(c, 10, mem.SGE(256, 64))
	c.Status("send with a wrong key", a.PostAndPoll(c, bad), verbs.WCLocProtErr)
	state := a.QueryState(c)
	c.Observe("state", state.String())
	c.True("state", state == verbs.QPSSQE || state == verbs.QPSErr, "want SQE or ERR, got %v", state)
	if state != verbs.QPSSQE {
		return
	}
	c.Status("send of the other", b.PostAndPoll(c, kit.Datagram(2, ah, a.QPN(), mem.SGE(0, 8))), verbs.WCSuccess)
	c.Status("receive in SQE", kit.PollOne(c, a.RecvCQ), verbs.WCSuccess)
	c.Equal("bytes", mem.Get(c, 256+verbs.GRHSize, 8), want)
	attr := verbs.QPAttr{State: verbs.QPSRTS, QKey: kit.QKey}
	c.NoErr("SQE to RTS", a.Modify(c.T, &attr, verbs.QPMaskState|verbs.QPMaskQKey))
	c.Status("send again", a.PostAndPoll(c, kit.Datagram(3, ah, b.QPN(), mem.SGE(0, 8))), verbs.WCSuccess)
}

// numberReuse counts how many creations pass until a destroyed QP's number comes again.
func numberReuse(c *spec.C) {
	e := kit.Open(c)
	q := e.CreateQP(c, kit.Default())
	number := q.QPN()
	q.DestroyNow(c)
	_, _, err := q.Query(c.T, verbs.QPMaskState)
	c.True("query by the old handle", err != nil, "it succeeds")
	c.Observe("errno of the query", verbs.ErrnoName(verbs.ErrnoOf(err)))
	const creations = 16
	again := 0
	for i := 1; i <= creations && again == 0; i++ {
		if e.CreateQP(c, kit.Default()).QPN() == number {
			again = i
		}
	}
	c.True("not reused at once", again != 1, "the next QP has the number of the destroyed one")
	c.Observe("reused by creation", again)
}

func destroyInGroup(c *spec.C) {
	e := kit.Open(c)
	q := e.NewUD(c)
	group := e.Group(verbs.GID{0xff, 0x0e, 10: 0xff, 11: 0xff, 12: 239, 15: 77})
	c.NoErr("attach_mcast", q.AttachMcast(c.T, group.GID, group.LID))
	c.Errno("destroy_qp in a group", q.Destroy(c.T), syscall.EBUSY)
	c.NoErr("detach_mcast", q.DetachMcast(c.T, group.GID, group.LID))
}
