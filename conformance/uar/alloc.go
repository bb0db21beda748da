package uar

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// alloc allocates a UAR that is freed when the case ends.
func alloc(c *spec.C, e *kit.Env, flags uint32) verbs.UARInfo {
	u, err := e.Ctx.AllocUAR(c.T, flags)
	kit.Must(c, fmt.Sprintf("devx_alloc_uar with flags %#x", flags), err)
	kit.DestroyOnce(c, "devx_free_uar", u.Free)
	return u.Info()
}

func writeCombining(c *spec.C) {
	e := kit.Open(c)
	for range 5 {
		u, err := e.Ctx.AllocUAR(c.T, verbs.UARBlueFlame)
		c.NoErr("devx_alloc_uar", err)
		i := u.Info()
		c.True("it is described", i.RegAddr != 0 && i.BaseAddr != 0 && i.PageID != 0 && i.MmapLen != 0, "%+v", i)
		c.NoErr("devx_free_uar", u.Free(c.T))
	}
}

func singleton(c *spec.C) {
	e := kit.Open(c)
	a, b := alloc(c, e, verbs.UARNonCached), alloc(c, e, verbs.UARNonCached)
	c.Equal("same page id", a.PageID == b.PageID, true)
	c.Equal("same register", a.RegAddr == b.RegAddr, true)
}

func dedicated(c *spec.C) {
	e := kit.Open(c)
	one := alloc(c, e, verbs.UARNonCached)
	own, other := alloc(c, e, verbs.UARNonCachedOwn), alloc(c, e, verbs.UARNonCachedOwn)
	c.Equal("differs from the singleton", own.PageID != one.PageID || own.RegAddr != one.RegAddr, true)
	c.Equal("register is its own", own.RegAddr != other.RegAddr, true)
}

func fourToAPage(c *spec.C) {
	e := kit.Open(c)
	var pages []uint32
	regs := map[uint64]bool{}
	for range 9 {
		i := alloc(c, e, verbs.UARNonCachedOwn)
		pages = append(pages, i.PageID)
		regs[i.RegAddr] = true
	}
	c.Equal("registers", len(regs), 9)
	for i := range pages {
		for j := range i {
			if (pages[i] == pages[j]) != (i/4 == j/4) {
				c.Failf("doorbells %d and %d: on one page %t, want %t", j, i, pages[i] == pages[j], i/4 == j/4)
			}
		}
	}
	c.Observe("pages of nine doorbells", []bool{pages[3] == pages[0], pages[4] == pages[0], pages[8] == pages[4]})
}

func undefinedFlag(c *spec.C) {
	e := kit.Open(c)
	for _, flags := range []uint32{2, 4, 1 << 30, verbs.UARNonCachedOwn | verbs.UARNonCached, 1<<32 - 1} {
		u, err := e.Ctx.AllocUAR(c.T, flags)
		if err == nil {
			kit.DestroyOnce(c, "devx_free_uar", u.Free)
		}
		c.Errno(fmt.Sprintf("flags %#x", flags), err, syscall.EOPNOTSUPP)
	}
}

// firstRegister is where the first BlueFlame register lies in a UAR page, and spacing
// how far apart the doorbells of a non-cached page are.
const (
	firstRegister = 0x800
	spacing       = 0x100
)

func registerInPage(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.PD = e.AllocTD(c).PD
	size := uint64(2 * kit.BFReg(c, e.CreateQP(c, o)).Size)
	c.Observe("size of a BlueFlame register", size)
	for _, tc := range []struct {
		name  string
		flags uint32
		step  uint64
	}{{"write-combining", verbs.UARBlueFlame, max(size, spacing)}, {"non-cached", verbs.UARNonCached, spacing},
		{"dedicated", verbs.UARNonCachedOwn, spacing}} {
		for range 4 {
			i := alloc(c, e, tc.flags)
			off := i.RegAddr - i.BaseAddr
			c.True(tc.name, off >= firstRegister && off < i.MmapLen && (off-firstRegister)%tc.step == 0,
				"register at %#x of %#x, in steps of %#x", off, i.MmapLen, tc.step)
			c.Observe(tc.name+" register at", off)
		}
	}
}

func twoToAPage(c *spec.C) {
	e := kit.Open(c)
	a, b := alloc(c, e, verbs.UARBlueFlame), alloc(c, e, verbs.UARBlueFlame)
	c.Equal("same page id", a.PageID == b.PageID, true)
	c.Equal("same mmap_off", a.MmapOff == b.MmapOff, true)
	c.Equal("different registers", a.RegAddr != b.RegAddr, true)
}

func freeSingleton(c *spec.C) {
	e := kit.Open(c)
	var handles []verbs.UAR
	for range 3 {
		u, err := e.Ctx.AllocUAR(c.T, verbs.UARNonCached)
		c.NoErr("devx_alloc_uar", err)
		handles = append(handles, u)
	}
	p := e.Pair(c, kit.Default())
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, u := range handles {
		c.NoErr("devx_free_uar", u.Free(c.T))
		c.NoErr("arm a CQ, which rings on that page", p.A.SendCQ.ReqNotify(c.T, false))
		c.Status("write", p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
	}
	again := alloc(c, e, verbs.UARNonCached)
	c.Equal("still the singleton", again.PageID == handles[0].Info().PageID, true)
}

// foreignPage rings for a QP on a page of its context that is not its own and on one of another
// context, which is what another process has, and last on its own.
func foreignPage(c *spec.C) {
	e := kit.Open(c)
	p := e.Pair(c, kit.Default())
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)[:8]
	bell := kit.WriteRawWQE(c, p.A, 0, mem.SGE(0, 8), mem, 32)
	c.NoErr("count it in the record", kit.Mlx5(c, p.A).WriteDoorbellRecord(c.T, 1))
	for _, x := range []struct {
		name string
		env  *kit.Env
	}{{"another page of the context", e}, {"a page of another context", kit.Open(c)}} {
		u, err := x.env.Ctx.AllocUAR(c.T, verbs.UARNonCached)
		c.NoErr("devx_alloc_uar", err)
		kit.DestroyOnce(c, "devx_free_uar", u.Free)
		i := u.Info()
		c.NoErr("ring on "+x.name, u.Store(c.T, uint32(i.RegAddr-i.BaseAddr), bell))
		c.Observe("sent after a ring on "+x.name, kit.AwaitData(c, mem, 32, want, kit.QuietPeriod))
	}
	c.NoErr("ring on its own page", kit.Mlx5(c, p.A).RingDoorbell(c.T, bell))
	c.Observe("sent after a ring on its own page", kit.AwaitData(c, mem, 32, want, kit.CompletionTimeout/10))
	c.Observe("state", p.A.QueryState(c).String())
}
