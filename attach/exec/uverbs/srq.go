//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// srq is a shared receive queue.
type srq struct {
	SRQ
	h      kernel.Handle
	cookie uint64
}

// createSRQ is SRQ_CREATE.
func (f *File) createSRQ(c Caller, k *uapi.Call) error {
	r, err := f.srqReq(k)
	if err != nil {
		return err
	}
	async, err := f.asyncOf(c, k, uapi.SRQCreateEventFD)
	if err != nil {
		return err
	}
	s, resp, err := f.makeSRQ(k, k.Value(uapi.SRQCreateUserHandle), r)
	if err != nil {
		return err
	}
	f.owners[s.cookie].async = async
	if r.Type == verbs.SRQXRC {
		if err := k.Out32(uapi.SRQCreateRspNum, s.SRQN); err != nil {
			return f.finishSRQ(s, err)
		}
	}
	return f.finishSRQ(s, errors.Join(k.Out32(uapi.SRQCreateRspMaxWR, resp.MaxWR), k.Out32(uapi.SRQCreateRspMaxSGE, uint32(k.Value(uapi.SRQCreateMaxSGE))),
		driverSRQ(k, s), k.SetNew(uapi.SRQCreateHandle, uint64(s.h))))
}

// createSRQOld is the command CREATE_SRQ.
func (f *File) createSRQOld(k *uapi.Call, w *uapi.Write) error {
	b, err := w.Request(uapi.CreateSRQSize)
	if err != nil {
		return err
	}
	r := uapi.CreateSRQ(b)
	return f.commandSRQ(k, w, r.UserHandle(), kernel.SRQReq{PD: kernelHandle(r.PDHandle()), MaxWR: r.MaxWR(), MaxSGE: r.MaxSGE()})
}

// createXSRQ is the command CREATE_XSRQ.
func (f *File) createXSRQ(k *uapi.Call, w *uapi.Write) error {
	b, err := w.Request(uapi.CreateXSRQSize)
	if err != nil {
		return err
	}
	x := uapi.CreateXSRQ(b)
	r := kernel.SRQReq{PD: kernelHandle(x.PDHandle()), MaxWR: x.MaxWR(), MaxSGE: x.MaxSGE()}
	switch x.SRQType() {
	case uapi.SRQTypeBasic:
	case uapi.SRQTypeXRC:
		if !f.xrcds[x.XRCDHandle()] {
			return fmt.Errorf("CREATE_XSRQ: no XRC domain %d: %w", x.XRCDHandle(), syscall.EINVAL)
		}
		r.Type, r.XRCD, r.CQ = verbs.SRQXRC, kernelHandle(x.XRCDHandle()), kernelHandle(x.CQHandle())
	default:
		return fmt.Errorf("CREATE_XSRQ: type %d: %w", x.SRQType(), syscall.EINVAL)
	}
	return f.commandSRQ(k, w, x.UserHandle(), r)
}

// commandSRQ makes an SRQ for a command.
func (f *File) commandSRQ(k *uapi.Call, w *uapi.Write, user uint64, r kernel.SRQReq) error {
	s, resp, err := f.makeSRQ(k, user, r)
	if err != nil {
		return err
	}
	a := uapi.CreateSRQResp(make([]byte, uapi.CreateSRQRespSize))
	a.SetSRQHandle(uint32(s.h))
	a.SetMaxWR(resp.MaxWR)
	a.SetMaxSGE(r.MaxSGE)
	if r.Type == verbs.SRQXRC {
		a.SetSRQN(s.SRQN)
	}
	return f.finishSRQ(s, errors.Join(driverSRQ(k, s), w.Respond(a)))
}

// srqReq translates a request of SRQ_CREATE. Tag matching is refused: its lists have no room on a
// device without it.
func (f *File) srqReq(k *uapi.Call) (r kernel.SRQReq, err error) {
	pd, _ := k.Handle(uapi.SRQCreatePD)
	r = kernel.SRQReq{PD: kernelHandle(pd), MaxWR: uint32(k.Value(uapi.SRQCreateMaxWR)), MaxSGE: uint32(k.Value(uapi.SRQCreateMaxSGE))}
	switch t := k.Value(uapi.SRQCreateType); t {
	case uapi.SRQTypeBasic:
		return r, nil
	case uapi.SRQTypeXRC:
	default:
		return r, fmt.Errorf("SRQ_CREATE: type %d: %w", t, syscall.EINVAL)
	}
	domain, hasDomain := k.Handle(uapi.SRQCreateXRCD)
	cq, hasCQ := k.Handle(uapi.SRQCreateCQ)
	if !hasDomain || !hasCQ {
		return r, fmt.Errorf("SRQ_CREATE: an XRC SRQ needs a domain and a CQ: %w", syscall.ENOENT)
	}
	r.Type, r.XRCD, r.CQ = verbs.SRQXRC, kernelHandle(domain), kernelHandle(cq)
	return r, nil
}

