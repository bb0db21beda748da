package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Channel creates a completion channel, which is destroyed when the case ends.
func (e *Env) Channel(c *spec.C) verbs.CompChannel {
	ch, err := e.Ctx.CreateCompChannel(c.T)
	ok(c, "create_comp_channel", err)
	DestroyOnce(c, "destroy_comp_channel", ch.Destroy)
	return ch
}

// CreateCQWith creates a CQ with the given attributes, which is destroyed when the case ends.
func (e *Env) CreateCQWith(c *spec.C, a verbs.CQAttr) verbs.CQ {
	cq, err := e.Ctx.CreateCQ(c.T, a)
	ok(c, "create_cq", err)
	DestroyOnce(c, "destroy_cq", cq.Destroy)
	return cq
}

// CQOn creates a CQ of 255 entries that reports its events to ch, with context as its cq_context.
func (e *Env) CQOn(c *spec.C, ch verbs.CompChannel, context any) verbs.CQ {
	return e.CreateCQWith(c, verbs.CQAttr{CQE: 255, Channel: ch, Context: context})
}

// Arm requests a completion event for the next completion, or with solicitedOnly for the next
// solicited or failed one.
func Arm(c *spec.C, cq verbs.CQ, solicitedOnly bool) {
	ok(c, "req_notify_cq", cq.ReqNotify(c.T, solicitedOnly))
}

// Drain returns all completions that are there, and those that follow each other within
// QuietPeriod.
func Drain(c *spec.C, cq verbs.CQ) []verbs.WC {
	var all []verbs.WC
	for {
		wc := PollWithin(c, cq, 16, QuietPeriod)
		if all = append(all, wc...); len(wc) < 16 {
			return all
		}
	}
}
