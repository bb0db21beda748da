package player

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Commands of XRC and of shared receive queues.
const (
	// OpenXRCD opens the file that Data names (no Data: fd -1) and the XRC domain by it. Args:
	// flags (of the file and the domain: O_CREAT, O_EXCL). Values: xrcd.
	OpenXRCD = "xrcd"
	// CloseXRCD: args xrcd.
	CloseXRCD = "close-xrcd"
	// CreateXRCSRQ makes an XRC SRQ whose completions come to the CQ. Args: xrcd, pd, max_wr (0:
	// 64). Values: srq, srqn.
	CreateXRCSRQ = "xrc-srq"
	// CreateSRQ makes an SRQ for QPs of the other kinds. Args: pd, max_wr (0: 64), max_sge (0: 1).
	// Values: srq.
	CreateSRQ = "srq"
	// PostSRQ: args srq, id, buf, off, len, count.
	PostSRQ = "srq-recv"
	// DestroySRQ: args srq.
	DestroySRQ = "destroy-srq"
	// CreateTarget makes an XRC target QP. Args: xrcd. Values: qp, qpn.
	CreateTarget = "target"
	// OpenTarget opens a target QP that another process made. Args: xrcd, qpn. Values: qp, qpn.
	OpenTarget = "open-qp"
	// AsyncEvent waits for an event. Args: timeout (ns). Values: type, and qp where it is of a QP.
	// EAGAIN: none came.
	AsyncEvent = "event"
	// Unlink removes the file that Data names.
	Unlink = "unlink"
)

func (a *Agent) xrcHandlers() map[string]handler {
	return map[string]handler{OpenXRCD: a.openXRCD, CloseXRCD: a.closeXRCD, CreateXRCSRQ: a.createXRCSRQ, CreateSRQ: a.createSRQ, PostSRQ: a.postSRQ,
		DestroySRQ: a.destroySRQ, CreateTarget: a.createTarget, OpenTarget: a.openTarget, AsyncEvent: a.asyncEvent, Unlink: unlink}
}

// errNoFiles is the answer where processes cannot open files.
var errNoFiles = fmt.Errorf("player: the processes of this target cannot open files: %w", syscall.EOPNOTSUPP)

func (a *Agent) openXRCD(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	flags := int(c.Args["flags"])
	attr := verbs.XRCDInitAttr{CompMask: verbs.XRCDInitFD | verbs.XRCDInitOFlags, FD: -1, OFlags: flags}
	if len(c.Data) > 0 {
		files, ok := t.Process().(verbs.FileOpener)
		if !ok {
			return errNoFiles
		}
		// The file is there or made whatever the flags ask of the domain.
		fd, err := files.OpenFile(t, string(c.Data), syscall.O_CREAT)
		if err != nil {
			return err
		}
		defer func() { _ = files.CloseFD(t, fd) }()
		attr.FD = fd
	}
	x, err := a.ctx.OpenXRCD(t, attr)
	if err != nil {
		return err
	}
	a.xrcds = append(a.xrcds, x)
	r.Values["xrcd"] = uint64(len(a.xrcds))
	return nil
}

func (a *Agent) closeXRCD(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	x, err := pick(a.xrcds, c.Args["xrcd"], "xrcd")
	if err != nil {
		return err
	}
	if err := x.Close(t); err != nil {
		return err
	}
	a.xrcds[c.Args["xrcd"]-1] = nil
	return nil
}

func (a *Agent) createXRCSRQ(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	x, err := pick(a.xrcds, c.Args["xrcd"], "xrcd")
	if err != nil {
		return err
	}
	pd, err := a.pd(c)
	if err != nil {
		return err
	}
	n := cmp.Or(uint32(c.Args["max_wr"]), 64)
	s, err := a.ctx.CreateSRQEx(t, verbs.SRQInitAttrEx{SRQInitAttr: verbs.SRQInitAttr{MaxWR: n, MaxSGE: 1}, CompMask: verbs.SRQInitAll,
		Type: verbs.SRQXRC, PD: pd, XRCD: x, CQ: a.cq})
	if err != nil {
		return err
	}
	num, err := s.Num(t)
	if err != nil {
		return errors.Join(err, s.Destroy(t))
	}
	a.srqs = append(a.srqs, s)
	r.Values["srq"], r.Values["srqn"] = uint64(len(a.srqs)), uint64(num)
	return nil
}

func (a *Agent) createSRQ(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	pd, err := a.pd(c)
	if err != nil {
		return err
	}
	s, err := pd.CreateSRQ(t, verbs.SRQInitAttr{MaxWR: cmp.Or(uint32(c.Args["max_wr"]), 64), MaxSGE: cmp.Or(uint32(c.Args["max_sge"]), 1)})
	if err != nil {
		return err
	}
	a.srqs = append(a.srqs, s)
	r.Values["srq"] = uint64(len(a.srqs))
	return nil
}

func (a *Agent) postSRQ(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	s, err := pick(a.srqs, c.Args["srq"], "srq")
	if err != nil {
		return err
	}
	sges, err := a.sges(c)
	if err != nil {
		return err
	}
	wr := []verbs.RecvWR{{ID: c.Args["id"], SGEs: sges}}
	for range max(c.Args["count"], 1) {
		if _, err := s.PostRecv(t, wr); err != nil {
			return err
		}
		wr[0].ID++
	}
	return nil
}

func (a *Agent) destroySRQ(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	s, err := pick(a.srqs, c.Args["srq"], "srq")
	if err != nil {
		return err
	}
	if err := s.Destroy(t); err != nil {
		return err
	}
	a.srqs[c.Args["srq"]-1] = nil
	return nil
}

func (a *Agent) createTarget(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	x, err := pick(a.xrcds, c.Args["xrcd"], "xrcd")
	if err != nil {
		return err
	}
	q, err := a.ctx.CreateQP(t, verbs.QPInitAttr{Type: verbs.QPTXRCRecv, CompMask: verbs.QPInitXRCD, XRCD: x})
	return a.keep(q, err, r)
}

func (a *Agent) openTarget(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	x, err := pick(a.xrcds, c.Args["xrcd"], "xrcd")
	if err != nil {
		return err
	}
	q, err := a.ctx.OpenQP(t, verbs.QPOpenAttr{CompMask: verbs.QPOpenAll, QPN: uint32(c.Args["qpn"]), XRCD: x, Type: verbs.QPTXRCRecv})
	return a.keep(q, err, r)
}

// keep remembers a QP that was made or opened.
func (a *Agent) keep(q verbs.QP, err error, r *verbs.PlayerReply) error {
	if err != nil {
		return err
	}
	a.qps = append(a.qps, q)
	r.Values["qp"], r.Values["qpn"] = uint64(len(a.qps)), uint64(q.QPN())
	return nil
}

func (a *Agent) asyncEvent(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	e, err := a.ctx.AsyncEvent(t, time.Duration(c.Args["timeout"]))
	if err != nil {
		return err
	}
	a.ctx.AckAsyncEvent(t, e)
	r.Values["type"] = uint64(e.Type)
	for i, q := range a.qps {
		if e.QP != nil && q == e.QP {
			r.Values["qp"] = uint64(i + 1)
		}
	}
	return nil
}

func unlink(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	files, ok := t.Process().(verbs.FileOpener)
	if !ok {
		return errNoFiles
	}
	return files.RemoveFile(t, string(c.Data))
}
