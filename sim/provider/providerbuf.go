package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// providerBuf is a buffer of ibv_alloc_buf. It is anonymous memory: only confidential guests have a
// DMA-BUF instead.
type providerBuf struct {
	verbs.Buffer
	pd   *PD
	size uint64 // in whole pages, up to which regions may reach
}

// AllocBuf is ibv_alloc_buf (mlx5_alloc_buf_op). EINVAL: nothing is asked for; EOPNOTSUPP: an older
// library.
func (p *PD) AllocBuf(vt verbs.Thread, size uint64) (_ verbs.ProviderBuf, err error) {
	defer Of(vt).answers(&err)
	p.ctx.enter(vt)
	proc := p.ctx.proc
	switch {
	case proc.Params.Generation == kernel.Static:
		return nil, fmt.Errorf("alloc_buf: the library is too old: %w", syscall.EOPNOTSUPP)
	case size == 0:
		return nil, fmt.Errorf("alloc_buf of no bytes: %w", syscall.EINVAL)
	case p.custom() != nil:
		return nil, fmt.Errorf("alloc_buf by a parent domain's allocator is not modelled: %w", syscall.EOPNOTSUPP)
	}
	page := uint64(proc.PageSize)
	n := (size + page - 1) &^ (page - 1)
	b, err := proc.Alloc(vt, n)
	if err != nil {
		return nil, fmt.Errorf("alloc_buf of %d B: %w", size, syscall.ENOMEM)
	}
	return &providerBuf{b, p, n}, nil
}

// RegMR is ibv_reg_buf_mr (fill_mr_init_attr_from_buf of libibverbs).
func (b *providerBuf) RegMR(vt verbs.Thread, pd verbs.PD, addr, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	t := Of(vt)
	p, ok := pd.(*PD)
	off := addr - b.Addr()
	switch {
	case !ok || p == nil || p != b.pd && !t.breaks(rule.BuffersHaveTheirPD):
		return nil, fmt.Errorf("reg_buf_mr by another PD than the buffer's: %w", syscall.EINVAL)
	case addr < b.Addr() || off > b.size || length > b.size-off:
		return nil, fmt.Errorf("reg_buf_mr of [%#x, +%#x) in a buffer of %d B at %#x: %w", addr, length, b.size, b.Addr(), syscall.EINVAL)
	}
	return p.RegMR(vt, addr, length, access)
}

// ExportFD is ibv_export_buf_dmabuf_fd.
func (b *providerBuf) ExportFD(vt verbs.Thread) (int, error) {
	t := Of(vt)
	if t.breaks(rule.PlainBuffersHaveNoFD) {
		return b.pd.ctx.proc.openFD(&descriptor{}), nil
	}
	return -1, fmt.Errorf("export_buf_dmabuf_fd: the buffer is plain memory: %w", syscall.ENODATA)
}
