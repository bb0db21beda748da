package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Page is the size of the pages that cases of on-demand paging count in, in bytes.
const Page = 4096

// Paged maps n bytes, a whole number of pages, that nobody has touched, and registers them for paging on demand. The
// buffer has no red zones: writing them would touch it.
func (e *Env) Paged(c *spec.C, n int, access verbs.AccessFlags) *Buffer {
	return e.PagedOver(c, MapLazily(c, n), n, access)
}

// MapLazily maps n bytes that nobody has touched.
func MapLazily(c *spec.C, n int) verbs.Buffer {
	m, err := c.Process().Map(c.T, uint64(n), verbs.MapOptions{Lazy: true})
	ok(c, "map memory", err)
	c.Defer(func() { _ = m.Unmap(c.T) }) // a case may have unmapped it, or moved it
	return m
}

// PagedOver registers n bytes of a mapping for paging on demand.
func (e *Env) PagedOver(c *spec.C, m verbs.Buffer, n int, access verbs.AccessFlags) *Buffer {
	b := &Buffer{Mem: m, Len: n, bare: true}
	mr, err := e.PD.RegMR(c.T, m.Addr(), uint64(n), access|verbs.AccessOnDemand)
	ok(c, "reg_mr on demand", err)
	b.MR = mr
	b.Dereg = DestroyOnce(c, "dereg_mr", mr.Dereg)
	return b
}

// Pages are the pages of a buffer, whose mapping a program can change.
func (b *Buffer) Pages(c *spec.C) verbs.PagedBuffer {
	p, ok := b.Mem.(verbs.PagedBuffer)
	if !ok {
		c.Errorf("the target's memory cannot be changed page by page")
	}
	return p
}
