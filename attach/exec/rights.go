//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rights gives the kernel model the capabilities of the thread that makes a call. CAP_NET_RAW is
// the thread's; status is what wholeStatus says of it. A limit on locked memory counts when the
// process has a lower one than the session began with: a plain machine's own is often too low for a
// single queue.
func (t *processes) rights(p *process, tid int, status string) error {
	caps, err := strconv.ParseUint(statusValue(status, "CapEff:"), 16, 64)
	if err != nil {
		return fmt.Errorf("capabilities of thread %d: %w", tid, err)
	}
	k := p.kern
	k.NetRaw = caps&(1<<unix.CAP_NET_RAW) != 0
	k.RawIO = caps&(1<<unix.CAP_SYS_RAWIO) != 0
	k.NetBindService = caps&(1<<unix.CAP_NET_BIND_SERVICE) != 0
	k.IPCLock = true
	var limit unix.Rlimit
	if err := unix.Prlimit(tid, unix.RLIMIT_MEMLOCK, nil, &limit); err != nil {
		return nil // of another user: no limit is known
	}
	k.MemlockLimit = limit.Cur
	k.IPCLock = limit.Cur >= t.memlock || caps&(1<<unix.CAP_IPC_LOCK) != 0
	return nil
}

// memlock is the limit that the programs inherit from this process.
func memlock() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil {
		return 0 // no limit is lower
	}
	return limit.Cur
}

// threadGroup is the process of a thread.
func threadGroup(tid int) (int, error) {
	v, err := threadStatus(tid, "Tgid:")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(v)
}

// threadStatus is a line of a thread's status, which begins with key.
func threadStatus(tid int, key string) (string, error) {
	text, err := wholeStatus(tid)
	if err != nil {
		return "", err
	}
	if v := statusValue(text, key); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("thread %d: status without %s", tid, key)
}

// wholeStatus is the status of a thread. The kernel composes it anew for each open file, and so a
// call reads it once; package os would ask three times as many system calls for it.
func wholeStatus(tid int) (string, error) {
	fd, err := openAgain("/proc/"+strconv.Itoa(tid)+"/status", unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var b [1 << 13]byte // the longest has some 1,600 bytes
	n, err := unix.Read(fd, b[:])
	for err == unix.EINTR {
		n, err = unix.Read(fd, b[:])
	}
	if err != nil {
		return "", fmt.Errorf("status of thread %d: %w", tid, err)
	}
	return string(b[:n]), nil
}

// openAgain opens a file, again if a signal interrupts it.
func openAgain(path string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// statusValue is the rest of the line that begins with key.
func statusValue(status, key string) string {
	for line := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// hasCapability says whether a thread has a capability.
func hasCapability(tid, number int) bool {
	v, err := threadStatus(tid, "CapEff:")
	if err != nil {
		return false
	}
	caps, err := strconv.ParseUint(v, 16, 64)
	return err == nil && caps&(1<<number) != 0
}
