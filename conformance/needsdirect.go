package conformance

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// errNoDirect is what a target without the interface of direct verbs answers.
var errNoDirect = fmt.Errorf("the target has no direct verbs: %w", syscall.EOPNOTSUPP)

// direct is a context as direct verbs see it.
func direct(c *spec.C, ctx verbs.Context) verbs.DirectVerbs {
	d, ok := ctx.(verbs.DirectVerbs)
	if !ok {
		c.Errorf("the target's contexts have no direct verbs")
	}
	return d
}

// onQP proves by a call on a queue pair.
func onQP(call func(c *spec.C, q verbs.QP) error) proof {
	return func(c *spec.C, ctx verbs.Context, pd verbs.PD) error {
		q, err := createRC(c, ctx, pd, verbs.QPInitAttr{})
		c.NoErr("create QP", err)
		return call(c, q)
	}
}

// createDirect proves by a queue pair with direct attributes.
func createDirect(d verbs.DirectQPAttr) proof {
	return func(c *spec.C, ctx verbs.Context, pd verbs.PD) error {
		a := verbs.QPInitAttr{Direct: &d}
		if d.CompMask&verbs.DirectQPSendOpsFlags != 0 {
			a.CompMask, a.SendOpsFlags = verbs.QPInitSendOpsFlags, verbs.QPExSend
		}
		_, err := createRC(c, ctx, pd, a)
		return err
	}
}

// createRC creates a small queue pair of the given other attributes.
func createRC(c *spec.C, ctx verbs.Context, pd verbs.PD, a verbs.QPInitAttr) (verbs.QP, error) {
	cq, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 8})
	c.NoErr("create CQ", err)
	a.Type, a.SendCQ, a.RecvCQ = verbs.QPTRC, cq, cq
	a.Cap = verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1, MaxRecvWR: 1, MaxRecvSGE: 1}
	return pd.CreateQP(c.T, a)
}
