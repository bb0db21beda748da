//go:build linux && amd64

package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrOuterListener says that a process above this one supervises system calls already:
// the kernel allows one listener.
var ErrOuterListener = errors.New("another supervisor of system calls (a container, a sandbox or another rdmasim exec) is above this process, and Linux allows only one")

// ErrNoNotification says that the kernel has no user notification, or one before Linux 5.19
// (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), which protects a call that has been received from
// signals: without, a signal would end it, and a call that is made again be carried out twice.
var ErrNoNotification = errors.New("this kernel has no seccomp user notification that signals leave alone (Linux 5.19 or later with CONFIG_SECCOMP_FILTER is needed)")

// rightsOffset is where the descriptor stands in a control message of one.
const rightsOffset = unix.SizeofCmsghdr

// Hand puts the filter on the calling thread and sends the listener with a message through a
// socket. The thread must be locked, must have set no_new_privs, and keeps the filter across
// execve. Between the two it makes no other system call: one that the filter hands over would wait
// for a supervisor that has yet to get the listener, and the Go runtime makes such calls whenever
// it takes memory. So all memory is taken before, and nothing in between may be preempted or grow
// the stack.
func Hand(prog []unix.SockFilter, socket int, message []byte) error {
	rights := unix.UnixRights(-1)
	iov := unix.Iovec{Base: &message[0]}
	iov.SetLen(len(message))
	msg := unix.Msghdr{Iov: &iov, Iovlen: 1, Control: &rights[0]}
	msg.SetControllen(len(rights))
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	to := (*int32)(unsafe.Pointer(&rights[rightsOffset]))
	e := hand(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &f, uintptr(socket), &msg, to)
	runtime.KeepAlive(prog)
	runtime.KeepAlive(message)
	runtime.KeepAlive(rights)
	return installError(e)
}

// hand installs the filter and sends the listener, or ends the process: nobody would supervise it.
//
//go:nosplit
func hand(flags uintptr, f *unix.SockFprog, socket uintptr, msg *unix.Msghdr, rights *int32) unix.Errno {
	fd, _, e := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(f)))
	if e != 0 {
		return e
	}
	*rights = int32(fd)
	for {
		_, _, e = syscall.RawSyscall(unix.SYS_SENDMSG, socket, uintptr(unsafe.Pointer(msg)), unix.MSG_NOSIGNAL)
		if e != unix.EINTR {
			break
		}
	}
	syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	if e != 0 {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
	return 0
}

// installError names what keeps a filter from being installed.
func installError(e unix.Errno) error {
	switch e {
	case 0:
		return nil
	case unix.EBUSY:
		return ErrOuterListener
	case unix.EINVAL, unix.ENOSYS:
		return ErrNoNotification
	}
	return fmt.Errorf("seccomp: install filter: %w", e)
}

// Notif is struct seccomp_notif: a call that waits for an answer. PID is a thread.
type Notif struct {
	ID    uint64
	PID   uint32
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

type addFD struct {
	id         uint64
	flags      uint32
	srcFD      uint32
	newFD      uint32
	newFDFlags uint32
}

// Listener receives notifications. Recv may be used by one goroutine at a time, the other methods
// by any.
type Listener struct {
	fd  int
	buf *Notif
	// Settle has Done take the care that kernels before Linux 6.18 need.
	Settle bool
}

// NewListener takes over the descriptor that Install returned.
func NewListener(fd int) *Listener {
	l := &Listener{fd: fd, buf: new(Notif), Settle: !losesNoAnswers()}
	// Linux 6.6: wake the caller on this CPU. Older kernels refuse, and are slower.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return l
}

// Close closes the listener: calls that wait get ENOSYS.
func (l *Listener) Close() error { return unix.Close(l.fd) }

// ioctl makes a call again that a signal has interrupted: it has done nothing then.
func (l *Listener) ioctl(req uint, p unsafe.Pointer) (uintptr, error) {
	for {
		r, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), uintptr(req), uintptr(p))
		switch e {
		case 0:
			return r, nil
		case unix.EINTR:
		default:
			return 0, e
		}
	}
}

