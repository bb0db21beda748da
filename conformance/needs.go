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

// proof is the call that a device without a capability must refuse.
type proof func(c *spec.C, ctx verbs.Context, pd verbs.PD) error

// proofs by capability. A capability without one is the testbed's own, or package verbs does not
// have its calls yet: there is nothing to call.
var proofs = map[string]proof{
	"td": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.AllocTD(c.T, verbs.TDInitAttr{})
		return err
	},
	"td.independent": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.AllocTD(c.T, verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1})
		return err
	},
	"pdom": func(c *spec.C, ctx verbs.Context, pd verbs.PD) error {
		_, err := ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{PD: pd})
		return err
	},
	"srq": func(c *spec.C, _ verbs.Context, pd verbs.PD) error {
		_, err := pd.CreateSRQ(c.T, verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1})
		return err
	},
	"srq.resize": func(c *spec.C, _ verbs.Context, pd verbs.PD) error {
		srq, err := pd.CreateSRQ(c.T, verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
		c.NoErr("create SRQ", err)
		return srq.Modify(c.T, verbs.SRQAttr{MaxWR: 64}, verbs.SRQMaskMaxWR)
	},
	"events": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.CreateCompChannel(c.T)
		return err
	},
	"cq_ex": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 1, Ex: true})
		return err
	},
	"cq.ignore_overrun": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 1, Ex: true, CompMask: 1, Flags: verbs.CQIgnoreOverrun})
		return err
	},
	"resize": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		cq, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 1})
		c.NoErr("create CQ", err)
		return cq.Resize(c.T, 64)
	},
	"cq.moderation": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		cq, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 1})
		c.NoErr("create CQ", err)
		return cq.Modify(c.T, verbs.CQModeration{Count: 2, Period: 2})
	},
	"ts": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 1, Ex: true, WCFlags: verbs.WCExCompletionTimestamp})
		return err
	},
	"clock": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.RawClock(c.T)
		return err
	},
	"devx": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.AllocUAR(c.T, verbs.UARBlueFlame)
		return err
	},
	"devx.dedicated": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := ctx.AllocUAR(c.T, verbs.UARNonCachedOwn)
		return err
	},
	"odp": func(c *spec.C, _ verbs.Context, pd verbs.PD) error {
		b, err := c.Process().Map(c.T, 4096, verbs.MapOptions{})
		c.NoErr("map", err)
		_, err = pd.RegMR(c.T, b.Addr(), b.Len(), verbs.AccessLocalWrite|verbs.AccessOnDemand)
		return err
	},
	"dmabuf": func(c *spec.C, _ verbs.Context, pd verbs.PD) error {
		_, err := pd.RegDmabufMR(c.T, 0, 4096, 0, 0, verbs.AccessLocalWrite)
		return err
	},
	"wr_ex": func(c *spec.C, ctx verbs.Context, pd verbs.PD) error {
		cq, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 8})
		c.NoErr("create CQ", err)
		_, err = pd.CreateQP(c.T, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq, CompMask: verbs.QPInitSendOpsFlags,
			SendOpsFlags: verbs.QPExSend, Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1, MaxRecvWR: 1, MaxRecvSGE: 1}})
		return err
	},
	"dv": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := direct(c, ctx).QueryDirect(c.T, 0)
		return err
	},
	"dv.raw": createDirect(verbs.DirectQPAttr{CompMask: verbs.DirectQPSendOpsFlags, SendOpsFlags: verbs.DirectQPExRawWQE}),
	// Libraries before rdma-core 56 do not know the flag.
	"dv.ooo": createDirect(verbs.DirectQPAttr{CompMask: verbs.DirectQPCreateFlags, CreateFlags: verbs.DirectQPCreateOOODP}),
	"dv.lag": onQP(func(c *spec.C, q verbs.QP) error {
		d, ok := q.(verbs.DirectQP)
		if !ok {
			return errNoDirect
		}
		_, _, err := d.QueryLagPort(c.T)
		return err
	}),
	"dv.resqpn": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := direct(c, ctx).ReserveQPN(c.T)
		return err
	},
	"dv.var": func(c *spec.C, ctx verbs.Context, _ verbs.PD) error {
		_, err := direct(c, ctx).AllocVAR(c.T, 0)
		return err
	},
	"mw":    allocMW(1),
	"mw.t1": allocMW(1),
	"mw.t2": allocMW(2),
	"uc":    createQP(verbs.QPTUC),
	"ud":    createQP(verbs.QPTUD),
	"raw":   createQP(verbs.QPTRawPacket),
	"xrc":   createQP(verbs.QPTXRCSend),
}

func allocMW(typ verbs.MWType) proof {
	return func(c *spec.C, _ verbs.Context, pd verbs.PD) error {
		_, err := pd.AllocMW(c.T, typ)
		return err
	}
}

func createQP(typ verbs.QPType) proof {
	return func(c *spec.C, ctx verbs.Context, pd verbs.PD) error {
		cq, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 8})
		c.NoErr("create CQ", err)
		_, err = pd.CreateQP(c.T, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq,
			Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1, MaxRecvWR: 1, MaxRecvSGE: 1}})
		return err
	}
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
		err := proofs[token](c, ctx, pd)
		got := verbs.ErrnoOf(err)
		c.Observe("refusal of "+token, verbs.ErrnoName(got))
		if !slices.Contains(refusals, got) {
			c.Failf("a device without %q must refuse it; the call returned %s", token, verbs.ErrnoName(got))
		}
	}
}
