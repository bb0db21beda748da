package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// newDBRec takes the first free record, from the parent domain's allocator if that
// wants to give it. The record is zero.
func (c *Context) newDBRec(t *Thread, parent *PD) (*dbrec, error) {
	a := allocator{c.proc, parent}
	b, ok, err := a.alloc(t, dbrecSize, dbrecSize, resDBR)
	if err != nil {
		return nil, err
	}
	if ok {
		pa, _, _, mapped := c.proc.K.Space.Translate(mem.VA(b.Addr()))
		w := []byte(nil)
		if mapped {
			w = c.proc.Mem.Window(pa, dbrecSize)
		}
		if w == nil {
			return nil, fmt.Errorf("doorbell record at %#x is not mapped: %w", b.Addr(), syscall.EFAULT)
		}
		clear(w)
		return &dbrec{va: mem.VA(b.Addr()), b: w, custom: b}, nil
	}
	line := max(int(c.resp.CacheLine), 64)
	for _, p := range c.dbPages {
		if d := p.take(line); d != nil {
			return d, nil
		}
	}
	p, err := c.newDBPage(line)
	if err != nil {
		return nil, err
	}
	return p.take(line), nil
}

func (c *Context) newDBPage(line int) (*dbPage, error) {
	c.proc.dontFork()
	size := c.proc.PageSize
	va, err := c.proc.K.Space.Map(uint64(size), mem.Read|mem.Write)
	if err != nil {
		return nil, fmt.Errorf("page of doorbell records: %w", err)
	}
	pa, _, _, _ := c.proc.K.Space.Translate(va)
	n := size / line
	p := &dbPage{va: va, b: c.proc.Mem.Window(pa, size), free: make([]uint64, (n+63)/64)}
	if p.b == nil {
		return nil, fmt.Errorf("page of doorbell records at %#x: %w", va, syscall.EFAULT)
	}
	for i := range n {
		p.free[i/64] |= 1 << (i % 64)
	}
	c.dbPages = append(c.dbPages, p)
	return p, nil
}

func (c *Context) freeDBRec(t *Thread, parent *PD, d *dbrec) {
	if d == nil {
		return
	}
	if d.custom != nil {
		if parent.attr.Free != nil {
			parent.attr.Free(t, d.custom, resDBR)
		}
		return
	}
	p := d.page
	p.free[d.slot/64] |= 1 << (d.slot % 64)
	if p.used--; p.used > 0 {
		return
	}
	for i, q := range c.dbPages {
		if q == p {
			c.dbPages = append(c.dbPages[:i], c.dbPages[i+1:]...)
		}
	}
	_ = c.proc.K.Space.Unmap(p.va, uint64(c.proc.PageSize))
}
