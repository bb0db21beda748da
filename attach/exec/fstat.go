//go:build linux && amd64

package exec

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
)

// A library that imports a context (ibv_import_device) asks whether the descriptor is of a
// character device, and finds the device by that one's number. An open device file is a memory
// file, and before that a null device; one of rdma_cm is a pipe. So the supervisor answers in the
// place of the kernel.

// fstatRules hand over the calls that ask for the status of a descriptor.
func fstatRules() []seccomp.Rule {
	return []seccomp.Rule{
		{Nr: unix.SYS_FSTAT, Ret: seccomp.Notify},
		{Nr: unix.SYS_NEWFSTATAT, Tests: []seccomp.Test{{Arg: 3, Mask: unix.AT_EMPTY_PATH, Value: unix.AT_EMPTY_PATH}}, Ret: seccomp.Notify},
	}
}

// fstat answers for the file of a device, and lets the kernel answer for others.
func (n *notifier) fstat(x *seccomp.Notif, addr uint64) {
	tid, fd := int(x.PID), int(int32(x.Args[0]))
	st, err := statFD(tid, fd)
	if err != nil || !n.mayBeDevice(st) {
		_ = n.l.Continue(x.ID)
		return
	}
	p, err := procmem.Open(tid)
	if err != nil {
		p, err = openThread(tid)
	}
	if err != nil {
		_ = n.l.Continue(x.ID)
		return
	}
	defer p.Close()
	if x.Nr == unix.SYS_NEWFSTATAT && x.Args[1] != 0 {
		if name, ok := cString(p, x.Args[1]); !ok || name != "" {
			n.path(x)
			return
		}
	}
	var rdev uint64
	n.s.eng.do(func() {
		if ch, ok := n.s.channels.byInode[uverbs.Inode{Dev: st.Dev, Ino: st.Ino}]; ok {
			rdev = unix.Mkdev(tree.ChannelMajor, tree.ChannelMinor)
			if ch.umad != nil {
				rdev = unix.Mkdev(tree.Major, uint32(n.s.m.number(ch.dev.kern)))
			}
		} else if k := n.s.files.deviceOf(tid, fd, st); k >= 0 {
			rdev = unix.Mkdev(tree.Major, uint32(tree.FirstMinor+k))
		}
	})
	if rdev == 0 {
		_ = n.l.Continue(x.ID)
		return
	}
	st.Mode = unix.S_IFCHR | st.Mode&^unix.S_IFMT
	st.Nlink, st.Blksize = 1, pageSize
	st.Rdev = rdev
	n.put(x, p, addr, (*[statSize]byte)(unsafe.Pointer(st))[:])
}

// mayBeDevice reports whether a status is that of a memory file, of a pipe or of the null device.
func (n *notifier) mayBeDevice(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFREG && st.Dev == n.s.files.dev || isPipe(st) || isNull(st)
}

func isNull(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(tree.NullMajor, tree.NullMinor)
}

// deviceOf is the device whose file a descriptor is, -1: it is another file.
func (t *files) deviceOf(tid, fd int, st *unix.Stat_t) int {
	if isNull(st) {
		if k, ok := t.device(tid, fd); ok {
			return k
		}
		return -1
	}
	w, ok := t.byInode[uverbs.Inode{Dev: st.Dev, Ino: st.Ino}]
	if !ok {
		return -1
	}
	for k, d := range t.s.m.devs {
		if d == w.dev {
			return k
		}
	}
	return -1
}
