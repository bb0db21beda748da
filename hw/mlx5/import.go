//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.Importer = (*process)(nil)

// DupCommandFD duplicates the descriptor of a context's device file.
func (p *process) DupCommandFD(t verbs.Thread, c verbs.Context) (int, error) {
	callingThread(t)
	x, ok := c.(*context)
	if !ok || x == nil {
		return -1, fmt.Errorf("dup: no open device: %w", syscall.EBADF)
	}
	return unix.FcntlInt(uintptr(x.c.cmd_fd), unix.F_DUPFD_CLOEXEC, 0)
}

// OpenNull opens the null device.
func (p *process) OpenNull(t verbs.Thread) (int, error) {
	callingThread(t)
	return unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
}

// CloseFD closes a descriptor.
func (p *process) CloseFD(t verbs.Thread, fd int) error {
	callingThread(t)
	return unix.Close(fd)
}

// ImportDevice is ibv_import_device.
func (p *process) ImportDevice(t verbs.Thread, fd int) (verbs.Context, error) {
	defer enterCall(t, "ibv_import_device").leaveCall()
	c, err := C.ibv_import_device(C.int(fd))
	if c == nil {
		return nil, null("ibv_import_device", err)
	}
	return p.adopt(&device{p: p, d: c.device}, c)
}

// ImportPD is ibv_import_pd.
func (c *context) ImportPD(t verbs.Thread, handle uint32) (verbs.PD, error) {
	defer enterCall(t, "ibv_import_pd").leaveCall()
	p, err := C.ibv_import_pd(c.c, C.uint32_t(handle))
	if p == nil {
		return nil, null("ibv_import_pd", err)
	}
	return &pd{ctx: c, p: p}, nil
}

// Handle is the PD's number in the kernel.
func (p *pd) Handle() uint32 { return uint32(p.p.handle) }

// Unimport is ibv_unimport_pd, which has no result. libmlx5 asserts that it is given no parent
// domain: that call is not made.
func (p *pd) Unimport(t verbs.Thread) error {
	defer enterCall(t, "ibv_unimport_pd").leaveCall()
	if p.mem != nil {
		return fmt.Errorf("ibv_unimport_pd of a parent domain: %w", syscall.EINVAL)
	}
	C.ibv_unimport_pd(p.p)
	return nil
}

// ImportMR is ibv_import_mr.
func (p *pd) ImportMR(t verbs.Thread, handle uint32) (verbs.MR, error) {
	defer enterCall(t, "ibv_import_mr").leaveCall()
	m, err := C.ibv_import_mr(p.p, C.uint32_t(handle))
	if m == nil {
		return nil, null("ibv_import_mr", err)
	}
	return &mr{m: m}, nil
}

// Handle is the region's number in the kernel.
func (m *mr) Handle() uint32 { return uint32(m.m.handle) }

// Unimport is ibv_unimport_mr, which has no result.
func (m *mr) Unimport(t verbs.Thread) error {
	defer enterCall(t, "ibv_unimport_mr").leaveCall()
	C.ibv_unimport_mr(m.m)
	return nil
}
