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

// Queue pairs of any device have the calls: those of other providers refuse them.
var _ verbs.DirectQP = (*qp)(nil)

// cDirect are the direct attributes of a new QP.
func cDirect(d *verbs.DirectQPAttr) C.struct_hw_dv_qp_attr {
	return C.struct_hw_dv_qp_attr{comp_mask: C.uint64_t(d.CompMask), send_ops_flags: C.uint64_t(d.SendOpsFlags), access_key: C.uint64_t(d.DCTAccessKey),
		create_flags: C.uint32_t(d.CreateFlags), dc_type: C.uint32_t(d.DCType), log_concurrent: C.uint8_t(d.DCIStreams.LogNumConcurrent),
		log_errored: C.uint8_t(d.DCIStreams.LogNumErrored)}
}

// ModifyUDPSport is mlx5dv_modify_qp_udp_sport.
func (q *qp) ModifyUDPSport(t verbs.Thread, sport uint16) error {
	defer enterCall(t, "mlx5dv_modify_qp_udp_sport").leaveCall()
	if q.gone {
		return errGone
	}
	ret, err := C.mlx5dv_modify_qp_udp_sport(q.q, C.uint16_t(sport))
	return failed("mlx5dv_modify_qp_udp_sport", ret, err)
}

// QueryLagPort is mlx5dv_query_qp_lag_port.
func (q *qp) QueryLagPort(t verbs.Thread) (port, active uint8, err error) {
	defer enterCall(t, "mlx5dv_query_qp_lag_port").leaveCall()
	if q.gone {
		return 0, 0, errGone
	}
	var p, a C.uint8_t
	ret, err := C.mlx5dv_query_qp_lag_port(q.q, &p, &a)
	return uint8(p), uint8(a), failed("mlx5dv_query_qp_lag_port", ret, err)
}

// ModifyLagPort is mlx5dv_modify_qp_lag_port.
func (q *qp) ModifyLagPort(t verbs.Thread, port uint8) error {
	defer enterCall(t, "mlx5dv_modify_qp_lag_port").leaveCall()
	if q.gone {
		return errGone
	}
	ret, err := C.mlx5dv_modify_qp_lag_port(q.q, C.uint8_t(port))
	return failed("mlx5dv_modify_qp_lag_port", ret, err)
}

// ResetDCIStream is mlx5dv_dci_stream_id_reset.
func (q *qp) ResetDCIStream(t verbs.Thread, stream uint16) error {
	defer enterCall(t, "mlx5dv_dci_stream_id_reset").leaveCall()
	if q.gone {
		return errGone
	}
	ret, err := C.mlx5dv_dci_stream_id_reset(q.q, C.uint16_t(stream))
	return failed("mlx5dv_dci_stream_id_reset", ret, err)
}

// dv is mlx5dv_init_obj.
func (q *qp) dv() (C.struct_mlx5dv_qp, error) {
	var d C.struct_mlx5dv_qp
	if q.gone {
		return d, errGone
	}
	ret, err := C.hw_dv_qp(q.q, &d)
	return d, failed("mlx5dv_init_obj", ret, err)
}

// RecvQueueGeometry has the number of entries and the bytes of each.
func (q *qp) RecvQueueGeometry() (entries, stride int) {
	d, err := q.dv()
	if err != nil {
		return 0, 0
	}
	return int(d.rq.wqe_cnt), int(d.rq.stride)
}

// RecvQueue reads from the receive ring.
func (q *qp) RecvQueue(t verbs.Thread, off int, p []byte) error {
	b, err := q.recvRing(t, off, len(p))
	copy(p, b)
	return err
}

// WriteRecvQueue writes to the receive ring.
func (q *qp) WriteRecvQueue(t verbs.Thread, off int, p []byte) error {
	b, err := q.recvRing(t, off, len(p))
	copy(b, p)
	return err
}

// recvRing is n bytes of the receive ring from off.
func (q *qp) recvRing(t verbs.Thread, off, n int) ([]byte, error) {
	callingThread(t)
	d, err := q.dv()
	if err != nil {
		return nil, err
	}
	size := int(d.rq.wqe_cnt) * int(d.rq.stride)
	if off < 0 || off+n > size {
		return nil, fmt.Errorf("%d bytes at %d of a receive queue of %d: %w", n, off, size, syscall.EINVAL)
	}
	return unsafe.Slice((*byte)(d.rq.buf), size)[off : off+n], nil
}

