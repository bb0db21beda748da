package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// bfReg is a register that queues ring, with what the library keeps beside it.
type bfReg struct {
	m      *cpu.Mapping
	off    uint64 // of the register in the mapping
	half   uint64 // which half the next post writes: 0 or buf
	buf    uint64 // bytes of a half; 0: no BlueFlame
	uuarn  int    // 0: never BlueFlame
	index  int    // bfreg number (static, dynamic part from 0 again), or place on its page
	uar    uint32 // hardware UAR index
	class  string
	dyn    bool
	locked bool // need_lock
	lock   cpu.Spinlock
	line   cpu.Line // lock, offset and buffer size lie in one line
	users  int

	taken, waits uint64 // of the lock
	waited       sim.Time
}

// bfState is the library's side of who gets which register.
type bfState struct {
	// Dynamic generation (1.7).
	nc                    *bfReg // the singleton non-cached UAR
	ncObj                 *kernel.UARObject
	dedicated, shared     []*bfReg // lists in the library's order
	madeDedicated, madeSh int      // registers made so far
	tds                   []*bfReg // free registers of thread domains
	ncFree                []*bfReg // free registers of dedicated non-cached UARs
	independent           int      // independent thread domains alive

	// Static generation (1.3 to 1.6), by gross number.
	static   []*bfReg
	dynPages map[int]*cpu.Mapping // dynamic pages mapped so far, by page index
	dynUsed  []*bfReg             // by dynamic index; nil: free
}

// Register spacing in a UAR.
const (
	ncRegSpacing  = 0x100
	independentOf = 4 // the proposal lets num_dyn_bfregs/4 thread domains be independent
)

// mapping counts a mapped device page.
func (c *Context) mapping(m *cpu.Mapping, err error) (*cpu.Mapping, error) {
	if err == nil {
		c.mapped++
	}
	return m, err
}

func (c *Context) uarsPerPage() int { return max(1, int(c.resp.NumUARsPerPage)) }

func (c *Context) uarSize() uint64 {
	if c.resp.LogUARSize == 0 {
		return uint64(c.proc.PageSize)
	}
	return 1 << c.resp.LogUARSize
}

// reg makes the k-th user register of the i-th UAR of a mapped page.
func (c *Context) reg(m *cpu.Mapping, i, k int) *bfReg {
	base := uint64(i) * c.uarSize()
	return &bfReg{m: m, off: base + prm.UARBFOffset + uint64(k)*uint64(c.resp.BFRegSize), buf: uint64(c.resp.BFRegSize) / 2,
		uar: uint32((m.Off + base) / prm.PageSize), index: k}
}

// mapStatic maps the static UARs and builds the table of registers by gross number.
func (c *Context) mapStatic(t *Thread) error {
	per := c.uarsPerPage()
	pages := int(c.resp.TotBFRegs) / (prm.UserBFRegsPerUAR * per)
	lowLat := c.env.lowLat
	for p := range pages {
		m, err := c.mapStaticPage(t, uint32(p))
		if err != nil {
			return fmt.Errorf("map of UAR page %d: %w", p, err)
		}
		for i := range per {
			for k := range prm.BFRegsPerUAR {
				r := c.reg(m, i, k)
				r.uuarn = len(c.bf.static)
				r.index = (r.uuarn/prm.BFRegsPerUAR)*prm.UserBFRegsPerUAR + r.uuarn%prm.BFRegsPerUAR
				r.classify(int(c.resp.TotBFRegs), lowLat, c.env.singleThreaded)
				c.bf.static = append(c.bf.static, r)
			}
		}
	}
	c.bf.static[0].buf = 0
	c.cqReg = register{c.bf.static[0].m, 0}
	c.bf.dynPages = map[int]*cpu.Mapping{}
	c.bf.dynUsed = make([]*bfReg, c.resp.NumDynBFRegs)
	return nil
}

// mapStaticPage maps non-cached first when BlueFlame is shut up.
func (c *Context) mapStaticPage(t *Thread, p uint32) (*cpu.Mapping, error) {
	if c.env.shutUpBF {
		if m, err := c.mapping(c.u.MmapUAR(t.caller, mmapNC, p)); err == nil {
			return m, nil
		}
	}
	return c.mapping(c.u.MmapUAR(t.caller, mmapRegular, p))
}

