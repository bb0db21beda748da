package mr

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func importedRegion(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, mem := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	want := src.FillRandom(c)[:8]
	ctx, closeIt := p.Import(c)
	pd := p.ImportPD(c, ctx)
	m, err := pd.ImportMR(c.T, mem.MR.Handle())
	c.NoErr("import_mr", err)
	c.Equal("keys are the same", m.LKey() == mem.MR.LKey() && m.RKey() == mem.MR.RKey(), true)
	c.Equal("length", m.Length(), mem.MR.Length())
	c.Status("WRITE by the imported keys", p.A.PostAndPoll(c, writeTo(src, mem.Addr(8), m)), verbs.WCSuccess)
	c.Equal("bytes", mem.Get(c, 8, 8), want)
	c.Errno("unimport_mr", m.Unimport(c.T), 0)
	c.Status("WRITE after unimport_mr", p.A.PostAndPoll(c, writeTo(src, mem.Addr(16), mem.MR)), verbs.WCSuccess)
	c.Errno("unimport_pd", pd.Unimport(c.T), 0)
	closeIt(c)
	c.Status("WRITE after the import is closed", p.A.PostAndPoll(c, writeTo(src, mem.Addr(24), mem.MR)), verbs.WCSuccess)
	c.Equal("bytes", mem.Get(c, 24, 8), want)
}
