package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// XRCD is an XRC domain, as the process has it open.
type XRCD struct {
	verbs.UnimplementedXRCD
	ctx *Context
	h   kernel.Handle
}

// OpenXRCD is ibv_open_xrcd. What libibverbs finds wrong has no errno of the kernel: EINVAL for a
// bit of comp_mask that is missing, EOPNOTSUPP for one that is unknown.
func (c *Context) OpenXRCD(vt verbs.Thread, a verbs.XRCDInitAttr) (_ verbs.XRCD, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	const both = verbs.XRCDInitFD | verbs.XRCDInitOFlags
	switch {
	case a.CompMask&^both != 0:
		return nil, fmt.Errorf("open_xrcd: comp_mask %#x: %w", a.CompMask, syscall.EOPNOTSUPP)
	case a.CompMask != both:
		return nil, fmt.Errorf("open_xrcd: comp_mask %#x: %w", a.CompMask, syscall.EINVAL)
	}
	r := kernel.XRCDReq{OFlags: a.OFlags, HasFile: a.FD != -1}
	if r.HasFile {
		var err error
		if r.File, err = c.proc.inodeOf(a.FD); err != nil {
			return nil, fmt.Errorf("open_xrcd: %w", err)
		}
	}
	h, err := c.u.OpenXRCD(t.caller, r)
	if err != nil {
		return nil, fmt.Errorf("open_xrcd: %w", err)
	}
	return &XRCD{ctx: c, h: h}, nil
}

// Close is ibv_close_xrcd.
func (x *XRCD) Close(vt verbs.Thread) error {
	t := x.ctx.enter(vt)
	if err := x.ctx.u.CloseXRCD(t.caller, x.h); err != nil {
		return fmt.Errorf("close_xrcd: %w", err)
	}
	return nil
}

// xrcdOf is the domain that a call names, or EINVAL.
func (c *Context) xrcdOf(x verbs.XRCD) (*XRCD, error) {
	d, ok := x.(*XRCD)
	if !ok || d == nil || d.ctx != c {
		return nil, fmt.Errorf("no XRC domain of the context: %w", syscall.EINVAL)
	}
	return d, nil
}

// CreateSRQEx is ibv_create_srq_ex.
func (c *Context) CreateSRQEx(vt verbs.Thread, a verbs.SRQInitAttrEx) (_ verbs.SRQ, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if err := c.noQueues(); err != nil {
		return nil, err
	}
	s, err := c.createSRQEx(t, &a)
	if err != nil {
		return nil, fmt.Errorf("create_srq_ex: %w", err)
	}
	return s, nil
}

func (c *Context) createSRQEx(t *Thread, a *verbs.SRQInitAttrEx) (*SRQ, error) {
	p, ok := a.PD.(*PD)
	if a.CompMask&verbs.SRQInitPD == 0 || !ok || p == nil || p.ctx != c {
		return nil, fmt.Errorf("no PD: %w", syscall.EINVAL)
	}
	r := kernel.SRQReq{}
	if a.CompMask&verbs.SRQInitType != 0 {
		r.Type = a.Type
	}
	switch r.Type {
	case verbs.SRQBasic:
	case verbs.SRQXRC:
		if a.CompMask&verbs.SRQInitXRCD == 0 || a.CompMask&verbs.SRQInitCQ == 0 {
			return nil, fmt.Errorf("an XRC SRQ needs a domain and a CQ (comp_mask %#x): %w", a.CompMask, syscall.EINVAL)
		}
		x, err := c.xrcdOf(a.XRCD)
		if err != nil {
			return nil, err
		}
		q, ok := a.CQ.(*CQ)
		if !ok || q == nil || q.ctx != c {
			return nil, fmt.Errorf("no CQ of the context: %w", syscall.EINVAL)
		}
		r.XRCD, r.CQ = x.h, q.h
	case verbs.SRQTagMatching:
		return nil, fmt.Errorf("tag matching is not modelled: %w", syscall.EOPNOTSUPP)
	default:
		return nil, fmt.Errorf("SRQ type %d: %w", r.Type, syscall.EINVAL)
	}
	return p.makeSRQ(t, &a.SRQInitAttr, r)
}

// AllocXRCRcvQP is alloc_xrc_rcv_qp.
func (c *Context) AllocXRCRcvQP(vt verbs.Thread, x verbs.XRCD, a *verbs.QPAttr, mask verbs.QPAttrMask) (uint32, error) {
	t := c.enter(vt)
	d, err := c.xrcdOf(x)
	if err != nil {
		return 0, err
	}
	return c.u.AllocXRCRcvQP(t.caller, d.h, a, mask)
}

// CreateXRCRcvQP is ibv_create_xrc_rcv_qp.
func (c *Context) CreateXRCRcvQP(vt verbs.Thread, x verbs.XRCD) (uint32, error) {
	t := c.enter(vt)
	d, err := c.xrcdOf(x)
	if err != nil {
		return 0, err
	}
	return c.u.CreateXRCRcvQP(t.caller, d.h)
}

// ModifyXRCRcvQP is ibv_modify_xrc_rcv_qp.
func (c *Context) ModifyXRCRcvQP(vt verbs.Thread, x verbs.XRCD, qpn uint32, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	t := c.enter(vt)
	d, err := c.xrcdOf(x)
	if err != nil {
		return err
	}
	return c.u.ModifyXRCRcvQP(t.caller, d.h, qpn, a, mask)
}

// QueryXRCRcvQP is ibv_query_xrc_rcv_qp.
func (c *Context) QueryXRCRcvQP(vt verbs.Thread, x verbs.XRCD, qpn uint32, _ verbs.QPAttrMask) (verbs.QPAttr, error) {
	t := c.enter(vt)
	d, err := c.xrcdOf(x)
	if err != nil {
		return verbs.QPAttr{}, err
	}
	return c.u.QueryXRCRcvQP(t.caller, d.h, qpn)
}

// RegXRCRcvQP is ibv_reg_xrc_rcv_qp.
func (c *Context) RegXRCRcvQP(vt verbs.Thread, x verbs.XRCD, qpn uint32) error {
	t := c.enter(vt)
	d, err := c.xrcdOf(x)
	if err != nil {
		return err
	}
	return c.u.RegXRCRcvQP(t.caller, d.h, qpn)
}

// UnregXRCRcvQP is ibv_unreg_xrc_rcv_qp.
func (c *Context) UnregXRCRcvQP(vt verbs.Thread, x verbs.XRCD, qpn uint32) error {
	t := c.enter(vt)
	d, err := c.xrcdOf(x)
	if err != nil {
		return err
	}
	return c.u.UnregXRCRcvQP(t.caller, d.h, qpn)
}

var _ verbs.XRCReceiveQPs = (*Context)(nil)