// mmap commands (1.8).
const (
	mmapRegular = 0
	mmapNC      = 3
	mmapAllocWC = 6
)

// classify sets class and lock by the rule of rdma-core 1eee3c83: no lock for uuarn 0
// and for uuarn from 2 * (total - low latency) on (1.5).
func (r *bfReg) classify(total, lowLat int, singleThreaded bool) {
	switch {
	case r.uuarn == 0:
		r.class = "low"
	case r.uuarn >= 2*(total-lowLat):
		r.class = "high"
	default:
		r.class = "medium"
		r.locked = !singleThreaded
	}
	if r.buf == 0 {
		r.uuarn = 0
	}
}

// allocNC makes the singleton non-cached UAR, which arms CQs too.
func (c *Context) allocNC(t *Thread) error {
	o, err := c.u.AllocUAR(t.caller, uarTypeNC)
	if err != nil {
		return fmt.Errorf("the non-cached UAR: %w", err)
	}
	c.mapped++
	c.bf.ncObj = o
	c.bf.nc = &bfReg{m: o.Map, off: prm.UARBFOffset, uar: o.PageID, class: "nc", dyn: true}
	c.cqReg = register{o.Map, 0}
	return nil
}

// types of UAR objects.
const (
	uarTypeBF = 0
	uarTypeNC = 1
)

// newBFUAR allocates a write-combining UAR object and returns its registers.
func (c *Context) newBFUAR(t *Thread) ([]*bfReg, error) {
	o, err := c.u.AllocUAR(t.caller, uarTypeBF)
	if err != nil {
		return nil, err
	}
	c.mapped++
	var regs []*bfReg
	for i := range c.uarsPerPage() {
		for k := range prm.UserBFRegsPerUAR {
			r := c.reg(o.Map, i, k)
			r.uar = o.PageID + uint32(i)
			r.uuarn, r.dyn = 1, true
			regs = append(regs, r)
		}
	}
	return regs, nil
}

func pop(list *[]*bfReg) *bfReg {
	if len(*list) == 0 {
		return nil
	}
	r := (*list)[0]
	*list = append((*list)[:0], (*list)[1:]...)
	return r
}

// qpReg is mlx5_get_qp_uar for a QP without a thread domain in the dynamic
// generation (1.7).
func (c *Context) qpReg(t *Thread) (*bfReg, error) {
	s := &c.bf
	if c.env.shutUpBF || c.resp.BFRegSize == 0 {
		return s.nc, nil
	}
	if r := pop(&s.dedicated); r != nil {
		r.users++
		return r, nil
	}
	if s.madeDedicated < c.env.lowLat {
		regs, err := c.newBFUAR(t)
		if err != nil {
			return nil, fmt.Errorf("a dedicated UAR: %w", err)
		}
		for _, r := range regs {
			r.class = "dedicated"
		}
		s.madeDedicated += len(regs)
		s.dedicated = append(s.dedicated, regs...)
		r := pop(&s.dedicated)
		r.users++
		return r, nil
	}
	if s.madeSh < c.env.totalUUARs-c.env.lowLat {
		regs, err := c.newBFUAR(t)
		if err != nil {
			return nil, fmt.Errorf("a shared UAR: %w", err)
		}
		for _, r := range regs {
			r.class, r.locked = "shared", !c.env.singleThreaded
		}
		s.madeSh += len(regs)
		s.shared = append(s.shared, regs...)
	}
	best := s.shared[0]
	for _, r := range s.shared[1:] {
		if r.users < best.users {
			best = r
		}
	}
	best.users++
	return best, nil
}

// putQPReg gives a register back when its QP dies: dedicated ones to the tail.
func (c *Context) putQPReg(r *bfReg) {
	if r == nil || r == c.bf.nc {
		return
	}
	r.users--
	if r.class == "dedicated" {
		c.bf.dedicated = append(c.bf.dedicated, r)
	}
}

