//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
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

// devxOther is DEVX_OTHER, with the current page of a capability. Nothing else is modelled.
func (f *File) devxOther(k *uapi.Call) error {
	in, out, err := f.devxCommand(k, uapi.DEVXOtherIn, uapi.DEVXOtherOut)
	if err != nil {
		return err
	}
	mod := prm.CmdIn(in).OpMod()
	if op := prm.CmdIn(in).Opcode(); op != prm.OpQueryHCACap || mod&1 != prm.CapModeCurrent {
		return fmt.Errorf("%v by a program: %w: %w", op, errNotModelled, syscall.EINVAL)
	}
	page, err := f.u.Capability(noCaller, mod>>1)
	if err != nil {
		return err
	}
	answer := prm.NewOut(prm.OpQueryHCACap, 0)
	copy(prm.QueryHCACapOut(answer).Capability(), page)
	copy(out, answer)
	return k.Out(uapi.DEVXOtherOut, out)
}

// createDevxObject is DEVX_OBJ_CREATE of a memory key.
func (f *File) createDevxObject(k *uapi.Call) error {
	in, out, err := f.devxCommand(k, uapi.DEVXObjCreateIn, uapi.DEVXObjCreateOut)
	if err != nil {
		return err
	}
	h, err := f.u.CreateMKeyCommand(noCaller, in, out)
	if errors.Is(err, syscall.EREMOTEIO) {
		return errors.Join(k.Out(uapi.DEVXObjCreateOut, out), err)
	}
	if err != nil {
		return err
	}
	err = errors.Join(k.Out(uapi.DEVXObjCreateOut, out), k.SetNew(uapi.DEVXObjCreateHandle, uint64(h)))
	return undo(err, func() error { return f.u.DestroyMKeyObject(noCaller, h) })
}

// modifyDevxObject is DEVX_OBJ_MODIFY of a QP of verbs, by which libmlx5 changes what verbs have no attribute for, such as a UDP source port.
func (f *File) modifyDevxObject(k *uapi.Call) error {
	in, out, err := f.devxCommand(k, uapi.DEVXObjModifyIn, uapi.DEVXObjModifyOut)
	if err != nil {
		return err
	}
	h, _ := k.Handle(uapi.DEVXObjModifyHandle)
	err = f.u.ModifyQPCommand(noCaller, kernelHandle(h), in, out)
	if err == nil || errors.Is(err, syscall.EREMOTEIO) {
		return errors.Join(k.Out(uapi.DEVXObjModifyOut, out), err)
	}
	return err
}