// WriteRecvDoorbellRecord stores the counter of receives alone.
func (q *qp) WriteRecvDoorbellRecord(t verbs.Thread, recvCounter uint16) error {
	callingThread(t)
	d, err := q.dv()
	if err != nil {
		return err
	}
	C.hw_set_be32((*C.uint32_t)(unsafe.Pointer(d.dbrec)), C.uint32_t(recvCounter))
	return nil
}

// dvQPEx is the extended way to post of a QP of an mlx5 device (struct mlx5dv_qp_ex).
type dvQPEx struct{ qpEx }

var _ verbs.DirectQPEx = dvQPEx{}

// Ex is ibv_qp_to_qp_ex.
func (q *dvQP) Ex() verbs.QPEx {
	if x, ok := q.qp.Ex().(qpEx); ok {
		return dvQPEx{x}
	}
	return nil
}

func cAddressHandle(a verbs.AH) *C.struct_ibv_ah {
	if x, ok := a.(*ah); ok && x != nil {
		return x.a
	}
	return nil
}

func cMkey(m verbs.Mkey) *C.struct_mlx5dv_mkey {
	if x, ok := m.(*mkey); ok && x != nil {
		return x.m
	}
	return nil
}

func (e dvQPEx) SetDCAddr(t verbs.Thread, a verbs.AH, dctn uint32, key uint64) {
	defer enterCall(t, "mlx5dv_wr_set_dc_addr").leaveCall()
	C.hw_wr_dc_addr(e.x, cAddressHandle(a), C.uint32_t(dctn), C.uint64_t(key))
}

func (e dvQPEx) SetDCAddrStream(t verbs.Thread, a verbs.AH, dctn uint32, key uint64, stream uint16) {
	defer enterCall(t, "mlx5dv_wr_set_dc_addr_stream").leaveCall()
	C.hw_wr_dc_addr_stream(e.x, cAddressHandle(a), C.uint32_t(dctn), C.uint64_t(key), C.uint16_t(stream))
}

func (e dvQPEx) WRMRList(t verbs.Thread, m verbs.Mkey, access verbs.AccessFlags, sges []verbs.SGE) {
	h := enterCall(t, "mlx5dv_wr_mr_list")
	defer h.leaveCall()
	r := h.scratch(0, 0, len(sges), 0)
	fillSGEs(unsafe.Slice(r.sge, int(r.sges)), sges)
	C.hw_wr_mr_list(e.x, cMkey(m), C.uint32_t(access), C.uint16_t(len(sges)), r.sge)
}

func (e dvQPEx) WRMRInterleaved(t verbs.Thread, m verbs.Mkey, access verbs.AccessFlags, repeat uint32, pieces []verbs.MRInterleaved) {
	defer enterCall(t, "mlx5dv_wr_mr_interleaved").leaveCall()
	l := make([]C.struct_mlx5dv_mr_interleaved, len(pieces)+1) // plain numbers
	for i, p := range pieces {
		l[i] = C.struct_mlx5dv_mr_interleaved{addr: C.uint64_t(p.Addr), bytes_count: C.uint32_t(p.Bytes), bytes_skip: C.uint32_t(p.Skip), lkey: C.uint32_t(p.LKey)}
	}
	C.hw_wr_mr_interleaved(e.x, cMkey(m), C.uint32_t(access), C.uint32_t(repeat), C.uint16_t(len(pieces)), &l[0])
}

func (e dvQPEx) WRMemcpy(t verbs.Thread, destLKey uint32, dest uint64, srcLKey uint32, src, length uint64) {
	defer enterCall(t, "mlx5dv_wr_memcpy").leaveCall()
	C.hw_wr_memcpy(e.x, C.uint32_t(destLKey), C.uint64_t(dest), C.uint32_t(srcLKey), C.uint64_t(src), C.uint64_t(length))
}

// WRRawWQE posts bytes; their control segment says how many the library reads.
func (e dvQPEx) WRRawWQE(t verbs.Thread, wqe []byte) {
	defer enterCall(t, "mlx5dv_wr_raw_wqe").leaveCall()
	C.hw_wr_raw_wqe(e.x, unsafe.Pointer(unsafe.SliceData(wqe)))
}
