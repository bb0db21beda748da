package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// mapping counts a mapped device page.
func (c *Context) mapping(m *cpu.Mapping, err error) (*cpu.Mapping, error) {
	if err == nil {
		c.mapped++
	}
	return m, err
}

// isStatic says whether the kernel gave the context static bfregs: the library or the kernel is
// of the static generation.
func (c *Context) isStatic() bool { return c.resp.TotBFRegs != 0 }

// isOldLibrary says whether the library is of the static generation.
func (c *Context) isOldLibrary() bool { return c.proc.Params.Generation == kernel.Static }

func (c *Context) uarsPerPage() uint32 { return max(1, c.resp.NumUARsPerPage) }

// uarSize is the distance of UARs in a mapped page.
func (c *Context) uarSize() uint64 {
	if c.resp.LogUARSize == 0 {
		return uint64(c.proc.PageSize)
	}
	return 1 << c.resp.LogUARSize
}

// reg makes register k of UAR i of a mapped page.
func (c *Context) reg(m *cpu.Mapping, i, k uint32) *bfReg {
	base := uint64(i) * c.uarSize()
	r := &bfReg{m: m, off: base + prm.UARBFOffset + uint64(k)*uint64(c.resp.BFRegSize), buf: uint64(c.resp.BFRegSize) / 2,
		uar: uint32((m.Off + base) / prm.UARPageSize), index: int(k)}
	r.line.SetPrivate() // the ringing thread holds the register's or the queue's lock
	return r
}

// mapStatic maps the static UARs and builds the table of registers by gross number.
func (c *Context) mapStatic(t *Thread) error {
	layout, err := bfreg.NewLayout(c.resp.TotBFRegs, c.env.LowLat, c.proc.PageSize, c.uarsPerPage() > 1)
	if err != nil {
		return err
	}
	layout.Dyn = c.resp.NumDynBFRegs
	for p := range layout.StaticSysPages {
		m, err := c.mapStaticPage(t, p)
		if err != nil {
			return fmt.Errorf("map of UAR page %d: %w", p, err)
		}
		for i := range layout.UARsPerSysPage {
			for k := range uint32(bfreg.GrossPerUAR) {
				c.bf.static = append(c.bf.static, c.staticReg(t, layout, m, i, k))
			}
		}
	}
	c.cqReg = register{c.bf.static[0].m, 0}
	if !c.isOldLibrary() || t.breaks(rule.OldLibraryNumbersRegisters) {
		c.bf.pools = bfreg.NewLegacyPools(c.env.Env, c.uarsPerPage(), c.resp.BFRegSize != 0, c.proc.Params.IndependentTDMax)
		return nil
	}
	c.bf.tds = bfreg.NewTDTable(layout, c.proc.Params.IndependentTD)
	c.bf.dynPages, c.bf.dynRegs = map[uint32]*cpu.Mapping{}, map[uint32]*bfReg{}
	return nil
}

// staticReg makes the next entry of the table. The first has no BlueFlame
// (mlx5.c, mlx5_set_context).
func (c *Context) staticReg(t *Thread, l bfreg.Layout, m *cpu.Mapping, i, k uint32) *bfReg {
	r := c.reg(m, i, k)
	r.uuarn = len(c.bf.static)
	b, ok := bfreg.FromGross(uint32(r.uuarn))
	if !ok { // a fast-path register, which no QP gets
		r.index = -1
		return r
	}
	r.index, r.class = int(b), l.Class(b)
	needLock := bfreg.NeedLock
	if c.isOldLibrary() != t.breaks(rule.LockRuleIsTheLibrarys) {
		needLock = bfreg.NeedLock2018
	}
	r.locked = needLock(uint32(r.uuarn), l.Total, l.LowLat, c.env.SingleThreaded)
	if r.uuarn == 0 {
		r.buf = 0
	}
	return r
}

// mapStaticPage maps non-cached first when BlueFlame is shut up.
func (c *Context) mapStaticPage(t *Thread, p uint32) (*cpu.Mapping, error) {
	if c.env.ShutUpBF {
		if m, err := c.mapping(c.u.MmapUAR(t.caller, mmapNC, p)); err == nil {
			return m, nil
		}
	}
	return c.mapping(c.u.MmapUAR(t.caller, mmapRegular, p))
}

// mmap commands (mlx5.h, MLX5_MMAP_*), and types of UAR objects (mlx5-abi.h).
const (
	mmapRegular = 0
	mmapNC      = 3
	mmapAllocWC = 6

	uarTypeBF = 0
	uarTypeNC = 1
)

