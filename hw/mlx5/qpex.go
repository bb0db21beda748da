//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"unsafe"

	"github.com/rdmasim/rdmasim/verbs"
)

// qpEx is the extended way to post (struct ibv_qp_ex).
type qpEx struct{ x *C.struct_ibv_qp_ex }

var _ verbs.QPEx = qpEx{}

// Ex is ibv_qp_to_qp_ex: nil unless the queue pair was created with SendOpsFlags.
func (q *qp) Ex() verbs.QPEx {
	if q.init.CompMask&verbs.QPInitSendOpsFlags == 0 {
		return nil
	}
	if x := C.ibv_qp_to_qp_ex(q.q); x != nil {
		return qpEx{x}
	}
	return nil
}

func (e qpEx) SetWR(id uint64, flags verbs.SendFlags) {
	e.x.wr_id, e.x.wr_flags = C.uint64_t(id), C.uint(flags)
}

func (e qpEx) WRStart(t verbs.Thread) {
	defer enterCall(t, "ibv_wr_start").leaveCall()
	C.ibv_wr_start(e.x)
}

func (e qpEx) WRComplete(t verbs.Thread) error {
	defer enterCall(t, "ibv_wr_complete").leaveCall()
	ret, err := C.ibv_wr_complete(e.x)
	return failed("ibv_wr_complete", ret, err)
}

func (e qpEx) WRAbort(t verbs.Thread) {
	defer enterCall(t, "ibv_wr_abort").leaveCall()
	C.ibv_wr_abort(e.x)
}

func (e qpEx) WRSend(t verbs.Thread) {
	defer enterCall(t, "ibv_wr_send").leaveCall()
	C.ibv_wr_send(e.x)
}

func (e qpEx) WRSendImm(t verbs.Thread, imm uint32) {
	defer enterCall(t, "ibv_wr_send_imm").leaveCall()
	C.hw_wr_send_imm(e.x, C.uint32_t(imm))
}

func (e qpEx) WRSendInv(t verbs.Thread, rkey uint32) {
	defer enterCall(t, "ibv_wr_send_inv").leaveCall()
	C.ibv_wr_send_inv(e.x, C.uint32_t(rkey))
}

func (e qpEx) WRRDMAWrite(t verbs.Thread, rkey uint32, remote uint64) {
	defer enterCall(t, "ibv_wr_rdma_write").leaveCall()
	C.ibv_wr_rdma_write(e.x, C.uint32_t(rkey), C.uint64_t(remote))
}

func (e qpEx) WRRDMAWriteImm(t verbs.Thread, rkey uint32, remote uint64, imm uint32) {
	defer enterCall(t, "ibv_wr_rdma_write_imm").leaveCall()
	C.hw_wr_write_imm(e.x, C.uint32_t(rkey), C.uint64_t(remote), C.uint32_t(imm))
}

func (e qpEx) WRRDMARead(t verbs.Thread, rkey uint32, remote uint64) {
	defer enterCall(t, "ibv_wr_rdma_read").leaveCall()
	C.ibv_wr_rdma_read(e.x, C.uint32_t(rkey), C.uint64_t(remote))
}

func (e qpEx) WRAtomicCmpSwp(t verbs.Thread, rkey uint32, remote, compare, swap uint64) {
	defer enterCall(t, "ibv_wr_atomic_cmp_swp").leaveCall()
	C.ibv_wr_atomic_cmp_swp(e.x, C.uint32_t(rkey), C.uint64_t(remote), C.uint64_t(compare), C.uint64_t(swap))
}

func (e qpEx) WRAtomicFetchAdd(t verbs.Thread, rkey uint32, remote, add uint64) {
	defer enterCall(t, "ibv_wr_atomic_fetch_add").leaveCall()
	C.ibv_wr_atomic_fetch_add(e.x, C.uint32_t(rkey), C.uint64_t(remote), C.uint64_t(add))
}

func (e qpEx) WRAtomicWrite(t verbs.Thread, rkey uint32, remote uint64, data [8]byte) {
	defer enterCall(t, "ibv_wr_atomic_write").leaveCall()
	C.ibv_wr_atomic_write(e.x, C.uint32_t(rkey), C.uint64_t(remote), unsafe.Pointer(&data[0]))
}

func (e qpEx) WRLocalInv(t verbs.Thread, rkey uint32) {
	defer enterCall(t, "ibv_wr_local_inv").leaveCall()
	C.ibv_wr_local_inv(e.x, C.uint32_t(rkey))
}

func (e qpEx) WRBindMW(t verbs.Thread, window verbs.MW, rkey uint32, info verbs.MWBindInfo) {
	h := enterCall(t, "ibv_wr_bind_mw")
	defer h.leaveCall()
	d := &unsafe.Slice(h.scratch(1, 0, 0, 0).send, 1)[0]
	*d = C.struct_hw_send{}
	bind(d, window, rkey, &info)
	C.hw_wr_bind_mw(e.x, d)
}

func (e qpEx) SetSGE(t verbs.Thread, s verbs.SGE) {
	defer enterCall(t, "ibv_wr_set_sge").leaveCall()
	C.ibv_wr_set_sge(e.x, C.uint32_t(s.LKey), C.uint64_t(s.Addr), C.uint32_t(s.Length))
}

func (e qpEx) SetSGEList(t verbs.Thread, sges []verbs.SGE) {
	h := enterCall(t, "ibv_wr_set_sge_list")
	defer h.leaveCall()
	r := h.scratch(0, 0, len(sges), 0)
	fillSGEs(unsafe.Slice(r.sge, int(r.sges)), sges)
	C.ibv_wr_set_sge_list(e.x, C.size_t(len(sges)), r.sge)
}

func (e qpEx) SetInlineData(t verbs.Thread, addr uint64, length uint32) {
	defer enterCall(t, "ibv_wr_set_inline_data").leaveCall()
	C.hw_wr_inline(e.x, C.uint64_t(addr), C.uint32_t(length))
}

func (e qpEx) SetInlineDataList(t verbs.Thread, bufs []verbs.DataBuf) {
	h := enterCall(t, "ibv_wr_set_inline_data_list")
	defer h.leaveCall()
	r := h.scratch(0, 0, len(bufs), 0)
	to := unsafe.Slice(r.sge, int(r.sges))
	for i, b := range bufs {
		to[i] = C.struct_ibv_sge{addr: C.uint64_t(b.Addr), length: C.uint32_t(b.Length)}
	}
	C.hw_wr_inline_list(e.x, C.int(len(bufs)), r.sge)
}

func (e qpEx) SetUDAddr(t verbs.Thread, a verbs.AH, remoteQPN, remoteQKey uint32) {
	defer enterCall(t, "ibv_wr_set_ud_addr").leaveCall()
	var h *C.struct_ibv_ah
	if x, ok := a.(*ah); ok && x != nil {
		h = x.a
	}
	C.ibv_wr_set_ud_addr(e.x, h, C.uint32_t(remoteQPN), C.uint32_t(remoteQKey))
}
