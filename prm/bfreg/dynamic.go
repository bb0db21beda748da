package bfreg

import (
	"fmt"
	"slices"
	"syscall"
)

// UARAlloc makes a UAR object that holds uars 4 KiB UARs (BlueFlame, or uncached
// when nc) and returns its number for the caller's own use.
type UARAlloc func(nc bool) (page uint32, err error)

// Reg is a register of the dynamic generation. Its fields do not change while it is handed out.
type Reg struct {
	ID    int    // counts the registers of the context, from 0
	Page  uint32 // what UARAlloc returned
	UAR   uint32 // UAR within the object
	Half  uint32 // 0 or 1
	Class Class
	Lock  bool // posting takes the register's lock

	users int
}

// Users is how many QPs or thread domains have it.
func (r *Reg) Users() int { return r.users }

// Pools hands out the registers of one context as today's library does
// (mlx5_get_qp_uar, mlx5_attach_dedicated_uar and their inverses). UARs are given
// back only when the context closes.
type Pools struct {
	env         Env
	uarsPerPage uint32
	bf          bool // the device does BlueFlame
	// maxIndependent bounds independent thread domains. No table of the driver sets
	// it, as there is none in this generation: it is a hypothesis of the profile.
	maxIndependent int

	regs      []*Reg
	nc        *Reg
	dedicated []*Reg // free ones, first out at the front
	shared    []*Reg // all of them
	td        []*Reg // free ones
	ind       []*Reg // free ones
	nDed      uint32 // registers ever made
	nShared   uint32
	nInd      int
	uars      uint32
}

// NewPools makes the pools of a context. uarsPerPage is num_uars_per_page of the
// context's response, bf whether its bf_reg_size is not 0. nc is the page of the
// singleton uncached UAR.
func NewPools(env Env, uarsPerPage uint32, bf bool, maxIndependent int, nc uint32) *Pools {
	p := &Pools{env: env, uarsPerPage: max(uarsPerPage, 1), bf: bf, maxIndependent: maxIndependent}
	p.nc = p.newReg(nc, 0, 0, NC)
	p.uars++
	return p
}

// NewLegacyPools makes the pools of today's library in a context whose kernel has no UAR
// objects: the registers of its thread domains lie on dynamic pages of the kernel's table,
// the n-th page that alloc maps being page n, and are taken again in the order in which they
// were given back. QPs without a thread domain get theirs from the kernel (Table). There is no
// uncached UAR (mlx5_alloc_dyn_uar with MLX5_CTX_FLAGS_NO_KERN_DYN_UAR).
func NewLegacyPools(env Env, uarsPerPage uint32, bf bool, maxIndependent int) *Pools {
	return &Pools{env: env, uarsPerPage: max(uarsPerPage, 1), bf: bf, maxIndependent: maxIndependent}
}

// uncached hands out the singleton uncached UAR. The error wraps EOPNOTSUPP where there is none.
func (p *Pools) uncached() (*Reg, error) {
	if p.nc == nil {
		return nil, fmt.Errorf("no BlueFlame, and the kernel has no uncached UARs: %w", syscall.EOPNOTSUPP)
	}
	p.nc.users++
	return p.nc, nil
}

// NC is the register of the singleton uncached UAR, on which CQs are armed.
func (p *Pools) NC() *Reg { return p.nc }

func (p *Pools) newReg(page, uar, half uint32, c Class) *Reg {
	r := &Reg{ID: len(p.regs), Page: page, UAR: uar, Half: half, Class: c}
	r.Lock = c == Shared && !p.env.SingleThreaded
	p.regs = append(p.regs, r)
	return r
}

// grow makes a BlueFlame UAR object and appends its registers to list.
func (p *Pools) grow(list []*Reg, c Class, alloc UARAlloc) ([]*Reg, error) {
	page, err := alloc(false)
	if err != nil {
		return list, err
	}
	p.uars += p.uarsPerPage
	for i := range p.uarsPerPage * PerUAR {
		list = append(list, p.newReg(page, i/PerUAR, i%PerUAR, c))
	}
	return list, nil
}

