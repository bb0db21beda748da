package record

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

type xrcd struct {
	verbs.XRCD
	r *Recorder
}

func (x *xrcd) inner() verbs.XRCD { return x.XRCD }

func (x *xrcd) Close(t verbs.Thread) error {
	return x.r.add(t, "close_xrcd", nil, x.XRCD.Close(innerThread(t)))
}

// OpenXRCD is recorded without the descriptor's number, which is the process's own affair.
func (c *context) OpenXRCD(t verbs.Thread, a verbs.XRCDInitAttr) (verbs.XRCD, error) {
	x, err := c.Context.OpenXRCD(innerThread(t), a)
	return made(c.r, t, "open_xrcd", list(mask(a.CompMask), a.FD != -1, mask(uint32(a.OFlags))), err,
		func() (verbs.XRCD, []string) { return &xrcd{x, c.r}, nil })
}

func (c *context) CreateQP(t verbs.Thread, a verbs.QPInitAttr) (verbs.QP, error) {
	in := a
	in.SendCQ, in.RecvCQ, in.SRQ, in.XRCD = bare(a.SendCQ), bare(a.RecvCQ), bare(a.SRQ), bare(a.XRCD)
	q, err := c.Context.CreateQP(innerThread(t), in)
	return c.queuePair(t, "create_qp_ex", q, err, list(a.Type, fmt.Sprintf("%+v", a.Cap), mask(a.CompMask)))
}

func (c *context) OpenQP(t verbs.Thread, a verbs.QPOpenAttr) (verbs.QP, error) {
	in := a
	in.XRCD = bare(a.XRCD)
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
	in.PD, in.CQ, in.XRCD = bare(a.PD), bare(a.CQ), bare(a.XRCD)
	s, err := c.Context.CreateSRQEx(innerThread(t), in)
	args := list(a.Type, a.MaxWR, a.MaxSGE, mask(a.CompMask))
	return made(c.r, t, "create_srq_ex", args, err, func() (verbs.SRQ, []string) { return c.r.srq(s) })
}

func (e *qpEx) SetXRCSRQN(t verbs.Thread, remoteSRQN uint32) {
	e.note("xrc srq %s", e.q.r.sym("srq", remoteSRQN))
	e.QPEx.SetXRCSRQN(innerThread(t), remoteSRQN)
}

// opener is the inner process as one that opens files.
const noFiles = "files on this target"

func (p *process) OpenFile(t verbs.Thread, name string, flags int) (int, error) {
	return valueOn(p.Process, noFiles, func(o verbs.FileOpener) (int, error) { return o.OpenFile(innerThread(t), name, flags) })
}

func (p *process) RemoveFile(t verbs.Thread, name string) error {
	return on(p.Process, noFiles, func(o verbs.FileOpener) error { return o.RemoveFile(innerThread(t), name) })
}
