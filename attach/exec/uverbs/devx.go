//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// maxDevx is how long a command of a program's own may be, and its answer: more than any that is
// known here.
const maxDevx = 8192

// devxCommand reads a command, and makes room for its answer. EPROTONOSUPPORT: programs may send
// none, for they have a table of registers, as they do where there is no user context of the
// firmware's.
func (f *File) devxCommand(k *uapi.Call, in, out uint16) (cmd, answer []byte, err error) {
	if !f.DynamicUARs {
		return nil, nil, fmt.Errorf("%s: DEVX is not offered: %w", k.Method.Name, syscall.EPROTONOSUPPORT)
	}
	n, room := k.Len(in), k.Len(out)
	if n > maxDevx || room > maxDevx {
		return nil, nil, fmt.Errorf("%s: a command of %d bytes with an answer of %d: %w", k.Method.Name, n, room, syscall.ENOMEM)
	}
	cmd, err = k.In(in, n)
	return cmd, make([]byte, room), err
}

// devxOther is DEVX_OTHER: the page of a capability, the current one or the most that a driver can
// have, or another command that is of no object.
func (f *File) devxOther(k *uapi.Call) error {
	in, out, err := f.devxCommand(k, uapi.DEVXOtherIn, uapi.DEVXOtherOut)
	if err != nil {
		return err
	}
	mod := prm.CmdIn(in).OpMod()
	if op := prm.CmdIn(in).Opcode(); op != prm.OpQueryHCACap {
		err := f.u.GeneralCommand(noCaller, in, out)
		if err == nil || errors.Is(err, syscall.EREMOTEIO) {
			return errors.Join(k.Out(uapi.DEVXOtherOut, out), err)
		}
		return err
	}
	page, err := f.u.Capability(noCaller, mod>>1, mod&1)
	if err != nil {
		return err
	}
	answer := prm.NewOut(prm.OpQueryHCACap, 0)
	copy(prm.QueryHCACapOut(answer).Capability(), page)
	copy(out, answer)
	return k.Out(uapi.DEVXOtherOut, out)
}

// createDevxObject is DEVX_OBJ_CREATE.
func (f *File) createDevxObject(k *uapi.Call) error {
	in, out, err := f.devxCommand(k, uapi.DEVXObjCreateIn, uapi.DEVXObjCreateOut)
	if err != nil {
		return err
	}
	create := f.u.CreateObjectCommand
	if prm.CmdIn(in).Opcode() == prm.OpCreateMKey {
		create = f.u.CreateMKeyCommand
	}
	h, err := create(noCaller, in, out)
	if errors.Is(err, syscall.EREMOTEIO) {
		return errors.Join(k.Out(uapi.DEVXObjCreateOut, out), err)
	}
	if err != nil {
		return err
	}
	f.announce(uint32(h), in, out)
	err = errors.Join(k.Out(uapi.DEVXObjCreateOut, out), k.SetNew(uapi.DEVXObjCreateHandle, uint64(h)))
	return undo(err, func() error { return f.releaseDevxObject(uint32(h)) })
}

// announce tells the session of a queue that a command has made: where it rings, and of a QP where
// its ring and its record are.
func (f *File) announce(h uint32, in, out []byte) {
	op := prm.CmdIn(in).Opcode()
	if op != prm.OpCreateQP && op != prm.OpCreateCQ {
		return
	}
	cmd := prm.NewIn(op, 0) // whole
	copy(cmd, in)
	if op == prm.OpCreateCQ {
		off := uint64(prm.CreateCQIn(cmd).CQC().UARPage()) * prm.UARPageSize
		f.others[h] = off
		f.pages.AddOther(off)
		return
	}
	m := prm.CreateQPIn(cmd)
	c := m.QPC()
	q := &QP{QPN: prm.CreateQPOut(out).QPN(), UAROff: uint64(c.UARPage()) * prm.UARPageSize, BFReg: AnyBFReg, ByCommand: true}
	q.RQAddr = f.u.UmemAddress(m.WQUmemID()) + m.WQUmemOffset()
	q.SQAddr = q.RQAddr
	if c.RQType() == prm.RQTypeRegular {
		q.RQCount, q.RQShift = 1<<c.LogRQSize(), c.LogRQStride()+4
		q.SQAddr += uint64(q.RQCount) << q.RQShift
	}
	if !c.NoSQ() {
		q.SQCount = 1 << c.LogSQSize()
	}
	q.DBAddr = f.u.UmemAddress(c.DBRUmemID()) + c.DBRAddr()
	f.commandQPs[h] = q
	f.pages.AddQP(q)
}

