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

// qp is a queue pair.
type qp struct {
	verbs.UnimplementedQP
	ctx  *context
	q    *C.struct_ibv_qp
	init verbs.QPInitAttr
	caps verbs.QPCap
	gone bool
	// groups are the sockets that hold its memberships (see AttachMcast).
	groups map[verbs.GID]int

	sends, recvs lockCount
}

// errGone is the answer to a call on what was destroyed: the library would read memory
// that it has freed.
var errGone = fmt.Errorf("a queue pair that was destroyed: %w", syscall.EFAULT)

// queue is the queue pair behind either kind.
func queue(q verbs.QP) *qp {
	switch q := q.(type) {
	case *qp:
		return q
	case *dvQP:
		if q != nil {
			return q.qp
		}
	}
	return nil
}

// CreateQP is ibv_create_qp, ibv_create_qp_ex where a comp_mask is given, or mlx5dv_create_qp with
// direct attributes.
func (p *pd) CreateQP(t verbs.Thread, a verbs.QPInitAttr) (verbs.QP, error) {
	o := &qp{ctx: p.ctx, init: a}
	cap := C.struct_ibv_qp_cap{max_send_wr: C.uint32_t(a.Cap.MaxSendWR), max_recv_wr: C.uint32_t(a.Cap.MaxRecvWR),
		max_send_sge: C.uint32_t(a.Cap.MaxSendSGE), max_recv_sge: C.uint32_t(a.Cap.MaxRecvSGE), max_inline_data: C.uint32_t(a.Cap.MaxInline)}
	var scq, rcq *C.struct_ibv_cq
	if q := plain(a.SendCQ); q != nil {
		scq = q.c
	}
	if q := plain(a.RecvCQ); q != nil {
		rcq = q.c
	}
	var s *C.struct_ibv_srq
	if q, ok := a.SRQ.(*srq); ok && q != nil {
		s = q.s
	}
	if scq == nil || rcq == nil && a.Type != verbs.QPTXRCSend {
		return nil, fmt.Errorf("ibv_create_qp without a CQ is not handed to the library: %w", syscall.EFAULT)
	}
	var err error
	if a.CompMask == 0 && a.Direct == nil {
		defer enterCall(t, "ibv_create_qp").leaveCall()
		x := C.struct_ibv_qp_init_attr{send_cq: scq, recv_cq: rcq, srq: s, cap: cap, qp_type: C.enum_ibv_qp_type(a.Type), sq_sig_all: truth(a.SigAll)}
		if o.q, err = C.ibv_create_qp(p.p, &x); o.q == nil {
			return nil, null("ibv_create_qp", err)
		}
		o.caps = goCaps(&x.cap)
	} else {
		call := "ibv_create_qp_ex"
		if a.Direct != nil {
			call = "mlx5dv_create_qp"
		}
		defer enterCall(t, call).leaveCall()
		x := C.struct_ibv_qp_init_attr_ex{send_cq: scq, recv_cq: rcq, srq: s, cap: cap, qp_type: C.enum_ibv_qp_type(a.Type), sq_sig_all: truth(a.SigAll),
			pd: p.p, comp_mask: C.uint32_t(a.CompMask) | C.IBV_QP_INIT_ATTR_PD, create_flags: C.uint32_t(a.CreateFlags),
			source_qpn: C.uint32_t(a.SourceQPN), send_ops_flags: C.uint64_t(a.SendOpsFlags)}
		if d := a.Direct; d != nil {
			dv := cDirect(d)
			o.q, err = C.hw_dv_create_qp(p.ctx.c, &x, &dv)
		} else {
			o.q, err = C.ibv_create_qp_ex(p.ctx.c, &x)
		}
		if o.q == nil {
			return nil, null(call, err)
		}
		o.caps = goCaps(&x.cap)
	}
	o.sends.watch(p.ctx, unsafe.Pointer(o.q))
	o.recvs.watch(p.ctx, unsafe.Pointer(o.q))
	var outer verbs.QP = o
	if p.ctx.mlx5 {
		outer = &dvQP{qp: o}
	}
	p.ctx.enter(unsafe.Pointer(o.q), outer)
	return outer, nil
}

func goCaps(c *C.struct_ibv_qp_cap) verbs.QPCap {
	return verbs.QPCap{MaxSendWR: uint32(c.max_send_wr), MaxRecvWR: uint32(c.max_recv_wr), MaxSendSGE: uint32(c.max_send_sge),
		MaxRecvSGE: uint32(c.max_recv_sge), MaxInline: uint32(c.max_inline_data)}
}

func (q *qp) QPN() uint32          { return uint32(q.q.qp_num) }
func (q *qp) Caps() verbs.QPCap    { return q.caps }
func (q *qp) State() verbs.QPState { return verbs.QPState(q.q.state) }
func (q *qp) Context() any         { return q.init.Context }

