package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// ModifyQPCommand is MLX5_IB_METHOD_DEVX_OBJ_MODIFY of a QP: a command of the program's own that changes it, of which out
// has the answer. EINVAL: the context has no DevX, the command is of another kind or of another object; EREMOTEIO: the
// device refuses it, and out says why (devx.c).
func (u *Ucontext) ModifyQPCommand(c Caller, h Handle, in, out []byte) error {
	return u.do(c, func(k *call) error {
		o, err := lookup[queuePair](&u.objs, h, "QP")
		if err != nil {
			return err
		}
		if !u.devx {
			return fmt.Errorf("a command by a context without DevX: %w", syscall.EINVAL)
		}
		if !modifiesQP(prm.CmdIn(in).Opcode()) || prm.ModifyQPIn(in).QPN() != o.queue().qpn {
			return fmt.Errorf("a command that does not modify the QP: %w", syscall.EINVAL)
		}
		if err := k.exec(in, out); err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		return nil
	})
}

// modifiesQP is the part of devx_is_obj_modify_cmd for QPs.
func modifiesQP(op prm.Opcode) bool {
	switch op {
	case prm.OpRst2InitQP, prm.OpInit2InitQP, prm.OpInit2RTRQP, prm.OpRTR2RTSQP, prm.OpRTS2RTSQP, prm.OpSQErr2RTSQP, prm.Op2ErrQP, prm.Op2RstQP:
		return true
	}
	return false
}

// Capability is the current capability page of a type, which a program asks the device for by a command
// (MLX5_IB_METHOD_DEVX_OTHER with QUERY_HCA_CAP). EINVAL, EOPNOTSUPP: as for other commands of the program's own.
func (u *Ucontext) Capability(c Caller, typ uint16) (page []byte, err error) {
	err = u.do(c, func(k *call) error {
		if !u.devx {
			return fmt.Errorf("a command by a context without DevX: %w", syscall.EOPNOTSUPP)
		}
		page, err = k.queryCap(typ, prm.CapModeCurrent)
		return err
	})
	return page, err
}

// generalObject is an object of the device that a program has made by a command of its own (MLX5_IB_OBJECT_DEVX_OBJ).
type generalObject struct {
	typ, id uint32
}

func (o *generalObject) destroy(k *call) error {
	in := prm.NewIn(prm.OpDestroyGeneralObject, 0)
	prm.DestroyGeneralObjectIn(in).SetObjType(o.typ)
	prm.DestroyGeneralObjectIn(in).SetObjID(o.id)
	return k.destroy(in)
}

// CreateObjectCommand is MLX5_IB_METHOD_DEVX_OBJ_CREATE of a general object; out has the answer. EINVAL: the context has no
// DevX; EOPNOTSUPP: a command for another object, of which nothing is modelled; EREMOTEIO: the device refuses it.
func (u *Ucontext) CreateObjectCommand(c Caller, in, out []byte) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		if !u.devx {
			return fmt.Errorf("a command by a context without DevX: %w", syscall.EINVAL)
		}
		if op := prm.CmdIn(in).Opcode(); op != prm.OpCreateGeneralObject {
			return fmt.Errorf("%v is not modelled: %w", op, syscall.EOPNOTSUPP)
		}
		if err := k.exec(in, out); err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		h = u.objs.add(&generalObject{prm.CreateGeneralObjectIn(in).ObjType(), prm.CreateGeneralObjectOut(out).ObjID()})
		return nil
	})
	return h, err
}

// DestroyObject is MLX5_IB_METHOD_DEVX_OBJ_DESTROY.
func (u *Ucontext) DestroyObject(c Caller, h Handle) error {
	return destroyByHandle[*generalObject](u, c, h, "object of a command")
}
