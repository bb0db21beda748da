package record

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

type xrcd struct {
	verbs.XRCD
	r *Recorder
}

func bareXRCD(x verbs.XRCD) verbs.XRCD {
	if w, ok := x.(*xrcd); ok {
		return w.XRCD
	}
	return x
}

func (x *xrcd) Close(t verbs.Thread) error {
	return x.r.add(t, "close_xrcd", nil, x.XRCD.Close(innerThread(t)))
}

// OpenXRCD is recorded without the descriptor's number, which is the process's own affair.
func (c *context) OpenXRCD(t verbs.Thread, a verbs.XRCDInitAttr) (verbs.XRCD, error) {
	x, err := c.Context.OpenXRCD(innerThread(t), a)
	c.r.add(t, "open_xrcd", list(mask(a.CompMask), a.FD != -1, mask(uint32(a.OFlags))), err)
	if err != nil {
		return nil, err
	}
	return &xrcd{x, c.r}, nil
}

func (c *context) CreateQP(t verbs.Thread, a verbs.QPInitAttr) (verbs.QP, error) {
	in := a
	in.SendCQ, in.RecvCQ, in.SRQ, in.XRCD = bareCQ(a.SendCQ), bareCQ(a.RecvCQ), bareSRQ(a.SRQ), bareXRCD(a.XRCD)
	q, err := c.Context.CreateQP(innerThread(t), in)
	return c.queuePair(t, "create_qp_ex", q, err, list(a.Type, fmt.Sprintf("%+v", a.Cap), mask(a.CompMask)))
}

func (c *context) OpenQP(t verbs.Thread, a verbs.QPOpenAttr) (verbs.QP, error) {
	in := a
	in.XRCD = bareXRCD(a.XRCD)
	q, err := c.Context.OpenQP(innerThread(t), in)
	return c.queuePair(t, "open_qp", q, err, list(a.Type, c.r.qpn(a.QPN), mask(a.CompMask)))
}

func (c *context) queuePair(t verbs.Thread, call string, q verbs.QP, err error, args []string) (verbs.QP, error) {
	if err != nil {
		c.r.add(t, call, args, err)
		return nil, err
	}
	c.r.add(t, call, args, nil, c.r.qpn(q.QPN()))
	return c.r.qp(q), nil
}

func (c *context) CreateSRQEx(t verbs.Thread, a verbs.SRQInitAttrEx) (verbs.SRQ, error) {
	in := a
	in.PD, in.CQ, in.XRCD = barePD(a.PD), bareCQ(a.CQ), bareXRCD(a.XRCD)
	s, err := c.Context.CreateSRQEx(innerThread(t), in)
	args := list(a.Type, a.MaxWR, a.MaxSGE, mask(a.CompMask))
	if err != nil {
		c.r.add(t, "create_srq_ex", args, err)
		return nil, err
	}
	c.r.add(t, "create_srq_ex", args, nil, fmt.Sprintf("%+v", s.Caps()))
	return wrap(c.r, s, func() *srq { return &srq{s, c.r} }), nil
}

func (e *qpEx) SetXRCSRQN(t verbs.Thread, remoteSRQN uint32) {
	e.note("xrc srq %s", e.q.r.sym("srq", remoteSRQN))
	e.QPEx.SetXRCSRQN(innerThread(t), remoteSRQN)
}

// opener is the inner process as one that opens files.
func (p *process) opener() (verbs.FileOpener, error) {
	if o, ok := p.Process.(verbs.FileOpener); ok {
		return o, nil
	}
	return nil, fmt.Errorf("files on this target: %w", syscall.EOPNOTSUPP)
}

// OpenFile passes through where the inner process can open files.
func (p *process) OpenFile(t verbs.Thread, name string, flags int) (int, error) {
	o, err := p.opener()
	if err != nil {
		return -1, err
	}
	return o.OpenFile(innerThread(t), name, flags)
}

// RemoveFile passes through likewise.
func (p *process) RemoveFile(t verbs.Thread, name string) error {
	o, err := p.opener()
	if err != nil {
		return err
	}
	return o.RemoveFile(innerThread(t), name)
}
