//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/rdmasim/rdmasim/verbs"
)

// dvQP is a queue pair of an mlx5 device.
type dvQP struct {
	*qp
	half atomic.Uint32 // of the register that RingDoorbell writes next, in bytes
}

var (
	_ verbs.Mlx5QP   = (*dvQP)(nil)
	_ verbs.DirectQP = (*dvQP)(nil)
)

// adapterPage is how much of a UAR a register's page number counts.
const adapterPage = 4096

// BFReg is the address and the size of the register, from direct verbs. Direct verbs do not
// tell which hardware page it is on, so that the page's address stands for it, nor whether the
// library takes a lock.
func (q *dvQP) BFReg() verbs.BFReg {
	d, err := q.dv()
	if err != nil {
		return verbs.BFReg{}
	}
	at := uint64(uintptr(d.bf.reg))
	return verbs.BFReg{Addr: at, UARPage: uint32(at / adapterPage), Offset: uint32(at % adapterPage), Size: uint32(d.bf.size)}
}

// The page in the device file at which a UAR is mapped holds a command in its second
// byte. The lower ones are of the table that a context begins with, those from 9 on of
// pages that are objects of their own (drivers/infiniband/hw/mlx5/mlx5_ib.h,
// MLX5_IB_MMAP_OFFSET_START; main.c, mlx5_entry_to_mmap_offset).
const (
	mmapCommandShift  = 8
	mmapCommandMask   = 0xff
	firstObjectOfFile = 9
)

// dynamicUAR reports whether the register is on such an object.
func (q *dvQP) dynamicUAR() bool {
	d, err := q.dv()
	page := uint64(q.ctx.dev.p.host.PageSize())
	return err == nil && d.comp_mask&C.MLX5DV_QP_MASK_UAR_MMAP_OFFSET != 0 &&
		uint64(d.uar_mmap_offset)/page>>mmapCommandShift&mmapCommandMask >= firstObjectOfFile
}

// DoorbellRecord reads both words.
func (q *dvQP) DoorbellRecord(t verbs.Thread) (recv, send uint32) {
	callingThread(t)
	d, err := q.dv()
	if err != nil {
		return 0, 0
	}
	w := unsafe.Slice((*C.uint32_t)(unsafe.Pointer(d.dbrec)), 2)
	return uint32(C.hw_be32(&w[0])), uint32(C.hw_be32(&w[1]))
}

// SendQueue reads from the send ring.
func (q *dvQP) SendQueue(t verbs.Thread, off int, p []byte) error {
	b, err := q.ring(t, off, len(p))
	copy(p, b)
	return err
}

// WriteSendQueue writes to the send ring.
func (q *dvQP) WriteSendQueue(t verbs.Thread, off int, p []byte) error {
	b, err := q.ring(t, off, len(p))
	copy(b, p)
	return err
}

// ring is n bytes of the send ring from off.
func (q *dvQP) ring(t verbs.Thread, off, n int) ([]byte, error) {
	callingThread(t)
	d, err := q.dv()
	if err != nil {
		return nil, err
	}
	size := int(d.sq.wqe_cnt) * int(d.sq.stride)
	if off < 0 || off+n > size {
		return nil, fmt.Errorf("%d bytes at %d of a send queue of %d: %w", n, off, size, syscall.EINVAL)
	}
	return unsafe.Slice((*byte)(d.sq.buf), size)[off : off+n], nil
}

// WriteDoorbellRecord stores the send counter alone.
func (q *dvQP) WriteDoorbellRecord(t verbs.Thread, sendCounter uint16) error {
	callingThread(t)
	d, err := q.dv()
	if err != nil {
		return err
	}
	C.hw_set_be32(&unsafe.Slice((*C.uint32_t)(unsafe.Pointer(d.dbrec)), 2)[1], C.uint32_t(sendCounter))
	return nil
}

// RingDoorbell stores 8 bytes at the register. The halves alternate here; which of them
// the library writes next is not known.
func (q *dvQP) RingDoorbell(t verbs.Thread, ctrl uint64) error {
	callingThread(t)
	d, err := q.dv()
	if err != nil {
		return err
	}
	size := uint32(d.bf.size)
	C.hw_store_be64(unsafe.Add(d.bf.reg, q.half.Load()&size), C.uint64_t(ctrl))
	q.half.Add(size)
	return nil
}

// uar is a UAR of mlx5 direct verbs.
type uar struct {
	verbs.UnimplementedUAR
	u    *C.struct_mlx5dv_devx_uar
	page uint64
}

// AllocUAR is mlx5dv_devx_alloc_uar.
func (c *context) AllocUAR(t verbs.Thread, flags uint32) (verbs.UAR, error) {
	defer enterCall(t, "mlx5dv_devx_alloc_uar").leaveCall()
	if !c.mlx5 {
		return nil, fmt.Errorf("mlx5dv_devx_alloc_uar on a device that is not mlx5: %w", syscall.EOPNOTSUPP)
	}
	u, err := C.mlx5dv_devx_alloc_uar(c.c, C.uint32_t(flags))
	if u == nil {
		return nil, null("mlx5dv_devx_alloc_uar", err)
	}
	return &uar{u: u, page: uint64(c.dev.p.host.PageSize())}, nil
}

// Info is what the call returned.
func (u *uar) Info() verbs.UARInfo {
	return verbs.UARInfo{RegAddr: uint64(uintptr(u.u.reg_addr)), BaseAddr: uint64(uintptr(u.u.base_addr)), PageID: uint32(u.u.page_id),
		MmapOff: uint64(u.u.mmap_off), MmapLen: u.page}
}

// Store writes 8 bytes at off inside the UAR.
func (u *uar) Store(t verbs.Thread, off uint32, v uint64) error {
	callingThread(t)
	if off%8 != 0 || off >= adapterPage {
		return fmt.Errorf("store at offset %#x of a UAR: %w", off, syscall.EFAULT)
	}
	C.hw_store_be64(unsafe.Add(u.u.base_addr, off), C.uint64_t(v))
	return nil
}

// Free is mlx5dv_devx_free_uar.
func (u *uar) Free(t verbs.Thread) error {
	defer enterCall(t, "mlx5dv_devx_free_uar").leaveCall()
	C.mlx5dv_devx_free_uar(u.u)
	return nil
}
