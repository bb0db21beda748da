//go:build linux

package uverbs

import (
	"errors"
	"syscall"
)

// errNotModelled marks a feature that a real kernel has and the model does not.
var errNotModelled = errors.New("not modelled yet")

// Refusal is something that a program may ask for and that the model does not have.
type Refusal struct {
	What  string
	Errno syscall.Errno // what the call answers
	How   string        // how a program sees it
}

// refused is printed by the command. A test holds the errnos to be those of Ioctl.
var refused = [...]Refusal{
	{"tag matching", syscall.EINVAL, "ibv_create_srq_ex fails"},
	{"raw packets, WQs and RSS", syscall.EOPNOTSUPP, "ibv_create_qp_ex, ibv_create_wq fail"},
	{"flow steering", syscall.EOPNOTSUPP, "ibv_create_flow fails"},
	{"real-time stamps, WQE signatures", syscall.EOPNOTSUPP, "creation with these mlx5dv attributes fails"},
	{"DEVX, but for memory keys and capabilities, and those with --uar dynamic only", syscall.EPROTONOSUPPORT, "mlx5dv_devx_* fail; the library works without it"},
	{"counters", syscall.EPROTONOSUPPORT, "ibv_create_counters fails"},
	{"regions of a DMA-BUF that programs cannot map, such as of most GPUs: only the driver that exports it knows its pages", syscall.EOPNOTSUPP, "ibv_reg_dmabuf_mr fails"},
	{"device memory for steering, operations on device memory by stores", syscall.EOPNOTSUPP, "mlx5dv_alloc_dm, mlx5dv_dm_map_op_addr fail"},
	{"memory regions and queues of a child process on a context that its parent opened", syscall.EOPNOTSUPP, "ibv_reg_mr and others fail in the child"},
	{"umad", syscall.ENOENT, "there is no such device file"},
}

// Refused lists what is not available to programs.
func Refused() []Refusal { return append([]Refusal(nil), refused[:]...) }
