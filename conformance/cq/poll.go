package cq

import (
	"slices"
	"sync/atomic"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// wrIDs are the work request IDs of completions.
func wrIDs(wcs []verbs.WC) []uint64 {
	var out []uint64
	for _, w := range wcs {
		out = append(out, w.ID)
	}
	return out
}

// awaitQuiet waits until what was posted has completed.
func awaitQuiet(c *spec.C) { c.T.Sleep(kit.QuietPeriod) }

func sendOrder(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 8192, kit.AllAccess)
	var want []uint64
	for round := range 4 {
		var wrs []verbs.SendWR
		for i := range 32 {
			id := uint64(round*32 + i)
			n := 1 + c.Rand().Intn(2048)
			var wr verbs.SendWR
			switch i % 3 {
			case 0:
				wr = kit.Write(id, mem, 4096, mem.SGE(0, n))
			case 1:
				wr = kit.Read(id, mem, 0, mem.SGE(4096, n))
			default:
				p.B.RecvInto(c, id, mem.SGE(4096, 2048))
				wr = kit.Send(id, mem.SGE(0, n))
			}
			wrs = append(wrs, wr)
			want = append(want, id)
		}
		p.A.Post(c, wrs...)
		c.Equal("order", wrIDs(kit.ExpectSuccess(c, p.A.SendCQ, 32)), want[round*32:])
	}
}

func recvOrder(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 8192, kit.AllAccess)
	var want []uint64
	for i := range 64 {
		id := c.Rand().Uint64()
		p.B.RecvInto(c, id, mem.SGE(4096, 2048))
		want = append(want, id)
		wr := kit.Send(uint64(i), mem.SGE(0, 1+c.Rand().Intn(2048)))
		if i%4 == 3 {
			wr = kit.Write(uint64(i), mem, 4096, mem.SGE(0, 8))
			wr.Opcode = verbs.WRRDMAWriteImm
		}
		p.A.Post(c, wr)
	}
	c.True("order", slices.Equal(wrIDs(kit.ExpectSuccess(c, p.B.RecvCQ, 64)), want), "receives complete in another order than posted")
	kit.ExpectSuccess(c, p.A.SendCQ, 64)
}

func pollSome(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	const n = 10
	for i := range uint64(n) {
		p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
	}
	awaitQuiet(c)
	next := uint64(0)
	for left := n; ; {
		for _, k := range []int{1, 3, 4, 5, 2} {
			wc := make([]verbs.WC, k)
			got, err := p.A.SendCQ.Poll(c.T, wc)
			c.NoErr("poll_cq", err)
			c.Equal("completions", got, min(k, left))
			for _, w := range wc[:got] {
				c.Equal("wr_id", w.ID, next)
				next++
			}
			left -= got
		}
		if left == 0 {
			return
		}
	}
}

// pollNone polls for no completion. A negative count cannot be written with a slice.
func pollNone(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	for i := range uint64(3) {
		p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
	}
	awaitQuiet(c)
	for _, wc := range [][]verbs.WC{nil, {}} {
		n, err := p.A.SendCQ.Poll(c.T, wc)
		c.Observe("poll for none", n)
		c.True("answer", n == 0 && err == nil || n == -1, "poll returned %d, %v", n, err)
	}
	c.Equal("still there", wrIDs(kit.ExpectSuccess(c, p.A.SendCQ, 3)), []uint64{0, 1, 2})
}

func errorFields(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	bad := kit.Write(0xfeedfacecafe, mem, 32, mem.SGE(0, 8))
	bad.RKey ^= 0x100
	wc := p.A.PostAndPoll(c, bad)
	c.Status("write with a bad rkey", wc, verbs.WCRemAccessErr)
	c.Equal("wr_id", wc.ID, bad.ID)
	c.True("qp_num", wc.QPN == p.A.QPN(), "QPN %#x, want %#x", wc.QPN, p.A.QPN())
	c.True("vendor_err", wc.VendorErr != 0, "vendor_err is 0 on an error that the device found")
	flushed := kit.Send(0xabcdef0123456789, mem.SGE(0, 8))
	wc = p.A.PostAndPoll(c, flushed)
	c.Status("send on the QP in error", wc, verbs.WCWRFlushErr)
	c.Equal("wr_id of the flushed", wc.ID, flushed.ID)
	c.True("qp_num of the flushed", wc.QPN == p.A.QPN(), "QPN %#x, want %#x", wc.QPN, p.A.QPN())
}

