package conformance

import (
	"slices"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// unmet lists the needs that the testbed says it cannot meet. A case whose needs are unknown
// is tried.
func unmet(tb verbs.Testbed, needs []string) []string {
	var out []string
	for _, n := range needs {
		bad := verbs.Absent
		token, negated := strings.CutPrefix(n, "no ")
		if negated {
			bad = verbs.Present
		}
		if tb.Capability(token) == bad {
			out = append(out, n)
		}
	}
	return out
}

// prover is what a proof calls with.
type prover struct {
	*spec.C
	ctx verbs.Context
	pd  verbs.PD
}

// proof is the call that a device without a capability must refuse.
type proof func(p *prover) error

// proofs by capability. A capability without one is the testbed's own, or package verbs does not
// have its calls yet: there is nothing to call.
var proofs = map[string]proof{
	"td": func(p *prover) error { return failure(p.ctx.AllocTD(p.T, verbs.TDInitAttr{})) },
	"td.independent": func(p *prover) error {
		return failure(p.ctx.AllocTD(p.T, verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1}))
	},
	"pdom": func(p *prover) error { return failure(p.ctx.AllocParentDomain(p.T, verbs.ParentDomainAttr{PD: p.pd})) },
	"srq":  func(p *prover) error { return failure(p.pd.CreateSRQ(p.T, verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1})) },
	"srq.resize": func(p *prover) error {
		srq, err := p.pd.CreateSRQ(p.T, verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
		p.NoErr("create SRQ", err)
		return srq.Modify(p.T, verbs.SRQAttr{MaxWR: 64}, verbs.SRQMaskMaxWR)
	},
	"events":            func(p *prover) error { return failure(p.ctx.CreateCompChannel(p.T)) },
	"cq_ex":             createCQ(verbs.CQAttr{CQE: 1, Ex: true}),
	"cq.ignore_overrun": createCQ(verbs.CQAttr{CQE: 1, Ex: true, CompMask: 1, Flags: verbs.CQIgnoreOverrun}),
	"resize":            func(p *prover) error { return p.cq(1).Resize(p.T, 64) },
	"cq.moderation":     func(p *prover) error { return p.cq(1).Modify(p.T, verbs.CQModeration{Count: 2, Period: 2}) },
	"ts":                createCQ(verbs.CQAttr{CQE: 1, Ex: true, WCFlags: verbs.WCExCompletionTimestamp}),
	"clock":             func(p *prover) error { return failure(p.ctx.RawClock(p.T)) },
	"devx":              func(p *prover) error { return failure(p.ctx.AllocUAR(p.T, verbs.UARBlueFlame)) },
	"devx.dedicated":    func(p *prover) error { return failure(p.ctx.AllocUAR(p.T, verbs.UARNonCachedOwn)) },
	"odp": func(p *prover) error {
		b, err := p.Process().Map(p.T, 4096, verbs.MapOptions{})
		p.NoErr("map", err)
		return failure(p.pd.RegMR(p.T, b.Addr(), b.Len(), verbs.AccessLocalWrite|verbs.AccessOnDemand))
	},
	"dmabuf": func(p *prover) error { return failure(p.pd.RegDmabufMR(p.T, 0, 4096, 0, 0, verbs.AccessLocalWrite)) },
	"wr_ex":  createQP(verbs.QPInitAttr{Type: verbs.QPTRC, CompMask: verbs.QPInitSendOpsFlags, SendOpsFlags: verbs.QPExSend}),
	"dv":     func(p *prover) error { return failure(p.direct().QueryDirect(p.T, 0)) },
	"dv.raw": createDirect(verbs.DirectQPAttr{CompMask: verbs.DirectQPSendOpsFlags, SendOpsFlags: verbs.DirectQPExRawWQE}),
	// Libraries before rdma-core 56 do not know the flag.
	"dv.ooo": createDirect(verbs.DirectQPAttr{CompMask: verbs.DirectQPCreateFlags, CreateFlags: verbs.DirectQPCreateOOODP}),
	"dv.lag": func(p *prover) error {
		q, err := p.qp(verbs.QPInitAttr{Type: verbs.QPTRC})
		p.NoErr("create QP", err)
		d, ok := q.(verbs.DirectQP)
		if !ok {
			return errNoDirect
		}
		_, _, err = d.QueryLagPort(p.T)
		return err
	},
	"dv.resqpn": func(p *prover) error { return failure(p.direct().ReserveQPN(p.T)) },
	"dv.var":    func(p *prover) error { return failure(p.direct().AllocVAR(p.T, 0)) },
	"mw":        allocMW(1),
	"mw.t1":     allocMW(1),
	"mw.t2":     allocMW(2),
	"uc":        createQP(verbs.QPInitAttr{Type: verbs.QPTUC}),
	"ud":        createQP(verbs.QPInitAttr{Type: verbs.QPTUD}),
	"raw":       createQP(verbs.QPInitAttr{Type: verbs.QPTRawPacket}),
	"flow": func(p *prover) error {
		q, err := p.qp(verbs.QPInitAttr{Type: verbs.QPTRawPacket})
		if err != nil {
			return err
		}
		s := verbs.FlowSpec{Type: verbs.FlowSpecEth, Mask: verbs.FlowFilter{EtherType: 0xffff}}
		return failure(q.CreateFlow(p.T, verbs.FlowAttr{Port: 1, Specs: []verbs.FlowSpec{s}}))
	},
	"xrc": createQP(verbs.QPInitAttr{Type: verbs.QPTXRCSend}),
}

