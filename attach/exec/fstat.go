//go:build linux && amd64

package exec

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
)

// A library that imports a context (ibv_import_device) asks whether the descriptor is of a character device, and finds the device
// by that one's number. An open device file is a memory file, so the supervisor answers in the place of the kernel.

// fstatRules hand over the calls that ask for the status of a descriptor.
func fstatRules() []seccomp.Rule {
	return []seccomp.Rule{
		{Nr: unix.SYS_FSTAT, Ret: seccomp.Notify},
		{Nr: unix.SYS_NEWFSTATAT, Tests: []seccomp.Test{{Arg: 3, Mask: unix.AT_EMPTY_PATH, Value: unix.AT_EMPTY_PATH}}, Ret: seccomp.Notify},
	}
}

// fstat answers for an open file of a device, and lets the kernel answer for others. All devices have the number of the
// null device, by which a library finds the first: the files of others are left what they are, and an import of them is refused.
func (n *notifier) fstat(x *seccomp.Notif, addr uint64) {
	tid, fd := int(x.PID), int(int32(x.Args[0]))
	st, err := statFD(tid, fd)
	if err != nil || st.Dev != n.s.files.dev || st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = n.l.Continue(x.ID)
		return
	}
	if x.Nr == unix.SYS_NEWFSTATAT && !n.emptyPath(x) {
		n.path(x)
		return
	}
	n.s.eng.do(func() {
		f, _, err := n.s.files.find(n.l, x.ID, tid, fd)
		if err != nil || f == nil || f.dev != n.s.m.devs[0] {
			_ = n.l.Continue(x.ID)
			return
		}
		st.Mode = unix.S_IFCHR | st.Mode&^unix.S_IFMT
		st.Nlink, st.Blksize = 1, pageSize
		st.Rdev = unix.Mkdev(tree.NullMajor, tree.NullMinor)
		n.put(x, f.proc.mem, addr, (*[statSize]byte)(unsafe.Pointer(&st))[:])
	})
}

// emptyPath reports whether the path of a newfstatat is empty, so that it asks for the descriptor.
func (n *notifier) emptyPath(x *seccomp.Notif) bool {
	if x.Args[1] == 0 {
		return true
	}
	p, err := procmem.Open(int(x.PID))
	if err != nil {
		p, err = openThread(int(x.PID))
	}
	if err != nil {
		return false
	}
	defer p.Close()
	name, ok := cString(p, x.Args[1])
	return ok && name == ""
}
