package conformance

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// errNoDirect is what a target without the interface of direct verbs answers.
var errNoDirect = fmt.Errorf("the target has no direct verbs: %w", syscall.EOPNOTSUPP)

// direct is the context as direct verbs see it.
func (p *prover) direct() verbs.DirectVerbs {
	d, ok := p.ctx.(verbs.DirectVerbs)
	if !ok {
		p.Errorf("the target's contexts have no direct verbs")
	}
	return d
}

// createDirect proves by a queue pair with direct attributes.
func createDirect(d verbs.DirectQPAttr) proof {
	a := verbs.QPInitAttr{Type: verbs.QPTRC, Direct: &d}
	if d.CompMask&verbs.DirectQPSendOpsFlags != 0 {
		a.CompMask, a.SendOpsFlags = verbs.QPInitSendOpsFlags, verbs.QPExSend
	}
	return createQP(a)
}
