package td

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func anyOrder(c *spec.C) {
	e := kit.Open(c)
	for _, n := range []int{1, 2, 3, 16, 64} {
		tds := make([]verbs.TD, n)
		for i := range tds {
			td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{})
			kit.Must(c, "alloc_td", err)
			tds[i] = td
		}
		for _, i := range c.Rand().Perm(n) {
			kit.Must(c, "dealloc_td", tds[i].Dealloc(c.T))
		}
		c.Observe("allocated and freed", n)
	}
}

func compMask(c *spec.C) {
	e := kit.Open(c)
	for _, mask := range []uint32{1 << 1, 1 << 7, 1 << 31, 1<<32 - 1} {
		td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{CompMask: mask})
		if err == nil {
			kit.DestroyOnce(c, "dealloc_td", td.Dealloc)
		}
		c.Errno("alloc_td with a comp_mask", err, syscall.EINVAL)
	}
	if !c.Has("td.independent") {
		td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1})
		if err == nil {
			kit.DestroyOnce(c, "dealloc_td", td.Dealloc)
		}
		c.Errno("alloc_td with the independent bit", err, syscall.EINVAL)
	}
}

func referenced(c *spec.C) {
	e := kit.Open(c)
	td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{})
	c.NoErr("alloc_td", err)
	var parents []verbs.PD
	for range 2 {
		pd, err := e.Ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{PD: e.PD, TD: td})
		c.NoErr("alloc_parent_domain", err)
		parents = append(parents, pd)
	}
	for _, pd := range parents {
		c.Errno("dealloc_td under a parent domain", td.Dealloc(c.T), syscall.EBUSY)
		c.NoErr("dealloc parent domain", pd.Dealloc(c.T))
	}
	c.Errno("dealloc_td afterwards", td.Dealloc(c.T), 0)
}

// exhaustionLimit bounds the loop where a device never refuses.
const exhaustionLimit = 1 << 17

func exhaustion(c *spec.C) {
	e := kit.Open(c)
	var tds []verbs.TD
	c.Defer(func() {
		for _, td := range tds {
			kit.Must(c, "dealloc_td", td.Dealloc(c.T))
		}
	})
	first := newTDUser(c, e)
	var refusal error
	for len(tds) < exhaustionLimit {
		td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{})
		if err != nil {
			refusal = err
			break
		}
		tds = append(tds, td)
	}
	c.ErrnoIn("alloc_td past the last", refusal, syscall.ENOMEM, syscall.ENOSPC, syscall.EINVAL, syscall.ENOENT)
	c.Observe("domains", len(tds)+1)
	first.sendAndCheck(c, "the first domain")
	c.True("some were allocated", len(tds) > 0, "none")
	last := len(tds) - 1
	c.NoErr("dealloc_td", tds[last].Dealloc(c.T))
	tds = tds[:last]
	td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{})
	c.Errno("alloc_td after one was freed", err, 0)
	tds = append(tds, td)
}

// tdUser is a thread domain with a connected pair on it and memory.
type tdUser struct {
	*kit.Pair
	td  *kit.TD
	mem *kit.Buffer
}

// newTDUser makes a domain and a pair on it; its CQs are ordinary.
func newTDUser(c *spec.C, e *kit.Env) tdUser { return pairOn(c, e, e.AllocTD(c)) }

func pairOn(c *spec.C, e *kit.Env, td *kit.TD) tdUser {
	o := kit.Default()
	o.PD = td.PD
	o.Cap.MaxInline = 32
	return tdUser{e.Pair(c, o), td, e.Buffer(c, 256, kit.AllAccess)}
}

// sendAndCheck sends one message and compares the bytes.
func (u tdUser) sendAndCheck(c *spec.C, step string) {
	want := u.mem.FillRandom(c)[:16]
	u.B.RecvInto(c, 1, u.mem.SGE(64, 16))
	c.Status(step+": send", u.A.PostAndPoll(c, kit.Send(1, u.mem.SGE(0, 16))), verbs.WCSuccess)
	c.Status(step+": receive", kit.PollOne(c, u.B.RecvCQ), verbs.WCSuccess)
	c.Equal(step+": bytes", u.mem.Get(c, 64, 16), want)
}

// withoutDomains asks a device that has no thread domains for one.
func withoutDomains(c *spec.C) {
	e := kit.Open(c)
	td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{})
	if err == nil {
		kit.DestroyOnce(c, "dealloc_td", td.Dealloc)
	}
	c.Errno("alloc_td", err, syscall.EOPNOTSUPP)
}
