//go:build linux && amd64

package exec

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
)

// notifier answers the calls that the filter hands over. A call that nobody has taken yet is ended
// by any signal with a handler (EINTR, or a restart), and one that has been taken by none. So one
// thread does nothing but take calls: it waits inside the kernel for the next one while others
// answer.
type notifier struct {
	s               *session
	l               *seccomp.Listener
	askedForDevices atomic.Bool  // a library asked for RDMA devices
	ioctls          atomic.Int64 // RDMA calls
	taken           atomic.Int64 // calls that were taken
	untaken         atomic.Int64 // calls that were gone before they could be taken
	quit            atomic.Bool
	ending          atomic.Bool          // the program has ended: no process is started any more
	slow            chan seccomp.Notif   // calls that are answered without the engine, or not by it alone
	waits           map[*file][]*waiting // mmaps that wait, in order
	lookAt          time.Time            // when lookAgain will be called; zero: never
}

// slowCalls is how many calls may wait for the thread that answers the slow ones, before no other
// is taken.
const slowCalls = 1024

func newNotifier(s *session, l *seccomp.Listener) *notifier {
	return &notifier{s: s, l: l, slow: make(chan seccomp.Notif, slowCalls), waits: map[*file][]*waiting{}}
}

// shortSlice is the shortest slice that the scheduler gives, in nanoseconds.
const shortSlice = 100_000

// requestShortSlice asks the scheduler for a short slice, which lets this thread run soon after
// each wake-up on a busy CPU, and for no longer than its share (EEVDF, from Linux 6.12 on).
func requestShortSlice() {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	a.Runtime = shortSlice
	_ = unix.SchedSetAttr(0, a, 0)
}

// run takes calls until no process is left under the filter, or stop. Before Linux 6.11 the end of
// the last process does not wake it.
func (n *notifier) run() {
	runtime.LockOSThread()
	requestShortSlice()
	go n.answerSlow()
	defer close(n.slow)
	for {
		x, err := n.l.Recv()
		switch {
		case n.quit.Load():
			return
		case err == nil:
			n.taken.Add(1)
			n.take(x)
		case n.l.Ended():
			return
		default:
			n.untaken.Add(1)
		}
	}
}

func (n *notifier) stop() { n.quit.Store(true) }

// take has a call answered, and does not wait for that.
func (n *notifier) take(x seccomp.Notif) {
	switch x.Nr {
	case unix.SYS_IOCTL:
		n.ioctls.Add(1)
		n.s.eng.post(func() {
			n.s.files.reap()
			n.ioctl(&x)
		})
	case unix.SYS_MMAP:
		n.mapping(&x)
	case unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_REMAP_FILE_PAGES, unix.SYS_SHMDT, unix.SYS_SHMAT, unix.SYS_MPROTECT,
		unix.SYS_PKEY_MPROTECT, unix.SYS_MADVISE, unix.SYS_FORK, unix.SYS_CLONE, unix.SYS_CLONE3:
		n.memory(&x)
	default:
		n.slow <- x
	}
}

// answerSlow answers the calls for which files are looked at.
func (n *notifier) answerSlow() {
	for x := range n.slow {
		n.answer(&x)
	}
}

func (n *notifier) answer(x *seccomp.Notif) {
	switch x.Nr {
	case unix.SYS_FSTAT:
		n.fstat(x, x.Args[1])
	case unix.SYS_SOCKET:
		n.openNetlink(x)
	case unix.SYS_SENDTO, unix.SYS_SENDMSG:
		n.sendNetlink(x)
	case unix.SYS_WRITE, unix.SYS_READ:
		n.writeChannel(x)
	case unix.SYS_DUP, unix.SYS_FCNTL:
		n.dupChannel(x)
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

// mapping answers an mmap: one that may be of a device file, or one that takes the place of what is
// mapped.
func (n *notifier) mapping(x *seccomp.Notif) {
	flags := x.Args[3]
	if flags&unix.MAP_TYPE != unix.MAP_SHARED || flags&unix.MAP_ANONYMOUS != 0 {
		n.memory(x)
		return
	}
	n.s.eng.post(func() {
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
		if n.ioctlUMAD(x) {
			return
		}
		// Another file: the kernel answers.
		_ = n.l.Continue(x.ID)
		return
	}
	proc, err := n.s.procs.ofCaller(tid)
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	f.mmapOver(tid)
	defer n.serve(f)
	c := &caller{l: n.l, id: x.ID, tid: tid, proc: proc, t: n.s.procs}
	e := f.ioctl(c, x.Args[2])
	n.s.procs.streams.Flush() // the program sees what the device wrote before the answer
	if e != 0 {
		_ = n.l.Fail(x.ID, e)
		return
	}
	_ = n.l.Done(x.ID, 0)
}

// ioctlUMAD carries out a call on an umad file. It reports false for one on another file.
func (n *notifier) ioctlUMAD(x *seccomp.Notif) bool {
	tid := int(x.PID)
	ch, err := n.s.channels.find(tid, int(int32(x.Args[0])))
	if err != nil || ch == nil || ch.umad == nil {
		return false
	}
	proc, err := n.s.procs.ofThread(tid)
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return true
	}
	c := &caller{l: n.l, id: x.ID, tid: tid, proc: proc, t: n.s.procs}
	if e := ch.umad.Ioctl(c, uint32(x.Args[1]), x.Args[2]); e != 0 {
		_ = n.l.Fail(x.ID, e)
		return true
	}
	_ = n.l.Done(x.ID, 0)
	return true
}

// errno is the errno inside an error, EIO when there is none.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EIO
}
