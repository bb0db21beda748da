package dv

import (
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func registerMemcpy(s *spec.Suite) {
	s.Case("DV-016", copied)
	s.Case("DV-017", copyRefused)
	s.Case("DV-018", copyTooLong)
}

// newCopier is a pair of queue pairs of which the first has the device copy.
func newCopier(c *spec.C, e *kit.Env) *kit.Pair {
	o := kit.Default()
	o.SendOps = verbs.QPExRDMAWrite | verbs.QPExRDMARead
	o.Direct = &verbs.DirectQPAttr{CompMask: verbs.DirectQPSendOpsFlags, SendOpsFlags: verbs.DirectQPExMemcpy}
	return e.Pair(c, o)
}

// tryCopy posts one copy.
func tryCopy(c *spec.C, q *kit.QP, id uint64, to, from verbs.SGE, n uint64) error {
	x := directEx(c, q)
	x.WRStart(c.T)
	x.SetWR(id, verbs.SendSignaled)
	x.WRMemcpy(c.T, to.LKey, to.Addr, from.LKey, from.Addr, n)
	return x.WRComplete(c.T)
}

func copyNow(c *spec.C, q *kit.QP, id uint64, to, from verbs.SGE) verbs.WC {
	c.Errno("post of a copy", tryCopy(c, q, id, to, from, uint64(from.Length)), 0)
	return kit.PollOne(c, q.SendCQ)
}

// maxCopy is how much the device copies at once.
func maxCopy(c *spec.C, e *kit.Env) uint64 {
	a, err := direct(c, e).QueryDirect(c.T, verbs.DirectWRMemcpyLength)
	c.NoErr("query_device", err)
	c.Equal("comp_mask", a.CompMask, verbs.DirectWRMemcpyLength)
	c.True("max_wr_memcpy_length", a.MaxWRMemcpyLength > 0, "the device copies nothing")
	return a.MaxWRMemcpyLength
}

func copied(c *spec.C) {
	e := kit.Open(c)
	p := newCopier(c, e)
	size := int(min(maxCopy(c, e), 300_000))
	src, dst := p.Buffer(c, size, verbs.AccessLocalWrite), p.Buffer(c, size, verbs.AccessLocalWrite)
	sent, want := src.FillRandom(c), dst.FillRandom(c)
	for i, x := range []struct{ from, to, n int }{{0, 0, 1}, {3, 4095, 2}, {4000, 17, 4096}, {1, 0, size - 1}, {0, 0, size}} {
		wc := copyNow(c, p.A, uint64(i), dst.SGE(x.to, x.n), src.SGE(x.from, x.n))
		c.Status("copy", wc, verbs.WCSuccess)
		c.Equal("opcode", wc.Opcode, verbs.WCOpDriver3)
		c.Equal("wr_id", wc.ID, uint64(i))
		copy(want[x.to:x.to+x.n], sent[x.from:])
		dst.ExpectContents(c, "bytes copied", want)
	}
	src.ExpectContents(c, "the source", sent)

	mixedCopies(c, p, src, dst)
	want = dst.Get(c, 0, size)
	sent = src.Get(c, 0, size)

	// Copies and a WRITE in one batch complete in order.
	const each, n = 5000, 6
	x := directEx(c, p.A)
	x.WRStart(c.T)
	for i := range n {
		x.SetWR(uint64(100+i), verbs.SendSignaled)
		if from, to := src.SGE(i*each, each), dst.SGE((n-i)*each, each); i == 2 {
			x.WRRDMAWrite(c.T, 0, to.Addr) // by a key that does not exist, so that what follows is flushed
			x.SetSGE(c.T, from)
		} else {
			x.WRMemcpy(c.T, to.LKey, to.Addr, from.LKey, from.Addr, each)
		}
		if i < 2 {
			copy(want[(n-i)*each:], sent[i*each:(i+1)*each])
		}
	}
	c.Errno("post of a batch", x.WRComplete(c.T), 0)
	for i, wc := range kit.Poll(c, p.A.SendCQ, n) {
		c.Equal("wr_id", wc.ID, uint64(100+i))
		switch {
		case i < 2:
			c.Status("copy before the error", wc, verbs.WCSuccess)
		case i == 2:
			c.Status("WRITE by a key that does not exist", wc, verbs.WCRemAccessErr)
		default:
			c.Status("copy behind the error", wc, verbs.WCWRFlushErr)
		}
	}
	c.Equal("bytes of the batch", dst.Get(c, (n-1)*each, 2*each), want[(n-1)*each:(n+1)*each])
}

// mixedCopies posts long copies with READs and WRITEs behind them, which are done before: all
// complete in order.
func mixedCopies(c *spec.C, p *kit.Pair, src, dst *kit.Buffer) {
	far := p.Buffer(c, 20_000, kit.AllAccess)
	sent, there := src.FillRandom(c), far.FillRandom(c)
	want := dst.Get(c, 0, dst.Len)
	half := dst.Len / 2
	x := directEx(c, p.A)
	x.WRStart(c.T)
	for i := range 8 {
		x.SetWR(uint64(200+i), verbs.SendSignaled)
		switch i % 4 {
		case 0:
			x.WRMemcpy(c.T, dst.MR.LKey(), dst.Addr(0), src.MR.LKey(), src.Addr(i*100), uint64(half))
			copy(want[:half], sent[i*100:])
		case 1, 2:
			at := half + i*3000
			x.WRRDMARead(c.T, far.MR.RKey(), far.Addr(i*2000))
			x.SetSGE(c.T, dst.SGE(at, 2500))
			copy(want[at:at+2500], there[i*2000:])
		case 3:
			x.WRRDMAWrite(c.T, far.MR.RKey(), far.Addr(i*2500))
			x.SetSGE(c.T, src.SGE(0, 2000))
			copy(there[i*2500:i*2500+2000], sent)
		}
	}
	c.Errno("post of a mixed batch", x.WRComplete(c.T), 0)
	ops := []verbs.WCOpcode{verbs.WCOpDriver3, verbs.WCOpRDMARead, verbs.WCOpRDMARead, verbs.WCOpRDMAWrite}
	for i, wc := range kit.ExpectSuccess(c, p.A.SendCQ, 8) {
		c.Equal("wr_id", wc.ID, uint64(200+i))
		c.Equal("opcode", wc.Opcode, ops[i%4])
	}
	dst.ExpectContents(c, "bytes copied and read", want)
	far.ExpectContents(c, "bytes written", there)
}

func copyRefused(c *spec.C) {
	e := kit.Open(c)
	const size = 4096
	src, dst, fixed := e.Buffer(c, size, kit.AllAccess), e.Buffer(c, size, kit.AllAccess), e.Buffer(c, size, verbs.AccessRemoteRead)
	other, err := e.Ctx.AllocPD(c.T)
	c.NoErr("alloc_pd", err)
	c.Defer(func() { c.NoErr("dealloc_pd", other.Dealloc(c.T)) })
	foreign := e.BufferOn(c, other, size, kit.AllAccess)
	src.FillRandom(c)
	kept := map[*kit.Buffer][]byte{dst: dst.FillRandom(c), fixed: fixed.FillRandom(c), foreign: foreign.FillRandom(c)}
	longer := func(s verbs.SGE) verbs.SGE { s.Addr++; return s }
	nobody := src.All()
	nobody.LKey = 0
	for _, x := range []struct {
		step     string
		to, from verbs.SGE
	}{
		{"from a key of another PD", dst.All(), foreign.All()},
		{"to a key of another PD", foreign.All(), src.All()},
		{"to a key without local write", fixed.All(), src.All()},
		{"from beyond the end", dst.All(), longer(src.All())},
		{"to beyond the end", longer(dst.All()), src.All()},
		{"from a key that does not exist", dst.All(), nobody},
	} {
		c.Status(x.step, copyNow(c, newCopier(c, e).A, 1, x.to, x.from), verbs.WCLocProtErr)
	}
	for _, b := range []*kit.Buffer{dst, fixed, foreign} {
		b.ExpectContents(c, "bytes that nothing was copied to", kept[b])
	}
	wc := copyNow(c, newCopier(c, e).A, 2, dst.All(), fixed.All())
	c.Status("from a key without local write", wc, verbs.WCSuccess)
	dst.ExpectContents(c, "bytes copied", kept[fixed])
}

func copyTooLong(c *spec.C) {
	e := kit.Open(c)
	p := newCopier(c, e)
	limit := maxCopy(c, e)
	src, dst := p.Buffer(c, 4096, kit.AllAccess), p.Buffer(c, 4096, kit.AllAccess)
	was, sent := dst.FillRandom(c), src.FillRandom(c)
	c.ErrnoIn("one byte more than the maximum", tryCopy(c, p.A, 1, dst.All(), src.All(), limit+1), syscall.EINVAL)
	c.ErrnoIn("nothing", tryCopy(c, p.A, 2, dst.All(), src.All(), 0), syscall.EINVAL)
	x := directEx(c, p.A)
	x.WRStart(c.T)
	x.SetWR(3, verbs.SendSignaled)
	x.WRMemcpy(c.T, dst.MR.LKey(), dst.Addr(0), src.MR.LKey(), src.Addr(0), 64)
	x.WRMemcpy(c.T, dst.MR.LKey(), dst.Addr(0), src.MR.LKey(), src.Addr(0), limit+1)
	c.ErrnoIn("a batch with one that is too long", x.WRComplete(c.T), syscall.EINVAL)
	kit.ExpectNoCompletion(c, p.A.SendCQ, time.Millisecond)
	dst.ExpectContents(c, "bytes that nothing was copied to", was)
	c.Status("a copy behind those that were refused", copyNow(c, p.A, 4, dst.All(), src.All()), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes copied", sent)
}
