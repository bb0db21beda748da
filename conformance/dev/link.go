package dev

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func linkDownAndUp(c *spec.C) {
	e := kit.Open(c)
	w := c.TB.Wire()
	if w == nil {
		c.Errorf("the testbed gives no wire")
	}
	c.Defer(func() { _ = w.SetLink(c.T, 0, 1, true) })
	port := func() verbs.PortAttr {
		a, err := e.Ctx.QueryPort(c.T, int(e.Port))
		kit.Must(c, "query_port", err)
		return a
	}
	before := port()
	c.Equal("state at first", before.State, verbs.PortActive)
	for range 3 {
		kit.Must(c, "take the link down", w.SetLink(c.T, 0, 1, false))
		expectPortEvent(c, e, verbs.EventPortErr)
		down := port()
		c.Equal("state when down", down.State, verbs.PortDown)
		c.True("physical state when down", down.PhysState != before.PhysState, "still %d", down.PhysState)
		kit.Must(c, "take the link up", w.SetLink(c.T, 0, 1, true))
		expectPortEvent(c, e, verbs.EventPortActive)
		up := port()
		c.Equal("state when up again", up.State, verbs.PortActive)
		c.Equal("physical state when up again", up.PhysState, before.PhysState)
	}
	_, err := kit.AsyncEvent(c, e, kit.QuietPeriod)
	c.Errno("no further event", err, syscall.EAGAIN)
}

// expectPortEvent takes the next event, which must be of the port.
func expectPortEvent(c *spec.C, e *kit.Env, want verbs.EventType) {
	ev := kit.AwaitPortEvent(c, e, want)
	c.Equal("event", ev.Type.String(), want.String())
	c.Equal("port", ev.Port, int(e.Port))
}
