package uar

import (
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// Of the 16 registers that a context has by default, 4 are for low latency.
const (
	totalRegs  = 16
	lowLatency = 4
)

type registerPlace struct {
	page, offset uint32
}

func placeOf(c *spec.C, q *kit.QP) registerPlace {
	r := kit.BFReg(c, q)
	return registerPlace{r.UARPage, r.Offset}
}

func withoutTD(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.SendCQ = e.CreateCQ(c, 255)
	o.RecvCQ = o.SendCQ
	first := map[registerPlace]bool{}
	for i := range lowLatency {
		q := e.CreateQP(c, o)
		p := placeOf(c, q)
		c.Equal("a register of its own", first[p], false)
		kit.ExpectNoLock(c, kit.BFReg(c, q))
		first[p] = true
		c.Observe("dedicated registers", i+1)
	}
	uses := map[registerPlace]int{}
	const more = 3*(totalRegs-lowLatency) + 5
	for range more {
		q := e.CreateQP(c, o)
		p := placeOf(c, q)
		if first[p] {
			c.Failf("a later QP has a dedicated register")
		}
		if r := kit.BFReg(c, q); r.Class != "" && !r.NeedLock { // a real library does not tell
			c.Failf("a shared register without a lock")
		}
		uses[p]++
	}
	var counts []int
	for _, n := range uses {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	c.Equal("shared registers", len(counts), totalRegs-lowLatency)
	c.True("even", counts[len(counts)-1]-counts[0] <= 1, "use counts %v", counts)
	c.Observe("use counts", counts)
}

func closeUnmaps(c *spec.C) {
	l, lists := c.Process().(verbs.MappingLister)
	if !lists {
		c.Errorf("the target does not list the mappings of a process")
	}
	count := func() int {
		n, err := l.DeviceMappings(c.T)
		kit.Must(c, "list mappings", err)
		return n
	}
	before := count() // what the process has open otherwise: librdmacm keeps its devices open
	ctx, err := c.Device().Open(c.T)
	c.NoErr("open_device", err)
	pd, err := ctx.AllocPD(c.T)
	c.NoErr("alloc_pd", err)
	cq, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 16})
	c.NoErr("create_cq", err)
	var qps []verbs.QP
	for range 6 {
		qp, err := pd.CreateQP(c.T, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq,
			Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
		kit.Must(c, "create_qp", err)
		qps = append(qps, qp)
	}
	var tds []verbs.TD
	for range 3 {
		td, err := ctx.AllocTD(c.T, verbs.TDInitAttr{})
		if errno := c.ErrnoIn("alloc_td", err, 0, syscall.EOPNOTSUPP); errno == 0 {
			tds = append(tds, td)
		}
	}
	c.True("UARs were mapped", count() > before, "%d mappings, %d before the context was opened", count(), before)
	for _, td := range tds {
		kit.Must(c, "dealloc_td", td.Dealloc(c.T))
	}
	for _, qp := range qps {
		kit.Must(c, "destroy_qp", qp.Destroy(c.T))
	}
	kit.Must(c, "destroy_cq", cq.Destroy(c.T))
	kit.Must(c, "dealloc_pd", pd.Dealloc(c.T))
	c.NoErr("close_device", ctx.Close(c.T))
	c.Equal("mappings afterwards", count()-before, 0)
}

func totalUUARs(c *spec.C) {
	for _, v := range []string{"0", "-1", "513", "100000"} {
		o := kit.StartOtherProcess(c, 0, map[string]string{"MLX5_TOTAL_UUARS": v})
		_, err := o.DoErr(c, player.Open, nil, nil)
		c.ErrnoIn("open with MLX5_TOTAL_UUARS="+v, err, syscall.EINVAL, syscall.ENOMEM)
	}
	o := kit.OpenOtherProcess(c, 0, map[string]string{"MLX5_TOTAL_UUARS": "512"})
	q := o.CreateQP(c, player.CreateQP, nil)
	c.True("the maximum works", q.QPN != 0, "no QP")
}

// pagesOfBigSystemPage: 16 adapter pages of 4 KiB, two registers each.
func pagesOfBigSystemPage(c *spec.C) {
	const adapterPages = 16
	e := kit.Open(c)
	ids, offs := map[uint32]int{}, map[uint64]bool{}
	for range 2 * adapterPages {
		i := alloc(c, e, verbs.UARBlueFlame)
		ids[i.PageID]++
		offs[i.MmapOff] = true
	}
	c.Equal("system pages", len(offs), 1)
	c.Equal("page ids", len(ids), adapterPages)
	for id, n := range ids {
		if n != 2 {
			c.Failf("page id %d has %d registers", id, n)
		}
	}
}

func legacyPath(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	c.Equal("register of the static table", kit.BFReg(c, p.A).Dynamic, false)
	mem := p.Buffer(c, 8192, kit.AllAccess)
	want := mem.FillRandom(c)[:3000]
	p.B.RecvInto(c, 1, mem.SGE(4096, 3000))
	c.Status("send", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 3000))), verbs.WCSuccess)
	c.Status("receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
	c.Equal("bytes", mem.Get(c, 4096, 3000), want)
}