// withdraw takes back what announce has told.
func (f *File) withdraw(h uint32) {
	if off, ok := f.others[h]; ok {
		f.pages.RemoveOther(off)
		delete(f.others, h)
	}
	if q, ok := f.commandQPs[h]; ok {
		f.pages.RemoveQP(q)
		delete(f.commandQPs, h)
	}
}

// destroyDevxObject is DEVX_OBJ_DESTROY.
func (f *File) destroyDevxObject(k *uapi.Call) error {
	h, _ := k.Handle(uapi.DEVXObjDestroyHandle)
	return f.releaseDevxObject(h)
}

func (f *File) releaseDevxObject(h uint32) error {
	if err := f.u.DestroyObject(noCaller, kernelHandle(h)); err != nil {
		return err
	}
	f.withdraw(h)
	return nil
}

// modifyDevxObject and queryDevxObject are DEVX_OBJ_MODIFY and DEVX_OBJ_QUERY of an object, or of a
// QP of verbs: libmlx5 changes so what verbs have no attribute for, such as a UDP source port.
func (f *File) modifyDevxObject(k *uapi.Call) error { return f.commandOfObject(k, false) }
func (f *File) queryDevxObject(k *uapi.Call) error  { return f.commandOfObject(k, true) }

func (f *File) commandOfObject(k *uapi.Call, query bool) error {
	in, out, err := f.devxCommand(k, uapi.DEVXObjModifyIn, uapi.DEVXObjModifyOut) // the same attributes for a query
	if err != nil {
		return err
	}
	h, _ := k.Handle(uapi.DEVXObjModifyHandle)
	err = f.u.ObjectCommand(noCaller, kernelHandle(h), query, in, out)
	if err == nil || errors.Is(err, syscall.EREMOTEIO) {
		return errors.Join(k.Out(uapi.DEVXObjModifyOut, out), err)
	}
	return err
}

// regUmem is DEVX_UMEM_REG of memory of the program.
func (f *File) regUmem(k *uapi.Call) error {
	if !f.DynamicUARs {
		return fmt.Errorf("%s: DEVX is not offered: %w", k.Method.Name, syscall.EPROTONOSUPPORT)
	}
	if k.Has(uapi.UmemRegDmabuf) {
		return fmt.Errorf("%s of a DMA-BUF: %w: %w", k.Method.Name, errNotModelled, syscall.EOPNOTSUPP)
	}
	const allowed = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	flags, err := k.Flags32(uapi.UmemRegAccess, uint32(allowed))
	if err != nil {
		return err
	}
	h, id, err := f.u.RegUmem(noCaller, k.Value(uapi.UmemRegAddr), k.Value(uapi.UmemRegLen), access(flags))
	if err != nil {
		return err
	}
	err = errors.Join(k.Out32(uapi.UmemRegID, id), k.SetNew(uapi.UmemRegHandle, uint64(h)))
	return undo(err, func() error { return f.u.DeregUmem(noCaller, h) })
}

// queryEQN is DEVX_QUERY_EQN.
func (f *File) queryEQN(k *uapi.Call) error {
	eqn, err := f.u.QueryEQN(noCaller, uint32(k.Value(uapi.DEVXEQNVector)))
	if err != nil {
		return err
	}
	return k.Out32(uapi.DEVXEQNNumber, eqn)
}
