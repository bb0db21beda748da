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
