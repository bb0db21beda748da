//go:build linux && amd64

package exec

import (
	"errors"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
)

// notifier answers the calls that the filter hands over.
type notifier struct {
	s               *session
	l               *seccomp.Listener
	askedForDevices atomic.Bool  // a library asked for RDMA devices
	ioctls          atomic.Int64 // RDMA calls
	quit            atomic.Bool
	waits           map[*file][]*waiting // mmaps that wait, in order
}

// run serves until no process is left under the filter, or stop.
func (n *notifier) run() {
	p := []unix.PollFd{{Fd: int32(n.l.FD()), Events: unix.POLLIN}}
	for !n.quit.Load() {
		if len(n.waits) > 0 {
			n.s.eng.do(n.lookAgain)
		}
		k, err := unix.Poll(p, n.patience())
		if k <= 0 || err != nil {
			continue
		}
		if p[0].Revents&unix.POLLIN == 0 {
			return // POLLHUP: no process is left
		}
		x, err := n.l.Recv()
		if err != nil {
			continue // the caller was killed before its call could be taken
		}
		n.answer(&x)
	}
}

func (n *notifier) stop() { n.quit.Store(true) }

func (n *notifier) answer(x *seccomp.Notif) {
	switch x.Nr {
	case unix.SYS_IOCTL:
		n.ioctls.Add(1)
		n.s.eng.do(func() {
			n.s.files.hear()
			n.ioctl(x)
		})
	case unix.SYS_FSTAT:
		n.fstat(x, x.Args[1])
	case unix.SYS_SOCKET:
		n.openNetlink(x)
	case unix.SYS_SENDTO, unix.SYS_SENDMSG:
		n.sendNetlink(x)
	case unix.SYS_WRITE:
		n.writeChannel(x)
	case unix.SYS_DUP, unix.SYS_FCNTL:
		n.dupChannel(x)
	case unix.SYS_MMAP:
		n.mapping(x)
	case unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_REMAP_FILE_PAGES, unix.SYS_SHMDT, unix.SYS_SHMAT, unix.SYS_MPROTECT,
		unix.SYS_PKEY_MPROTECT, unix.SYS_MADVISE, unix.SYS_FORK, unix.SYS_CLONE, unix.SYS_CLONE3:
		n.memory(x)
	case unix.SYS_NEWFSTATAT:
		if x.Args[3]&unix.AT_EMPTY_PATH != 0 {
			n.fstat(x, x.Args[2])
			return
		}
		n.path(x)
	default:
		n.path(x)
	}
}

// mapping answers an mmap: one that may be of a device file, or one that takes the place of what is mapped.
func (n *notifier) mapping(x *seccomp.Notif) {
	flags := x.Args[3]
	if flags&unix.MAP_TYPE != unix.MAP_SHARED || flags&unix.MAP_ANONYMOUS != 0 {
		n.memory(x)
		return
	}
	n.s.eng.do(func() {
		if flags&unix.MAP_FIXED != 0 && n.s.procs.streams.Watched() {
			n.forget(x)
		}
		n.mmap(x)
	})
}

// ioctl runs on the engine's thread.
func (n *notifier) ioctl(x *seccomp.Notif) {
	tid, fd := int(x.PID), int(int32(x.Args[0]))
	f, _, err := n.s.files.find(n.l, x.ID, tid, fd)
	switch {
	case err != nil && !errors.Is(err, syscall.EBADF):
		_ = n.l.Fail(x.ID, errno(err))
		return
	case f == nil:
		// Another file: the kernel answers.
		_ = n.l.Continue(x.ID)
		return
	}
	proc, err := n.s.procs.ofThread(tid)
	if err == nil {
		err = n.s.procs.rights(proc, tid)
	}
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	f.mmapOver(tid)
	defer n.serve(f)
	c := &caller{l: n.l, id: x.ID, tid: tid, proc: proc, t: n.s.procs}
	e := f.ioctl(c, x.Args[2])
	n.s.procs.streams.Flush() // the program sees what the device wrote before the answer
	_ = n.l.Fail(x.ID, e)
}

// errno is the errno inside an error, EIO when there is none.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EIO
}
