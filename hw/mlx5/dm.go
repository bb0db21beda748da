//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/rdmasim/rdmasim/verbs"
)

// dm is memory on the device.
type dm struct {
	verbs.UnimplementedDM
	d      *C.struct_ibv_dm
	length uint64
}

var _ verbs.DirectDM = (*dm)(nil)

// AllocDM is ibv_alloc_dm.
func (c *context) AllocDM(t verbs.Thread, a verbs.DMAttr) (verbs.DM, error) {
	defer enterCall(t, "ibv_alloc_dm").leaveCall()
	attr := C.struct_ibv_alloc_dm_attr{length: C.size_t(a.Length), log_align_req: C.uint32_t(a.LogAlign), comp_mask: C.uint32_t(a.CompMask)}
	d, err := C.ibv_alloc_dm(c.c, &attr)
	if d == nil {
		return nil, null("ibv_alloc_dm", err)
	}
	return &dm{d: d, length: a.Length}, nil
}

// first is the address of p, which a call of length 0 does not look at.
func first(p []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }

// CopyTo is ibv_memcpy_to_dm.
func (m *dm) CopyTo(t verbs.Thread, off uint64, p []byte) error {
	defer enterCall(t, "ibv_memcpy_to_dm").leaveCall()
	ret, err := C.ibv_memcpy_to_dm(m.d, C.uint64_t(off), first(p), C.size_t(len(p)))
	return failed("ibv_memcpy_to_dm", ret, err)
}

// CopyFrom is ibv_memcpy_from_dm.
func (m *dm) CopyFrom(t verbs.Thread, p []byte, off uint64) error {
	defer enterCall(t, "ibv_memcpy_from_dm").leaveCall()
	ret, err := C.ibv_memcpy_from_dm(first(p), m.d, C.uint64_t(off), C.size_t(len(p)))
	return failed("ibv_memcpy_from_dm", ret, err)
}

// Free is ibv_free_dm.
func (m *dm) Free(t verbs.Thread) error {
	defer enterCall(t, "ibv_free_dm").leaveCall()
	ret, err := C.ibv_free_dm(m.d)
	return failed("ibv_free_dm", ret, err)
}

// RegDMMR is ibv_reg_dm_mr.
func (p *pd) RegDMMR(t verbs.Thread, m verbs.DM, off, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	defer enterCall(t, "ibv_reg_dm_mr").leaveCall()
	d, ok := m.(*dm)
	if !ok || d == nil {
		return nil, fmt.Errorf("ibv_reg_dm_mr without device memory, which libraries read: %w", syscall.EFAULT)
	}
	r, err := C.ibv_reg_dm_mr(p.p, d.d, C.uint64_t(off), C.size_t(length), C.uint(access))
	if r == nil {
		return nil, null("ibv_reg_dm_mr", err)
	}
	return &mr{m: r}, nil
}
