package qps

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func registerLife(s *spec.Suite) {
	s.Case("QPS-028", resetDiscards)
	s.Case("QPS-030", destroyOutstanding)
	s.Case("QPS-032", manyCycles)
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
	c.T.Sleep(kit.Silence)
	p.A.To(c, verbs.QPSReset)
	wc := kit.Good(c, o.SendCQ, each)
	for i, w := range wc {
		c.Equal("wr_id of the other QP", w.ID, 200+uint64(i))
	}
	kit.Nothing(c, o.SendCQ, kit.Silence)
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
	p.A.Kill(c)
	c.NoErr("destroy_qp with outstanding sends", nil)
	p.B.RecvInto(c, 1, mem.SGE(32, 8))
	kit.Nothing(c, o.SendCQ, kit.Silence)
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
	c.Status("write afterwards", p.A.Do(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
}
