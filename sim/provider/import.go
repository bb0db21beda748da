package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// DupCommandFD duplicates the descriptor of a context's device file.
func (p *Process) DupCommandFD(vt verbs.Thread, vc verbs.Context) (int, error) {
	Of(vt)
	c, ok := vc.(*Context)
	if !ok || c == nil || c.closed {
		return -1, fmt.Errorf("dup: no open device: %w", syscall.EBADF)
	}
	c.u.Dup()
	return p.openFD(&descriptor{of: c}), nil
}

// OpenNull opens the null device.
func (p *Process) OpenNull(vt verbs.Thread) (int, error) {
	Of(vt)
	return p.openFD(&descriptor{}), nil
}

// ImportDevice is ibv_import_device: libibverbs finds the device by the descriptor's file,
// libmlx5 asks for the answer that the context's maker got.
func (p *Process) ImportDevice(vt verbs.Thread, fd int) (verbs.Context, error) {
	t := Of(vt)
	t.Core.Run(t.P, p.Params.Control)
	i := fd - firstFD
	if i < 0 || i >= len(p.fds) || p.fds[i] == nil {
		return nil, fmt.Errorf("import_device: descriptor %d: %w", fd, syscall.EINVAL)
	}
	of, ok := p.fds[i].of.(*Context)
	if !ok {
		return nil, fmt.Errorf("import_device: descriptor %d does not belong to an RDMA device: %w", fd, syscall.ENODEV)
	}
	if of.isStatic() {
		return nil, fmt.Errorf("import_device: the kernel gave the context static registers: %w", syscall.EINVAL)
	}
	c := &Context{dev: of.dev, proc: p, u: of.u, env: of.env, resp: of.resp, imported: true}
	var err error
	if c.attr, err = c.u.QueryDevice(t.caller); err != nil {
		return nil, fmt.Errorf("import_device: %w", err)
	}
	if c.clock, err = c.mapping(c.u.MmapUAR(t.caller, kernel.MmapClock, 0)); err != nil {
		return nil, fmt.Errorf("import_device: %w", err)
	}
	c.fds[0] = p.fds[i]
	*c.fds[0] = descriptor{release: c.exit} // the context's own from now on
	p.contexts = append(p.contexts, c)
	return c, nil
}

// ImportPD is ibv_import_pd.
func (c *Context) ImportPD(vt verbs.Thread, handle uint32) (_ verbs.PD, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if _, err := c.u.QueryPD(t.caller, kernel.Handle(handle)); err != nil {
		return nil, fmt.Errorf("import_pd: %w", err)
	}
	return &PD{ctx: c, h: kernel.Handle(handle)}, nil
}

// Handle is the PD's number in the kernel.
func (p *PD) Handle() uint32 { return uint32(p.h) }

// Unimport is ibv_unimport_pd: the library forgets the PD, without a call of the kernel.
func (p *PD) Unimport(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	p.ctx.enter(vt)
	if p.parent != nil {
		return fmt.Errorf("unimport_pd: a parent domain: %w", syscall.EINVAL)
	}
	return nil
}

// ImportMR is ibv_import_mr: the address is not known.
func (p *PD) ImportMR(vt verbs.Thread, handle uint32) (_ verbs.MR, err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	lkey, rkey, length, _, err := p.ctx.u.QueryMR(t.caller, kernel.Handle(handle))
	if err != nil {
		return nil, fmt.Errorf("import_mr: %w", err)
	}
	return &MR{ctx: p.ctx, pd: p, h: kernel.Handle(handle), lkey: lkey, rkey: rkey, length: length, kind: mrImported}, nil
}

// Handle is the region's number in the kernel.
func (m *MR) Handle() uint32 { return uint32(m.h) }

// Unimport is ibv_unimport_mr.
func (m *MR) Unimport(vt verbs.Thread) error {
	m.ctx.enter(vt)
	return nil
}

// TakeFD is pidfd_getfd: a descriptor of what another process has open as fd. EBADF: nothing.
// EOPNOTSUPP: files of RDMA devices, which are not modelled outside of their process.
func (p *Process) TakeFD(vt verbs.Thread, from *Process, fd int) (int, error) {
	Of(vt).P.Sync() // the other process may be opening or closing it
	i := fd - firstFD
	if i < 0 || i >= len(from.fds) || from.fds[i] == nil {
		return -1, fmt.Errorf("take descriptor %d of another process: %w", fd, syscall.EBADF)
	}
	d := *from.fds[i]
	if d.of != nil || d.release != nil {
		return -1, fmt.Errorf("take descriptor %d of another process: it belongs to a device: %w", fd, syscall.EOPNOTSUPP)
	}
	if d.buf != nil {
		d.buf.Get()
	}
	return p.openFD(&d), nil
}
