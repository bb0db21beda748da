package odp

import (
	"bytes"
	"math"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// faultInTheMiddle writes a message of several packets to a page that is there and others that are
// not.
func faultInTheMiddle(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	c.Status("write of one byte", x.pair.A.PostAndPoll(c, kit.Write(1, x.to, 0, x.from.SGE(0, 1))), verbs.WCSuccess)
	c.Status("write of all", x.pair.A.PostAndPoll(c, kit.Write(2, x.to, 0, x.from.All())), verbs.WCSuccess)
	c.True("contents", bytes.Equal(x.to.Get(c, 0, size), x.rand), "other bytes")
	kit.ExpectNoCompletion(c, x.pair.A.SendCQ, time.Millisecond)
	kit.ExpectNoCompletion(c, x.pair.B.RecvCQ, time.Millisecond)
}

// onlyDelay has the peer page in for each operation: with RNR retries without end nothing fails.
func onlyDelay(c *spec.C) {
	e := kit.Open(c)
	p := e.Pair(c, options())
	from := e.Buffer(c, size, kit.AllAccess)
	want := from.FillRandom(c)
	for range 4 {
		to := e.Paged(c, size, kit.AllAccess)
		c.Status("read", p.A.PostAndPoll(c, kit.Read(1, to, 0, from.SGE(0, 8))), verbs.WCSuccess)
		from.Set(c, 0, want)
		c.Status("write", p.A.PostAndPoll(c, kit.Write(2, to, kit.Page, from.SGE(0, 2*kit.Page))), verbs.WCSuccess)
		p.B.RecvInto(c, 3, to.SGE(3*kit.Page, 2*kit.Page))
		c.Status("send", p.A.PostAndPoll(c, kit.Send(4, from.SGE(0, 2*kit.Page))), verbs.WCSuccess)
		c.Status("receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
		got := to.Get(c, kit.Page, 4*kit.Page)
		c.True("contents", bytes.Equal(got[:2*kit.Page], want[:2*kit.Page]) && bytes.Equal(got[2*kit.Page:], want[:2*kit.Page]), "other bytes")
	}
}

// manyFaultsOfAPage has many connections meet one absent page at once.
func manyFaultsOfAPage(c *spec.C) {
	n := c.Scale(50, 1000)
	e := kit.Open(c)
	from, to := e.Paged(c, kit.Page, kit.AllAccess), e.Buffer(c, 8*n, kit.AllAccess)
	pairs := make([]*kit.Pair, n)
	for i := range pairs {
		pairs[i] = e.Pair(c, options())
	}
	for i, p := range pairs {
		p.A.Post(c, kit.Write(uint64(i), to, 8*i, from.SGE(8*(i%500), 8)))
	}
	for _, p := range pairs {
		c.Status("write", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
	}
	resident, err := from.Pages(c).Resident(c.T, 0, kit.Page)
	c.NoErr("mincore", err)
	c.Equal("pages in memory", count(resident), 1)
}

// deregisteredUnderAFault gives the region back while the device waits for its pages.
func deregisteredUnderAFault(c *spec.C) {
	e := kit.Open(c)
	for _, near := range []bool{true, false} {
		p := e.Pair(c, options())
		paged, pinned := e.Paged(c, size, kit.AllAccess), e.Buffer(c, size, kit.AllAccess)
		wr := kit.Write(1, pinned, 0, paged.All())
		if !near {
			wr = kit.Write(1, paged, 0, pinned.All())
		}
		p.A.Post(c, wr)
		paged.Dereg(c)
		c.ObservePlatform("status", kit.PollOne(c, p.A.SendCQ).Status) // whether the fault or the call was first
	}
	again := e.Pair(c, options())
	from, to := e.Paged(c, size, kit.AllAccess), e.Paged(c, size, kit.AllAccess)
	c.Status("write by another connection", again.A.PostAndPoll(c, kit.Write(2, to, 0, from.All())), verbs.WCSuccess)
}

// beyondTheLastAddress registers ranges that go around the end of all addresses.
func beyondTheLastAddress(c *spec.C) {
	e := kit.Open(c)
	for _, x := range []struct {
		step       string
		addr, size uint64
	}{
		{"reg_mr of two pages from the last one on", math.MaxUint64 - kit.Page + 1, 2 * kit.Page},
		{"reg_mr of 2^64-2 bytes from a page on", kit.Page, math.MaxUint64 - 1},
	} {
		_, err := e.PD.RegMR(c.T, x.addr, x.size, verbs.AccessLocalWrite|verbs.AccessOnDemand)
		c.ErrnoIn(x.step, err, syscall.EOVERFLOW, syscall.EINVAL)
	}
}
