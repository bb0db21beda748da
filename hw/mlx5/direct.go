//go:build hw

package mlx5

/*
#include "direct.h"
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.DirectVerbs = (*context)(nil)

// DirectSupported is mlx5dv_is_supported.
func (c *context) DirectSupported() bool { return bool(C.mlx5dv_is_supported(c.c.device)) }

// QueryDirect is mlx5dv_query_device.
func (c *context) QueryDirect(t verbs.Thread, mask uint64) (verbs.DirectAttr, error) {
	defer enterCall(t, "mlx5dv_query_device").leaveCall()
	var x C.struct_hw_dv_context
	ret, err := C.hw_dv_query(c.c, &x, C.uint64_t(mask))
	if ret != 0 {
		return verbs.DirectAttr{}, failed("mlx5dv_query_device", ret, err)
	}
	return verbs.DirectAttr{Version: uint8(x.version), Flags: uint64(x.flags), CompMask: uint64(x.comp_mask),
		CQEComp:          verbs.CQECompCaps{MaxNum: uint32(x.cqe_comp_caps.max_num), Formats: uint32(x.cqe_comp_caps.supported_format)},
		MaxDynamicBFRegs: uint32(x.max_dynamic_bfregs), MaxClockInfoUpdate: uint64(x.max_clock_info_update_nsec), DCODPCaps: uint32(x.dc_odp_caps),
		NumLagPorts: uint8(x.num_lag_ports), SigBlockProt: uint32(x.sig_caps.block_prot),
		DCIStreams: verbs.DCIStreams{LogNumConcurrent: uint8(x.dci_streams_caps.max_log_num_concurent),
			LogNumErrored: uint8(x.dci_streams_caps.max_log_num_errored)},
		MaxWRMemcpyLength: uint64(x.max_wr_memcpy_length), MaxDCRDAtom: uint64(x.max_dc_rd_atom), MaxDCInitRDAtom: uint64(x.max_dc_init_rd_atom),
		OOORecvWRsRC: uint32(x.ooo_recv_wrs_caps.max_rc)}, nil
}

// ClockInfo is mlx5dv_get_clock_info.
func (c *context) ClockInfo(t verbs.Thread) (verbs.ClockInfo, error) {
	defer enterCall(t, "mlx5dv_get_clock_info").leaveCall()
	var x C.struct_mlx5dv_clock_info
	ret, err := C.mlx5dv_get_clock_info(c.c, &x)
	if ret != 0 {
		return verbs.ClockInfo{}, failed("mlx5dv_get_clock_info", ret, err)
	}
	return verbs.ClockInfo{NSec: uint64(x.nsec), LastCycles: uint64(x.last_cycles), Frac: uint64(x.frac), Mult: uint32(x.mult), Shift: uint32(x.shift),
		Mask: uint64(x.mask), TSToNS: func(ticks uint64) uint64 { return uint64(C.hw_dv_ts_to_ns(&x, C.uint64_t(ticks))) }}, nil
}

// ReserveQPN is mlx5dv_reserved_qpn_alloc.
func (c *context) ReserveQPN(t verbs.Thread) (uint32, error) {
	defer enterCall(t, "mlx5dv_reserved_qpn_alloc").leaveCall()
	var n C.uint32_t
	ret, err := C.mlx5dv_reserved_qpn_alloc(c.c, &n)
	return uint32(n), failed("mlx5dv_reserved_qpn_alloc", ret, err)
}

// ReleaseQPN is mlx5dv_reserved_qpn_dealloc.
func (c *context) ReleaseQPN(t verbs.Thread, qpn uint32) error {
	defer enterCall(t, "mlx5dv_reserved_qpn_dealloc").leaveCall()
	ret, err := C.mlx5dv_reserved_qpn_dealloc(c.c, C.uint32_t(qpn))
	return failed("mlx5dv_reserved_qpn_dealloc", ret, err)
}

// varPage is a page of mlx5dv_alloc_var.
type varPage struct {
	ctx *context
	v   *C.struct_mlx5dv_var
	// What the library's structure had, which goes with the object.
	pageID   uint32
	off, len uint64
}

// AllocVAR is mlx5dv_alloc_var.
func (c *context) AllocVAR(t verbs.Thread, flags uint32) (verbs.VAR, error) {
	defer enterCall(t, "mlx5dv_alloc_var").leaveCall()
	v, err := C.mlx5dv_alloc_var(c.c, C.uint32_t(flags))
	if v == nil {
		return nil, null("mlx5dv_alloc_var", err)
	}
	return &varPage{c, v, uint32(v.page_id), uint64(v.mmap_off), uint64(v.length)}, nil
}

func (v *varPage) Info() (pageID uint32, mmapOff, mmapLen uint64) { return v.pageID, v.off, v.len }

// Map is an mmap of the device file.
func (v *varPage) Map(t verbs.Thread) (uint64, error) {
	callingThread(t)
	p, err := C.hw_map_page(v.ctx.c.cmd_fd, C.uint64_t(v.off), C.uint64_t(v.len))
	if p == nil {
		return 0, null("mmap", err)
	}
	return uint64(uintptr(p)), nil
}

func (v *varPage) Unmap(t verbs.Thread, addr uint64) error {
	callingThread(t)
	ret, err := C.hw_unmap_page(pointer(addr), C.uint64_t(v.len))
	return failed("munmap", ret, err)
}

// Free is mlx5dv_free_var.
func (v *varPage) Free(t verbs.Thread) error {
	defer enterCall(t, "mlx5dv_free_var").leaveCall()
	if v.v == nil {
		return fmt.Errorf("a VAR page that was freed: %w", syscall.EFAULT)
	}
	C.mlx5dv_free_var(v.v)
	v.v = nil
	return nil
}

// AllocDirectDM is mlx5dv_alloc_dm.
func (c *context) AllocDirectDM(t verbs.Thread, a verbs.DMAttr, d verbs.DirectDMAttr) (verbs.DM, error) {
	defer enterCall(t, "mlx5dv_alloc_dm").leaveCall()
	attr := C.struct_ibv_alloc_dm_attr{length: C.size_t(a.Length), log_align_req: C.uint32_t(a.LogAlign), comp_mask: C.uint32_t(a.CompMask)}
	dv := C.struct_mlx5dv_alloc_dm_attr{_type: uint32(d.Type), comp_mask: C.uint64_t(d.CompMask)}
	m, err := C.mlx5dv_alloc_dm(c.c, &attr, &dv)
	if m == nil {
		return nil, null("mlx5dv_alloc_dm", err)
	}
	return &dm{d: m, length: a.Length}, nil
}

// opAddr is an operation address of device memory.
type opAddr struct {
	at     unsafe.Pointer
	length uint64
}

// MapOp is mlx5dv_dm_map_op_addr.
func (m *dm) MapOp(t verbs.Thread, op uint8) (verbs.OpAddr, error) {
	defer enterCall(t, "mlx5dv_dm_map_op_addr").leaveCall()
	p, err := C.mlx5dv_dm_map_op_addr(m.d, C.uint8_t(op))
	if p == nil {
		return nil, null("mlx5dv_dm_map_op_addr", err)
	}
	return &opAddr{p, m.length}, nil
}

func (a *opAddr) check(off uint64, p []byte) error {
	if n := uint64(len(p)); n == 0 || n > 8 || n&(n-1) != 0 || off%n != 0 || off+n > a.length {
		return fmt.Errorf("%d bytes at %d of an operation address of %d: %w", n, off, a.length, syscall.EFAULT)
	}
	return nil
}

func (a *opAddr) Load(t verbs.Thread, off uint64, p []byte) error {
	callingThread(t)
	if err := a.check(off, p); err != nil {
		return err
	}
	C.hw_dv_load(unsafe.Add(a.at, off), unsafe.Pointer(&p[0]), C.int(len(p)))
	return nil
}

func (a *opAddr) Store(t verbs.Thread, off uint64, p []byte) error {
	callingThread(t)
	if err := a.check(off, p); err != nil {
		return err
	}
	C.hw_dv_store(unsafe.Add(a.at, off), unsafe.Pointer(&p[0]), C.int(len(p)))
	return nil
}

// Unmap is munmap of the pages, of which the first has the address.
func (a *opAddr) Unmap(t verbs.Thread) error {
	callingThread(t)
	page := uintptr(syscall.Getpagesize())
	into := uintptr(a.at) % page
	ret, err := C.hw_unmap_page(unsafe.Add(a.at, -int(into)), C.uint64_t(a.length)+C.uint64_t(into))
	return failed("munmap", ret, err)
}

// mkey is a key of mlx5dv_create_mkey.
type mkey struct{ m *C.struct_mlx5dv_mkey }

// CreateMkey is mlx5dv_create_mkey.
func (c *context) CreateMkey(t verbs.Thread, p verbs.PD, flags uint32, maxEntries uint16) (verbs.Mkey, error) {
	defer enterCall(t, "mlx5dv_create_mkey").leaveCall()
	x, ok := p.(*pd)
	if !ok || x == nil {
		return nil, fmt.Errorf("mlx5dv_create_mkey without a PD is not handed to the library: %w", syscall.EFAULT)
	}
	m, err := C.hw_dv_create_mkey(x.p, C.uint32_t(flags), C.uint16_t(maxEntries))
	if m == nil {
		return nil, null("mlx5dv_create_mkey", err)
	}
	return &mkey{m}, nil
}

func (k *mkey) LKey() uint32 { return uint32(k.m.lkey) }
func (k *mkey) RKey() uint32 { return uint32(k.m.rkey) }

// Destroy is mlx5dv_destroy_mkey.
func (k *mkey) Destroy(t verbs.Thread) error {
	defer enterCall(t, "mlx5dv_destroy_mkey").leaveCall()
	ret, err := C.mlx5dv_destroy_mkey(k.m)
	return failed("mlx5dv_destroy_mkey", ret, err)
}

// RegDirectDmabufMR is mlx5dv_reg_dmabuf_mr, where the library has it.
func (c *context) RegDirectDmabufMR(t verbs.Thread, p verbs.PD, offset, length, iova uint64, fd int, access verbs.AccessFlags, flags uint32) (verbs.MR, error) {
	defer enterCall(t, "mlx5dv_reg_dmabuf_mr").leaveCall()
	x, ok := p.(*pd)
	if !ok || x == nil {
		return nil, fmt.Errorf("mlx5dv_reg_dmabuf_mr without a PD is not handed to the library: %w", syscall.EFAULT)
	}
	var missing C.int
	m, err := C.hw_dv_reg_dmabuf(x.p, C.uint64_t(offset), C.uint64_t(length), C.uint64_t(iova), C.int(fd), C.int(access), C.int(flags), &missing)
	switch {
	case missing != 0:
		return nil, fmt.Errorf("libmlx5.so.1 has no mlx5dv_reg_dmabuf_mr: it is older than rdma-core 54: %w", syscall.ENOSYS)
	case m == nil:
		return nil, null("mlx5dv_reg_dmabuf_mr", err)
	}
	return &mr{m: m}, nil
}
