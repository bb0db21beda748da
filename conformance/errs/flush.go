package errs

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// writeToNoRegion is a write to an address that no region covers.
func writeToNoRegion(id uint64, mem *kit.Buffer) verbs.SendWR {
	wr := kit.Write(id, mem, 0, mem.SGE(0, 8))
	wr.RemoteAddr = mem.Addr(mem.Len)
	return wr
}

func requesterError(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.A.Post(c, kit.Write(1, mem, 32, mem.SGE(0, 8)), writeToNoRegion(2, mem), kit.Write(3, mem, 32, mem.SGE(0, 8)))
	wc := kit.Poll(c, p.A.SendCQ, 3)
	c.Status("before", wc[0], verbs.WCSuccess)
	c.Status("failing", wc[1], verbs.WCRemAccessErr)
	c.Status("after", wc[2], verbs.WCWRFlushErr)
	c.Equal("state", p.A.QueryState(c), verbs.QPSErr)
	for i := range uint64(3) {
		wc := p.A.PostAndPoll(c, kit.Write(10+i, mem, 32, mem.SGE(0, 8)))
		c.Status("later", wc, verbs.WCWRFlushErr)
		c.Equal("wr_id", wc.ID, 10+i)
	}
}

func responderError(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	for i := range uint64(5) {
		p.B.RecvInto(c, i, mem.SGE(32, 8))
	}
	c.Status("send too long", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCRemInvReqErr)
	wc := kit.Poll(c, p.B.RecvCQ, 5)
	c.Status("receive in use", wc[0], verbs.WCLocLenErr)
	for i, w := range wc {
		c.Equal("wr_id", w.ID, uint64(i))
		if i > 0 {
			c.Status("flushed", w, verbs.WCWRFlushErr)
		}
	}
	c.Equal("state", p.B.QueryState(c), verbs.QPSErr)
}

func countOfCompletions(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, failing := range []int{0, 7, 31} {
		p := e.Pair(c, kit.Default())
		const n = 32
		var want []uint64 // signalled before, the failing one, all after it
		for i := range n {
			wr := kit.Write(uint64(i), mem, 32, mem.SGE(0, 8))
			if i == failing {
				wr = writeToNoRegion(uint64(i), mem)
			}
			if i%3 != 0 {
				wr.Flags &^= verbs.SendSignaled
			}
			if i >= failing || i%3 == 0 {
				want = append(want, uint64(i))
			}
			p.A.Post(c, wr)
		}
		wc := kit.Poll(c, p.A.SendCQ, len(want))
		var got []uint64
		for _, w := range wc {
			got = append(got, w.ID)
			status := verbs.WCSuccess
			if w.ID == uint64(failing) {
				status = verbs.WCRemAccessErr
			} else if w.ID > uint64(failing) {
				status = verbs.WCWRFlushErr
			}
			c.Status(fmt.Sprintf("request %d, failing %d", w.ID, failing), w, status)
		}
		c.Equal("wr_ids", got, want)
		kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
	}
}

func recovery(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 4096, kit.AllAccess)
	for range 3 {
		p.B.RecvInto(c, 1, mem.SGE(0, 8))
		c.Status("failing", p.A.PostAndPoll(c, writeToNoRegion(1, mem)), verbs.WCRemAccessErr)
		kit.ExpectFlushed(c, p.B.RecvCQ, 1)
		p.A.ModifyState(c, verbs.QPSReset)
		p.B.ModifyState(c, verbs.QPSReset)
		p.Connect(c)
		want := mem.FillRandom(c)[:1500]
		p.B.RecvInto(c, 2, mem.SGE(2048, 1500))
		c.Status("send after recovery", p.A.PostAndPoll(c, kit.Send(2, mem.SGE(0, 1500))), verbs.WCSuccess)
		c.Status("receive after recovery", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
		c.Equal("bytes", mem.Get(c, 2048, 1500), want)
		c.Status("the other way", p.B.PostAndPoll(c, kit.Read(3, mem, 0, mem.SGE(2048, 100))), verbs.WCSuccess)
	}
}

