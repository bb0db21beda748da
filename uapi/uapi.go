// Package uapi is the ABI between programs and the uverbs files of the kernel: the
// ioctl and its attributes, the commands that it carries, and the driver data of
// mlx5, as byte views; and the commands of rdma_cm's channel file (rdma_user_cm.h). It
// decodes calls over the memory of the process that makes them; packages
// attach/exec/uverbs and attach/exec/ucm carry the calls out.
//
// Layouts and numbers are those of the kernel's headers rdma_user_ioctl_cmds.h,
// ib_user_ioctl_cmds.h, ib_user_verbs.h, mlx5-abi.h and mlx5_user_ioctl_cmds.h; a test
// compares them with structures that a C compiler lays out. The rules of decoding are
// those of core/uverbs_ioctl.c and core/uverbs_cmd.c in Linux 6.12.
//
// The messages of vfio-user (QEMU's docs/interop/vfio-user.rst, and structures of linux/vfio.h) and
// the PCI configuration space (linux/pci_regs.h) are here too; package attach/pci answers them.
//
// A view is a byte slice with a method for each field, generated from the tables in
// the folder layouts. Its length is checked where it is made: Call.In gives as many
// bytes as are asked for.
package uapi

//go:generate go run ../internal/layout/layoutgen

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

var (
	le = binary.LittleEndian // of the host: x86-64 and arm64
	be = binary.BigEndian
)

// Mem is the memory of the process that makes a call. Read and Write move all of p or
// return an error.
type Mem interface {
	Read(addr uint64, p []byte) error
	Write(addr uint64, p []byte) error
}

func errorf(errno syscall.Errno, format string, a ...any) error {
	return fmt.Errorf(format+": %w", append(a, errno)...)
}
