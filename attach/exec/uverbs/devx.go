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

// maxDevx is how long a command of a program's own may be, and its answer: more than any that is known here.
const maxDevx = 8192

// devxCommand reads a command, and makes room for its answer. EPROTONOSUPPORT: programs may send none, for they have a table of registers, as they
// do where there is no user context of the firmware's.
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

// devxOther is DEVX_OTHER, with the page of a capability: the current one, or the most that a driver can have. Nothing else is modelled.
func (f *File) devxOther(k *uapi.Call) error {
	in, out, err := f.devxCommand(k, uapi.DEVXOtherIn, uapi.DEVXOtherOut)
	if err != nil {
		return err
	}
	mod := prm.CmdIn(in).OpMod()
	if op := prm.CmdIn(in).Opcode(); op != prm.OpQueryHCACap {
		return fmt.Errorf("%v by a program: %w: %w", op, errNotModelled, syscall.EINVAL)
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
	if page, ok := registersOf(in); ok {
		f.others[uint32(h)] = page
		f.pages.AddOther(page)
	}
	err = errors.Join(k.Out(uapi.DEVXObjCreateOut, out), k.SetNew(uapi.DEVXObjCreateHandle, uint64(h)))
	return undo(err, func() error { return f.releaseDevxObject(uint32(h)) })
}

// registersOf is where in BAR 0 the registers of a queue lie that a command makes.
func registersOf(in []byte) (off uint64, ok bool) {
	op, uar := prm.CmdIn(in).Opcode(), uint32(0)
	if op != prm.OpCreateQP && op != prm.OpCreateCQ {
		return 0, false
	}
	cmd := prm.NewIn(op, 0) // whole
	copy(cmd, in)
	if op == prm.OpCreateQP {
		uar = prm.CreateQPIn(cmd).QPC().UARPage()
	} else {
		uar = prm.CreateCQIn(cmd).CQC().UARPage()
	}
	return uint64(uar) * prm.UARPageSize, true
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
	if off, ok := f.others[h]; ok {
		f.pages.RemoveOther(off)
		delete(f.others, h)
	}
	return nil
}

// modifyDevxObject and queryDevxObject are DEVX_OBJ_MODIFY and DEVX_OBJ_QUERY of an object, or of a QP of verbs: libmlx5 changes so what verbs have no
// attribute for, such as a UDP source port.
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
