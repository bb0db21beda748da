package provider

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// PD is a protection domain, or a parent domain over one.
type PD struct {
	verbs.UnimplementedPD
	ctx    *Context
	h      kernel.Handle
	parent *PD // of a parent domain: the PD under it
	td     *TD
	attr   verbs.ParentDomainAttr
	refs   int // parent domains, and QPs and CQs of a parent domain
	opaque *opaque
}

// AllocPD is ibv_alloc_pd.
func (c *Context) AllocPD(vt verbs.Thread) (_ verbs.PD, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	h, _, err := c.u.AllocPD(t.caller)
	if err != nil {
		return nil, fmt.Errorf("alloc_pd: %w", err)
	}
	return &PD{ctx: c, h: h}, nil
}

// AllocParentDomain is ibv_alloc_parent_domain: it lives in the library only.
func (c *Context) AllocParentDomain(vt verbs.Thread, a verbs.ParentDomainAttr) (_ verbs.PD, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if a.CompMask&^(verbs.ParentDomainAllocators|verbs.ParentDomainContext) != 0 && !t.breaks(rule.ParentRefusesUnknownBits) {
		return nil, fmt.Errorf("alloc_parent_domain: comp_mask %#x: %w", a.CompMask, syscall.EINVAL)
	}
	base, ok := a.PD.(*PD)
	if !ok || base == nil {
		return nil, fmt.Errorf("alloc_parent_domain: no PD: %w", syscall.EINVAL)
	}
	base = base.real()
	p := &PD{ctx: c, h: base.h, parent: base, attr: a}
	if a.CompMask&verbs.ParentDomainAllocators == 0 {
		p.attr.Alloc, p.attr.Free = nil, nil
	}
	if td, ok := a.TD.(*TD); ok && td != nil {
		td.refs++
		p.td = td
	}
	base.refs++
	return p, nil
}

// real is the PD that the kernel knows.
func (p *PD) real() *PD {
	return cmp.Or(p.parent, p)
}

// Context is the context of the domain.
func (p *PD) Context() verbs.Context { return p.ctx }

// Dealloc is ibv_dealloc_pd.
func (p *PD) Dealloc(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	if p.refs > 0 && (p.parent != nil || !t.breaks(rule.ParentHoldsItsPD)) {
		return fmt.Errorf("dealloc_pd: %d users: %w", p.refs, syscall.EBUSY)
	}
	if p.parent != nil {
		p.parent.refs--
		if p.td != nil {
			p.td.refs--
		}
		return nil
	}
	if err := p.deregOpaque(t); err != nil {
		return fmt.Errorf("dealloc_pd: %w", err)
	}
	if err := p.ctx.u.DeallocPD(t.caller, p.h); err != nil {
		return fmt.Errorf("dealloc_pd: %w", err)
	}
	return nil
}

// hold and drop count what a parent domain itself must outlive.
func (p *PD) hold() {
	if p.parent != nil {
		p.refs++
	}
}

func (p *PD) drop() {
	if p.parent != nil {
		p.refs--
	}
}

// custom is the parent domain as allocator of a queue: nil for a plain PD.
func (p *PD) custom() *PD {
	if p != nil && p.parent != nil {
		return p
	}
	return nil
}

// TD is a thread domain: a register of its own.
type TD struct {
	verbs.UnimplementedTD
	ctx         *Context
	reg         *bfReg
	refs        int
	independent bool
}

// AllocTD is ibv_alloc_td. Stock libraries refuse every comp_mask bit; the
// independent attribute is offered where Params.IndependentTD is set.
func (c *Context) AllocTD(vt verbs.Thread, a verbs.TDInitAttr) (_ verbs.TD, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if err := c.noQueues(); err != nil {
		return nil, err
	}
	known := uint32(0)
	if c.proc.Params.IndependentTD {
		known = verbs.TDInitAttrIndependent
	}
	if a.CompMask&^known != 0 {
		return nil, fmt.Errorf("alloc_td: comp_mask %#x: %w", a.CompMask, syscall.EINVAL)
	}
	independent := a.CompMask&verbs.TDInitAttrIndependent != 0 && a.Independent != 0 && !t.breaks(rule.IndependentDomainsHaveTheirPage)
	r, err := c.tdReg(t, independent)
	if err != nil {
		return nil, fmt.Errorf("alloc_td: %w", err)
	}
	return &TD{ctx: c, reg: r, independent: independent}, nil
}

// Dealloc is ibv_dealloc_td: EBUSY while a parent domain uses it.
func (d *TD) Dealloc(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := d.ctx.enter(vt)
	if d.refs > 0 {
		return fmt.Errorf("dealloc_td: %d parent domains: %w", d.refs, syscall.EBUSY)
	}
	if !t.breaks(rule.FreedDomainsAreUsedAgain) {
		d.ctx.putTDReg(t, d.reg, d.independent)
	}
	return nil
}

