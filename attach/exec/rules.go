//go:build linux && amd64

package exec

import (
	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
)

// rdmaIoctl is RDMA_VERBS_IOCTL (rdma/rdma_user_ioctl_cmds.h).
const rdmaIoctl = 0xc0181b01

// Of linux/userfaultfd.h.
const (
	userfaultfdNew = 0xaa00 // USERFAULTFD_IOC_NEW
	userModeOnly   = 1      // UFFD_USER_MODE_ONLY
)

// Numbers of calls of other kinds, which a 64-bit program can make too (asm/unistd_32.h and
// unistd_x32.h).
const (
	ioctl32       = 54
	userfaultfd32 = 374
	x32           = 0x40000000 // besides the number of a 64-bit call
	ioctlX32      = x32 | 514
)

// Offsets that mmap of a device file takes: the command, in units of 256 pages. Those
// of a table's static pages look like the beginnings of ordinary files, and are recognised
// by the other arguments of a library: one page that it can only write to.
const (
	firstOtherOffset = 0x100000
	endOffset        = deviceFileSize
)

// rules is the filter: what the supervisor has to see, and what would stop it. With paths it
// answers path calls too, and with odp it sees what changes the memory of programs.
func rules(paths, odp bool) []seccomp.Rule {
	r := []seccomp.Rule{
		{Nr: unix.SYS_IOCTL, Tests: []seccomp.Test{{Arg: 1, Value: rdmaIoctl}}, Ret: seccomp.Notify},
		{Nr: unix.SYS_MMAP, Tests: append(mapped(),
			seccomp.Test{Arg: 5, Op: seccomp.AtLeast, Value: firstOtherOffset}, seccomp.Test{Arg: 5, Op: seccomp.Below, Value: endOffset}), Ret: seccomp.Notify},
		{Nr: unix.SYS_MMAP, Tests: append(mapped(),
			seccomp.Test{Arg: 5, Op: seccomp.Below, Value: firstOtherOffset}, seccomp.Test{Arg: 1, Value: pageSize},
			seccomp.Test{Arg: 2, Value: unix.PROT_WRITE}), Ret: seccomp.Notify},
	}
	r = append(r, faultRules()...)
	r = append(r, netlinkRules()...)
	r = append(r, fstatRules()...)
	r = append(r, channelRules(paths)...)
	r = append(r, umadRules()...)
	if odp {
		r = append(r, memoryRules()...)
	}
	if !paths {
		return r
	}
	for _, nr := range []uint32{
		unix.SYS_OPEN, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_FACCESSAT,
		unix.SYS_FACCESSAT2, unix.SYS_READLINK, unix.SYS_READLINKAT,
	} {
		r = append(r, seccomp.Rule{Nr: nr, Ret: seccomp.Notify})
	}
	// With AT_EMPTY_PATH these two are fstat.
	return append(r,
		seccomp.Rule{Nr: unix.SYS_NEWFSTATAT, Tests: []seccomp.Test{{Arg: 3, Mask: unix.AT_EMPTY_PATH, Value: 0}}, Ret: seccomp.Notify},
		seccomp.Rule{Nr: unix.SYS_STATX, Tests: []seccomp.Test{{Arg: 2, Mask: unix.AT_EMPTY_PATH, Value: 0}}, Ret: seccomp.Notify})
}

// faultRules refuse what would give a program the page faults of the kernel: while it does not
// answer them, the device would wait for it. The kernel itself gives them to privileged programs
// only, and answers others so.
func faultRules() []seccomp.Rule {
	call := []seccomp.Test{{Arg: 0, Mask: userModeOnly, Value: 0}}
	ioctl := []seccomp.Test{{Arg: 1, Value: userfaultfdNew}, {Arg: 2, Mask: userModeOnly, Value: 0}}
	r := []seccomp.Rule{
		{Nr: unix.SYS_USERFAULTFD, Tests: call}, {Nr: unix.SYS_IOCTL, Tests: ioctl},
		{Nr: x32 | unix.SYS_USERFAULTFD, Tests: call}, {Nr: ioctlX32, Tests: ioctl},
		{Nr: userfaultfd32, I386: true, Tests: call}, {Nr: ioctl32, I386: true, Tests: ioctl},
	}
	for i := range r {
		r[i].Ret = seccomp.Errno(unix.EPERM)
	}
	return r
}

// mapped are the tests for a shared mmap of a file.
func mapped() []seccomp.Test {
	return []seccomp.Test{
		{Arg: 3, Mask: unix.MAP_TYPE, Value: unix.MAP_SHARED}, {Arg: 3, Mask: unix.MAP_ANONYMOUS, Value: 0}, {Arg: 5, High: true, Value: 0},
	}
}
