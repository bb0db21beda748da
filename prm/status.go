package prm

import (
	"fmt"
	"syscall"
)

// Status is the status byte of a command's out mailbox.
type Status uint8

// Statuses (device.h, MLX5_CMD_STAT_*).
const (
	StatusOK              Status = 0x00
	StatusIntErr          Status = 0x01 // internal error of the device
	StatusBadOp           Status = 0x02 // unknown opcode or op_mod
	StatusBadParam        Status = 0x03 // a field's value, a capability that is off, a list too short
	StatusBadSysState     Status = 0x04 // not allowed in this phase of bring-up
	StatusBadRes          Status = 0x05 // resource refused
	StatusResBusy         Status = 0x06
	StatusNotReady        Status = 0x07
	StatusLimErr          Status = 0x08 // a maximum (log_max_*) is reached
	StatusBadResState     Status = 0x09 // no such object, or still referenced, or wrong state
	StatusIX              Status = 0x0a // index out of range
	StatusNoRes           Status = 0x0f
	StatusBadQPState      Status = 0x10
	StatusBadPkt          Status = 0x30
	StatusBadSizeOutsCQEs Status = 0x40
	StatusBadInpLen       Status = 0x50
	StatusBadOutpLen      Status = 0x51
)

var statusNames = map[Status]string{
	StatusOK: "OK", StatusIntErr: "INT_ERR", StatusBadOp: "BAD_OP_ERR", StatusBadParam: "BAD_PARAM_ERR",
	StatusBadSysState: "BAD_SYS_STATE_ERR", StatusBadRes: "BAD_RES_ERR", StatusResBusy: "RES_BUSY",
	StatusNotReady: "NOT_READY", StatusLimErr: "LIM_ERR", StatusBadResState: "BAD_RES_STATE_ERR",
	StatusIX: "IX_ERR", StatusNoRes: "NO_RES_ERR", StatusBadQPState: "BAD_QP_STATE_ERR",
	StatusBadPkt: "BAD_PKT_ERR", StatusBadSizeOutsCQEs: "BAD_SIZE_OUTS_CQES_ERR",
	StatusBadInpLen: "BAD_INP_LEN_ERR", StatusBadOutpLen: "BAD_OUTP_LEN_ERR",
}

// String returns the text form.
func (s Status) String() string {
	if n, ok := statusNames[s]; ok {
		return n
	}
	return fmt.Sprintf("Status(%#02x)", uint8(s))
}

// Errno is what mlx5_core makes of the status (cmd.c, cmd_status_to_err); 0 for OK.
func (s Status) Errno() syscall.Errno {
	switch s {
	case StatusOK:
		return 0
	case StatusBadOp, StatusBadParam, StatusBadRes, StatusBadResState, StatusIX,
		StatusBadQPState, StatusBadPkt, StatusBadSizeOutsCQEs:
		return syscall.EINVAL
	case StatusResBusy:
		return syscall.EBUSY
	case StatusNotReady, StatusNoRes:
		return syscall.EAGAIN
	case StatusLimErr:
		return syscall.ENOMEM
	}
	return syscall.EIO
}