func otherQPs(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.SendCQ = e.CreateCQ(c, 1023)
	o.RecvCQ = o.SendCQ
	const n = 64
	mem := e.Buffer(c, 8*n+64, kit.AllAccess)
	var pairs []*kit.Pair
	for range n {
		pairs = append(pairs, e.Pair(c, o))
	}
	for i, p := range pairs {
		if i == n/2 {
			p.A.Post(c, writeToNoRegion(1000, mem))
		}
		for k := range uint64(4) {
			if i != n/2 {
				p.A.Post(c, kit.Write(uint64(i)*4+k, mem, 8*i, mem.SGE(8*n, 8)))
			}
		}
	}
	seen := map[uint64]bool{}
	for _, w := range kit.Poll(c, o.SendCQ, 4*(n-1)+1) {
		want := verbs.WCSuccess
		if w.ID == 1000 {
			want = verbs.WCRemAccessErr
		}
		if w.Status != want || seen[w.ID] {
			c.Failf("request %d: want %v once, got %v (seen before: %t)", w.ID, want, w.Status, seen[w.ID])
		}
		seen[w.ID] = true
	}
	for i, p := range pairs {
		want := verbs.QPSRTS
		if i == n/2 {
			want = verbs.QPSErr
		}
		if s := p.A.QueryState(c); s != want {
			c.Equal(fmt.Sprintf("state of QP %d", i), s, want)
		}
	}
	c.Observe("QPs untouched", n-1)
}

func unsignalledChain(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, failing := range []int{0, 20, 63} {
		failChain(c, e.Pair(c, kit.Default()), mem, failing, writeToNoRegion(0, mem), verbs.WCRemAccessErr)
	}
	// A request that fails by itself asks for no ACK of those before it. They are done all the
	// same, and without a timer.
	o := kit.Default()
	o.Timeout = 0
	local := kit.Write(0, mem, 32, mem.SGE(0, 8))
	local.SGEs[0].LKey ^= 0x7f00
	for _, failing := range []int{20, 63} {
		failChain(c, e.Pair(c, o), mem, failing, local, verbs.WCLocProtErr)
	}
}

// failChain posts 64 unsignalled writes, one of which is bad and fails.
func failChain(c *spec.C, p *kit.Pair, mem *kit.Buffer, failing int, bad verbs.SendWR, status verbs.WCStatus) {
	var chain []verbs.SendWR
	for i := range 64 {
		wr := kit.Write(0, mem, 32, mem.SGE(0, 8))
		if i == failing {
			wr = bad
		}
		wr.ID, wr.Flags = uint64(500+i), 0
		chain = append(chain, wr)
	}
	p.A.Post(c, chain...)
	wc := kit.PollOne(c, p.A.SendCQ)
	c.Status("first completion", wc, status)
	c.Equal("wr_id", wc.ID, uint64(500+failing))
	for i, w := range kit.ExpectFlushed(c, p.A.SendCQ, 63-failing) {
		c.Equal("wr_id", w.ID, uint64(500+failing+1+i))
	}
}

func statusText(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	c.Equal("text of a success", p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))).Status.String(), "SUCCESS")
	c.Equal("text of a failure", p.A.PostAndPoll(c, writeToNoRegion(2, mem)).Status.String(), "REM_ACCESS_ERR")
	seen := map[string]verbs.WCStatus{}
	for s := verbs.WCSuccess; s <= verbs.WCTMRndvIncomplete; s++ {
		text := s.String()
		c.True("text", text != "", "status %d has no text", uint32(s))
		if old, dup := seen[text]; dup {
			c.Failf("statuses %d and %d are both %q", uint32(old), uint32(s), text)
		}
		seen[text] = s
	}
	c.Equal("distinct texts", len(seen), int(verbs.WCTMRndvIncomplete)+1)
}

func destroyCQAfterErrors(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	o := kit.Default()
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 255})
	c.NoErr("create_cq", err)
	o.SendCQ, o.RecvCQ = cq, cq
	p := e.Pair(c, o)
	for i := range uint64(8) {
		p.B.RecvInto(c, i, mem.SGE(32, 8))
	}
	p.A.Post(c, writeToNoRegion(1, mem), kit.Send(2, mem.SGE(0, 8)))
	c.T.Sleep(kit.QuietPeriod)
	p.A.DestroyNow(c)
	p.B.DestroyNow(c)
	c.NoErr("destroy_cq with unpolled completions", cq.Destroy(c.T))
}

// neverBlocks polls an error of each kind without waiting, in a process where
// MLX5_FREEZE_ON_ERROR_CQE is not set.
func neverBlocks(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.A.Post(c, writeToNoRegion(1, mem), kit.Send(2, mem.SGE(0, 8)))
	c.T.Sleep(kit.QuietPeriod)
	var wc [4]verbs.WC
	begin := c.T.Now()
	n, err := p.A.SendCQ.Poll(c.T, wc[:])
	took := c.T.Now() - begin
	c.NoErr("poll_cq", err)
	c.Equal("completions", n, 2)
	c.Status("failing", wc[0], verbs.WCRemAccessErr)
	c.Status("flushed", wc[1], verbs.WCWRFlushErr)
	c.True("at once", took < kit.QuietPeriod, "the poll took %v", took)
}
