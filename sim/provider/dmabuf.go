package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// OpenDMABuf gives the process a descriptor of a DMA-BUF, which takes over the caller's reference.
func (p *Process) OpenDMABuf(b *kernel.DMABuf) int { return p.openFD(&descriptor{buf: b}) }

// DMABuf is the DMA-BUF behind a descriptor (dma_buf_get without the reference). EBADF: it is not
// open; EINVAL: of another file.
func (p *Process) DMABuf(fd int) (*kernel.DMABuf, error) {
	if _, err := p.inodeOf(fd); err != nil {
		return nil, err
	}
	if b := p.fds[fd-firstFD].buf; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("descriptor %d is not a DMA-BUF: %w", fd, syscall.EINVAL)
}

// RegDmabufMR is ibv_reg_dmabuf_mr.
func (p *PD) RegDmabufMR(vt verbs.Thread, offset, length, iova uint64, fd int, access verbs.AccessFlags) (verbs.MR, error) {
	return p.regDmabuf(vt, kernel.DmabufMRReq{Offset: offset, Length: length, Iova: iova, Access: access}, fd)
}

// regDmabuf registers a part of the DMA-BUF behind a descriptor.
func (p *PD) regDmabuf(vt verbs.Thread, r kernel.DmabufMRReq, fd int) (_ verbs.MR, err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	r.PD, r.File = p.h, func() (*kernel.DMABuf, error) { return p.ctx.proc.DMABuf(fd) }
	h, lkey, rkey, err := p.ctx.u.RegDmabufMR(t.caller, r)
	if err != nil {
		return nil, fmt.Errorf("reg_dmabuf_mr %#x+%#x of descriptor %d: %w", r.Offset, r.Length, fd, err)
	}
	// The region is no memory of the process: libibverbs keeps nothing from children here, and
	// gives the offset as its address.
	return &MR{ctx: p.ctx, pd: p, h: h, lkey: lkey, rkey: rkey, addr: r.Offset, length: r.Length, access: r.Access, kind: mrDmabuf}, nil
}
