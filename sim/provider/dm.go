package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// DM is memory on the device, mapped.
type DM struct {
	verbs.UnimplementedDM
	ctx    *Context
	k      *kernel.DM
	length uint64
}

// AllocDM is ibv_alloc_dm.
func (c *Context) AllocDM(vt verbs.Thread, a verbs.DMAttr) (_ verbs.DM, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	return c.allocMemic(t, a)
}

// allocMemic is alloc_dm_memic.
func (c *Context) allocMemic(t *Thread, a verbs.DMAttr) (verbs.DM, error) {
	if a.CompMask != 0 || a.Length > c.attr.MaxDMSize {
		return nil, fmt.Errorf("alloc_dm: %d B of %d, comp_mask %#x: %w", a.Length, c.attr.MaxDMSize, a.CompMask, syscall.EINVAL)
	}
	k, err := c.u.AllocDM(t.caller, kernel.DMReq{Length: a.Length, LogAlign: a.LogAlign})
	if err != nil {
		// libmlx5 leaves the kernel's errno.
		return nil, fmt.Errorf("alloc_dm: %w", err)
	}
	c.mapped++
	return &DM{ctx: c, k: k, length: a.Length}, nil
}

// Free is ibv_free_dm.
func (m *DM) Free(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := m.ctx.enter(vt)
	if err := m.ctx.u.FreeDM(t.caller, m.k.Handle()); err != nil {
		return fmt.Errorf("free_dm: %w", err)
	}
	m.ctx.mapped--
	return nil
}

// dmWord is what device memory is accessed by.
const dmWord = 4

// check is mlx5_access_dm's: EFAULT beyond the end, EINVAL for what is no whole word.
func (m *DM) check(off uint64, n int) error {
	switch {
	case off+uint64(n) > m.length:
		return fmt.Errorf("%d B at %d of device memory of %d: %w", n, off, m.length, syscall.EFAULT)
	case off%dmWord != 0 || n%dmWord != 0:
		return fmt.Errorf("%d B at %d of device memory: %w", n, off, syscall.EINVAL)
	}
	return nil
}

// CopyTo is ibv_memcpy_to_dm: stores of words, of which the core combines two and more.
func (m *DM) CopyTo(vt verbs.Thread, off uint64, p []byte) (err error) {
	defer Of(vt).answers(&err)
	t := Of(vt)
	if err := m.check(off, len(p)); err != nil {
		return err
	}
	const pair = 2 * dmWord
	word := func() {
		t.Core.StoreWord(t.P, m.k.Map, off, p[:dmWord])
		off, p = off+dmWord, p[dmWord:]
	}
	if off%pair != 0 && len(p) > 0 {
		word()
	}
	if n := len(p) / pair * pair; n > 0 {
		t.Core.Store(t.P, m.k.Map, off, p[:n])
		off, p = off+uint64(n), p[n:]
	}
	if len(p) > 0 {
		word()
	}
	return nil
}

// CopyFrom is ibv_memcpy_from_dm: a read of the device for each word.
func (m *DM) CopyFrom(vt verbs.Thread, p []byte, off uint64) (err error) {
	defer Of(vt).answers(&err)
	t := Of(vt)
	if err := m.check(off, len(p)); err != nil {
		return err
	}
	for at := 0; at < len(p); at += dmWord {
		t.Core.Load(t.P, m.k.Map, off+uint64(at), p[at:at+dmWord])
	}
	return nil
}

// RegDMMR is ibv_reg_dm_mr: libmlx5's and libibverbs' checks, then the kernel.
func (p *PD) RegDMMR(vt verbs.Thread, dm verbs.DM, off, length uint64, access verbs.AccessFlags) (_ verbs.MR, err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	const allowed = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic |
		verbs.AccessZeroBased | verbs.AccessOptionalRange
	m, ok := dm.(*DM)
	if !ok || m == nil || access&^allowed != 0 || access&verbs.AccessZeroBased == 0 {
		return nil, fmt.Errorf("reg_dm_mr: access %#x: %w", uint32(access), syscall.EINVAL)
	}
	h, lkey, rkey, err := p.ctx.u.RegDMMR(t.caller, kernel.DMMRReq{PD: p.h, DM: m.k.Handle(), Offset: off, Length: length, Access: access})
	if err != nil {
		return nil, fmt.Errorf("reg_dm_mr: %w", err)
	}
	return &MR{ctx: p.ctx, pd: p, h: h, lkey: lkey, rkey: rkey, length: length, access: access}, nil
}

// ExportDmabuf is ibv_dm_export_dmabuf_fd. EOPNOTSUPP: a library or kernel without.
func (m *DM) ExportDmabuf(vt verbs.Thread) (_ int, err error) {
	defer Of(vt).answers(&err)
	t := m.ctx.enter(vt)
	if m.ctx.proc.Params.Generation == kernel.Static {
		return -1, fmt.Errorf("dm_export_dmabuf_fd: the library is too old: %w", syscall.EOPNOTSUPP)
	}
	b, err := m.ctx.u.ExportDM(t.caller, m.k.Handle())
	if err != nil {
		return -1, fmt.Errorf("dm_export_dmabuf_fd: %w", err)
	}
	return m.ctx.proc.OpenDMABuf(b), nil
}
