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

// xrcd is an XRC domain, as the process has it open.
type xrcd struct {
	verbs.UnimplementedXRCD
	x *C.struct_ibv_xrcd
}

// OpenXRCD is ibv_open_xrcd.
func (c *context) OpenXRCD(t verbs.Thread, a verbs.XRCDInitAttr) (verbs.XRCD, error) {
	defer enterCall(t, "ibv_open_xrcd").leaveCall()
	in := C.struct_ibv_xrcd_init_attr{comp_mask: C.uint32_t(a.CompMask), fd: C.int(a.FD), oflags: C.int(a.OFlags)}
	x, err := C.ibv_open_xrcd(c.c, &in)
	if x == nil {
		return nil, null("ibv_open_xrcd", err)
	}
	return &xrcd{x: x}, nil
}

// Close is ibv_close_xrcd.
func (x *xrcd) Close(t verbs.Thread) error {
	defer enterCall(t, "ibv_close_xrcd").leaveCall()
	ret, err := C.ibv_close_xrcd(x.x)
	return failed("ibv_close_xrcd", ret, err)
}

func cXRCD(x verbs.XRCD) *C.struct_ibv_xrcd {
	if d, ok := x.(*xrcd); ok && d != nil {
		return d.x
	}
	return nil
}

// errNoXRCD is the answer to a call that says that a domain is given, and gives none.
var errNoXRCD = fmt.Errorf("a call without its XRC domain is not handed to the library: %w", syscall.EFAULT)

// CreateQP is ibv_create_qp_ex without a PD.
func (c *context) CreateQP(t verbs.Thread, a verbs.QPInitAttr) (verbs.QP, error) {
	defer enterCall(t, "ibv_create_qp_ex").leaveCall()
	if a.CompMask&verbs.QPInitXRCD != 0 && cXRCD(a.XRCD) == nil {
		return nil, errNoXRCD
	}
	x := C.struct_ibv_qp_init_attr_ex{qp_type: C.enum_ibv_qp_type(a.Type), sq_sig_all: truth(a.SigAll), comp_mask: C.uint32_t(a.CompMask),
		create_flags: C.uint32_t(a.CreateFlags), send_ops_flags: C.uint64_t(a.SendOpsFlags), xrcd: cXRCD(a.XRCD)}
	x.cap = C.struct_ibv_qp_cap{max_send_wr: C.uint32_t(a.Cap.MaxSendWR), max_recv_wr: C.uint32_t(a.Cap.MaxRecvWR),
		max_send_sge: C.uint32_t(a.Cap.MaxSendSGE), max_recv_sge: C.uint32_t(a.Cap.MaxRecvSGE), max_inline_data: C.uint32_t(a.Cap.MaxInline)}
	if s, ok := a.SRQ.(*srq); ok && s != nil {
		x.srq = s.s
	}
	q, err := C.ibv_create_qp_ex(c.c, &x)
	if q == nil {
		return nil, null("ibv_create_qp_ex", err)
	}
	return c.target(&qp{ctx: c, q: q, init: a, caps: goCaps(&x.cap)}), nil
}

// target enters a handle of an XRC target QP.
func (c *context) target(q *qp) verbs.QP {
	c.enter(unsafe.Pointer(q.q), q)
	return q
}

// OpenQP is ibv_open_qp.
func (c *context) OpenQP(t verbs.Thread, a verbs.QPOpenAttr) (verbs.QP, error) {
	defer enterCall(t, "ibv_open_qp").leaveCall()
	if a.CompMask&verbs.QPOpenXRCD != 0 && cXRCD(a.XRCD) == nil {
		return nil, errNoXRCD
	}
	x := C.struct_ibv_qp_open_attr{comp_mask: C.uint32_t(a.CompMask), qp_num: C.uint32_t(a.QPN), xrcd: cXRCD(a.XRCD), qp_type: C.enum_ibv_qp_type(a.Type)}
	q, err := C.ibv_open_qp(c.c, &x)
	if q == nil {
		return nil, null("ibv_open_qp", err)
	}
	return c.target(&qp{ctx: c, q: q, init: verbs.QPInitAttr{Context: a.Context, Type: a.Type, XRCD: a.XRCD}}), nil
}

// CreateSRQEx is ibv_create_srq_ex.
func (c *context) CreateSRQEx(t verbs.Thread, a verbs.SRQInitAttrEx) (verbs.SRQ, error) {
	defer enterCall(t, "ibv_create_srq_ex").leaveCall()
	x := C.struct_ibv_srq_init_attr_ex{comp_mask: C.uint32_t(a.CompMask), srq_type: C.enum_ibv_srq_type(a.Type), xrcd: cXRCD(a.XRCD)}
	x.attr = C.struct_ibv_srq_attr{max_wr: C.uint32_t(a.MaxWR), max_sge: C.uint32_t(a.MaxSGE), srq_limit: C.uint32_t(a.Limit)}
	p, ok := a.PD.(*pd)
	if !ok || p == nil {
		return nil, fmt.Errorf("ibv_create_srq_ex without a PD is not handed to the library: %w", syscall.EFAULT)
	}
	x.pd = p.p
	if q := plain(a.CQ); q != nil {
		x.cq = q.c
	}
	switch {
	case a.CompMask&verbs.SRQInitXRCD != 0 && x.xrcd == nil:
		return nil, errNoXRCD
	case a.CompMask&verbs.SRQInitCQ != 0 && x.cq == nil:
		return nil, fmt.Errorf("ibv_create_srq_ex without its CQ is not handed to the library: %w", syscall.EFAULT)
	}
	s, err := C.ibv_create_srq_ex(c.c, &x)
	if s == nil {
		return nil, null("ibv_create_srq_ex", err)
	}
	o := &srq{ctx: c, s: s, caps: goSRQ(&x.attr)}
	c.enter(unsafe.Pointer(s), o)
	return o, nil
}

// SetXRCSRQN is ibv_wr_set_xrc_srqn.
func (e qpEx) SetXRCSRQN(t verbs.Thread, remoteSRQN uint32) {
	defer enterCall(t, "ibv_wr_set_xrc_srqn").leaveCall()
	C.ibv_wr_set_xrc_srqn(e.x, C.uint32_t(remoteSRQN))
}

// noCQ is the answer to a post on an XRC target QP, which libmlx5 does not check for.
func (q *qp) noCQ() error {
	if q.ctx.mlx5 && q.init.Type == verbs.QPTXRCRecv {
		return fmt.Errorf("a post on an XRC target QP is not handed to the library: %w", syscall.EFAULT)
	}
	return nil
}

// noRecvCQ is the answer to a post of receives on an XRC QP that only sends, whose receive CQ need
// not be there.
func (q *qp) noRecvCQ() error {
	if q.ctx.mlx5 && q.init.Type == verbs.QPTXRCSend && q.q.recv_cq == nil {
		return fmt.Errorf("a receive on an XRC QP without receive CQ is not handed to the library: %w", syscall.EFAULT)
	}
	return q.noCQ()
}
