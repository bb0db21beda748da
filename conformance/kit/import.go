package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Importer returns the case's process as one that can import contexts.
func Importer(c *spec.C) verbs.Importer {
	i, ok := c.Process().(verbs.Importer)
	if !ok {
		c.Errorf("this target says that it can import, and its processes cannot")
	}
	return i
}

// Import opens the Env's device file once more. The context is closed by closeImport, or when the
// case ends.
func (e *Env) Import(c *spec.C) (ctx verbs.Context, closeImport func(c *spec.C)) {
	i := Importer(c)
	fd, err := i.DupCommandFD(c.T, e.Ctx)
	ok(c, "dup of the command descriptor", err)
	ctx, err = i.ImportDevice(c.T, fd)
	c.NoErr("import_device", err)
	return ctx, DestroyOnce(c, "close_device of an import", ctx.Close)
}

// ImportPD imports the Env's PD into another context of its device file.
func (e *Env) ImportPD(c *spec.C, into verbs.Context) verbs.PD {
	pd, err := into.ImportPD(c.T, e.PD.Handle())
	c.NoErr("import_pd", err)
	return pd
}
