package perf

import (
	"slices"
	"sync/atomic"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// fairShare is the share that one of two flows is to keep of what it has alone.
const fairShare = 0.5

// attack is another flow of the device, to the same other end.
type attack struct {
	name string
	// prepare makes what it needs, and returns its round, which posts the requests that it counts.
	prepare func(c *spec.C, e *kit.Env, o *kit.OtherProcess) (round func(c *spec.C) int)
}

// attacks are those that the catalogue names.
var attacks = []attack{
	{"writes of 8 bytes", tinyWrites},
	{"atomics on one address", oneAddress},
	{"writes from 8192 memory regions", manyRegions},
	{"sends that find no receive", notReady},
}

// victims measures a flow of 64 KiB writes alone and beside each attack, which two threads
// of one process make.
func victims(c *spec.C) {
	const size, count = 64 << 10, 256
	b := connect(c, options(), size)
	f := b.writes(size)
	f.window, f.signal = 16, 4
	f.run(c, 64)
	alone := perSecond(count*size, f.run(c, count))
	c.Observe("alone, Gb/s", threeDigits(8*alone/1e9))
	for _, a := range attacks {
		round := a.prepare(c, b.Env, b.other)
		share, sent := 0.0, 0
		var over atomic.Bool
		took := runTogether(c, 2, func(c *spec.C, i int) {
			if i == 1 {
				for !over.Load() {
					sent += round(c)
				}
				return
			}
			f.run(c, 64) // until the attack is under way
			share = perSecond(count*size, f.run(c, count)) / alone
			over.Store(true)
		})
		if sent > 0 {
			c.Observe(a.name+", M/s", threeDigits(perSecond(sent, took)/1e6))
		}
		c.Observe("share beside "+a.name, threeDigits(share))
		c.True("fair share beside "+a.name, share >= fairShare*(1-2*slack), "%.2g of the rate alone, the fair share is %.2g", share, fairShare)
	}
}

// rounds makes a flow of requests on a connection of its own, 256 a round.
func rounds(c *spec.C, e *kit.Env, o *kit.OtherProcess, wr func(mem *kit.Buffer, far *kit.OtherBuffer) verbs.SendWR) func(c *spec.C) int {
	q, _ := e.PairWith(c, o, options())
	f := flow{q: q, wr: wr(e.Buffer(c, 4096, kit.AllAccess), o.Buffer(c, 4096, kit.AllAccess, 0)), list: 1, window: 64, signal: 8}
	return func(c *spec.C) int {
		f.run(c, 256)
		return 256
	}
}

func tinyWrites(c *spec.C, e *kit.Env, o *kit.OtherProcess) func(c *spec.C) int {
	return rounds(c, e, o, func(mem *kit.Buffer, far *kit.OtherBuffer) verbs.SendWR { return far.WriteTo(0, 0, mem.SGE(0, 8)) })
}

func oneAddress(c *spec.C, e *kit.Env, o *kit.OtherProcess) func(c *spec.C) int {
	return rounds(c, e, o, func(mem *kit.Buffer, far *kit.OtherBuffer) verbs.SendWR { return far.FetchAdd(0, 0, 1, mem.SGE(0, 8)) })
}

// manyRegions writes from a region that was not used for long, again and again.
func manyRegions(c *spec.C, e *kit.Env, o *kit.OtherProcess) func(c *spec.C) int {
	const regions, window = 8192, 64
	q, _ := e.PairWith(c, o, options())
	mem, far := e.Buffer(c, 4096, kit.AllAccess), o.Buffer(c, 4096, kit.AllAccess, 0)
	keys := make([]uint32, regions)
	for i := range keys {
		m, err := e.PD.RegMR(c.T, mem.Addr(0), 64, verbs.AccessLocalWrite)
		kit.Must(c, "reg_mr", err)
		kit.DestroyOnce(c, "dereg_mr", m.Dereg)
		keys[i] = m.LKey()
	}
	next := 0
	wc := make([]verbs.WC, 16)
	return func(c *spec.C) int {
		for range window {
			q.Post(c, far.WriteTo(0, 0, verbs.SGE{Addr: mem.Addr(0), Length: 64, LKey: keys[next%regions]}))
			next++
		}
		for left := window; left > 0; {
			left -= pollSuccesses(c, q.SendCQ, wc)
		}
		return window
	}
}

// notReady has queue pairs send for ever to others without receives: each waits the
// shortest time, 10 us, and sends again; these are not counted.
func notReady(c *spec.C, e *kit.Env, o *kit.OtherProcess) func(c *spec.C) int {
	opt := options()
	opt.MinRNRTimer = 1
	mem := e.Buffer(c, 64, kit.AllAccess)
	for range 16 {
		q, _ := e.PairWith(c, o, opt)
		q.Post(c, kit.Send(1, mem.SGE(0, 64)))
	}
	return func(c *spec.C) int {
		c.T.Sleep(kit.QuietPeriod / 1000)
		return 0
	}
}

// turns has queue pairs that all have requests waiting share the device: none waits until the
// others are done.
func turns(c *spec.C) {
	const qps, each, size = 64, 32, 4096
	o := options()
	o.Cap.MaxSendWR, o.Cap.MaxInline = each, 0
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	o.SendCQ, o.RecvCQ = e.CreateCQ(c, qps*each), e.CreateCQ(c, 16)
	mem, far := e.Buffer(c, size, kit.AllAccess), other.Buffer(c, size, kit.AllAccess, 0)
	var qs []*kit.QP
	for range qps {
		q, _ := e.PairWith(c, other, o)
		qs = append(qs, q)
	}
	for i, q := range qs {
		list := make([]verbs.SendWR, each)
		for k := range list {
			list[k] = far.WriteTo(uint64(i), 0, mem.SGE(0, size))
		}
		q.Post(c, list...)
	}
	// Requests that are done before all are posted do not count: queue pairs that were posted to
	// first had the device to themselves.
	left, waiting := make([]int, qps), qps*each
	for i := range left {
		left[i] = each
	}
	wc := make([]verbs.WC, qps*each)
	n, err := o.SendCQ.Poll(c.T, wc)
	kit.Must(c, "poll_cq", err)
	for _, w := range wc[:n] {
		left[w.ID]--
		waiting--
	}
	had := make([]int, qps)
	for done := 0; done < waiting; {
		n := pollSuccesses(c, o.SendCQ, wc[:16])
		for _, w := range wc[:n] {
			if done++; done <= waiting/2 {
				had[w.ID]++
			}
		}
	}
	c.Observe("fewest of half", slices.Min(had))
	c.Observe("most of half", slices.Max(had))
	worst, lacks := 0, -each
	for i := range had {
		if l := min(left[i], waiting/2/qps)/2 - had[i]; l > lacks {
			worst, lacks = i, l
		}
	}
	c.True("fair shares", lacks <= 0, "%d requests of a queue pair were done, of %d that waited and %d of all", had[worst], left[worst], waiting/2)
}
