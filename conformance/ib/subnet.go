package ib

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// configureSubnet has the subnet manager reconfigure the ports.
func configureSubnet(c *spec.C, s verbs.SubnetConfig) {
	m, ok := c.TB.(verbs.SubnetControl)
	if !ok {
		c.Errorf("the testbed has no hand on the subnet manager")
	}
	kit.Must(c, "configure the subnet", m.ConfigureSubnet(c.T, s))
}

// expectPortEvent takes the next event of a context, which must be of its port.
func expectPortEvent(c *spec.C, e *kit.Env, want verbs.EventType) {
	c.Equal("event", portEvent(c, e).String(), want.String())
}

// portEvent takes the next event of a context, which must be of its port, and says which it is.
func portEvent(c *spec.C, e *kit.Env) verbs.EventType {
	ev, err := kit.AsyncEvent(c, e, kit.CompletionTimeout)
	c.NoErr("get_async_event", err)
	c.Equal("port", ev.Port, int(e.Port))
	return ev.Type
}

func newLID(c *spec.C) {
	e := kit.Open(c)
	configureSubnet(c, verbs.SubnetConfig{FirstLID: 0x120})
	expectPortEvent(c, e, verbs.EventLIDChange)
	a := portAttr(c, e)
	c.True("LID", a.LID >= 0x120 && a.LID != e.LocalAddr.LID, "%#x, before %#x", a.LID, e.LocalAddr.LID)
	now := kit.Open(c) // it asks for its address again
	p, q := now.RemotePair(c, kit.Default())
	exchangeWithRemote(c, now, p, q)
}

// keys is a table with a full member of one partition and of another.
var keys = []uint16{0xffff, 0x8123}

func newPKeys(c *spec.C) {
	e := kit.Open(c)
	configureSubnet(c, verbs.SubnetConfig{PKeys: keys})
	expectPortEvent(c, e, verbs.EventPKeyChange)
	for i, want := range keys {
		k, err := e.Ctx.QueryPKey(c.T, int(e.Port), i)
		c.NoErr("query_pkey", err)
		c.Equal("P_Key", k, want)
	}
	p := connectedPair(c, e, func(a *verbs.QPAttr) { a.PKeyIndex = 1 })
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
	ah := e.CreateAH(c, localRouteToSelf(e))
	send := func() {
		c.Status("send", a.PostAndPoll(c, kit.Datagram(2, ah, b.QPN(), mem.SGE(0, 100))), verbs.WCSuccess)
	}
	configureSubnet(c, verbs.SubnetConfig{PKeys: []uint16{0x7fff}})
	expectPortEvent(c, e, verbs.EventPKeyChange)
	before := portAttr(c, e).BadPKeyCntr
	send()
	kit.ExpectNoCompletion(c, b.RecvCQ, kit.QuietPeriod)
	after := portAttr(c, e).BadPKeyCntr // datagrams of the kernel's own, to the subnet administrator, may count too
	c.True("the violation is counted", after > before, "%d, before %d", after, before)
	configureSubnet(c, verbs.SubnetConfig{PKeys: []uint16{0xffff}})
	expectPortEvent(c, e, verbs.EventPKeyChange)
	send()
	kit.ExpectSuccess(c, b.RecvCQ, 1)
}

func reregister(c *spec.C) {
	e := kit.Open(c)
	configureSubnet(c, verbs.SubnetConfig{Reregister: true})
	expectPortEvent(c, e, verbs.EventClientReregister)
	c.Equal("LID as before", portAttr(c, e).LID == e.LocalAddr.LID, true)
}

func newPrefix(c *spec.C) {
	e := kit.Open(c)
	const prefix = 0xfec0_0000_0000_0042
	configureSubnet(c, verbs.SubnetConfig{GIDPrefix: prefix})
	ev, err := kit.AsyncEvent(c, e, kit.CompletionTimeout)
	c.NoErr("get_async_event", err)
	if err == nil {
		c.Equal("event", ev.Type.String(), verbs.EventGIDChange.String())
		c.Equal("port", ev.Port, int(e.Port))
	}
	g, err := e.Ctx.QueryGID(c.T, int(e.Port), 0)
	c.NoErr("query_gid", err)
	c.Equal("prefix", roce.GID(g).SubnetPrefix(), uint64(prefix))
	c.Equal("the same port", roce.GID(g).InterfaceID() == roce.GID(e.LocalAddr.GID).InterfaceID(), true)
}

func untilActive(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.Default())
	w := c.TB.Wire()
	if w == nil {
		c.Errorf("the testbed gives no wire")
	}
	c.Defer(func() { _ = w.SetLink(c.T, 0, 1, true) })
	kit.Must(c, "take the link down", w.SetLink(c.T, 0, 1, false))
	expectPortEvent(c, e, verbs.EventPortErr)
	c.Equal("state without a link", portAttr(c, e).State, verbs.PortDown)
	kit.Must(c, "take the link up", w.SetLink(c.T, 0, 1, true))
	first := portEvent(c, e)
	before := portAttr(c, e).State
	came := !c.Has(spec.ExactTime) && before == verbs.PortActive // while the program was told
	c.True("state before the subnet manager has come", before == verbs.PortInit || came, "%v", before)
	second := portEvent(c, e)
	inOrder := first == verbs.EventPortErr && second == verbs.EventPortActive
	// As in kit.AwaitPortEvent.
	overtaken := came && first == verbs.EventPortActive && second == verbs.EventPortErr
	c.True("PORT_ERR of INIT, then PORT_ACTIVE", inOrder || overtaken, "%v, then %v", first, second)
	c.Equal("state behind it", portAttr(c, e).State, verbs.PortActive)
	c.Equal("LID as before", portAttr(c, e).LID == e.LocalAddr.LID, true)
	c.T.Sleep(time.Millisecond)
	exchangeWithRemote(c, e, a, b)
}
