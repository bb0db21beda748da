package pd

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// transfer writes bytes by keys of one region from its first half to its second.
func transfer(c *spec.C, step string, p *kit.Pair, m verbs.Buffer, mr verbs.MR) {
	const half = 64
	want := c.Rand().Bytes(half)
	_, err := m.WriteAt(c.T, want, 0)
	kit.Must(c, "write memory", err)
	c.Status(step, p.A.PostAndPoll(c, verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGEs: []verbs.SGE{{Addr: m.Addr(), Length: half, LKey: mr.LKey()}}, RemoteAddr: m.Addr() + half, RKey: mr.RKey()}), verbs.WCSuccess)
	got := make([]byte, half)
	_, err = m.ReadAt(c.T, got, half)
	kit.Must(c, "read memory", err)
	c.Equal(step+": bytes", got, want)
}

func importedRegisters(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	ctx, _ := p.Import(c)
	pd := p.ImportPD(c, ctx)
	m := kit.Map(c, 4096)
	mr, err := pd.RegMR(c.T, m.Addr(), 4096, kit.AllAccess)
	c.NoErr("reg_mr on the imported PD", err)
	dereg := kit.DestroyOnce(c, "dereg_mr", mr.Dereg)
	transfer(c, "WRITE by queue pairs of the exporter", p, m, mr)
	dereg(c)
	c.Errno("unimport_pd", pd.Unimport(c.T), 0)
}

func importUnused(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	ctx, _ := e.Import(c)
	for _, h := range []struct {
		what   string
		handle uint32
	}{{"a handle never given", 0xffff0}, {"the handle of a region", mem.MR.Handle()}} {
		if h.handle == e.PD.Handle() {
			continue // kinds of objects have numbers of their own
		}
		_, err := ctx.ImportPD(c.T, h.handle)
		c.ErrnoIn(h.what, err, syscall.EINVAL, syscall.ENOENT)
	}
}

func unimported(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	m := kit.Map(c, 4096)
	mr, err := p.PD.RegMR(c.T, m.Addr(), 4096, kit.AllAccess)
	kit.Must(c, "reg_mr", err)
	kit.DestroyOnce(c, "dereg_mr", mr.Dereg)
	ctx, closeIt := p.Import(c)
	pd := p.ImportPD(c, ctx)
	transfer(c, "WRITE while the PD is imported", p, m, mr)
	c.Errno("unimport_pd", pd.Unimport(c.T), 0)
	transfer(c, "WRITE after unimport_pd", p, m, mr)
	closeIt(c)
	transfer(c, "WRITE after the import is closed", p, m, mr)
	c.Errno("dealloc_pd under its region", p.PD.Dealloc(c.T), syscall.EBUSY)
}

// unimportedParent records what the library says to giving back an import that is none: a parent
// domain.
func unimportedParent(c *spec.C) {
	e := kit.Open(c)
	pd := e.ParentDomain(c)
	kit.RecordErrno(c, "unimport_pd of a parent domain", pd.Unimport(c.T))
	mem := e.BufferOn(c, pd, 64, kit.AllAccess)
	mem.FillRandom(c)
}
