package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Channel creates a completion channel, which the case's end destroys.
func (e *Env) Channel(c *spec.C) verbs.CompChannel {
	ch, err := e.Ctx.CreateCompChannel(c.T)
	ok(c, "create_comp_channel", err)
	DestroyOnce(c, "destroy_comp_channel", ch.Destroy)
	return ch
}

// CreateCQWith creates a CQ of the given attributes, which the case's end destroys.
func (e *Env) CreateCQWith(c *spec.C, a verbs.CQAttr) verbs.CQ {
	cq, err := e.Ctx.CreateCQ(c.T, a)
	ok(c, "create_cq", err)
	DestroyOnce(c, "destroy_cq", cq.Destroy)
	return cq
}