// makeSRQ is create_srq_user and what follows it.
func (f *File) makeSRQ(k *uapi.Call, user uint64, r kernel.SRQReq) (*srq, kernel.SRQResp, error) {
	b, err := k.In(uapi.AttrUHWIn, max(uapi.MLX5CreateSRQSize, k.Len(uapi.AttrUHWIn)))
	if err != nil {
		return nil, kernel.SRQResp{}, err
	}
	d := uapi.MLX5CreateSRQ(b)
	for _, x := range b[uapi.MLX5CreateSRQSize:] {
		if x != 0 {
			return nil, kernel.SRQResp{}, fmt.Errorf("create SRQ: driver data has more than we know: %w", syscall.EINVAL)
		}
	}
	switch {
	case d.Reserved0() != 0 || d.Reserved1() != 0:
		return nil, kernel.SRQResp{}, fmt.Errorf("create SRQ: reserved fields of driver data: %w", syscall.EINVAL)
	case d.Flags()&uapi.SRQFlagSignature != 0:
		return nil, kernel.SRQResp{}, fmt.Errorf("create SRQ: WQE signatures: %w: %w", errNotModelled, syscall.EOPNOTSUPP)
	}
	s := &srq{SRQ: SRQ{DBAddr: d.DBAddr(), Addr: d.BufAddr(), UserHandle: user}}
	s.cookie = f.own(&owner{handle: user})
	r.BufAddr, r.DBAddr, r.UIDX, r.Cookie = s.Addr, s.DBAddr, d.UIDX(), s.cookie
	h, resp, err := f.u.CreateSRQ(noCaller, r)
	if err != nil {
		delete(f.owners, s.cookie)
		return nil, resp, err
	}
	s.h, s.SRQN = h, resp.SRQN
	s.Count = resp.MaxWR + 1
	s.Shift = uint32(bits.Len32(max(32, prm.SRQNextSegmentSize+r.MaxSGE*prm.DataSegmentSize) - 1))
	return s, resp, nil
}

// driverSRQ is the driver's answer: the number of the queue.
func driverSRQ(k *uapi.Call, s *srq) error {
	d := uapi.MLX5CreateSRQResp(make([]byte, uapi.MLX5CreateSRQRespSize))
	d.SetSRQN(s.SRQN)
	return k.Out(uapi.AttrUHWOut, d)
}

// finishSRQ makes a new SRQ known, or takes it back when its answer failed.
func (f *File) finishSRQ(s *srq, err error) error {
	if err != nil {
		delete(f.owners, s.cookie)
		return undo(err, func() error { _, err := f.u.DestroySRQ(noCaller, s.h); return err })
	}
	f.srqs[uint32(s.h)] = s
	f.pages.AddSRQ(&s.SRQ)
	return nil
}

// modifySRQ is MODIFY_SRQ.
func (f *File) modifySRQ(w *uapi.Write) error {
	b, err := w.Request(uapi.ModifySRQSize)
	if err != nil {
		return err
	}
	r := uapi.ModifySRQ(b)
	return f.u.ModifySRQ(noCaller, kernelHandle(r.SRQHandle()), verbs.SRQAttr{MaxWR: r.MaxWR(), Limit: r.SRQLimit()}, verbs.SRQAttrMask(r.AttrMask()))
}

// querySRQ is QUERY_SRQ.
func (f *File) querySRQ(w *uapi.Write) error {
	b, err := w.Request(uapi.QuerySRQSize)
	if err != nil {
		return err
	}
	a, err := f.u.QuerySRQ(noCaller, kernelHandle(uapi.QuerySRQ(b).SRQHandle()))
	if err != nil {
		return err
	}
	r := uapi.QuerySRQResp(make([]byte, uapi.QuerySRQRespSize))
	r.SetMaxWR(a.MaxWR)
	r.SetMaxSGE(a.MaxSGE)
	r.SetSRQLimit(a.Limit)
	return w.Respond(r)
}

// destroySRQ is SRQ_DESTROY.
func (f *File) destroySRQ(k *uapi.Call) error {
	h, _ := k.Handle(uapi.SRQDestroyHandle)
	r, err := f.freeSRQ(h)
	if err != nil {
		return err
	}
	return k.Out(uapi.SRQDestroyRsp, r)
}

// destroySRQOld is the command DESTROY_SRQ.
func (f *File) destroySRQOld(w *uapi.Write) error {
	b, err := w.Request(uapi.DestroySRQSize)
	if err != nil {
		return err
	}
	r, err := f.freeSRQ(uapi.DestroySRQ(b).SRQHandle())
	if err != nil {
		return err
	}
	return w.Respond(r)
}

// freeSRQ destroys an SRQ and answers how many of its events the program has read.
func (f *File) freeSRQ(h uint32) (uapi.DestroySRQResp, error) {
	events, err := f.u.DestroySRQ(noCaller, kernelHandle(h))
	if err != nil {
		return nil, err
	}
	s := f.srqs[h]
	f.pages.RemoveSRQ(&s.SRQ)
	delete(f.srqs, h)
	delete(f.owners, s.cookie)
	r := uapi.DestroySRQResp(make([]byte, uapi.DestroySRQRespSize))
	r.SetEventsReported(events - f.forgetAsync(s.cookie))
	return r, nil
}