// allocNC makes the singleton non-cached UAR, which arms CQs too, and the pools.
func (c *Context) allocNC(t *Thread) error {
	o, err := c.u.AllocUAR(t.caller, uarTypeNC)
	if err != nil {
		return fmt.Errorf("the non-cached UAR: %w", err)
	}
	c.mapped++
	s := &c.bf
	s.pages = []uarPage{{o.Map, o.PageID}}
	s.ncPage = o.PageID
	s.pools = bfreg.NewPools(c.env.Env, c.uarsPerPage(), c.resp.BFRegSize != 0, c.proc.Params.IndependentTDMax, 0)
	s.nc = &bfReg{m: o.Map, off: prm.UARBFOffset, uar: o.PageID, class: bfreg.NC, dyn: true, pool: s.pools.NC()}
	s.regs = []*bfReg{s.nc}
	c.cqReg = register{o.Map, 0}
	return nil
}

// addPage makes a page known to the pools and returns its number.
func (c *Context) addPage(m *cpu.Mapping, id uint32) uint32 {
	c.bf.pages = append(c.bf.pages, uarPage{m, id})
	return uint32(len(c.bf.pages) - 1)
}

// newUAR is what the pools call when they need a page of registers (mlx5_alloc_dyn_uar): a UAR
// object, or the next dynamic page of a kernel that has none. EINVAL: it has no further page.
func (c *Context) newUAR(t *Thread) bfreg.UARAlloc {
	if c.isStatic() {
		return func(bool) (uint32, error) {
			m, err := c.mapping(c.u.MmapUAR(t.caller, mmapAllocWC, uint32(len(c.bf.pages))))
			if err != nil {
				return 0, err
			}
			return c.addPage(m, uint32(m.Off/prm.UARPageSize)), nil
		}
	}
	return func(nc bool) (uint32, error) {
		typ := uint32(uarTypeBF)
		if nc {
			typ = uarTypeNC
		}
		o, err := c.u.AllocUAR(t.caller, typ)
		if err != nil {
			return 0, err
		}
		c.mapped++
		return c.addPage(o.Map, o.PageID), nil
	}
}

// pooled is the library's register for what the pools gave.
func (c *Context) pooled(p *bfreg.Reg, err error) (*bfReg, error) {
	if err != nil {
		return nil, err
	}
	s := &c.bf
	for len(s.regs) <= p.ID {
		s.regs = append(s.regs, nil)
	}
	r := s.regs[p.ID]
	if r == nil {
		page := s.pages[p.Page]
		r = c.reg(page.m, p.UAR, p.Half)
		r.uar, r.uuarn, r.dyn, r.pool = page.id+p.UAR, 1, true, p
		r.class, r.locked = p.Class, p.Lock
		if c.isStatic() { // bfreg_dyn_index
			r.index = int((p.Page*c.uarsPerPage()+p.UAR)*bfreg.PerUAR + p.Half)
			r.static = int(c.resp.TotBFRegs)
		}
		s.regs[p.ID] = r
	}
	return r, nil
}

// tdReg gives a register to a thread domain (verbs.c: mlx5_attach_dedicated_bf in a static
// library, mlx5_attach_dedicated_uar today).
func (c *Context) tdReg(t *Thread, independent bool) (*bfReg, error) {
	switch {
	case c.bf.tds != nil && independent:
		return c.dynReg(t, c.bf.tds.AllocIndependent)
	case c.bf.tds != nil:
		return c.dynReg(t, c.bf.tds.Alloc)
	case independent || t.breaks(rule.DomainsComeInPairs):
		return c.pooled(c.bf.pools.GetIndependentTD(c.newUAR(t)))
	}
	return c.pooled(c.bf.pools.GetTD(c.newUAR(t)))
}

// dynReg takes a dynamic register from the table of a static library and maps its page when it
// is the first there.
func (c *Context) dynReg(t *Thread, alloc func() (bfreg.DynReg, error)) (*bfReg, error) {
	d, err := alloc()
	if err != nil {
		return nil, err
	}
	if d.New {
		m, err := c.mapping(c.u.MmapUAR(t.caller, mmapAllocWC, d.Page))
		if err != nil {
			c.bf.tds.NotMapped(d)
			return nil, err
		}
		c.bf.dynPages[d.Page] = m
	}
	r := c.bf.dynRegs[d.Index]
	if r == nil {
		r = c.reg(c.bf.dynPages[d.Page], d.UAR()%c.uarsPerPage(), d.Half())
		r.index, r.dyn = int(d.Index), true
		r.uuarn, r.static = len(c.bf.static)+int(d.Index), int(c.resp.TotBFRegs)
		c.bf.dynRegs[d.Index] = r
	}
	r.class, r.td = d.Class, &d
	return r, nil
}

// putTDReg takes a register back from a thread domain.
func (c *Context) putTDReg(t *Thread, r *bfReg, independent bool) {
	if r.td != nil {
		c.bf.tds.Free(*r.td)
		return
	}
	c.bf.pools.PutTD(r.pool, independent)
	if t.breaks(rule.FreedRegistersQueue) {
		c.bf.pools.Hurry(r.pool)
	}
}

// Usage counts the UARs and registers that the context holds: all of them, or those of thread
// domains where it has static ones.
func (c *Context) Usage() bfreg.Usage {
	if c.bf.tds != nil {
		return c.bf.tds.Usage()
	}
	return c.bf.pools.Usage()
}
