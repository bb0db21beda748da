package dev

import (
	"slices"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// addressComesAndGoes gives the port's interface an address and takes it away.
func addressComesAndGoes(c *spec.C) {
	ctl := kit.TestbedAs[verbs.AddressControl](c)
	e := kit.Open(c)
	ip := kit.SpareAddress
	before := gidTableOf(c, e)
	own := func() map[verbs.GIDType]int {
		n := map[verbs.GIDType]int{}
		for _, g := range gidTableOf(c, e) {
			if g.GID == verbs.GID(ip.As16()) {
				n[g.Type]++
			}
		}
		return n
	}
	c.Equal("entries of the address at first", len(own()), 0)
	for range 3 {
		kit.AddAddress(c, ctl, ip)
		awaitGIDChange(c, e, "after the address was added", func() bool { return len(gidTableOf(c, e)) == len(before)+2 })
		n := own()
		c.True("one entry of RoCEv1 for the address", n[verbs.GIDTypeRoCEv1] == 1, "there are %d", n[verbs.GIDTypeRoCEv1])
		c.True("one entry of RoCEv2 for the address", n[verbs.GIDTypeRoCEv2] == 1, "there are %d", n[verbs.GIDTypeRoCEv2])
		kit.Must(c, "remove the address", ctl.RemoveAddress(c.T, 0, ip))
		awaitGIDChange(c, e, "after the address was removed", func() bool { return len(own()) == 0 })
		c.True("the table is as at first", slices.Equal(gidTableOf(c, e), before), "%v, and at first %v", gidTableOf(c, e), before)
	}
}

// gidTableOf is the GID table of the port.
func gidTableOf(c *spec.C, e *kit.Env) []verbs.GIDEntry {
	var tab [256]verbs.GIDEntry
	n, err := e.Ctx.QueryGIDTable(c.T, tab[:], 0)
	kit.Must(c, "query_gid_table", err)
	return slices.DeleteFunc(tab[:n], func(g verbs.GIDEntry) bool { return g.Port != uint32(e.Port) })
}

// awaitGIDChange takes GID_CHANGE events, of which there must be one at least, until done reports
// that the table is as expected; a kernel may change it step by step.
func awaitGIDChange(c *spec.C, e *kit.Env, step string, done func() bool) {
	ev, err := e.Ctx.AsyncEvent(c.T, kit.CompletionTimeout)
	c.NoErr("get_async_event "+step, err)
	for err == nil {
		e.Ctx.AckAsyncEvent(c.T, ev)
		c.Equal("event "+step, ev.Type.String(), verbs.EventGIDChange.String())
		c.Equal("port", ev.Port, int(e.Port))
		wait := kit.QuietPeriod
		if !done() {
			wait = kit.QuietPeriod * 50
		}
		ev, err = e.Ctx.AsyncEvent(c.T, wait)
	}
}
