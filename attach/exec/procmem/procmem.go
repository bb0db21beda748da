//go:build linux && amd64

// Package procmem reads and writes the memory of other processes.
package procmem

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// ErrRights says that the kernel denies access to the memory of the programs.
var ErrRights = errors.New("no permission to read the memory of the program (process_vm_readv): a container's seccomp profile or the Yama setting kernel.yama.ptrace_scope forbids it")

// Process is the memory of one process (mem.Foreign and mem.Prober), held by a pidfd, so
// that a process that gets the same number later is never mistaken for it.
type Process struct {
	pid     int
	tid     int // a thread that has the memory: the main one, until it ends before others
	pidfd   int
	gone    bool
	noQuery bool // the kernel does not tell one mapping
	once    bool // text, once it is read, is that of all mappings
	text    []byte
	// scratch of one call: the kernel reads it, so it may not lie on a stack that moves
	local  [2]unix.Iovec
	remote [2]unix.RemoteIovec
	dead   [1]unix.PollFd

	regions []region // by address
	last    int      // where the last access was
	aliases []span   // what other mappings show too, as far as it was probed
	held    held
	queues  queueRanges
	touched []byte // scratch of Touch
}

// Open finds the process of that number.
func Open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &Process{pid: pid, tid: pid, pidfd: fd}, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.pid }

// Close lets the process go; later accesses fail.
func (p *Process) Close() {
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
	}
	p.pidfd, p.gone = -1, true
}

// File is the open file behind a descriptor of the process, shared with it.
func (p *Process) File(fd int) (*os.File, error) {
	n, err := p.getFD(fd)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d of process %d: %w", fd, p.pid, err)
	}
	return os.NewFile(uintptr(n), "shared"), nil
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	if p.gone {
		return false
	}
	p.dead[0] = unix.PollFd{Fd: int32(p.pidfd), Events: unix.POLLIN}
	n, err := unix.Poll(p.dead[:], 0)
	p.gone = err == nil && n > 0
	return !p.gone
}

// lastByteLast is the longest write whose last byte is sure to become visible after
// the others: a completion's owner bit is there.
const lastByteLast = 128

// ReadAt fills b from address addr. EFAULT when part of the range is not readable,
// ESRCH when the process is gone; b is then undefined.
func (p *Process) ReadAt(addr mem.VA, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if p.load(addr, b) {
		return nil
	}
	p.local[0] = unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	p.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
	return p.do(unix.SYS_PROCESS_VM_READV, 1, len(b), addr)
}

// WriteAt copies b to address addr, the bytes of short writes in two steps, the last
// one behind the rest: the kernel copies the segments of a call in order.
func (p *Process) WriteAt(addr mem.VA, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if p.store(addr, b) {
		return nil
	}
	p.local[0] = unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	n := 1
	if k := len(b) - 1; k > 0 && len(b) <= lastByteLast {
		p.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: k}
		p.remote[1] = unix.RemoteIovec{Base: uintptr(addr) + uintptr(k), Len: 1}
		n = 2
	} else {
		p.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
	}
	return p.do(unix.SYS_PROCESS_VM_WRITEV, n, len(b), addr)
}

// do makes the call. A short copy is EFAULT: the kernel stops at a missing page.
func (p *Process) do(nr uintptr, segments, want int, addr mem.VA) error {
	if p.gone {
		return fmt.Errorf("memory of process %d at %#x: %w", p.pid, uint64(addr), unix.ESRCH)
	}
	got, e := p.call(nr, p.local[:1], p.remote[:segments])
	if e == unix.ESRCH && p.nextThread() {
		got, e = p.call(nr, p.local[:1], p.remote[:segments])
	}
	p.local[0].Base = nil
	switch {
	case e == unix.EPERM:
		if !p.Alive() {
			e = unix.ESRCH
			break
		}
		return fmt.Errorf("%w: %w", ErrRights, e)
	case e == 0 && got == want:
		return nil
	case e == 0:
		e = unix.EFAULT
	}
	return fmt.Errorf("memory of process %d, %d bytes at %#x: %w", p.pid, want, uint64(addr), e)
}

// call copies between local and remote segments.
func (p *Process) call(nr uintptr, local []unix.Iovec, remote []unix.RemoteIovec) (int, syscall.Errno) {
	n, _, e := unix.RawSyscall6(nr, uintptr(p.tid), uintptr(unsafe.Pointer(&local[0])), uintptr(len(local)),
		uintptr(unsafe.Pointer(&remote[0])), uintptr(len(remote)), 0)
	return int(n), e
}