// tdReg gives a register to a thread domain (1.6).
func (c *Context) tdReg(t *Thread, independent bool) (*bfReg, error) {
	if c.resp.TotBFRegs != 0 {
		return c.tdRegStatic(t, independent)
	}
	if c.resp.BFRegSize == 0 {
		return c.bf.nc, nil
	}
	if independent {
		return c.independentReg(t)
	}
	if len(c.bf.tds) == 0 {
		regs, err := c.newBFUAR(t)
		if err != nil {
			return nil, err
		}
		for _, r := range regs {
			r.class = "td"
		}
		c.bf.tds = append(c.bf.tds, regs...)
	}
	return pop(&c.bf.tds), nil
}

// independentReg gives a thread domain a UAR page that nobody else gets. How a
// fully dynamic library would do this is not public: a hypothesis.
func (c *Context) independentReg(t *Thread) (*bfReg, error) {
	if limit := c.proc.Params.IndependentTDMax; c.bf.independent >= limit {
		return nil, fmt.Errorf("independent thread domain %d of at most %d: %w", c.bf.independent+1, limit, syscall.EINVAL)
	}
	regs, err := c.newBFUAR(t)
	if err != nil {
		return nil, err
	}
	c.bf.independent++
	regs[0].class = "independent"
	return regs[0], nil
}

// tdRegStatic is mlx5_attach_dedicated_bf of 1eee3c83: the first free dynamic index.
// With independent domains on offer they take the even indexes of the lower half,
// a page each, and ordinary ones the upper half, as proposed.
func (c *Context) tdRegStatic(t *Thread, independent bool) (*bfReg, error) {
	n := len(c.bf.dynUsed)
	lo, hi, step := 0, n, 1
	switch {
	case independent:
		hi, step = n/2, 2
	case c.proc.Params.IndependentTD:
		lo = n / 2
	}
	for i := lo; i < hi; i += step {
		if c.bf.dynUsed[i] != nil {
			continue
		}
		r, err := c.dynReg(t, i)
		if err != nil {
			return nil, err
		}
		r.class = "td"
		if independent {
			r.class = "independent"
			c.bf.independent++
		}
		c.bf.dynUsed[i] = r
		return r, nil
	}
	if independent {
		return nil, fmt.Errorf("no independent thread domain left of %d: %w", n/independentOf, syscall.EINVAL)
	}
	return nil, fmt.Errorf("no dynamic bfreg left of %d: %w", hi-lo, syscall.ENOENT)
}

// dynReg is the register of a dynamic index, whose page is mapped when first asked
// for.
func (c *Context) dynReg(t *Thread, i int) (*bfReg, error) {
	per := prm.UserBFRegsPerUAR * c.uarsPerPage()
	m := c.bf.dynPages[i/per]
	if m == nil {
		var err error
		if m, err = c.mapping(c.u.MmapUAR(t.caller, mmapAllocWC, uint32(i/per))); err != nil {
			return nil, err
		}
		c.bf.dynPages[i/per] = m
	}
	r := c.reg(m, i%per/prm.UserBFRegsPerUAR, i%prm.UserBFRegsPerUAR)
	r.index, r.dyn = i, true
	r.uuarn = len(c.bf.static) + i
	return r, nil
}

// putTDReg takes a register back from a thread domain.
func (c *Context) putTDReg(r *bfReg) {
	if r == c.bf.nc {
		return
	}
	if r.class == "independent" {
		c.bf.independent--
	}
	if c.resp.TotBFRegs != 0 {
		c.bf.dynUsed[r.index] = nil
		return
	}
	r.class = "td"
	c.bf.tds = append(c.bf.tds, r)
}

// describe is the register as mlx5dv_init_obj shows it.
func (r *bfReg) describe() verbs.BFReg {
	return verbs.BFReg{Addr: mmioAddr(r.m) + r.off, UARPage: r.uar, Offset: uint32(r.off % prm.PageSize),
		Size: uint32(r.buf), Index: r.index, Dynamic: r.dyn, Class: r.class, NeedLock: r.locked}
}

// mmioAddr is where a process sees a mapped register page. Addresses of device
// mappings are not translated anywhere, so that a fixed place above all memory and
// the place in BAR 0 are enough to tell pages apart.
func mmioAddr(m *cpu.Mapping) uint64 { return 0x700000000000 + m.Off }

// register is a place in a mapped page.
type register struct {
	m   *cpu.Mapping
	off uint64
}
