// Package dev holds the cases of area DEV: device, port and GID queries.
package dev

import (
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("DEV-001", listIsWhole)
	s.Case("DEV-002", listFreed)
	s.Case("DEV-003", otherContextCloses)
	s.Case("DEV-004", capsCanBeAskedFor)
	s.Case("DEV-005", aboveCapsRefused)
	s.Case("DEV-006", portOutside)
	s.Case("DEV-007", ethernetPort)
	s.Case("DEV-008", gidOutside)
	s.Case("DEV-009", gidEmptySlot)
	s.Case("DEV-010", gidFlags)
	s.Case("DEV-011", gidTable)
	s.Case("DEV-012", gidTableShort)
	s.Case("DEV-013", pkeys)
	s.Case("DEV-014", pkeyAbsent)
	s.Case("DEV-015", queryExCompMask)
	s.Case("DEV-016", portCounts)
	s.Case("DEV-017", imported)
	s.Case("DEV-018", importOther)
	s.Case("DEV-019", killedOwner)
	s.Case("DEV-020", removed)
	s.Case("DEV-021", forkInitTooLate)
	s.Case("DEV-022", forkUnneeded)
	s.Case("DEV-024", linkDownAndUp)
	s.Case("DEV-025", addressComesAndGoes)
	s.Case("DEV-026", attributes)
	s.Case("DEV-023", rawClock)
}

// expectRefused holds when a call that has no documented errno fails, and not because it is
// missing; the errno is recorded.
func expectRefused(c *spec.C, step string, err error) {
	got := verbs.ErrnoOf(err)
	c.Observe(step, verbs.ErrnoName(got))
	missing := []syscall.Errno{syscall.EOPNOTSUPP, syscall.ENOSYS}
	if err == nil || slices.Contains(missing, got) {
		c.Failf("%s: want a refusal, got %s (%v)", step, verbs.ErrnoName(got), err)
	}
}

func listIsWhole(c *spec.C) {
	devs, err := c.Process().Devices(c.T)
	c.NoErr("list devices", err)
	c.True("devices", len(devs) > 0, "the list is empty")
	names := map[string]bool{}
	for i, d := range devs {
		c.True("entry", d != nil && d.Name() != "", "entry %d of %d is empty", i, len(devs))
		c.True("name", !names[d.Name()], "%s is there twice", d.Name())
		names[d.Name()] = true
		ctx, err := d.Open(c.T)
		c.NoErr("open "+d.Name(), err)
		a, err := ctx.QueryDevice(c.T)
		c.NoErr("query "+d.Name(), err)
		c.Equal("node GUID of the entry and of the device", d.GUID(), a.NodeGUID)
		c.NoErr("close "+d.Name(), ctx.Close(c.T))
	}
	again, err := c.Process().Devices(c.T)
	c.NoErr("list devices again", err)
	c.Equal("count", len(again), len(devs))
}

func listFreed(c *spec.C) {
	ctx := c.Open() // the binding frees a list when its call returns
	devs, err := c.Process().Devices(c.T)
	c.NoErr("list devices again", err)
	c.Equal("same device", devs[0].Name(), ctx.Device().Name())
	_, err = ctx.QueryDevice(c.T)
	c.Errno("query_device", err, 0)
	pd, err := ctx.AllocPD(c.T)
	c.NoErr("alloc_pd", err)
	c.NoErr("dealloc_pd", pd.Dealloc(c.T))
}

func otherContextCloses(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, dst := p.Buffer(c, 4096, kit.AllAccess), p.Buffer(c, 4096, kit.AllAccess)
	other, err := c.Device().Open(c.T)
	c.NoErr("open again", err)
	pd, err := other.AllocPD(c.T)
	c.NoErr("alloc_pd in the second context", err)
	cq, err := other.CreateCQ(c.T, verbs.CQAttr{CQE: 16})
	c.NoErr("create_cq in the second context", err)
	writeAndCompare(c, p, src, dst, "both open")
	c.NoErr("destroy_cq", cq.Destroy(c.T))
	c.NoErr("dealloc_pd", pd.Dealloc(c.T))
	c.NoErr("close the second context", other.Close(c.T))
	writeAndCompare(c, p, src, dst, "one closed")
}

// writeAndCompare writes random bytes from src to dst.
func writeAndCompare(c *spec.C, p *kit.Pair, src, dst *kit.Buffer, step string) {
	want := src.FillRandom(c)
	c.Status("write with "+step, p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.All())), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes with "+step, want)
}

// createAtCaps asks for what each cap of query_device allows, alone, plus excess.
func createAtCaps(c *spec.C, excess int, judge func(step string, err error)) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	cq := e.CreateCQ(c, 16)
	qp := func(wr, sge int) error {
		q, err := e.PD.CreateQP(c.T, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq,
			Cap: verbs.QPCap{MaxSendWR: uint32(wr), MaxRecvWR: uint32(wr), MaxSendSGE: uint32(sge), MaxRecvSGE: uint32(sge)}})
		if err == nil {
			kit.Must(c, "destroy_qp", q.Destroy(c.T))
		}
		return err
	}
	big, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: a.MaxCQE + excess})
	if err == nil {
		kit.Must(c, "destroy_cq", big.Destroy(c.T))
	}
	judge("max_cqe", err)
	judge("max_qp_wr with 1 SGE", qp(a.MaxQPWR+excess, 1))
	judge("max_sge with 1 WR", qp(1, a.MaxSGE+excess))
	if c.Has("srq") {
		srq, err := e.PD.CreateSRQ(c.T, verbs.SRQInitAttr{MaxWR: uint32(a.MaxSRQWR + excess), MaxSGE: 1})
		if err == nil {
			kit.Must(c, "destroy_srq", srq.Destroy(c.T))
		}
		judge("max_srq_wr", err)
	}
	if a.MaxCQE <= 0 || a.MaxQPWR <= 0 || a.MaxSGE <= 0 {
		c.Failf("max_cqe is %d, max_qp_wr %d, max_sge %d", a.MaxCQE, a.MaxQPWR, a.MaxSGE)
	}
}

func capsCanBeAskedFor(c *spec.C) {
	createAtCaps(c, 0, func(step string, err error) { c.Errno(step, err, 0) })
}

func aboveCapsRefused(c *spec.C) {
	createAtCaps(c, 1, func(step string, err error) { c.ErrnoIn(step+" + 1", err, syscall.EINVAL, syscall.ENOMEM) })
}
