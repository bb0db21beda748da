package ib

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// configure has the subnet manager give something else to the ports.
func configure(c *spec.C, s verbs.SubnetConfig) {
	m, ok := c.TB.(verbs.SubnetControl)
	if !ok {
		c.Errorf("the testbed has no hand on the subnet manager")
	}
	kit.Must(c, "configure the subnet", m.ConfigureSubnet(c.T, s))
}

// hears takes the next event of a context, which must be of its port.
func hears(c *spec.C, e *kit.Env, want verbs.EventType) {
	ev, err := e.Ctx.AsyncEvent(c.T, kit.Patience)
	c.NoErr("get_async_event", err)
	e.Ctx.AckAsyncEvent(c.T, ev)
	c.Equal("event", ev.Type.String(), want.String())
	c.Equal("port", ev.Port, int(e.Port))
}

func newLID(c *spec.C) {
	e := kit.Open(c)
	configure(c, verbs.SubnetConfig{FirstLID: 0x120})
	hears(c, e, verbs.EventLIDChange)
	a := attr(c, e)
	c.True("LID", a.LID >= 0x120 && a.LID != e.Own.LID, "%#x, before %#x", a.LID, e.Own.LID)
	now := kit.Open(c) // it asks for its address again
	p, q := now.FarPair(c, kit.Default())
	moves(c, now, p, q)
}

// keys is a table with a full member of one partition and of another.
var keys = []uint16{0xffff, 0x8123}

func newPKeys(c *spec.C) {
	e := kit.Open(c)
	configure(c, verbs.SubnetConfig{PKeys: keys})
	hears(c, e, verbs.EventPKeyChange)
	for i, want := range keys {
		k, err := e.Ctx.QueryPKey(c.T, int(e.Port), i)
		c.NoErr("query_pkey", err)
		c.Equal("P_Key", k, want)
	}
	p := joined(c, e, func(a *verbs.QPAttr) { a.PKeyIndex = 1 })
	packets := kit.Tap(c, func() { exchange(c, p) })
	for _, x := range packets {
		c.Equal("P_Key of a packet", x.BTH().PKey(), keys[1])
	}
	a, _, err := p.A.Query(c.T, verbs.QPMaskPKeyIndex)
	c.NoErr("query_qp", err)
	c.Equal("index", a.PKeyIndex, uint16(1))
}

func limitedMembers(c *spec.C) {
	e := kit.Open(c)
	a, b, mem := e.NewUD(c), e.NewUD(c), e.Buffer(c, 1024, kit.AllAccess)
	b.RecvInto(c, 1, mem.SGE(512, 200))
	ah := e.AH(c, local(e))
	send := func() {
		c.Status("send", a.Do(c, kit.Datagram(2, ah, b.QPN(), mem.SGE(0, 100))), verbs.WCSuccess)
	}
	configure(c, verbs.SubnetConfig{PKeys: []uint16{0x7fff}})
	hears(c, e, verbs.EventPKeyChange)
	before := attr(c, e).BadPKeyCntr
	send()
	kit.Nothing(c, b.RCQ, kit.Silence)
	c.Equal("violations", attr(c, e).BadPKeyCntr-before, uint32(1))
	configure(c, verbs.SubnetConfig{PKeys: []uint16{0xffff}})
	hears(c, e, verbs.EventPKeyChange)
	send()
	kit.Good(c, b.RCQ, 1)
}

func reregister(c *spec.C) {
	e := kit.Open(c)
	configure(c, verbs.SubnetConfig{Reregister: true})
	hears(c, e, verbs.EventClientReregister)
	c.Equal("LID as before", attr(c, e).LID == e.Own.LID, true)
}

func newPrefix(c *spec.C) {
	e := kit.Open(c)
	const prefix = 0xfec0_0000_0000_0042
	configure(c, verbs.SubnetConfig{GIDPrefix: prefix})
	hears(c, e, verbs.EventGIDChange)
	g, err := e.Ctx.QueryGID(c.T, int(e.Port), 0)
	c.NoErr("query_gid", err)
	c.Equal("prefix", roce.GID(g).SubnetPrefix(), uint64(prefix))
	c.Equal("the same port", roce.GID(g).InterfaceID() == roce.GID(e.Own.GID).InterfaceID(), true)
}

func untilActive(c *spec.C) {
	e := kit.Open(c)
	a, b := e.FarPair(c, kit.Default())
	w := c.TB.Wire()
	if w == nil {
		c.Errorf("the testbed gives no wire")
	}
	c.Defer(func() { _ = w.SetLink(c.T, 0, 1, true) })
	kit.Must(c, "take the link down", w.SetLink(c.T, 0, 1, false))
	hears(c, e, verbs.EventPortErr)
	c.Equal("state without a link", attr(c, e).State, verbs.PortDown)
	kit.Must(c, "take the link up", w.SetLink(c.T, 0, 1, true))
	hears(c, e, verbs.EventPortErr)
	c.Equal("state before the subnet manager has come", attr(c, e).State, verbs.PortInit)
	hears(c, e, verbs.EventPortActive)
	c.Equal("state behind it", attr(c, e).State, verbs.PortActive)
	c.Equal("LID as before", attr(c, e).LID == e.Own.LID, true)
	c.T.Sleep(time.Millisecond)
	moves(c, e, a, b)
}