// Recv waits for the next notification and takes it: ENOENT when the caller vanished meanwhile, or
// there is none (Ended).
func (l *Listener) Recv() (Notif, error) {
	*l.buf = Notif{}
	_, err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(l.buf))
	return *l.buf, err
}

// Ended reports whether no process is left under the filter, and no call waits.
func (l *Listener) Ended() bool {
	p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0 && p[0].Revents&unix.POLLIN == 0
}

// Valid reports whether the caller still waits: what was read from its memory before
// came from it, and not from a process that got its number.
func (l *Listener) Valid(id uint64) bool {
	p := &id
	_, err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(p))
	return err == nil
}

func (l *Listener) send(r response) error {
	_, err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	return err
}

// Return answers with a value.
func (l *Listener) Return(id uint64, val int64) error { return l.send(response{id: id, val: val}) }

// Fail answers with an errno; 0 is success with the value 0.
func (l *Listener) Fail(id uint64, e unix.Errno) error {
	return l.send(response{id: id, err: -int32(e)})
}

// Done answers a call that has had an effect, and so must not be made again: with a value.
//
// A caller that has begun to leave because of a signal, and finds its call received, waits on, from
// then on for the answer alone. But one that finds its call answered already leaves until Linux
// 6.18, and makes the call again. There it is given a descriptor first, at a number that it cannot
// have: nothing comes of it (EBADF), but then the caller has found its call received. AddFD and
// ReplaceFD do the same.
func (l *Listener) Done(id uint64, val int64) error {
	if l.Settle {
		l.settle(id)
	}
	return l.Return(id, val)
}

// settle returns when the caller waits for its answer whatever signals come, or is gone.
func (l *Listener) settle(id uint64) {
	_, _ = l.addFD(&addFD{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, srcFD: uint32(l.fd), newFD: noFD})
}

// noFD is beyond every limit of descriptors (RLIMIT_NOFILE, which fs.nr_open bounds).
const noFD = 1<<31 - 1

// losesNoAnswers reports whether the kernel is one in which Linux 6.18's "seccomp: Fix a race with
// WAIT_KILLABLE_RECV if the tracer replies too fast" is for certain; stable series have it, too,
// and do not tell.
func losesNoAnswers() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return n == 2 && (major > 6 || major == 6 && minor >= 18)
}

// Continue lets the kernel carry out the call.
func (l *Listener) Continue(id uint64) error {
	return l.send(response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// AddFD puts fd into the caller's table, close-on-exec if cloexec, and returns its
// number there. The call stays unanswered.
func (l *Listener) AddFD(id uint64, fd int, cloexec bool) (int, error) {
	return l.addFD(&addFD{id: id, srcFD: uint32(fd), newFDFlags: execFlag(cloexec)})
}

// ReplaceFD puts fd in the place of the caller's descriptor number at.
func (l *Listener) ReplaceFD(id uint64, fd, at int, cloexec bool) error {
	_, err := l.addFD(&addFD{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, srcFD: uint32(fd), newFD: uint32(at), newFDFlags: execFlag(cloexec)})
	return err
}

// ReturnFD is AddFD and answers the call with the number. The kernel can do both at once
// (SECCOMP_ADDFD_FLAG_SEND), and then answers 0 without a descriptor when a signal interrupts us.
func (l *Listener) ReturnFD(id uint64, fd int, cloexec bool) (int, error) {
	n, err := l.AddFD(id, fd, cloexec)
	if err == nil {
		err = l.Return(id, int64(n))
	}
	return n, err
}

func (l *Listener) addFD(a *addFD) (int, error) {
	r, err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(a))
	return int(r), err
}

func execFlag(cloexec bool) uint32 {
	if cloexec {
		return unix.O_CLOEXEC
	}
	return 0
}
