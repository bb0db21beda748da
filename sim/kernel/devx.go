package kernel

import (
	"fmt"
	"syscall"
)

// Capability is the capability page of a type in a mode (prm.CapModeCurrent, prm.CapModeMax), which a program asks the device for by a command
// (MLX5_IB_METHOD_DEVX_OTHER with QUERY_HCA_CAP). EINVAL, EOPNOTSUPP: as for other commands of the program's own.
func (u *Ucontext) Capability(c Caller, typ, mode uint16) (page []byte, err error) {
	err = u.do(c, func(k *call) error {
		if !u.devx {
			return fmt.Errorf("a command by a context without DevX: %w", syscall.EOPNOTSUPP)
		}
		page, err = k.queryCap(typ, mode)
		return err
	})
	return page, err
}
