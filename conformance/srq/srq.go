// Package srq holds the cases of area SRQ: shared receive queues.
package srq

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("SRQ-001", shared)
	s.Case("SRQ-002", whoTook)
	s.Case("SRQ-003", tooManyWRs)
	s.Case("SRQ-004", tooManySGEs)
	s.Case("SRQ-005", fill)
	s.Case("SRQ-006", postTooManySGEs)
	s.Case("SRQ-007", postOnQP)
	s.Case("SRQ-008", limitOnce)
	s.Case("SRQ-009", limitGone)
	s.Case("SRQ-010", limitTooHigh)
	s.Case("SRQ-011", limitZero)
	s.Case("SRQ-012", noResize)
	s.Case("SRQ-013", resize)
	s.Case("SRQ-014", busy)
	s.Case("SRQ-024", otherProcess)
	s.Case("SRQ-015", empty)
	s.Case("SRQ-016", lastWQE)
	s.Case("SRQ-017", errorOfOne)
	s.Case("SRQ-018", postedBefore)
	s.Case("SRQ-019", threads)
	s.Case("SRQ-020", datagrams)
	s.Case("SRQ-021", badKey)
	s.Case("SRQ-023", number)
}

// srqGroup is pairs whose responders share an SRQ and a receive CQ.
type srqGroup struct {
	*kit.Env
	srq   *kit.SRQ
	rcq   verbs.CQ
	pairs []*kit.Pair
}

// newSRQGroup makes n pairs on an SRQ for wr receives.
func newSRQGroup(c *spec.C, n, wr int, edit func(o *kit.Options)) *srqGroup {
	e := kit.Open(c)
	g := &srqGroup{Env: e, srq: e.CreateSRQ(c, wr, 2), rcq: e.CreateCQ(c, 511)}
	for range n {
		g.join(c, edit)
	}
	return g
}

// join adds a pair.
func (g *srqGroup) join(c *spec.C, edit func(o *kit.Options)) *kit.Pair {
	o := kit.Default()
	if edit != nil {
		edit(&o)
	}
	a := g.CreateQP(c, o)
	o.PSN = o.NthPSN(0x1000)
	o.SRQ, o.RecvCQ = g.srq.SRQ, g.rcq
	p := &kit.Pair{Env: g.Env, A: a, B: g.CreateQP(c, o)}
	p.Connect(c)
	g.pairs = append(g.pairs, p)
	return p
}

// slot is where the receive numbered i puts its 8 bytes; sends come from in front.
const firstSlot = 64

func slot(mem *kit.Buffer, i int) verbs.SGE { return mem.SGE(firstSlot+8*i, 8) }

func (g *srqGroup) recvSlots(c *spec.C, mem *kit.Buffer, from, to int) {
	for i := from; i < to; i++ {
		g.srq.RecvInto(c, uint64(i), slot(mem, i))
	}
}

func shared(c *spec.C) {
	const qps, each = 8, 8
	g := newSRQGroup(c, qps, qps*each, nil)
	mem := g.Buffer(c, firstSlot+8*qps*each, kit.AllAccess)
	g.recvSlots(c, mem, 0, qps*each)
	sent := map[uint64]uint32{} // message to the QP that receives it
	for i := range each {
		for n, p := range g.pairs {
			word := c.Rand().Uint64()
			sent[word] = p.B.QPN()
			mem.SetWord(c, 8*n, word)
			p.A.Post(c, kit.Send(uint64(i), mem.SGE(8*n, 8)))
			kit.ExpectSuccess(c, p.A.SendCQ, 1)
		}
	}
	took := map[uint64]bool{}
	for _, wc := range kit.ExpectSuccess(c, g.rcq, qps*each) {
		c.True("request", !took[wc.ID] && wc.ID < qps*each, "request %d completes twice, or was never posted", wc.ID)
		took[wc.ID] = true
		word := mem.Word(c, firstSlot+8*int(wc.ID))
		c.Equal("receiver of the message", wc.QPN == sent[word], true)
		delete(sent, word)
	}
	c.Equal("messages that are missing", len(sent), 0)
	kit.ExpectNoCompletion(c, g.rcq, kit.QuietPeriod)
}

