package errs

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// addressGone takes the address of a connection away and records what its traffic does.
func addressGone(c *spec.C) {
	ctl := kit.TestbedAs[verbs.AddressControl](c)
	e := kit.Open(c)
	kit.AddAddress(c, ctl, kit.SpareAddress)
	e.GID = kit.AwaitGID(c, e, kit.SpareAddress)
	e.LocalAddr.GID = e.GID.GID
	o := kit.Default()
	o.Timeout, o.RetryCnt = 10, 3
	p := e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	c.Status("write with the address", p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
	kit.Must(c, "remove the address", ctl.RemoveAddress(c.T, 0, kit.SpareAddress))
	kit.AwaitNoGID(c, e, kit.SpareAddress)
	c.Completion("write without the address", p.A.PostAndPoll(c, kit.Write(2, mem, 32, mem.SGE(0, 8))))
	c.Observe("state of the requester", p.A.QueryState(c).String())
	c.Observe("state of the responder", p.B.QueryState(c).String())
}