// failure is the error of a call whose value nobody needs.
func failure[T any](_ T, err error) error { return err }

func allocMW(typ verbs.MWType) proof {
	return func(p *prover) error { return failure(p.pd.AllocMW(p.T, typ)) }
}

func createCQ(a verbs.CQAttr) proof {
	return func(p *prover) error { return failure(p.ctx.CreateCQ(p.T, a)) }
}

func createQP(a verbs.QPInitAttr) proof {
	return func(p *prover) error { return failure(p.qp(a)) }
}

// cq creates a completion queue that every device has.
func (p *prover) cq(cqe int) verbs.CQ {
	cq, err := p.ctx.CreateCQ(p.T, verbs.CQAttr{CQE: cqe})
	p.NoErr("create CQ", err)
	return cq
}

// qp creates a small queue pair of the given other attributes.
func (p *prover) qp(a verbs.QPInitAttr) (verbs.QP, error) {
	a.SendCQ = p.cq(8)
	a.RecvCQ, a.Cap = a.SendCQ, verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1, MaxRecvWR: 1, MaxRecvSGE: 1}
	return p.pd.CreateQP(p.T, a)
}

// refusals are the errnos that prove that a device without a capability refuses its call.
var refusals = []syscall.Errno{syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EPROTONOSUPPORT, syscall.EINVAL}

// Lacking begins the reason of a case whose needs are not met.
const Lacking = report.Lacking

// lacking judges a case whose needs are not met: the device must refuse every call that stands
// for a missing capability, and the policy must allow that it is missing.
func (r *Runner) lacking(rec *report.Case, bed spec.Bed, c spec.Case, missing []string) {
	var proven []string
	for _, m := range missing {
		if _, ok := proofs[m]; ok {
			proven = append(proven, m)
		}
	}
	lack := Lacking + strings.Join(missing, ", ")
	if len(proven) > 0 {
		r.execute(spec.NewRunning(rec.ID, rec.Seed), bed, c.Deadline, func(c *spec.C) { prove(c, proven) }).fill(rec)
		if rec.Outcome != report.Pass {
			rec.Reason = lack + ", and did not prove it: " + rec.Reason
			return
		}
	}
	rec.VirtualNs = 0
	switch {
	case !r.Policy.allows(rec.ID, missing):
		rec.Outcome = report.Fail
		rec.Reason = lack + "; its policy (conformance/unsupported) lets it leave out neither that nor " + rec.ID
	case len(proven) == 0:
		rec.Outcome, rec.Reason = report.NotRun, lack
	default:
		rec.Outcome, rec.Reason = report.Unsupported, lack
	}
}

func prove(c *spec.C, tokens []string) {
	ctx := c.Open()
	pd, err := ctx.AllocPD(c.T)
	c.NoErr("allocate PD", err)
	for _, token := range tokens {
		got := verbs.ErrnoOf(proofs[token](&prover{c, ctx, pd}))
		c.Observe("refusal of "+token, verbs.ErrnoName(got))
		if !slices.Contains(refusals, got) {
			c.Failf("a device without %q must refuse it; the call returned %s", token, verbs.ErrnoName(got))
		}
	}
}