// sameCQForBothDirections runs one exchange with one CQ for both directions, and with two.
func sameCQForBothDirections(c *spec.C) {
	e := kit.Open(c)
	type result struct{ sends, receives []uint64 }
	exchange := func(shared bool) (r result) {
		o := kit.Default()
		if shared {
			o.SendCQ = e.CreateCQ(c, 255)
			o.RecvCQ = o.SendCQ
		}
		p := e.Pair(c, o)
		mem := e.Buffer(c, 64, kit.AllAccess)
		for i := range uint64(8) {
			p.A.RecvInto(c, 100+i, mem.SGE(32, 8))
			p.B.RecvInto(c, 200+i, mem.SGE(40, 8))
			p.A.Post(c, kit.Send(300+i, mem.SGE(0, 8)))
			p.B.Post(c, kit.Send(400+i, mem.SGE(8, 8)))
		}
		var wcs []verbs.WC
		if shared {
			wcs = kit.ExpectSuccess(c, p.A.SendCQ, 32)
		} else {
			for _, q := range []*kit.QP{p.A, p.B} {
				wcs = append(append(wcs, kit.ExpectSuccess(c, q.SendCQ, 8)...), kit.ExpectSuccess(c, q.RecvCQ, 8)...)
			}
		}
		for _, q := range []*kit.QP{p.A, p.B} {
			for _, w := range wcs {
				switch {
				case w.QPN != q.QPN():
				case w.Opcode >= verbs.WCOpRecv:
					r.receives = append(r.receives, w.ID)
				default:
					r.sends = append(r.sends, w.ID)
				}
			}
		}
		return r
	}
	one, two := exchange(true), exchange(false)
	c.Equal("sends, by QP and in order", one.sends, two.sends)
	c.Equal("receives, by QP and in order", one.receives, two.receives)
	c.Equal("completions", len(one.sends)+len(one.receives), 32)
}

func onlySignalled(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	var want []uint64
	for i := range uint64(40) {
		wr := kit.Write(i, mem, 32, mem.SGE(0, 8))
		if c.Rand().Intn(3) > 0 && i != 39 {
			wr.Flags &^= verbs.SendSignaled
		} else {
			want = append(want, i)
		}
		p.A.Post(c, wr)
	}
	c.Equal("signalled", wrIDs(kit.ExpectSuccess(c, p.A.SendCQ, len(want))), want)
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
}

func twoPollers(c *spec.C) {
	o := kit.Default()
	p := kit.NewPair(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	const rounds, each = 16, 32
	const total = rounds * each
	var taken atomic.Int64
	got := [2][]uint64{}
	pollers := [2]verbs.Thread{}
	for i := range pollers {
		pollers[i] = c.Go("poller", -1, func(c *spec.C) {
			for end := c.T.Now() + kit.CompletionTimeout; taken.Load() < total && c.T.Now() < end; {
				wc := make([]verbs.WC, 3)
				n, err := p.A.SendCQ.PollWait(c.T, wc, kit.QuietPeriod)
				kit.Must(c, "poll_cq", err)
				for _, w := range wc[:n] {
					if w.Status != verbs.WCSuccess {
						c.Status("write", w, verbs.WCSuccess)
					}
					got[i] = append(got[i], w.ID)
				}
				taken.Add(int64(n))
			}
		})
	}
	for r := range rounds {
		for i := range uint64(each) {
			p.A.Post(c, kit.Write(uint64(r)*each+i, mem, 32, mem.SGE(0, 8)))
		}
		for end := c.T.Now() + kit.CompletionTimeout; taken.Load() < int64(r+1)*each && c.T.Now() < end; {
			c.T.Sleep(kit.QuietPeriod / 1000)
		}
	}
	kit.JoinThreads(c, pollers[:]...)
	all := slices.Sorted(slices.Values(append(slices.Clone(got[0]), got[1]...)))
	c.Equal("completions", len(all), total)
	for i, id := range all {
		if id != uint64(i) {
			c.Failf("completion %d has wr_id %d: one was lost or taken twice", i, id)
		}
	}
	for i, g := range got {
		c.True("order seen by each", slices.IsSorted(g), "poller %d saw completions out of order", i)
	}
}

func destroyedQP(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.SendCQ = e.CreateCQ(c, 255)
	gone, stays := e.Pair(c, o), e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for i := range uint64(20) {
		gone.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
		awaitQuiet(c) // completions of the two take turns in the ring
		stays.A.Post(c, kit.Write(100+i, mem, 40, mem.SGE(0, 8)))
		awaitQuiet(c)
	}
	gone.A.DestroyNow(c)
	stale, next := 0, uint64(100)
	for i, w := range kit.PollWithin(c, o.SendCQ, 40, kit.QuietPeriod) {
		if w.ID < 100 {
			stale++
			continue
		}
		c.Equal("wr_id", w.ID, next)
		c.True("qp_num", w.QPN == stays.A.QPN(), "completion %d is of QP %#x", i, w.QPN)
		next++
	}
	c.Equal("completions of the other QP", next-100, uint64(20))
	c.True("none of the QP that is gone", stale == 0, "%d of its completions are still there", stale)
	c.Status("the other QP goes on", stays.A.PostAndPoll(c, kit.Write(7, mem, 40, mem.SGE(0, 8))), verbs.WCSuccess)
}
