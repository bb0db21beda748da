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
	{"raw packets on InfiniBand, receives of several strides, rate limits", syscall.EOPNOTSUPP, "ibv_create_qp_ex, ibv_create_wq fail"},
	{"flow steering of inner headers and of sent packets, by the library itself (mlx5dr), and rules for sniffers", syscall.EOPNOTSUPP, "ibv_create_flow, mlx5dv_create_flow_matcher, mlx5dv_dr_table_create fail"},
	{"real-time stamps, WQE signatures", syscall.EOPNOTSUPP, "creation with these mlx5dv attributes fails"},
	{"DEVX with --uar static", syscall.EPROTONOSUPPORT, "mlx5dv_devx_* fail; the library works without it"},
	{"objects of DEVX but memory keys, CQs, QPs, PDs and reserved QP numbers", syscall.EOPNOTSUPP, "mlx5dv_devx_obj_create fails"},
	{"event channels of DEVX, queries that answer later", syscall.EPROTONOSUPPORT, "mlx5dv_devx_create_event_channel, mlx5dv_devx_create_cmd_comp fail"},
	{"counters", syscall.EPROTONOSUPPORT, "ibv_create_counters fails"},
	{"regions of a DMA-BUF that programs cannot map, such as of most GPUs: only the driver that exports it knows its pages", syscall.EOPNOTSUPP, "ibv_reg_dmabuf_mr fails"},
	{"device memory for steering, operations on device memory by stores", syscall.EOPNOTSUPP, "mlx5dv_alloc_dm, mlx5dv_dm_map_op_addr fail"},
	{"memory regions and queues of a child process on a context that its parent opened", syscall.EOPNOTSUPP, "ibv_reg_mr and others fail in the child"},
	{"umad on Ethernet", syscall.ENOENT, "there is no such device file"},
}

// Refused lists what is not available to programs.
func Refused() []Refusal { return append([]Refusal(nil), refused[:]...) }
