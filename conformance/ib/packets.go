package ib

import (
	"bytes"
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// header is the room for a GRH before a datagram.
const header = verbs.GRHSize

func localHeaders(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.Default())
	near, far := e.Buffer(c, 8192, kit.AllAccess), b.Process.Buffer(c, 8192, kit.AllAccess, 0)
	packets := kit.Tap(c, func() {
		a.Post(c, far.WriteTo(1, 0, near.SGE(0, 3001)), far.ReadFrom(2, 0, near.SGE(4096, 3001)))
		kit.ExpectSuccess(c, a.SendCQ, 2)
	})
	c.True("packets", len(packets) >= 8, "only %d packets", len(packets))
	for i := range packets {
		p := &packets[i]
		h := p.LRH()
		from, to := e.LocalAddr.LID, b.Process.LID
		if !p.IsFrom(e.LocalAddr) {
			from, to = to, from
		}
		if p.Framing != roce.InfiniBand || h.Version() != 0 || h.LNH() != roce.LNHIBALocal || p.HasGRH() || h.SLID() != from || h.DLID() != to ||
			int(h.PktLen())*4 != p.Len() || h.VL() == 15 || p.BTH().PKey()&0x7fff == 0 {
			c.Failf("packet %d: LRH % x of %d bytes, from %d to %d is meant", i, []byte(h), p.Len(), from, to)
		}
	}
	c.Observe("next header", roce.LNHIBALocal)
}

func globalHeaders(c *spec.C) {
	e := kit.Open(c)
	p := connectedPair(c, e, globalRouteTo(e, e.LocalAddr))
	packets := kit.Tap(c, func() { exchange(c, p) })
	c.True("packets", len(packets) >= 8, "only %d packets", len(packets))
	for i := range packets {
		p := &packets[i]
		if p.LRH().LNH() != roce.LNHIBAGlobal || !p.HasGRH() {
			c.Failf("packet %d has no GRH: LRH % x", i, []byte(p.LRH()))
		}
		g := p.IPv6()
		if g.Version() != 6 || g.NextHeader() != roce.ProtoIBA || g.HopLimit() != 9 || g.TrafficClass() != 0x20 || g.FlowLabel() != 0x1234 ||
			verbs.GID(p.SrcGID()) != e.LocalAddr.GID || verbs.GID(p.DstGID()) != e.LocalAddr.GID || int(g.PayloadLen()) != p.Len()-roce.LRHSize-roce.GRHSize {
			c.Failf("packet %d: GRH % x", i, []byte(g))
		}
	}
	c.Observe("next header", roce.LNHIBAGlobal)
}

// serviceLevel records which lane each service level takes.
func serviceLevel(c *spec.C) {
	e := kit.Open(c)
	lanes := map[uint8]bool{}
	for _, sl := range []uint8{0, 1, 3, 8, 15} {
		p := connectedPair(c, e, func(a *verbs.QPAttr) { a.AH.SL = sl })
		mem := p.Buffer(c, 64, kit.AllAccess)
		packets := kit.Tap(c, func() { c.Status("write", p.A.PostAndPoll(c, kit.Write(1, mem, 0, mem.SGE(0, 8))), verbs.WCSuccess) })
		c.True("packets", len(packets) >= 2, "only %d packets", len(packets))
		vl := packets[0].LRH().VL()
		lanes[vl] = true
		for _, x := range packets {
			c.Equal(fmt.Sprintf("service level %d", sl), x.LRH().SL(), sl)
			c.True("one lane", x.LRH().VL() == vl && vl != 15, "lane %d, before %d", x.LRH().VL(), vl)
		}
		c.Observe(fmt.Sprintf("lane of service level %d", sl), vl)
	}
	c.Observe("lanes", len(lanes))
}

// localRouteToSelf is the address vector to the process's own port, without a global route.
func localRouteToSelf(e *kit.Env) verbs.AHAttr {
	return verbs.AHAttr{Port: e.Port, DLID: e.LocalAddr.LID, SL: 2}
}

