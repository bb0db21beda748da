package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.DirectDM = (*DM)(nil)

// AllocDirectDM is mlx5dv_alloc_dm (_mlx5dv_alloc_dm). Of the memory for steering that the library
// knows, the driver has none for this device.
func (c *Context) AllocDirectDM(vt verbs.Thread, a verbs.DMAttr, d verbs.DirectDMAttr) (_ verbs.DM, err error) {
	t := c.enter(vt)
	defer t.answers(&err)
	if err := c.noDirect("alloc_dm"); err != nil {
		return nil, err
	}
	switch {
	case d.Type > verbs.DirectDMEncapSWICM:
		return nil, fmt.Errorf("alloc_dm of type %d: %w", d.Type, syscall.EOPNOTSUPP)
	case a.CompMask != 0 || d.CompMask != 0 && !c.breaks(rule.DirectMemoryMasksAreKnown):
		return nil, fmt.Errorf("alloc_dm: comp_mask %#x, direct %#x: %w", a.CompMask, d.CompMask, syscall.EINVAL)
	case d.Type == verbs.DirectDMMemic:
		return c.allocMemic(t, a)
	}
	if _, err = c.u.AllocDM(t.caller, kernel.DMReq{Length: a.Length, LogAlign: a.LogAlign, Type: uint64(d.Type)}); err == nil {
		err = syscall.EOPNOTSUPP // the kernel part has none
	}
	return nil, fmt.Errorf("alloc_dm of type %d: %w", d.Type, err)
}

// opAddr is a mapped operation address.
type opAddr struct {
	m  *DM
	k  kernel.DMOp
	op uint8
}

// MapOp is mlx5dv_dm_map_op_addr.
func (m *DM) MapOp(vt verbs.Thread, op uint8) (_ verbs.OpAddr, err error) {
	t := m.ctx.enter(vt)
	defer t.answers(&err)
	if err := m.ctx.noDirect("dm_map_op_addr"); err != nil {
		return nil, err
	}
	k, err := m.ctx.u.MapDMOp(t.caller, m.k.Handle(), op)
	if err != nil {
		return nil, fmt.Errorf("dm_map_op_addr: %w", err)
	}
	m.ctx.mapped++
	return &opAddr{m, k, op}, nil
}

func (a *opAddr) check(off uint64, n int) error {
	if n != 1 && n != 2 && n != 4 && n != 8 || off%uint64(n) != 0 || off+uint64(n) > a.m.length {
		return fmt.Errorf("%d B at %d of an operation address of %d: %w", n, off, a.m.length, syscall.EFAULT)
	}
	return nil
}

// Load is a load instruction of the program.
func (a *opAddr) Load(vt verbs.Thread, off uint64, p []byte) error {
	if err := a.check(off, len(p)); err != nil {
		return err
	}
	t := Of(vt)
	t.Core.Load(t.P, a.k.Map, off, p)
	return nil
}

// Store is a store instruction and a fence.
func (a *opAddr) Store(vt verbs.Thread, off uint64, p []byte) error {
	if err := a.check(off, len(p)); err != nil {
		return err
	}
	t := Of(vt)
	t.P.Sync()
	if len(p) == 8 {
		t.Core.Store(t.P, a.k.Map, off, p)
	} else {
		t.Core.StoreWord(t.P, a.k.Map, off, p)
	}
	t.Core.Fence(t.P)
	return nil
}

// Unmap is munmap.
func (a *opAddr) Unmap(vt verbs.Thread) (err error) {
	t := a.m.ctx.enter(vt)
	defer t.answers(&err)
	if err := a.m.ctx.u.UnmapDMOp(t.caller, a.m.k, a.op); err != nil {
		return fmt.Errorf("munmap: %w", err)
	}
	a.m.ctx.mapped--
	return nil
}
