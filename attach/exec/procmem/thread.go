//go:build linux && amd64

package procmem

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A process goes on when its main thread has ended and others have not. The number of the process
// then stands for that thread, which has neither memory nor files any more: another thread takes
// its place.

// nextThread chooses a thread of the process that has its memory, and reports whether that is
// another than before.
func (p *Process) nextThread() bool {
	if !p.Alive() {
		return false
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
	if err != nil {
		return false
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil || tid == p.tid {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", tid)); err == nil { // as long as it has memory
			p.tid = tid
			return true
		}
	}
	return false
}

// getFD is the file behind a descriptor of the process, shared with it.
func (p *Process) getFD(fd int) (int, error) {
	n, err := unix.PidfdGetfd(p.pidfd, fd, 0)
	if err == nil || !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.ESRCH) {
		return n, err
	}
	if p.tid == p.pid && !p.nextThread() {
		return n, err
	}
	const pidfdThread = unix.O_EXCL // PIDFD_THREAD of linux/pidfd.h, since Linux 6.9
	thread, terr := unix.PidfdOpen(p.tid, pidfdThread)
	if terr != nil {
		return n, err
	}
	defer func() { _ = unix.Close(thread) }()
	return unix.PidfdGetfd(thread, fd, 0)
}
