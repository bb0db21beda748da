//go:build hw

package mlx5

/*
#include <stdlib.h>
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// late finds a function of a library that is newer than the oldest one that the program runs with.
// EOPNOTSUPP: this one is older than since.
func late(name, since string) (unsafe.Pointer, error) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	f := C.hw_find(s)
	if f == nil {
		return nil, fmt.Errorf("%s: the library is too old, rdma-core has it from %s on: %w", name, since, syscall.EOPNOTSUPP)
	}
	return f, nil
}

// Versions of symbols that late calls name.
const (
	sinceDMExport  = "the version of IBVERBS_1.16"
	sinceBuf       = "the version of IBVERBS_1.17"
	sinceBufExport = "the version of IBVERBS_1.18"
)

// descriptor is the answer of a call that gives a descriptor, or -1 and errno.
func descriptor(call string, fd C.int, err error) (int, error) {
	if fd < 0 {
		return -1, null(call, err)
	}
	return int(fd), nil
}

// ExportDmabuf is ibv_dm_export_dmabuf_fd.
func (m *dm) ExportDmabuf(t verbs.Thread) (int, error) {
	const call = "ibv_dm_export_dmabuf_fd"
	defer enterCall(t, call).leaveCall()
	f, err := late(call, sinceDMExport)
	if err != nil {
		return -1, err
	}
	fd, err := C.hw_late_dm_export(f, m.d)
	return descriptor(call, fd, err)
}

// providerBuf is a buffer of ibv_alloc_buf.
type providerBuf struct {
	*buffer // whose memory the library has
	b       unsafe.Pointer
}

// AllocBuf is ibv_alloc_buf.
func (p *pd) AllocBuf(t verbs.Thread, size uint64) (verbs.ProviderBuf, error) {
	const call = "ibv_alloc_buf"
	defer enterCall(t, call).leaveCall()
	f, err := late(call, sinceBuf)
	if err != nil {
		return nil, err
	}
	b := (*unsafe.Pointer)(C.calloc(1, C.size_t(unsafe.Sizeof(unsafe.Pointer(nil)))))
	defer C.free(unsafe.Pointer(b))
	at, err := C.hw_late_alloc_buf(f, p.p, C.size_t(size), b)
	if at == nil {
		return nil, null(call, err)
	}
	return &providerBuf{&buffer{p: p.ctx.dev.p, at: at, mapped: size, n: size}, *b}, nil
}

// Unmap is ibv_free_buf.
func (b *providerBuf) Unmap(t verbs.Thread) error {
	const call = "ibv_free_buf"
	defer enterCall(t, call).leaveCall()
	f, err := late(call, sinceBuf)
	if err == nil {
		C.hw_late_free_buf(f, b.b)
	}
	return err
}

// RegMR is ibv_reg_buf_mr.
func (b *providerBuf) RegMR(t verbs.Thread, vp verbs.PD, addr, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	const call = "ibv_reg_buf_mr"
	defer enterCall(t, call).leaveCall()
	p, ok := vp.(*pd)
	if !ok || p == nil {
		return nil, fmt.Errorf("%s without a PD, which libraries read: %w", call, syscall.EFAULT)
	}
	f, err := late(call, sinceBuf)
	if err != nil {
		return nil, err
	}
	m, err := C.hw_late_reg_buf_mr(f, p.p, b.b, pointer(addr), C.size_t(length), C.int(access))
	if m == nil {
		return nil, null(call, err)
	}
	return &mr{m: m}, nil
}

// ExportFD is ibv_export_buf_dmabuf_fd.
func (b *providerBuf) ExportFD(t verbs.Thread) (int, error) {
	const call = "ibv_export_buf_dmabuf_fd"
	defer enterCall(t, call).leaveCall()
	f, err := late(call, sinceBufExport)
	if err != nil {
		return -1, err
	}
	fd, err := C.hw_late_export_buf(f, b.b)
	return descriptor(call, fd, err)
}

var _ verbs.DescriptorTaker = (*process)(nil)

// PID is the process's number. A kernel that lets only parents look into a process (Yama) is told
// to make an exception.
func (p *process) PID() int {
	const any = ^uintptr(0) // PR_SET_PTRACER_ANY
	_ = unix.Prctl(unix.PR_SET_PTRACER, any, 0, 0, 0)
	return os.Getpid()
}

// TakeFD is pidfd_getfd.
func (p *process) TakeFD(t verbs.Thread, pid, fd int) (int, error) {
	callingThread(t)
	other, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(other) }()
	got, err := unix.PidfdGetfd(other, fd, 0)
	if err != nil {
		return -1, fmt.Errorf("take descriptor %d of process %d: %w", fd, pid, err)
	}
	return got, nil
}
