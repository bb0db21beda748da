package cq

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

func resize(c *spec.C) {
	e := kit.Open(c)
	cq := e.CreateCQ(c, 63)
	o := kit.Default()
	o.SendCQ = cq
	p := e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, n := range []int{255, 1000, 31, 7, 64} {
		c.NoErr("resize_cq", cq.Resize(c.T, n))
		c.Observe("size", []int{n, cq.Cap()})
		c.True("size returned", cq.Cap() >= n, "asked for %d entries, got %d", n, cq.Cap())
		for i := range uint64(20) { // more than the smallest ring, to pass its end
			c.Status("write", p.A.PostAndPoll(c, kit.Write(i, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
		}
	}
}

// outstanding leaves n completions in a new CQ of the given size.
func outstanding(c *spec.C, e *kit.Env, size, n int) (verbs.CQ, *kit.Pair) {
	cq := e.CreateCQ(c, size)
	return cq, unpolledWrites(c, e, cq, n)
}

// expectInOrder takes n completions, whose wr_ids count up from 0.
func expectInOrder(c *spec.C, cq verbs.CQ, n int) {
	for i, w := range kit.ExpectSuccess(c, cq, n) {
		if w.ID != uint64(i) {
			c.Failf("completion %d has wr_id %d", i, w.ID)
		}
	}
	kit.ExpectNoCompletion(c, cq, kit.QuietPeriod)
}

func resizeBelowOutstanding(c *spec.C) {
	e := kit.Open(c)
	cq, _ := outstanding(c, e, 63, 40)
	c.Errno("resize_cq below the outstanding completions", cq.Resize(c.T, 7), syscall.EINVAL)
	c.Equal("size", cq.Cap(), 63)
	expectInOrder(c, cq, 40)
}

func resizeOutside(c *spec.C) {
	e := kit.Open(c)
	cq := e.CreateCQ(c, 63)
	c.ErrnoIn("resize_cq to 0", cq.Resize(c.T, 0), syscall.EINVAL)
	c.ErrnoIn("resize_cq to max_cqe + 1", cq.Resize(c.T, maxCQE(c, e)+1), syscall.EINVAL)
	c.Equal("size", cq.Cap(), 63)
}

func resizeToSame(c *spec.C) {
	e := kit.Open(c)
	cq, p := outstanding(c, e, 63, 40)
	was := cq.Cap()
	c.NoErr("resize_cq to a size that rounds to the present one", cq.Resize(c.T, was-10))
	c.Equal("size", cq.Cap(), was)
	expectInOrder(c, cq, 40)
	mem := e.Buffer(c, 64, kit.AllAccess)
	c.Status("write afterwards", p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
}

// unpolledWrites completes n signalled writes on a CQ that the case does not poll.
func unpolledWrites(c *spec.C, e *kit.Env, cq verbs.CQ, n int) *kit.Pair {
	o := kit.Default()
	o.SendCQ = cq
	p := e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for i := range uint64(n) {
		p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
	}
	awaitQuiet(c)
	return p
}

func overrun(c *spec.C) {
	e := kit.Open(c)
	cq := e.CreateCQ(c, 7)
	size := cq.Cap()
	p := unpolledWrites(c, e, cq, 4*(size+1))
	ev, err := e.Ctx.AsyncEvent(c.T, kit.CompletionTimeout)
	c.NoErr("get_async_event", err)
	c.Equal("event", ev.Type, verbs.EventCQErr)
	c.True("CQ of the event", ev.CQ == cq, "the event names another CQ")
	e.Ctx.AckAsyncEvent(c.T, ev)
	var others []uint32
	for {
		ev, err := e.Ctx.AsyncEvent(c.T, kit.QuietPeriod)
		if err != nil {
			break
		}
		others = append(others, uint32(ev.Type))
		e.Ctx.AckAsyncEvent(c.T, ev)
	}
	c.Observe("further events", others)
	c.Observe("state of the QP", p.A.QueryState(c).String())
	fitted := kit.PollWithin(c, cq, 4*(size+1), kit.QuietPeriod)
	c.True("what fitted", len(fitted) >= size && len(fitted) <= size+1, "%d completions of a CQ of %d", len(fitted), size)
	for i, w := range fitted {
		c.Equal("wr_id", w.ID, uint64(i))
		c.Status("completion that fitted", w, verbs.WCSuccess)
	}
}

func overrunIgnored(c *spec.C) {
	e := kit.Open(c)
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 7, Ex: true, CompMask: maskFlags, Flags: verbs.CQIgnoreOverrun})
	c.NoErr("create_cq_ex with IGNORE_OVERRUN", err)
	kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
	p := unpolledWrites(c, e, cq, 4*(cq.Cap()+1))
	ev, err := e.Ctx.AsyncEvent(c.T, kit.QuietPeriod)
	c.True("no event", err != nil, "event %d", ev.Type)
	c.Equal("state of the QP", p.A.QueryState(c), verbs.QPSRTS)
}

func cqeSizeVariable(c *spec.C) {
	e := kit.Open(c)
	for _, bad := range []string{"0", "32", "100", "256", "-64"} {
		o := kit.StartOtherProcess(c, 0, map[string]string{"MLX5_CQE_SIZE": bad})
		_, err := o.DoErr(c, player.Open, nil, nil)
		c.Errno("create_cq with MLX5_CQE_SIZE="+bad, err, syscall.EINVAL)
	}
	for _, good := range []string{"64", "128"} {
		other := kit.OpenOtherProcess(c, 0, map[string]string{"MLX5_CQE_SIZE": good})
		_, b := e.PairWith(c, other, kit.Default())
		from, to := other.Buffer(c, 64, kit.AllAccess, 0), e.Buffer(c, 64, kit.AllAccess)
		want := c.Rand().Bytes(64)
		from.Set(c, 0, want)
		other.Do(c, player.PostSend, kit.Args{"qp": b.ID, "id": 1, "opcode": uint64(verbs.WRRDMAWrite),
			"flags": uint64(verbs.SendSignaled), "buf": from.ID, "len": 64, "remote": to.Addr(0), "rkey": uint64(to.MR.RKey())}, nil)
		got := other.AwaitStatuses(c, 1, kit.CompletionTimeout)
		c.True("completion with MLX5_CQE_SIZE="+good, len(got) == 1 && got[0] == verbs.WCSuccess, "statuses %v", got)
		to.ExpectContents(c, "bytes with MLX5_CQE_SIZE="+good, want)
	}
}

// scatterToCQE reads small pieces with signalling of every request, which lets the
// driver ask for data in the CQE, and without, which does not.
func scatterToCQE(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 256, kit.AllAccess)
	want := src.FillRandom(c)
	for _, all := range []bool{true, false} {
		o := kit.Default()
		o.SigAll = all
		p := e.Pair(c, o)
		dst := e.Buffer(c, 256, kit.AllAccess)
		step := map[bool]string{true: "sq_sig_all", false: "signalled one by one"}[all]
		for _, n := range []int{1, 4, 16, 31, 32, 33, 63, 64, 65, 128} {
			dst.FillByte(c, 0)
			off := c.Rand().Intn(64)
			half := n / 2
			wr := kit.Read(uint64(n), src, off, dst.SGE(0, half), dst.SGE(128, n-half))
			c.Status("read, "+step, p.A.PostAndPoll(c, wr), verbs.WCSuccess)
			c.Equal("first part", dst.Get(c, 0, half), want[off:off+half])
			c.Equal("second part", dst.Get(c, 128, n-half), want[off+half:off+n])
			c.Equal("bytes after it", dst.Get(c, 128+n-half, 8), make([]byte, 8))
		}
	}
}
