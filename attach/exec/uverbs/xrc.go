//go:build linux

package uverbs

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// noFile is the descriptor of a domain without a file.
const noFile = ^uint32(0)

// openXRCD is OPEN_XRCD.
func (f *File) openXRCD(c Caller, w *uapi.Write) error {
	b, err := w.Request(uapi.OpenXRCDSize)
	if err != nil {
		return err
	}
	x := uapi.OpenXRCD(b)
	r := kernel.XRCDReq{OFlags: int(x.OFlags())}
	if x.FD() != noFile {
		if err := f.holdFile(c, int(int32(x.FD())), &r); err != nil {
			return fmt.Errorf("OPEN_XRCD: %w", err)
		}
	}
	h, err := f.u.OpenXRCD(noCaller, r)
	if err != nil {
		if r.Release != nil {
			r.Release()
		}
		return err
	}
	a := uapi.OpenXRCDResp(make([]byte, uapi.OpenXRCDRespSize))
	a.SetXRCDHandle(uint32(h))
	if err := w.Respond(a); err != nil {
		return undo(err, func() error { return f.u.CloseXRCD(noCaller, h) })
	}
	f.xrcds[uint32(h)] = true
	return nil
}

// holdFile finds the inode that names a domain, and keeps it until the domain ends. The descriptor
// for it counts as the process's whose request made the domain.
func (f *File) holdFile(c Caller, fd int, r *kernel.XRCDReq) error {
	q := f.Descriptors
	if err := q.Take(1); err != nil {
		return err
	}
	in, release, err := c.Hold(fd)
	if err != nil {
		q.Give(1)
		return err
	}
	r.HasFile, r.File = true, kernel.Inode(in)
	r.Release = func() {
		release()
		q.Give(1)
	}
	return nil
}

// closeXRCD is the command CLOSE_XRCD.
func (f *File) closeXRCD(w *uapi.Write) error {
	h, err := w.Handle()
	if err != nil {
		return err
	}
	return f.freeXRCD(h)
}

// destroyXRCD is XRCD_DESTROY.
func (f *File) destroyXRCD(k *uapi.Call) error {
	h, _ := k.Handle(uapi.XRCDDestroyHandle)
	return f.freeXRCD(h)
}

func (f *File) freeXRCD(h uint32) error {
	if err := f.u.CloseXRCD(noCaller, kernelHandle(h)); err != nil {
		return err
	}
	delete(f.xrcds, h)
	return nil
}

// openQP is OPEN_QP.
func (f *File) openQP(w *uapi.Write) error {
	b, err := w.Request(uapi.OpenQPSize)
	if err != nil {
		return err
	}
	x := uapi.OpenQP(b)
	if !f.xrcds[x.PDHandle()] {
		return fmt.Errorf("OPEN_QP: no XRC domain %d: %w", x.PDHandle(), syscall.EINVAL)
	}
	q := &qp{target: true}
	q.QPN, q.UserHandle = x.QPN(), x.UserHandle()
	q.cookie = f.own(&owner{handle: q.UserHandle})
	q.h, err = f.u.OpenQP(noCaller, kernelHandle(x.PDHandle()), q.QPN, verbs.QPType(x.QPType()), q.cookie)
	if err != nil {
		delete(f.owners, q.cookie)
		return err
	}
	a := uapi.CreateQPResp(make([]byte, uapi.CreateQPRespSize))
	a.SetQPHandle(uint32(q.h))
	a.SetQPN(q.QPN)
	if err := w.Respond(a); err != nil {
		delete(f.owners, q.cookie)
		return undo(err, func() error { _, err := f.u.DestroyQP(noCaller, q.h); return err })
	}
	f.qps[uint32(q.h)] = q
	return nil
}