func whoTook(c *spec.C) {
	const n = 4
	g := newSRQGroup(c, n, 16, nil)
	mem := g.Buffer(c, firstSlot+8*16, kit.AllAccess)
	for i := range 16 {
		g.recvSlots(c, mem, i, i+1)
		p := g.pairs[c.Rand().Intn(n)]
		wr := kit.Send(1, mem.SGE(0, 8))
		if i%2 == 1 {
			wr = kit.Write(1, mem, 0, mem.SGE(8, 8))
			wr.Opcode = verbs.WRRDMAWriteImm
		}
		c.Status("send", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
		wc := kit.ExpectSuccess(c, g.rcq, 1)[0]
		c.Equal("QP of the completion", wc.QPN == p.B.QPN(), true)
		c.Equal("wr_id", wc.ID, uint64(i))
	}
}

// create asks for an SRQ and destroys what comes.
func create(c *spec.C, e *kit.Env, wr, sge int) error {
	s, err := e.PD.CreateSRQ(c.T, verbs.SRQInitAttr{MaxWR: uint32(wr), MaxSGE: uint32(sge)})
	if err == nil {
		kit.Must(c, "destroy_srq", s.Destroy(c.T))
	}
	return err
}

func tooManyWRs(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	c.Errno("max_srq_wr", create(c, e, a.MaxSRQWR, 1), 0)
	c.Errno("max_srq_wr + 1", create(c, e, a.MaxSRQWR+1, 1), syscall.EINVAL)
	c.Errno("2^32 - 1", create(c, e, 1<<32-1, 1), syscall.EINVAL)
}

func tooManySGEs(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	c.Errno("max_srq_sge", create(c, e, 1, a.MaxSRQSGE), 0)
	c.Errno("max_srq_sge + 1", create(c, e, 1, a.MaxSRQSGE+1), syscall.EINVAL)
	c.Errno("2^32 - 1", create(c, e, 1, 1<<32-1), syscall.EINVAL)
}

func fill(c *spec.C) {
	g := newSRQGroup(c, 1, 20, nil)
	mem := g.Buffer(c, 64, kit.AllAccess)
	n := int(g.srq.Caps().MaxWR)
	c.Observe("granted max_wr", n)
	c.True("granted", n >= 20, "max_wr %d granted, 20 asked for", n)
	wrs := []verbs.RecvWR{{ID: 1, SGEs: []verbs.SGE{mem.SGE(8, 8)}}}
	for round := range 3 { // the later ones use requests again
		for i := range n {
			bad, err := g.srq.PostRecv(c.T, wrs)
			if err != nil {
				c.Failf("round %d: request %d of %d is refused: %v (bad_wr %d)", round+1, i+1, n, err, bad)
			}
		}
		bad, err := g.srq.PostRecv(c.T, wrs)
		c.Errno("one more", err, syscall.ENOMEM)
		if err == nil {
			return // known to: the rest counts on a queue that is full
		}
		c.Equal("bad_wr", bad, 0)
		for i := range n {
			c.Status("send", g.pairs[0].A.PostAndPoll(c, kit.Send(uint64(i), mem.SGE(0, 8))), verbs.WCSuccess)
		}
		kit.ExpectSuccess(c, g.rcq, n)
	}
}

func postTooManySGEs(c *spec.C) {
	e := kit.Open(c)
	s := e.CreateSRQ(c, 16, 3)
	mem := e.Buffer(c, 64, kit.AllAccess)
	n := int(s.Caps().MaxSGE)
	sges := make([]verbs.SGE, n+1)
	for i := range sges {
		sges[i] = mem.SGE(0, 1)
	}
	bad, err := s.PostRecv(c.T, []verbs.RecvWR{{ID: 1, SGEs: sges[:n]}, {ID: 2, SGEs: sges}, {ID: 3}})
	c.Errno("max_sge + 1", err, syscall.EINVAL)
	c.Equal("bad_wr", bad, 1)
}

func postOnQP(c *spec.C) {
	g := newSRQGroup(c, 1, 16, nil)
	mem := g.Buffer(c, 64, kit.AllAccess)
	bad, err := g.pairs[0].B.PostRecv(c.T, []verbs.RecvWR{{ID: 1, SGEs: []verbs.SGE{mem.SGE(0, 8)}}})
	c.ErrnoIn("post_recv on the QP", err, syscall.EINVAL, syscall.ENOMEM)
	c.Equal("bad_wr", bad, 0)
}

func busy(c *spec.C) {
	g := newSRQGroup(c, 1, 16, nil)
	c.Errno("destroy_srq with a QP", g.srq.Destroy(c.T), syscall.EBUSY)
	mem := g.Buffer(c, firstSlot+8, kit.AllAccess)
	g.recvSlots(c, mem, 0, 1)
	c.Status("send", g.pairs[0].A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCSuccess)
	kit.ExpectSuccess(c, g.rcq, 1)
	g.pairs[0].B.DestroyNow(c)
	g.srq.DestroyNow(c)
}

func number(c *spec.C) {
	e := kit.Open(c)
	s := e.CreateSRQ(c, 16, 1)
	n, err := s.Num(c.T)
	if c.ErrnoIn("get_srq_num", err, 0, syscall.EOPNOTSUPP) == 0 {
		c.True("number", n>>24 == 0, "it has more than 24 bits: %#x", n)
	}
}

func noResize(c *spec.C) {
	e := kit.Open(c)
	s := e.CreateSRQ(c, 16, 1)
	c.ErrnoIn("modify_srq to more", s.Modify(c.T, verbs.SRQAttr{MaxWR: 64}, verbs.SRQMaskMaxWR), syscall.EINVAL, syscall.EOPNOTSUPP)
	c.ErrnoIn("modify_srq to fewer", s.Modify(c.T, verbs.SRQAttr{MaxWR: 8}, verbs.SRQMaskMaxWR), syscall.EINVAL, syscall.EOPNOTSUPP)
}

// resize makes an SRQ smaller than what is posted to it, which is refused and changes nothing, and
// then as small as that.
func resize(c *spec.C) {
	const posted = 8
	e := kit.Open(c)
	s := e.CreateSRQ(c, 64, 1)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for i := range posted {
		s.RecvInto(c, uint64(i), mem.All())
	}
	c.ErrnoIn("modify_srq to one below what is posted", s.Modify(c.T, verbs.SRQAttr{MaxWR: posted - 1}, verbs.SRQMaskMaxWR), syscall.EINVAL)
	a, err := s.Query(c.T)
	kit.Must(c, "query_srq", err)
	c.Equal("size afterwards", a.MaxWR, s.Caps().MaxWR)
	c.Errno("modify_srq to more", s.Modify(c.T, verbs.SRQAttr{MaxWR: 128}, verbs.SRQMaskMaxWR), 0)
}
