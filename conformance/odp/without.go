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

// withoutPaging registers on demand where the device cannot.
func withoutPaging(c *spec.C) {
	e := kit.Open(c)
	m := kit.MapLazily(c, size)
	_, err := e.PD.RegMR(c.T, m.Addr(), size, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	c.ErrnoIn("reg_mr on demand", err, syscall.EINVAL, syscall.EOPNOTSUPP)
}

// withoutOperation has each operation on RC for which the device does not page meet absent memory.
func withoutOperation(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device_ex", err)
	at := func(b *kit.Buffer) verbs.SGE { return b.SGE(kit.Page, 8) }
	for _, x := range []struct {
		name string
		bit  uint32
		wr   func(from, to *kit.Buffer) verbs.SendWR
	}{
		{"send", verbs.ODPSend | verbs.ODPRecv, func(from, _ *kit.Buffer) verbs.SendWR { return kit.Send(1, at(from)) }},
		{"write", verbs.ODPWrite, func(from, to *kit.Buffer) verbs.SendWR { return kit.Write(1, to, 0, at(from)) }},
		{"read", verbs.ODPRead, func(from, to *kit.Buffer) verbs.SendWR { return kit.Read(1, to, 0, at(from)) }},
		{"fetch and add", verbs.ODPAtomic, func(from, to *kit.Buffer) verbs.SendWR { return kit.FetchAdd(1, to, 0, 1, at(from)) }},
	} {
		if a.ODPRC&x.bit == x.bit {
			continue
		}
		from, to := e.Paged(c, size, kit.AllAccess), e.Paged(c, size, kit.AllAccess)
		p := e.Pair(c, options())
		p.B.RecvInto(c, 2, at(to))
		wc := p.A.PostAndPoll(c, x.wr(from, to))
		c.True(x.name+" with absent memory fails", wc.Status != verbs.WCSuccess, "it succeeds")
		c.Observe("status of a "+x.name, wc.Status)
	}
}

// withoutAdvice asks a device for a prefetch that has no such call.
func withoutAdvice(c *spec.C) {
	e := kit.Open(c)
	b := e.Buffer(c, size, kit.AllAccess)
	// EPROTONOSUPPORT: of a kernel whose uverbs lacks the method (uverbs_ioctl.c).
	err := e.PD.AdviseMR(c.T, verbs.AdvisePrefetch, verbs.AdviseFlush, []verbs.SGE{b.All()})
	c.ErrnoIn("prefetch", err, syscall.EOPNOTSUPP, syscall.EPROTONOSUPPORT)
}

// withoutImplicit registers the whole address space where the device cannot.
func withoutImplicit(c *spec.C) {
	e := kit.Open(c)
	_, err := e.PD.RegMR(c.T, 0, math.MaxUint64, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	c.ErrnoIn("reg_mr of the whole address space", err, syscall.EINVAL, syscall.EOPNOTSUPP)
}

// datagramIntoAbsent receives a datagram in absent memory, where the device does not page for that.
func datagramIntoAbsent(c *spec.C) {
	e := kit.Open(c)
	const length = 100
	from, to := e.Buffer(c, length, kit.AllAccess), e.Paged(c, size, kit.AllAccess)
	want := from.FillRandom(c)
	a, b := e.NewUD(c), e.NewUD(c)
	ah := e.CreateAH(c, e.AHTo(e.LocalAddr))
	_, err := b.PostRecv(c.T, []verbs.RecvWR{{ID: 1, SGEs: []verbs.SGE{to.All()}}})
	c.ObservePlatform("post_recv", verbs.ErrnoName(verbs.ErrnoOf(err)))
	if err != nil {
		return
	}
	c.Status("datagram", a.PostAndPoll(c, kit.Datagram(2, ah, b.QPN(), from.All())), verbs.WCSuccess)
	for _, wc := range kit.PollWithin(c, b.RecvCQ, 1, 10*time.Millisecond) {
		c.ObservePlatform("status", wc.Status)
		got := to.Get(c, verbs.GRHSize, length)
		c.True("a datagram that was received is there", wc.Status != verbs.WCSuccess || bytes.Equal(got, want), "other bytes")
	}
}