// Modify is ibv_modify_qp.
func (q *qp) Modify(t verbs.Thread, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	defer enterCall(t, "ibv_modify_qp").leaveCall()
	if q.gone {
		return errGone
	}
	c := C.struct_ibv_qp_attr{qp_state: C.enum_ibv_qp_state(a.State), cur_qp_state: C.enum_ibv_qp_state(a.CurState),
		path_mtu: C.enum_ibv_mtu(a.PathMTU), path_mig_state: C.enum_ibv_mig_state(a.PathMigState), qkey: C.uint32_t(a.QKey),
		rq_psn: C.uint32_t(a.RQPSN), sq_psn: C.uint32_t(a.SQPSN), dest_qp_num: C.uint32_t(a.DestQPN),
		qp_access_flags: C.uint(a.Access), ah_attr: cAH(&a.AH), alt_ah_attr: cAH(&a.AltAH), pkey_index: C.uint16_t(a.PKeyIndex),
		alt_pkey_index: C.uint16_t(a.AltPKeyIndex), max_rd_atomic: C.uint8_t(a.MaxRdAtomic), max_dest_rd_atomic: C.uint8_t(a.MaxDestRdAtomic),
		min_rnr_timer: C.uint8_t(a.MinRNRTimer), port_num: C.uint8_t(a.Port), timeout: C.uint8_t(a.Timeout), retry_cnt: C.uint8_t(a.RetryCnt),
		rnr_retry: C.uint8_t(a.RNRRetry), alt_port_num: C.uint8_t(a.AltPort), alt_timeout: C.uint8_t(a.AltTimeout), rate_limit: C.uint32_t(a.RateLimit)}
	c.cap = C.struct_ibv_qp_cap{max_send_wr: C.uint32_t(a.Cap.MaxSendWR), max_recv_wr: C.uint32_t(a.Cap.MaxRecvWR),
		max_send_sge: C.uint32_t(a.Cap.MaxSendSGE), max_recv_sge: C.uint32_t(a.Cap.MaxRecvSGE), max_inline_data: C.uint32_t(a.Cap.MaxInline)}
	c.en_sqd_async_notify = C.uint8_t(truth(a.EnSQDAsyncNotify))
	c.sq_draining = C.uint8_t(truth(a.SQDraining))
	ret, err := C.ibv_modify_qp(q.q, &c, C.int(mask))
	return failed("ibv_modify_qp", ret, err)
}

// Query is ibv_query_qp.
func (q *qp) Query(t verbs.Thread, mask verbs.QPAttrMask) (verbs.QPAttr, verbs.QPInitAttr, error) {
	defer enterCall(t, "ibv_query_qp").leaveCall()
	if q.gone {
		return verbs.QPAttr{}, verbs.QPInitAttr{}, errGone
	}
	var a C.struct_ibv_qp_attr
	var x C.struct_ibv_qp_init_attr
	ret, err := C.ibv_query_qp(q.q, &a, C.int(mask), &x)
	if ret != 0 {
		return verbs.QPAttr{}, verbs.QPInitAttr{}, failed("ibv_query_qp", ret, err)
	}
	attr := goQPAttr(&a)
	init := verbs.QPInitAttr{Context: q.init.Context, Type: verbs.QPType(x.qp_type), Cap: goCaps(&x.cap), SigAll: x.sq_sig_all != 0}
	init.SendCQ, _ = q.ctx.object(unsafe.Pointer(x.send_cq)).(verbs.CQ)
	init.RecvCQ, _ = q.ctx.object(unsafe.Pointer(x.recv_cq)).(verbs.CQ)
	init.SRQ, _ = q.ctx.object(unsafe.Pointer(x.srq)).(verbs.SRQ)
	return attr, init, nil
}

func goQPAttr(a *C.struct_ibv_qp_attr) verbs.QPAttr {
	return verbs.QPAttr{State: verbs.QPState(a.qp_state), CurState: verbs.QPState(a.cur_qp_state), PathMTU: verbs.MTU(a.path_mtu),
		PathMigState: uint8(a.path_mig_state), QKey: uint32(a.qkey), RQPSN: uint32(a.rq_psn), SQPSN: uint32(a.sq_psn),
		DestQPN: uint32(a.dest_qp_num), Access: verbs.AccessFlags(a.qp_access_flags), Cap: goCaps(&a.cap), AH: goAH(&a.ah_attr),
		AltAH: goAH(&a.alt_ah_attr), PKeyIndex: uint16(a.pkey_index), AltPKeyIndex: uint16(a.alt_pkey_index),
		EnSQDAsyncNotify: a.en_sqd_async_notify != 0, SQDraining: a.sq_draining != 0, MaxRdAtomic: uint8(a.max_rd_atomic),
		MaxDestRdAtomic: uint8(a.max_dest_rd_atomic), MinRNRTimer: uint8(a.min_rnr_timer), Port: uint8(a.port_num), AltPort: uint8(a.alt_port_num),
		Timeout: uint8(a.timeout), AltTimeout: uint8(a.alt_timeout), RetryCnt: uint8(a.retry_cnt), RNRRetry: uint8(a.rnr_retry), RateLimit: uint32(a.rate_limit)}
}

