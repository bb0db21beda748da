package perf

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// writes of each thread.
const writes = 2048

// tinyInlineWrites is a stream of inline writes of 2 bytes.
func tinyInlineWrites(q *kit.QP, mem *kit.Buffer, far *kit.OtherBuffer) flow {
	w := far.WriteTo(0, 0, mem.SGE(0, 2))
	w.Flags = verbs.SendInline
	return flow{q: q, wr: w, list: 1, window: 256, signal: 32}
}

// rateOf is the rate of n threads, each with a QP of its own on the PD that domain gives.
func rateOf(c *spec.C, e *kit.Env, other *kit.OtherProcess, n int, domain func() verbs.PD) float64 {
	flows := make([]flow, n)
	for i := range flows {
		o := options()
		o.PD = domain()
		q, _ := e.PairWith(c, other, o)
		flows[i] = tinyInlineWrites(q, e.Buffer(c, 64, kit.AllAccess), other.Buffer(c, 64, kit.AllAccess, 0))
	}
	d := runTogether(c, n, func(c *spec.C, i int) { flows[i].run(c, writes) })
	return perSecond(n*writes, d)
}

// sharedRate is the rate of n threads on one QP that has room for all that they post.
func sharedRate(c *spec.C, e *kit.Env, other *kit.OtherProcess, n int) float64 {
	o := options()
	const each = writes / 4
	o.Cap.MaxSendWR, o.CQE = uint32(n*each), n*each
	q, _ := e.PairWith(c, other, o)
	f := tinyInlineWrites(q, e.Buffer(c, 64, kit.AllAccess), other.Buffer(c, 64, kit.AllAccess, 0))
	f.wr.Flags |= verbs.SendSignaled
	d := runTogether(c, n, func(c *spec.C, i int) {
		for range each {
			q.Post(c, f.wr)
		}
		if i == 0 { // the others only post
			wc := make([]verbs.WC, 16)
			for done := 0; done < n*each; {
				done += pollSuccesses(c, q.SendCQ, wc)
			}
		}
	})
	return perSecond(n*each, d)
}

func ownDomains(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	var before float64
	for _, n := range []int{1, 2, 4, 8} {
		own := rateOf(c, e, other, n, func() verbs.PD { return e.AllocTD(c).PD })
		c.Observe(fmt.Sprintf("%d threads with thread domains, writes/s", n), threeDigits(own))
		c.True(fmt.Sprintf("%d threads are not slower than %d", n, n/2), own >= before*(1-slack), "%.0f after %.0f", own, before)
		before = own
		if n < 4 {
			continue
		}
		shared := sharedRate(c, e, other, n)
		c.Observe(fmt.Sprintf("%d threads on one QP, writes/s", n), threeDigits(shared))
		c.True(fmt.Sprintf("ratio at %d threads", n), own > shared, "%.0f with domains, %.0f on one QP", own, shared)
	}
}

func withoutDomain(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	for _, n := range []int{1, 4} {
		with := rateOf(c, e, other, n, func() verbs.PD { return e.AllocTD(c).PD })
		without := rateOf(c, e, other, n, func() verbs.PD { return e.PD })
		c.Observe(fmt.Sprintf("%d threads, writes/s with and without domains", n), []float64{threeDigits(with), threeDigits(without)})
		c.True("ratio", without <= with*(1+slack), "%.0f without, %.0f with", without, with)
	}
}

// independentDomains compares at 16 threads, where the device itself may be the limit: which
// of its queue pairs disturb each other there moves a rate by some percent.
func independentDomains(c *spec.C) {
	const n, slack = 16, 0.1
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	paired := rateOf(c, e, other, n, func() verbs.PD { return e.AllocTD(c).PD })
	own := rateOf(c, e, other, n, func() verbs.PD { return e.AllocIndependentTD(c).PD })
	c.Observe("16 threads, writes/s with independent and paired domains", []float64{threeDigits(own), threeDigits(paired)})
	c.True("independent domains", own >= paired*(1-slack), "%.0f, paired ones %.0f", own, paired)
}