// BFReg is the register of the thread domain.
func (d *TD) BFReg() verbs.BFReg { return d.reg.describe() }

// UAR is a UAR of mlx5 direct verbs.
type UAR struct {
	verbs.UnimplementedUAR
	ctx *Context
	reg *bfReg
	nc  bool // dedicated non-cached
}

// AllocUAR is mlx5dv_devx_alloc_uar(3).
func (c *Context) AllocUAR(vt verbs.Thread, flags uint32) (_ verbs.UAR, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if err := c.noDirect("devx_alloc_uar"); err != nil {
		return nil, err
	}
	if err := c.noQueues(); err != nil {
		return nil, err
	}
	switch {
	case c.isOldLibrary(): // the call came in November 2018
	case flags == verbs.UARBlueFlame:
		if c.resp.BFRegSize == 0 {
			return nil, fmt.Errorf("devx_alloc_uar: no BlueFlame: %w", syscall.EOPNOTSUPP)
		}
		r, err := c.tdReg(t, false)
		if err != nil {
			return nil, fmt.Errorf("devx_alloc_uar: %w", err)
		}
		return &UAR{ctx: c, reg: r}, nil
	case c.isStatic():
	case flags == verbs.UARNonCached && !t.breaks(rule.NonCachedUARIsShared) || flags == verbs.UARNonCachedOwn && t.breaks(rule.OwnUARIsItsOwn),
		t.breaks(rule.UnknownUARFlagIsRefused) && flags > verbs.UARNonCachedOwn:
		return &UAR{ctx: c, reg: c.bf.nc}, nil
	case flags == verbs.UARNonCachedOwn || flags == verbs.UARNonCached:
		r, err := c.ncReg(t)
		if err != nil {
			return nil, fmt.Errorf("devx_alloc_uar: %w", err)
		}
		return &UAR{ctx: c, reg: r, nc: true}, nil
	}
	return nil, fmt.Errorf("devx_alloc_uar: flags %#x: %w", flags, syscall.EOPNOTSUPP)
}

// ncReg takes one of the four registers of a dedicated non-cached UAR.
func (c *Context) ncReg(t *Thread) (*bfReg, error) {
	if len(c.bf.ncFree) == 0 {
		o, err := c.u.AllocUAR(t.caller, uarTypeNC)
		if err != nil {
			return nil, err
		}
		c.mapped++
		for k := range prm.BFRegsPerUAR {
			c.bf.ncFree = append(c.bf.ncFree, &bfReg{m: o.Map, off: prm.UARBFOffset + uint64(k)*ncRegSpacing,
				uar: o.PageID, index: k, class: bfreg.NC, dyn: true})
		}
		if t.breaks(rule.FourRegistersOfAPage) {
			c.bf.ncFree = c.bf.ncFree[:1]
		}
	}
	r := c.bf.ncFree[0]
	c.bf.ncFree = c.bf.ncFree[1:]
	return r, nil
}

// Info is what the call returns.
func (u *UAR) Info() verbs.UARInfo {
	r := u.reg
	page := r.off &^ uint64(u.ctx.proc.PageSize-1)
	if u.ctx.breaks(rule.RegisterAddressIsItsOwn) {
		page += 64
	}
	return verbs.UARInfo{RegAddr: mmioAddr(r.m) + r.off, BaseAddr: mmioAddr(r.m) + page, PageID: r.uar,
		MmapOff: r.m.Off, MmapLen: uint64(u.ctx.proc.PageSize)}
}

// Store writes 8 bytes at off inside the UAR and flushes, as a program that rings by
// hand.
func (u *UAR) Store(vt verbs.Thread, off uint32, v uint64) error {
	t := Of(vt)
	if off%8 != 0 || uint64(off) >= u.ctx.uarSize() {
		return fmt.Errorf("store at offset %#x of a UAR: %w", off, syscall.EFAULT)
	}
	t.P.Sync()
	base := u.reg.off &^ (u.ctx.uarSize() - 1)
	t.store64(u.reg.m, base+uint64(off), v)
	t.Core.Fence(t.P)
	return nil
}

// Free is mlx5dv_devx_free_uar; the singleton stays.
func (u *UAR) Free(vt verbs.Thread) error {
	t := u.ctx.enter(vt)
	switch {
	case u.nc:
		u.ctx.bf.ncFree = append(u.ctx.bf.ncFree, u.reg)
	case u.reg != u.ctx.bf.nc:
		u.ctx.putTDReg(t, u.reg, false)
	}
	return nil
}
