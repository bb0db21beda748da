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
	s      *session
	l      *seccomp.Listener
	asked  atomic.Bool  // a library asked for RDMA devices
	ioctls atomic.Int64 // RDMA calls
	quit   atomic.Bool
}

// run serves until no process is left under the filter, or stop.
func (n *notifier) run() {
	p := []unix.PollFd{{Fd: int32(n.l.FD()), Events: unix.POLLIN}}
	for !n.quit.Load() {
		// The time-out bounds how late a stop is noticed.
		k, err := unix.Poll(p, 100)
		if k <= 0 || err != nil {
			continue
		}
		if p[0].Revents&unix.POLLIN == 0 {
			return // POLLHUP: nobody is left
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
		n.s.eng.do(func() { n.ioctl(x) })
	case unix.SYS_SOCKET:
		n.asked.Store(true)
		_ = n.l.Fail(x.ID, unix.EPROTONOSUPPORT)
	case unix.SYS_MMAP:
		n.s.eng.do(func() { n.mmap(x) })
	default:
		n.path(x)
	}
}

// ioctl runs on the engine's thread.
func (n *notifier) ioctl(x *seccomp.Notif) {
	tid, fd := int(x.PID), int(int32(x.Args[0]))
	f, err := n.s.files.find(n.l, x.ID, tid, fd)
	switch {
	case err != nil && !errors.Is(err, syscall.EBADF):
		_ = n.l.Fail(x.ID, errno(err))
		return
	case f == nil:
		// Another file: the kernel refuses as it likes.
		_ = n.l.Continue(x.ID)
		return
	}
	proc, err := n.s.procs.of(tid)
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	c := &caller{l: n.l, id: x.ID, tid: tid, proc: proc}
	_ = n.l.Fail(x.ID, f.ioctl(c, x.Args[2]))
}

// mmap prepares a page that exists only when it is mapped, and lets the kernel map it.
func (n *notifier) mmap(x *seccomp.Notif) {
	f, err := n.s.files.find(n.l, x.ID, int(x.PID), int(int32(x.Args[4])))
	if err == nil && f != nil {
		if e := f.mapped(x.Args[5] / pageSize); e != 0 {
			_ = n.l.Fail(x.ID, e)
			return
		}
	}
	_ = n.l.Continue(x.ID)
}

// errno is the errno inside an error, EIO when there is none.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EIO
}
