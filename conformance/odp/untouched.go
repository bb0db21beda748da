package odp

import (
	"bytes"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// size of the regions of these cases: a few pages, and no power of two of them.
const size = 5 * kit.Page

// options are those of connections that wait for pages: RNR retries without end.
func options() kit.Options {
	o := kit.Default()
	o.RNRRetry = 7
	return o
}

// capsAgree compares the general capabilities with those of each transport.
func capsAgree(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device_ex", err)
	general := a.ODPGeneralCaps
	c.True("the device pages on demand", general&verbs.ODPSupport != 0, "general caps %#x", general)
	c.True("implicit regions imply others", general&verbs.ODPSupportImplicit == 0 || general&verbs.ODPSupport != 0, "general caps %#x", general)
	c.Equal("UC", a.ODPUC, uint32(0))
	const known = verbs.ODPSRQRecv<<1 - 1
	// Later kernels know more operations.
	c.ObservePlatform("operations on RC", a.ODPRC&known)
	c.ObservePlatform("operations on UD", a.ODPUD&known)
	c.ObservePlatform("operations on XRC", a.ODPXRC&known)
}

// pinsNothing registers more than another process may lock.
func pinsNothing(c *spec.C) {
	const most, n = 64 * kit.Page, 256 * kit.Page
	o := kit.OpenUnprivileged(c, most)
	_, err := o.DoErr(c, player.RegBuffer, kit.Args{"len": n, "access": uint64(verbs.AccessLocalWrite)}, nil)
	c.Errno("reg_mr of more than the process may lock", err, syscall.ENOMEM)
	r, err := o.DoErr(c, player.RegBuffer, kit.Args{"len": n, "access": uint64(verbs.AccessLocalWrite | verbs.AccessOnDemand), "lazy": 1}, nil)
	c.NoErr("reg_mr on demand of as much", err)
	c.Equal("pages in memory after the registration", r.Values["resident"], uint64(0))
}

func count(list []bool) (n int) {
	for _, x := range list {
		if x {
			n++
		}
	}
	return n
}

// ends are a connected pair, and a paged region at each end.
type ends struct {
	pair      *kit.Pair
	from, to  *kit.Buffer
	rand      []byte
	untouched []byte
}

func connect(c *spec.C) *ends {
	e := kit.Open(c)
	x := &ends{pair: e.Pair(c, options()), from: e.Paged(c, size, kit.AllAccess), to: e.Paged(c, size, kit.AllAccess)}
	x.rand, x.untouched = c.Rand().Bytes(size), make([]byte, size)
	return x
}

// untouchedSend sends memory that nobody has touched, and memory of which the receiver has touched
// nothing.
func untouchedSend(c *spec.C) {
	x := connect(c)
	send := func(step string, want []byte) {
		x.pair.B.RecvInto(c, 1, x.to.All())
		c.Status(step, x.pair.A.PostAndPoll(c, kit.Send(2, x.from.All())), verbs.WCSuccess)
		wc := kit.PollOne(c, x.pair.B.RecvCQ)
		c.Status(step+": receive", wc, verbs.WCSuccess)
		c.Equal(step+": bytes", int(wc.ByteLen), size)
		c.True(step+": contents", bytes.Equal(x.to.Get(c, 0, size), want), "other bytes")
	}
	send("send of untouched memory", x.untouched)
	x.from.Set(c, 0, x.rand)
	send("send of written memory", x.rand)
}

func untouchedWrite(c *spec.C) {
	x := connect(c)
	x.from.Set(c, 0, x.rand)
	c.Status("write to untouched memory", x.pair.A.PostAndPoll(c, kit.Write(1, x.to, 0, x.from.All())), verbs.WCSuccess)
	resident, err := x.to.Pages(c).Resident(c.T, 0, size)
	c.NoErr("mincore", err)
	c.Equal("pages in memory", count(resident), size/kit.Page)
	c.True("contents", bytes.Equal(x.to.Get(c, 0, size), x.rand), "other bytes")
}

func untouchedRead(c *spec.C) {
	x := connect(c)
	x.to.Set(c, 0, x.rand)
	c.Status("read of untouched memory", x.pair.A.PostAndPoll(c, kit.Read(1, x.from, 0, x.to.All())), verbs.WCSuccess)
	c.True("zeros", bytes.Equal(x.to.Get(c, 0, size), x.untouched), "other bytes")
	x.from.Set(c, 0, x.rand)
	c.Status("read of written memory", x.pair.A.PostAndPoll(c, kit.Read(2, x.from, 0, x.to.All())), verbs.WCSuccess)
	c.True("contents", bytes.Equal(x.to.Get(c, 0, size), x.rand), "other bytes")
}

func untouchedAtomic(c *spec.C) {
	x := connect(c)
	const at = 3*kit.Page + 8
	c.Status("fetch and add", x.pair.A.PostAndPoll(c, kit.FetchAdd(1, x.to, at, 5, x.from.SGE(kit.Page, 8))), verbs.WCSuccess)
	c.Equal("what was there", x.from.Word(c, kit.Page), uint64(0))
	c.Status("compare and swap", x.pair.A.PostAndPoll(c, kit.CmpSwap(2, x.to, at, 5, 9, x.from.SGE(2*kit.Page, 8))), verbs.WCSuccess)
	c.Equal("what was there then", x.from.Word(c, 2*kit.Page), uint64(5))
	c.Equal("what is there", x.to.Word(c, at), uint64(9))
}

// mixedSegments gathers from, and scatters to, memory that is pinned and memory that is not.
func mixedSegments(c *spec.C) {
	e := kit.Open(c)
	p := e.Pair(c, options())
	paged, landed := e.Paged(c, size, kit.AllAccess), e.Paged(c, size, kit.AllAccess)
	pinned, kept := e.Buffer(c, size, kit.AllAccess), e.Buffer(c, size, kit.AllAccess)
	want := append(bytes.Clone(pinned.FillRandom(c)[:100]), make([]byte, 2*kit.Page)...)
	kept.FillByte(c, 1)
	p.B.RecvInto(c, 1, kept.SGE(0, 50), landed.SGE(0, 2*kit.Page+50))
	c.Status("send", p.A.PostAndPoll(c, kit.Send(2, pinned.SGE(0, 100), paged.SGE(kit.Page, 2*kit.Page))), verbs.WCSuccess)
	c.Status("receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
	got := append(kept.Get(c, 0, 50), landed.Get(c, 0, 2*kit.Page+50)...)
	c.True("contents", bytes.Equal(got, want), "other bytes")
}

// sharedReceives has several connections receive from one queue into memory that nobody has
// touched.
func sharedReceives(c *spec.C) {
	e := kit.Open(c)
	o := options()
	srq := e.CreateSRQ(c, 16, 2)
	o.SRQ = srq.SRQ
	const pairs, rounds = 3, 4
	from := e.Buffer(c, size, kit.AllAccess)
	for i := range pairs {
		p := e.Pair(c, o)
		for j := range rounds {
			to := e.Paged(c, size, kit.AllAccess)
			want := from.FillRandom(c)
			srq.RecvInto(c, uint64(i*rounds+j), to.SGE(0, 100), to.SGE(kit.Page, size-kit.Page))
			p.A.Post(c, kit.Send(1, from.SGE(0, 3*kit.Page)))
			wc := kit.PollOne(c, p.B.RecvCQ) // first: the library may have to post the receive again when its pages were absent
			c.Status("receive", wc, verbs.WCSuccess)
			c.Status("send", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
			c.Equal("wr_id", wc.ID, uint64(i*rounds+j))
			got := append(to.Get(c, 0, 100), to.Get(c, kit.Page, 3*kit.Page-100)...)
			c.True("contents", bytes.Equal(got, want[:3*kit.Page]), "other bytes")
		}
	}
}
