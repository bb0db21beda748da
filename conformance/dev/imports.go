package dev

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func imported(c *spec.C) {
	e := kit.Open(c)
	ctx, closeIt := e.Import(c)
	c.Equal("node GUID", ctx.Device().GUID(), e.Ctx.Device().GUID())
	want, err := e.Ctx.QueryDevice(c.T)
	kit.Must(c, "query_device", err)
	got, err := ctx.QueryDevice(c.T)
	c.NoErr("query_device of the import", err)
	c.Equal("caps", got, want)
	wantPort, err := e.Ctx.QueryPort(c.T, int(e.Port))
	kit.Must(c, "query_port", err)
	gotPort, err := ctx.QueryPort(c.T, int(e.Port))
	c.NoErr("query_port of the import", err)
	for _, p := range []*verbs.PortAttr{&gotPort, &wantPort} {
		p.BadPKeyCntr, p.QKeyViolCntr = 0, 0 // these count on
	}
	c.Equal("port", gotPort, wantPort)
	closeIt(c)
	_, err = e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device after the import is closed", err)
}

func importOther(c *spec.C) {
	kit.Open(c)
	i := kit.Importer(c)
	null, err := i.OpenNull(c.T)
	kit.Must(c, "open the null device", err)
	c.Defer(func() { kit.Must(c, "close the null device", i.CloseFD(c.T, null)) })
	for _, d := range []struct {
		what string
		fd   int
	}{{"the null device", null}, {"no descriptor", 1 << 20}, {"a negative one", -1}} {
		_, err := i.ImportDevice(c.T, d.fd)
		c.ErrnoIn(d.what, err, syscall.EBADF, syscall.EINVAL, syscall.ENOTTY, syscall.ENODEV)
	}
}
