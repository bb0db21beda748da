package uapi

// VerbsIoctl is RDMA_VERBS_IOCTL, the only ioctl of a uverbs file
// (rdma_user_ioctl_cmds.h).
const VerbsIoctl = 0xc0181b01

// DriverMLX5 is the driver id of mlx5 (enum rdma_driver_id).
const DriverMLX5 = 1

// Flags of an attribute.
const (
	AttrMandatory   = 1 << 0 // fail if it is not known
	AttrValidOutput = 1 << 1 // set by the kernel: the room was filled
)