// Get is mlx5_get_qp_uar: the register for a QP without a thread domain. It fails
// only as alloc does.
func (p *Pools) Get(alloc UARAlloc) (*Reg, error) {
	if p.env.ShutUpBF || !p.bf {
		return p.uncached()
	}
	maxDedicated, maxShared := p.env.LowLat, p.env.Total-p.env.LowLat
	if len(p.dedicated) == 0 && p.nDed < maxDedicated {
		var err error
		if p.dedicated, err = p.grow(p.dedicated, Dedicated, alloc); err != nil {
			return nil, err
		}
		p.nDed += p.uarsPerPage * PerUAR
	}
	if len(p.dedicated) > 0 {
		return pop(&p.dedicated), nil
	}
	if p.nShared < maxShared { // on every request until the cap, idle registers or not
		var err error
		if p.shared, err = p.grow(p.shared, Shared, alloc); err != nil {
			return nil, err
		}
		p.nShared += p.uarsPerPage * PerUAR
	}
	if len(p.shared) == 0 {
		return nil, fmt.Errorf("no register that QPs may share: %w", syscall.ENOENT)
	}
	least := p.shared[0]
	for _, r := range p.shared {
		if r.users < least.users {
			least = r
		}
	}
	least.users++
	return least, nil
}

func pop(list *[]*Reg) *Reg {
	r := (*list)[0]
	*list = (*list)[1:]
	r.users++
	return r
}

// GetTD is mlx5_attach_dedicated_uar: the register for an ordinary thread domain. It
// fails only as alloc does.
func (p *Pools) GetTD(alloc UARAlloc) (*Reg, error) {
	if !p.bf {
		return p.uncached()
	}
	if len(p.td) == 0 {
		var err error
		if p.td, err = p.grow(p.td, TD, alloc); err != nil {
			return nil, err
		}
	}
	return pop(&p.td), nil
}

// GetIndependentTD gives an independent thread domain a UAR page of its own. The
// error wraps EINVAL past the limit (none are supported when it is 0).
func (p *Pools) GetIndependentTD(alloc UARAlloc) (*Reg, error) {
	if p.nInd >= p.maxIndependent {
		return nil, fmt.Errorf("%d independent thread domains at most: %w", p.maxIndependent, syscall.EINVAL)
	}
	if !p.bf {
		r, err := p.uncached()
		if err == nil {
			p.nInd++
		}
		return r, err
	}
	if len(p.ind) == 0 {
		page, err := alloc(false)
		if err != nil {
			return nil, err
		}
		p.uars += p.uarsPerPage
		for i := range p.uarsPerPage { // the sibling of each stays unused
			p.ind = append(p.ind, p.newReg(page, i, 0, IndependentTD))
		}
	}
	p.nInd++
	return pop(&p.ind), nil
}

// Put gives back what Get returned.
func (p *Pools) Put(r *Reg) { p.put(r) }

// PutTD gives back what GetTD returned, or GetIndependentTD when independent.
func (p *Pools) PutTD(r *Reg, independent bool) {
	if independent {
		p.nInd--
	}
	p.put(r)
}

// Hurry puts a free register of a thread domain before all others, as no library does: a list
// whose order is wrong (sim/mutant).
func (p *Pools) Hurry(r *Reg) {
	if i := slices.Index(p.td, r); i >= 0 {
		p.td = append([]*Reg{r}, slices.Delete(p.td, i, i+1)...)
	}
}

func (p *Pools) put(r *Reg) {
	r.users--
	switch r.Class {
	case Dedicated:
		p.dedicated = append(p.dedicated, r)
	case TD:
		p.td = append(p.td, r)
	case IndependentTD:
		p.ind = append(p.ind, r)
	}
}

// Usage counts the UARs and registers of the context, the uncached UAR included.
func (p *Pools) Usage() Usage {
	u := Usage{UARs: p.uars, Regs: p.uars * PerUAR}
	for _, r := range p.regs {
		if r.users > 0 {
			u.InUse++
		}
		if r.Class == IndependentTD && r.users > 0 {
			u.Blocked++
		}
	}
	return u
}
