package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// mkeyObject is a memory key that a program has made by the device's own command (DEVX_OBJ_CREATE
// of an MKEY).
type mkeyObject struct {
	u    *Ucontext
	mkey uint32
}

// CopyMax returns how many bytes one work request can make the device copy, as programs read it by
// a DEVX command; 0: it does not copy.
func (u *Ucontext) CopyMax() uint64 {
	if !u.devx {
		return 0
	}
	return u.dev.caps.copyMax
}

// CreateMKeyObject is DEVX_OBJ_CREATE of an indirect key (mode KLM) with room for entries entries,
// as libmlx5 requests it (_mlx5dv_create_mkey); the key is free until a work request writes its
// entries. The driver forwards the command, and keeps what page faults need
// (devx_handle_mkey_indirect). EINVAL: the context is not a DEVX context; else the errno of the
// device's status.
func (u *Ucontext) CreateMKeyObject(c Caller, h Handle, entries uint32, remoteInvalidate bool) (oh Handle, mkey uint32, err error) {
	err = u.do(c, func(k *call) error {
		if !u.devx {
			return fmt.Errorf("create a memory key: the context may send no commands: %w", syscall.EINVAL)
		}
		p, err := lookup[*pd](&u.objs, h, "PD")
		if err != nil {
			return err
		}
		in, out := prm.NewIn(prm.OpCreateMKey, 0), prm.NewOut(prm.OpCreateMKey, 0)
		m := prm.CreateMKeyIn(in).MKC()
		m.SetFree(true)
		m.SetUMREn(true)
		m.SetLR(true)
		m.SetEnRInval(remoteInvalidate)
		m.SetAccessMode(prm.MKeyModeKLM)
		m.SetTranslationsOctwordSize(entries)
		m.SetPD(p.pdn)
		m.SetQPN(prm.MKeyQPNAny)
		o, err := u.createKey(k, in, out)
		if err != nil {
			return err
		}
		oh, mkey = u.objs.add(o), o.mkey
		return nil
	})
	return oh, mkey, err
}

// createKey sends the command of a key of mode KLM.
func (u *Ucontext) createKey(k *call, in, out []byte) (*mkeyObject, error) {
	if err := k.exec(in, out); err != nil {
		return nil, fmt.Errorf("create a memory key: %w", err)
	}
	m := prm.CreateMKeyIn(in).MKC()
	o := &mkeyObject{u, prm.MKeyOf(prm.CreateMKeyOut(out).MKeyIndex(), m.MKey70())}
	if n := m.TranslationsOctwordSize(); n > 0 {
		k.d.odp.keys[o.mkey>>8] = &odpKey{kind: keyOfWindow, key: o.mkey, entries: int(max(n, windowUnits))}
	}
	return o, nil
}

// CreateMKeyCommand is DEVX_OBJ_CREATE with the bytes of a program's own command; out receives the
// answer. EINVAL: the context is not a DEVX context; EOPNOTSUPP: the command creates something
// other than a key of mode KLM, which is not modelled; EREMOTEIO: the device refuses it.
func (u *Ucontext) CreateMKeyCommand(c Caller, in, out []byte) (oh Handle, err error) {
	err = u.do(c, func(k *call) error {
		cmd := prm.NewIn(prm.OpCreateMKey, 0)
		m := prm.CreateMKeyIn(cmd).MKC()
		switch copy(cmd, in); {
		case !u.devx:
			return fmt.Errorf("a command by a context without DEVX: %w", syscall.EINVAL)
		case prm.CmdIn(cmd).Opcode() != prm.OpCreateMKey || m.AccessMode() != prm.MKeyModeKLM:
			return fmt.Errorf("%v is not modelled for programs: %w", prm.CmdIn(cmd).Opcode(), syscall.EOPNOTSUPP)
		}
		own := u.objs.any(func(x object) bool {
			p, ok := x.(*pd)
			return ok && p.pdn == m.PD()
		})
		if !own { // of the user context that the PD is of
			prm.CmdOut(out).SetStatus(prm.StatusBadParam)
			return fmt.Errorf("a memory key on PD %#x, which is another's: %w", m.PD(), syscall.EREMOTEIO)
		}
		answer := prm.NewOut(prm.OpCreateMKey, 0)
		o, err := u.createKey(k, cmd, answer)
		copy(out, answer)
		if err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		oh = u.objs.add(o)
		return nil
	})
	return oh, err
}

// DestroyMKeyObject is DEVX_OBJ_DESTROY.
func (u *Ucontext) DestroyMKeyObject(c Caller, h Handle) error {
	return destroyByHandle[*mkeyObject](u, c, h, "memory key")
}

func (o *mkeyObject) destroy(k *call) error {
	in := prm.NewIn(prm.OpDestroyMKey, 0)
	prm.DestroyMKeyIn(in).SetMKeyIndex(o.mkey >> 8)
	if err := k.destroy(in); err != nil {
		return err
	}
	delete(k.d.odp.keys, o.mkey>>8)
	return nil
}