func datagram(c *spec.C) {
	e := kit.Open(c)
	a, b, mem := e.NewUD(c), e.NewUD(c), e.Buffer(c, 4096, kit.AllAccess)
	want := mem.FillRandom(c)
	b.RecvInto(c, 1, mem.SGE(1024, 30), mem.SGE(2048, 200))
	c.Status("send", a.PostAndPoll(c, kit.Datagram(2, e.CreateAH(c, localRouteToSelf(e)), b.QPN(), mem.SGE(0, 100))), verbs.WCSuccess)
	wc := kit.ExpectSuccess(c, b.RecvCQ, 1)[0]
	c.Equal("byte_len", wc.ByteLen, uint32(header+100))
	c.Equal("GRH flag", wc.Flags&verbs.WCGRH, verbs.WCFlags(0))
	c.Equal("SLID is the port's", wc.SLID == e.LocalAddr.LID, true)
	c.Equal("service level", wc.SL, uint8(2))
	c.Equal("path bits", wc.DLIDPathBits, uint8(0))
	c.Equal("P_Key index", wc.PKeyIndex, uint16(0))
	c.True("src_qp", wc.SrcQP == a.QPN(), "%#x, want %#x", wc.SrcQP, a.QPN())
	c.Equal("payload", bytes.Equal(mem.Get(c, 2048+10, 100), want[:100]), true)
	c.Equal("room for a GRH is left alone", bytes.Equal(mem.Get(c, 1024, 30), want[1024:1054]) && bytes.Equal(mem.Get(c, 2048, 10), want[2048:2058]), true)
}

func reply(c *spec.C) {
	e := kit.Open(c)
	a, b, mem := e.NewUD(c), e.NewUD(c), e.Buffer(c, 4096, kit.AllAccess)
	want := mem.FillRandom(c)
	b.RecvInto(c, 1, mem.SGE(1024, 200))
	c.Status("send", a.PostAndPoll(c, kit.Datagram(2, e.CreateAH(c, localRouteToSelf(e)), b.QPN(), mem.SGE(0, 100))), verbs.WCSuccess)
	wc := kit.ExpectSuccess(c, b.RecvCQ, 1)[0]
	back, err := e.Ctx.InitAHFromWC(c.T, int(e.Port), &wc, mem.Get(c, 1024, header))
	c.NoErr("init_ah_from_wc", err)
	c.Equal("global", back.IsGlobal, false)
	c.Equal("DLID is the sender's", back.DLID == e.LocalAddr.LID, true)
	c.Equal("service level", back.SL, uint8(2))
	a.RecvInto(c, 3, mem.SGE(2048, 200))
	c.Status("reply", b.PostAndPoll(c, kit.Datagram(4, e.CreateAH(c, back), wc.SrcQP, mem.SGE(200, 50))), verbs.WCSuccess)
	kit.ExpectSuccess(c, a.RecvCQ, 1)
	c.Equal("bytes of the reply", bytes.Equal(mem.Get(c, 2048+header, 50), want[200:250]), true)
}

// pkeyAt is where the P_Key is behind the beginning of the base transport header.
const pkeyAt = 2

func otherPartition(c *spec.C) {
	e := kit.Open(c)
	a, b, mem := e.NewUD(c), e.NewUD(c), e.Buffer(c, 4096, kit.AllAccess)
	b.RecvInto(c, 1, mem.SGE(1024, 200))
	ah := e.CreateAH(c, localRouteToSelf(e))
	before := portAttr(c, e).BadPKeyCntr
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: b.QPN(), Count: 3, Action: verbs.WireEdit,
		Edits: []verbs.ByteEdit{{Offset: pkeyAt, Value: 0x80}, {Offset: pkeyAt + 1, Value: 7}}})
	for range 3 {
		c.Status("send", a.PostAndPoll(c, kit.Datagram(2, ah, b.QPN(), mem.SGE(0, 100))), verbs.WCSuccess)
	}
	kit.ExpectNoCompletion(c, b.RecvCQ, kit.QuietPeriod)
	c.Equal("violations", portAttr(c, e).BadPKeyCntr-before, uint32(3))
	kit.ClearRules(c)
	c.Status("send", a.PostAndPoll(c, kit.Datagram(2, ah, b.QPN(), mem.SGE(0, 100))), verbs.WCSuccess)
	kit.ExpectSuccess(c, b.RecvCQ, 1)
}

func wrongQKey(c *spec.C) {
	e := kit.Open(c)
	a, b, mem := e.NewUD(c), e.NewUD(c), e.Buffer(c, 4096, kit.AllAccess)
	b.RecvInto(c, 1, mem.SGE(1024, 200))
	before := portAttr(c, e).QKeyViolCntr
	wr := kit.Datagram(2, e.CreateAH(c, localRouteToSelf(e)), b.QPN(), mem.SGE(0, 100))
	wr.RemoteQKey = 5
	c.Status("send", a.PostAndPoll(c, wr), verbs.WCSuccess)
	kit.ExpectNoCompletion(c, b.RecvCQ, kit.QuietPeriod)
	c.Equal("violations", portAttr(c, e).QKeyViolCntr-before, uint32(1))
}
