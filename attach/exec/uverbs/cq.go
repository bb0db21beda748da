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
)

// cq is a completion queue with where its events go.
type cq struct {
	CQ
	h       kernel.Handle
	cookie  uint64
	channel *channel // nil: none
}

// createCQ is CQ_CREATE.
func (f *File) createCQ(c Caller, k *uapi.Call) error {
	b, err := k.InExact(uapi.AttrUHWIn, 22, uapi.MLX5CreateCQSize) // the first version ended before flags
	if err != nil {
		return err
	}
	d := uapi.MLX5CreateCQ(b)
	r, err := f.cqReq(k, d)
	if err != nil {
		return err
	}
	q := &cq{}
	if q.channel, err = f.channelOf(c, k, uapi.CQCreateChannel); err != nil {
		return err
	}
	if q.channel != nil {
		r.Channel = q.channel.k
	}
	async, err := f.asyncOf(c, k, uapi.CQCreateEventFD)
	if err != nil {
		return err
	}
	q.UserHandle, q.Channel = k.Value(uapi.CQCreateUserHandle), q.channel != nil
	q.DBAddr, q.Addr, q.CQESize = d.DBAddr(), d.BufAddr(), d.CQESize()
	q.Entries = 1 << bits.Len32(r.CQE)
	q.cookie = f.own(&owner{q.UserHandle, async})
	r.Cookie = q.cookie
	if q.h, q.CQN, err = f.u.CreateCQ(noCaller, r); err != nil {
		delete(f.owners, q.cookie)
		return err
	}
	if q.UAROff, err = f.cqUAR(&r); err == nil {
		err = errors.Join(k.Out32(uapi.CQCreateRspCQE, q.Entries-1), k.Out32(uapi.AttrUHWOut, q.CQN), k.SetNew(uapi.CQCreateHandle, uint64(q.h)))
	}
	if err != nil {
		delete(f.owners, q.cookie)
		return undo(err, func() error { _, _, err := f.u.DestroyCQ(noCaller, q.h); return err })
	}
	f.cqs[uint32(q.h)] = q
	f.pages.AddCQ(&q.CQ)
	return nil
}

// cqReq is the driver's check of a request (mlx5_ib_create_cq, create_cq_user).
func (f *File) cqReq(k *uapi.Call, d uapi.MLX5CreateCQ) (r kernel.CQReq, err error) {
	flags, err := k.Flags32(uapi.CQCreateFlags, uapi.CQCreateTimestamp|uapi.CQCreateIgnoreOverrun)
	if err != nil {
		return r, err
	}
	switch fl := d.Flags(); {
	case fl&^(uapi.CQFlag128BPad|uapi.CQFlagUARPageIndex|uapi.CQFlagRealTimeTS) != 0:
		return r, fmt.Errorf("CQ_CREATE: driver flags %#x: %w", fl, syscall.EINVAL)
	case fl&uapi.CQFlagRealTimeTS != 0:
		return r, fmt.Errorf("CQ_CREATE: real time stamps are not modelled: %w", syscall.EOPNOTSUPP)
	}
	return kernel.CQReq{
		CQE: uint32(k.Value(uapi.CQCreateCQE)), CompVector: uint32(k.Value(uapi.CQCreateVector)),
		BufAddr: d.BufAddr(), DBAddr: d.DBAddr(), CQESize: d.CQESize(), Pad: d.Flags()&uapi.CQFlag128BPad != 0,
		UARPage: uint32(d.UARPageIndex()), UARValid: d.Flags()&uapi.CQFlagUARPageIndex != 0,
		IgnoreOverrun: flags&uapi.CQCreateIgnoreOverrun != 0,
		Compress:      d.CQECompEn() == 1, CompFormat: d.CQECompResFormat(),
	}, nil
}

// cqUAR is where the page lies that arms a CQ: the first static one, or the named one.
func (f *File) cqUAR(r *kernel.CQReq) (uint64, error) {
	if r.UARValid {
		return uint64(r.UARPage) * prm.UARPageSize, nil
	}
	if len(f.static) == 0 {
		return 0, fmt.Errorf("CQ_CREATE: no UAR: %w", syscall.EINVAL)
	}
	return f.static[0].Off, nil
}

// destroyCQ is CQ_DESTROY: it answers how many events the program has read, those that
// still lie in a pipe not among them.
func (f *File) destroyCQ(k *uapi.Call) error {
	h, _ := k.Handle(uapi.CQDestroyHandle)
	q := f.cqs[h]
	if q == nil {
		_, _, err := f.u.DestroyCQ(noCaller, kernelHandle(h))
		return err
	}
	// A queue pair may still use it: then nothing happens.
	comp, async, err := f.u.DestroyCQ(noCaller, q.h)
	if err != nil {
		return err
	}
	f.pages.RemoveCQ(&q.CQ)
	delete(f.cqs, h)
	delete(f.owners, q.cookie)
	if q.channel != nil {
		comp -= q.channel.pipe.forget(q.cookie)
	}
	r := uapi.DestroyCQResp(make([]byte, uapi.DestroyCQRespSize))
	r.SetCompEventsReported(comp)
	r.SetAsyncEventsReported(async - f.forgetAsync(q.cookie))
	return k.Out(uapi.CQDestroyRsp, r)
}

// resizeCQ is RESIZE_CQ with mlx5's driver data. The library has a new ring, and moves
// there what lies in the old one.
func (f *File) resizeCQ(k *uapi.Call, w *uapi.Write) error {
	b, err := w.Request(uapi.ResizeCQSize)
	if err != nil {
		return err
	}
	r := uapi.ResizeCQ(b)
	if b, err = k.InExact(uapi.AttrUHWIn, 0, uapi.MLX5ResizeCQSize); err != nil {
		return err
	}
	d := uapi.MLX5ResizeCQ(b)
	if d.Reserved0() != 0 || d.Reserved1() != 0 {
		return fmt.Errorf("%s: reserved fields of driver data: %w", w.Name, syscall.EINVAL)
	}
	cqe, err := f.u.ResizeCQ(noCaller, kernelHandle(r.CQHandle()), r.CQE(), d.BufAddr(), uint32(d.CQESize()))
	if err != nil {
		return err
	}
	if q := f.cqs[r.CQHandle()]; q.Entries != cqe+1 {
		was := q.CQ
		q.Addr, q.Entries, q.CQESize = d.BufAddr(), cqe+1, uint32(d.CQESize())
		f.pages.MoveCQ(&q.CQ, was)
	}
	a := uapi.ResizeCQResp(make([]byte, uapi.ResizeCQRespSize))
	a.SetCQE(cqe)
	return w.Respond(a)
}

// cqModerate is the only attribute of EX_MODIFY_CQ (IB_CQ_MODERATE).
const cqModerate = 1

// modifyCQ is EX_MODIFY_CQ.
func (f *File) modifyCQ(w *uapi.Write) error {
	b, err := w.Request(uapi.ExModifyCQSize)
	if err != nil {
		return err
	}
	r := uapi.ExModifyCQ(b)
	switch {
	case r.AttrMask() == 0 || r.Reserved() != 0:
		return fmt.Errorf("%s: attribute mask %#x: %w", w.Name, r.AttrMask(), syscall.EINVAL)
	case r.AttrMask() > cqModerate:
		return fmt.Errorf("%s: attribute mask %#x: %w", w.Name, r.AttrMask(), syscall.EOPNOTSUPP)
	}
	return f.u.ModerateCQ(noCaller, kernelHandle(r.CQHandle()), r.CQCount(), r.CQPeriod())
}