// Destroy is ibv_destroy_qp, which waits for the acknowledgement of events.
func (q *qp) Destroy(t verbs.Thread) error {
	defer enterCall(t, "ibv_destroy_qp").leaveCall()
	if q.gone {
		return errGone
	}
	ret, err := C.ibv_destroy_qp(q.q)
	if ret == 0 {
		q.gone = true
		for g := range q.groups {
			q.leaveGroup(g)
		}
		q.ctx.leave(unsafe.Pointer(q.q))
	}
	return failed("ibv_destroy_qp", ret, err)
}

// DataInOrder is ibv_query_qp_data_in_order.
func (q *qp) DataInOrder(t verbs.Thread, op verbs.WROpcode, flags uint32) (int, error) {
	defer enterCall(t, "ibv_query_qp_data_in_order").leaveCall()
	ret, err := C.ibv_query_qp_data_in_order(q.q, C.enum_ibv_wr_opcode(op), C.uint32_t(flags))
	if ret < 0 {
		return 0, failed("ibv_query_qp_data_in_order", ret, err)
	}
	return int(ret), nil
}

// srq is a shared receive queue.
type srq struct {
	verbs.UnimplementedSRQ
	ctx  *context
	s    *C.struct_ibv_srq
	caps verbs.SRQAttr

	locks lockCount
}

// CreateSRQ is ibv_create_srq.
func (p *pd) CreateSRQ(t verbs.Thread, a verbs.SRQInitAttr) (verbs.SRQ, error) {
	defer enterCall(t, "ibv_create_srq").leaveCall()
	var x C.struct_ibv_srq_init_attr
	x.attr = C.struct_ibv_srq_attr{max_wr: C.uint32_t(a.MaxWR), max_sge: C.uint32_t(a.MaxSGE), srq_limit: C.uint32_t(a.Limit)}
	s, err := C.ibv_create_srq(p.p, &x)
	if s == nil {
		return nil, null("ibv_create_srq", err)
	}
	o := &srq{ctx: p.ctx, s: s, caps: goSRQ(&x.attr)}
	o.locks.watch(p.ctx, unsafe.Pointer(s))
	p.ctx.enter(unsafe.Pointer(s), o)
	return o, nil
}

func goSRQ(a *C.struct_ibv_srq_attr) verbs.SRQAttr {
	return verbs.SRQAttr{MaxWR: uint32(a.max_wr), MaxSGE: uint32(a.max_sge), Limit: uint32(a.srq_limit)}
}

// Num is ibv_get_srq_num.
func (s *srq) Num(t verbs.Thread) (uint32, error) {
	defer enterCall(t, "ibv_get_srq_num").leaveCall()
	var n C.uint32_t
	ret, err := C.ibv_get_srq_num(s.s, &n)
	return uint32(n), failed("ibv_get_srq_num", ret, err)
}

func (s *srq) Caps() verbs.SRQAttr { return s.caps }

// Modify is ibv_modify_srq.
func (s *srq) Modify(t verbs.Thread, a verbs.SRQAttr, mask verbs.SRQAttrMask) error {
	defer enterCall(t, "ibv_modify_srq").leaveCall()
	x := C.struct_ibv_srq_attr{max_wr: C.uint32_t(a.MaxWR), max_sge: C.uint32_t(a.MaxSGE), srq_limit: C.uint32_t(a.Limit)}
	ret, err := C.ibv_modify_srq(s.s, &x, C.int(mask))
	return failed("ibv_modify_srq", ret, err)
}

// Query is ibv_query_srq.
func (s *srq) Query(t verbs.Thread) (verbs.SRQAttr, error) {
	defer enterCall(t, "ibv_query_srq").leaveCall()
	var x C.struct_ibv_srq_attr
	ret, err := C.ibv_query_srq(s.s, &x)
	if ret != 0 {
		return verbs.SRQAttr{}, failed("ibv_query_srq", ret, err)
	}
	return goSRQ(&x), nil
}

// Destroy is ibv_destroy_srq.
func (s *srq) Destroy(t verbs.Thread) error {
	defer enterCall(t, "ibv_destroy_srq").leaveCall()
	ret, err := C.ibv_destroy_srq(s.s)
	if ret == 0 {
		s.ctx.leave(unsafe.Pointer(s.s))
	}
	return failed("ibv_destroy_srq", ret, err)
}
