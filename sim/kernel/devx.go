package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// Capability returns the capability page of a type in a mode (prm.CapModeCurrent, prm.CapModeMax),
// which a program reads from the device by a command of its own (MLX5_IB_METHOD_DEVX_OTHER with
// QUERY_HCA_CAP). EINVAL, EOPNOTSUPP: as for other DEVX commands.
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

// generalCommands are those of a program that are of no object (devx_is_general_cmd), of what the
// device knows, besides QUERY_HCA_CAP.
var generalCommands = [...]prm.Opcode{
	prm.OpQueryVportState, prm.OpQueryAdapter, prm.OpQueryISSI, prm.OpQueryNICVportContext, prm.OpQueryRoCEAddress, prm.OpQueryVportCounter, prm.OpNOP, prm.OpSyncSteering,
}

// GeneralCommand is MLX5_IB_METHOD_DEVX_OTHER: a command of the program's own; out receives the
// answer. EINVAL: the context has no DEVX, or the command is not a general one; EREMOTEIO: the
// device refuses it, and out says why.
func (u *Ucontext) GeneralCommand(c Caller, in, out []byte) error {
	return u.do(c, func(k *call) error {
		op := prm.CmdIn(in).Opcode()
		if !u.devx || !slices.Contains(generalCommands[:], op) {
			return fmt.Errorf("%v by a program: %w", op, syscall.EINVAL)
		}
		if _, st := prm.CheckCommand(in, out); st != prm.StatusOK {
			prm.CmdOut(out).SetStatus(st)
			return fmt.Errorf("%v: %v: %w", op, st, syscall.EREMOTEIO)
		}
		if err := k.exec(in, out); err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		return nil
	})
}
