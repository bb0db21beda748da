package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Page is the page size, in bytes, in which cases of on-demand paging count.
const Page = 4096

// Paged maps n bytes, a whole number of pages, each allocated when it is first touched, and
// registers them for on-demand paging. The buffer has no red zones, because writing them would
// touch its pages.
func (e *Env) Paged(c *spec.C, n int, access verbs.AccessFlags) *Buffer {
	return e.PagedOver(c, MapLazily(c, n), n, access)
}

// MapLazily maps n bytes until the case ends; a page is allocated when it is first touched.
func MapLazily(c *spec.C, n int) verbs.Buffer {
	m, err := c.Process().Map(c.T, uint64(n), verbs.MapOptions{Lazy: true})
	ok(c, "map memory", err)
	c.Defer(func() { _ = m.Unmap(c.T) }) // a case may have unmapped it, or moved it
	return m
}

// PagedOver registers the first n bytes of a mapping for on-demand paging.
func (e *Env) PagedOver(c *spec.C, m verbs.Buffer, n int, access verbs.AccessFlags) *Buffer {
	b := &Buffer{Mem: m, Len: n, bare: true}
	mr, err := e.PD.RegMR(c.T, m.Addr(), uint64(n), access|verbs.AccessOnDemand)
	ok(c, "reg_mr on demand", err)
	b.MR = mr
	b.Dereg = DestroyOnce(c, "dereg_mr", mr.Dereg)
	return b
}

// Pages returns the buffer's memory as one whose pages a program can change.
func (b *Buffer) Pages(c *spec.C) verbs.PagedBuffer {
	p, ok := b.Mem.(verbs.PagedBuffer)
	if !ok {
		c.Errorf("the target's memory cannot be changed page by page")
	}
	return p
}
