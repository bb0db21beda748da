package perf

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// bed is a connection to another process with a buffer on either side.
type bed struct {
	*kit.Env
	other *kit.OtherProcess
	q     *kit.QP
	b     *kit.OtherQP
	mem   *kit.Buffer
	far   *kit.OtherBuffer
}

func connect(c *spec.C, o kit.Options, size int) *bed {
	e := kit.Open(c)
	e.CreateQP(c, o) // numbers of the two ends differ: rules tell them apart
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	q, b := e.PairWith(c, other, o)
	return &bed{e, other, q, b, e.Buffer(c, size, kit.AllAccess), other.Buffer(c, size, kit.AllAccess, 0)}
}

// writes is a stream of writes of n bytes.
func (b *bed) writes(n int) flow {
	return flow{q: b.q, wr: b.far.WriteTo(0, 0, b.mem.SGE(0, n)), list: 1, window: 64, signal: 8}
}

func bandwidthBySize(c *spec.C) {
	const most = 1 << 20
	b := connect(c, options(), most)
	var sizes []int
	var rates []float64
	for n := 64; n <= most; n *= 2 {
		f := b.writes(n)
		count := min(1024, max(64, 4*most/n))
		rate := 8 * perSecond(count*n, f.run(c, count))
		sizes, rates = append(sizes, n), append(rates, rate)
		c.Observe(fmt.Sprintf("%d bytes, Gb/s", n), threeDigits(rate/1e9))
	}
	best := 0.0
	for i, r := range rates {
		if best < rates[len(rates)-1]*(1-2*slack) && r < best*(1-slack) {
			c.Failf("%d bytes: %.3g Gb/s after %.3g, below the plateau of %.3g", sizes[i], r/1e9, best/1e9, rates[len(rates)-1]/1e9)
		}
		best = max(best, r)
		if sizes[i] < 8<<10 {
			continue
		}
		for _, k := range []int{i - 1, i + 1} {
			if k < len(rates) && sizes[k] >= 8<<10 && r < rates[k]/2 {
				c.Failf("a cliff: %d bytes with %.3g Gb/s, %d with %.3g", sizes[i], r/1e9, sizes[k], rates[k]/1e9)
			}
		}
	}
}

// collapse is how far a rate may fall where it must not collapse.
const collapse = 10

func manyQPs(c *spec.C) {
	const most, each = 1024, 512
	o := options()
	o.Cap.MaxSendWR, o.Cap.MaxRecvWR, o.Cap.MaxSendSGE, o.Cap.MaxRecvSGE = 16, 1, 1, 1
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	o.SendCQ, o.RecvCQ = e.CreateCQ(c, 16*most), e.CreateCQ(c, 16)
	mem, far := e.Buffer(c, each, kit.AllAccess), other.Buffer(c, each, kit.AllAccess, 0)
	var qs []*kit.QP
	var first, before float64
	for _, n := range []int{1, 4, 16, 64, 256, most} {
		for len(qs) < n {
			q, _ := e.PairWith(c, other, o)
			qs = append(qs, q)
		}
		rate := 8 * each * rateOverQPs(c, qs, o.SendCQ, far.WriteTo(0, 0, mem.SGE(0, each)), max(4096, 8*n))
		c.Observe(fmt.Sprintf("%d queue pairs, Gb/s", n), threeDigits(rate/1e9))
		if first == 0 {
			first = rate
		} else if rate < before/2 {
			c.Observe("cliff", n)
		}
		c.True(fmt.Sprintf("%d queue pairs", n), rate >= first/collapse, "%.3g Gb/s, one has %.3g", rate/1e9, first/1e9)
		before = rate
	}
}

// rateOverQPs sends total writes over queue pairs in turn, 8 outstanding on each and 512 in
// all, and returns the rate.
func rateOverQPs(c *spec.C, qs []*kit.QP, cq verbs.CQ, w verbs.SendWR, total int) float64 {
	window := min(8*len(qs), 512)
	wc := make([]verbs.WC, 16)
	start := c.T.Now()
	posted, done := 0, 0
	for done < total {
		for posted < total && posted-done < window {
			w.ID = uint64(posted)
			qs[posted%len(qs)].Post(c, w)
			posted++
		}
		done += pollSuccesses(c, cq, wc)
	}
	return perSecond(total, c.T.Now()-start)
}

func manyMRs(c *spec.C) {
	const each = 512
	// Device caches of translations hold some 10^4 entries: fewer regions would not show their end.
	counts := []int{1, 100, 10_000, c.Scale(20_000, 100_000)}
	b := connect(c, options(), each)
	var keys []verbs.MR
	c.Defer(func() {
		for _, m := range keys {
			kit.Must(c, "dereg_mr", m.Dereg(c.T))
		}
	})
	var first float64
	for _, n := range counts {
		for len(keys) < n {
			m, err := b.PD.RegMR(c.T, b.mem.Addr(0), each, verbs.AccessLocalWrite)
			kit.Must(c, "reg_mr", err)
			keys = append(keys, m)
		}
		wc := make([]verbs.WC, 16)
		start := c.T.Now()
		posted, done := 0, 0
		const total = 8192
		for done < total {
			for posted < total && posted-done < 256 {
				w := b.far.WriteTo(uint64(posted), 0, verbs.SGE{Addr: b.mem.Addr(0), Length: each, LKey: keys[c.Rand().Intn(n)].LKey()})
				b.q.Post(c, w)
				posted++
			}
			done += pollSuccesses(c, b.q.SendCQ, wc)
		}
		rate := 8 * each * perSecond(total, c.T.Now()-start)
		c.Observe(fmt.Sprintf("%d memory regions, Gb/s", n), threeDigits(rate/1e9))
		first = cmp.Or(first, rate)
		c.True(fmt.Sprintf("%d memory regions", n), rate >= first/collapse, "%.3g Gb/s, one has %.3g", rate/1e9, first/1e9)
	}
}

// compare fails when the first way takes longer than the second.
func compare(c *spec.C, what string, way, than time.Duration) {
	c.Observe(what+", ns", []int64{way.Nanoseconds(), than.Nanoseconds()})
	c.True(what, float64(way) <= float64(than)*(1+slack), "%v against %v", way, than)
}

// compareWithChange fails when 4096 writes of 8 bytes take longer by the change than without it.
func compareWithChange(c *spec.C, what string, signal int, change func(*flow)) {
	b := connect(c, options(), 64)
	f := b.writes(8)
	f.window, f.signal = 256, signal
	f.run(c, 512)
	without := f.run(c, 4096)
	change(&f)
	compare(c, what, f.run(c, 4096), without)
}

func lists(c *spec.C) {
	compareWithChange(c, "lists of 16 against single posts", 16, func(f *flow) { f.list = 16 })
}

func fewSignals(c *spec.C) {
	compareWithChange(c, "one signal in 64 against all", 1, func(f *flow) { f.signal = 64 })
}

func inlineLatency(c *spec.C) {
	b := connect(c, options(), 64)
	f := b.writes(16)
	f.window, f.signal = 1, 1
	f.run(c, 64)
	gathered := f.run(c, 512)
	f.wr.Flags |= verbs.SendInline
	compare(c, "512 writes one after another, inline against gathered", f.run(c, 512), gathered)
}
