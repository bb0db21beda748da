//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// process is a program's process: its memory, and its place in the kernel model.
type process struct {
	mem    *procmem.Process
	kern   *kernel.Process
	number int // in the order of their first calls, from 1
	open   int // device files and channel files that it opened
	// What it holds.
	objects, files, maps *uverbs.Quota
	waiting              *uverbs.Quota // threads in GET_EVENT
	// channels are where the search for numbers of channel files goes on, in each range of them.
	channels [len(channelRanges)]int
}

// processes are those that made an RDMA call, by number. The engine's thread owns it.
type processes struct {
	m       *machine
	byID    map[int]*process
	streams *procmem.Streams
	memlock uint64 // limit that the session began with
	limits  *limits
	made    int   // so far
	doomed  []int // numbers of those that are killed with their first call
}

func newProcesses(m *machine, cfg *Config) *processes {
	return &processes{m: m, byID: map[int]*process{}, streams: &procmem.Streams{}, memlock: memlock(), limits: newLimits(cfg)}
}

// ofThread is the process of a thread.
func (t *processes) ofThread(tid int) (*process, error) {
	pid, err := threadGroup(tid)
	if err != nil {
		return nil, err
	}
	return t.ofGroup(pid)
}

// ofCaller is the process of a thread that makes a call, with the rights of that thread.
func (t *processes) ofCaller(tid int) (*process, error) {
	status, err := wholeStatus(tid)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(statusValue(status, "Tgid:"))
	if err != nil {
		return nil, fmt.Errorf("process of thread %d: %w", tid, err)
	}
	p, err := t.ofGroup(pid)
	if err != nil {
		return nil, err
	}
	return p, t.rights(p, tid, status)
}

// ofGroup is the process of a number.
func (t *processes) ofGroup(pid int) (*process, error) {
	if p := t.byID[pid]; p != nil && p.mem.Alive() {
		return p, nil
	}
	t.removeEnded()
	if err := t.limits.files.Take(filesOfProcess); err != nil {
		return nil, err
	}
	p, err := t.add(pid)
	if err != nil {
		t.limits.files.Give(filesOfProcess)
	}
	return p, err
}

func (t *processes) add(pid int) (*process, error) {
	m, err := procmem.Open(pid)
	if err != nil {
		return nil, err
	}
	space, err := mem.NewForeignSpace(t.m.mem, &procmem.Memory{Process: m, S: t.streams})
	if err != nil {
		m.Close()
		return nil, err
	}
	p := &process{mem: m, kern: &kernel.Process{Name: fmt.Sprintf("pid %d", pid), Space: space, RAM: t.limits.ram}}
	t.made++
	p.number = t.made
	if slices.Contains(t.doomed, p.number) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	t.limits.of(p, pid)
	t.byID[pid] = p
	return p, nil
}

// removeEnded forgets the processes that have ended.
func (t *processes) removeEnded() {
	for pid, p := range t.byID {
		if p.open == 0 && !p.mem.Alive() {
			t.limits.files.Give(filesOfProcess)
			p.kern.Space.Release()
			t.streams.Forget(p.mem)
			p.mem.Close()
			delete(t.byID, pid)
		}
	}
}

// caller is the thread that waits for the answer to a notification (uverbs.Caller).
type caller struct {
	l    *seccomp.Listener
	id   uint64
	tid  int
	proc *process
	t    *processes
}

var _ uverbs.Identified = (*caller)(nil)

// Process implements uverbs.Identified.
func (c *caller) Process() *kernel.Process { return c.proc.kern }

// Read copies from the caller's memory.
func (c *caller) Read(addr uint64, p []byte) error { return c.proc.mem.ReadAt(mem.VA(addr), p) }

// Write copies into the caller's memory.
func (c *caller) Write(addr uint64, p []byte) error { return c.proc.mem.WriteAt(mem.VA(addr), p) }

// Inject implements uverbs.Caller.
func (c *caller) Inject(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var fd int
	var failed error
	if err := raw.Control(func(n uintptr) { fd, failed = c.l.AddFD(c.id, int(n), true) }); err != nil {
		return 0, err
	}
	return fd, failed
}

// Retract implements uverbs.Caller: a descriptor of another process cannot be closed,
// but the file behind it can be released.
func (c *caller) Retract(fd int) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return
	}
	defer f.Close()
	_ = c.l.ReplaceFD(c.id, int(f.Fd()), fd, true)
}

// Inode implements uverbs.Caller.
func (c *caller) Inode(fd int) (uverbs.Inode, error) {
	st, err := statFD(c.tid, fd)
	if err != nil {
		return uverbs.Inode{}, err
	}
	return uverbs.Inode{Dev: st.Dev, Ino: st.Ino}, nil
}

// Hold implements uverbs.Caller, with a descriptor that can do nothing but name the file.
func (c *caller) Hold(fd int) (uverbs.Inode, func(), error) {
	if err := checkNotPath(c.tid, fd); err != nil {
		return uverbs.Inode{}, nil, err
	}
	n, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", c.tid, fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return uverbs.Inode{}, nil, fmt.Errorf("descriptor %d: %w", fd, errors.Join(syscall.EBADF, err))
	}
	st, err := statFD(os.Getpid(), n)
	if err != nil {
		_ = unix.Close(n)
		return uverbs.Inode{}, nil, err
	}
	return uverbs.Inode{Dev: st.Dev, Ino: st.Ino}, func() { _ = unix.Close(n) }, nil
}

// checkNotPath says EBADF for a descriptor that is not open or was opened with O_PATH: calls that
// take files do not take those (fdget).
func checkNotPath(tid, fd int) error {
	flags, err := fdFlags(tid, fd)
	if err == nil && flags&unix.O_PATH != 0 {
		return fmt.Errorf("descriptor %d names a path only: %w", fd, syscall.EBADF)
	}
	return err
}

// fdFlags are the flags that the file behind a descriptor of a thread was opened with, or has been
// given since: EBADF when there is none.
func fdFlags(tid, fd int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", tid, fd))
	if err != nil {
		return 0, fmt.Errorf("descriptor %d: %w", fd, errors.Join(syscall.EBADF, err))
	}
	for line := range strings.Lines(string(text)) {
		digits, ok := strings.CutPrefix(line, "flags:")
		if !ok {
			continue
		}
		flags, err := strconv.ParseUint(strings.TrimSpace(digits), 8, 64)
		if err != nil {
			return 0, fmt.Errorf("descriptor %d: %q: %w", fd, line, errors.Join(syscall.EBADF, err))
		}
		return flags, nil
	}
	return 0, fmt.Errorf("descriptor %d: no flags: %w", fd, syscall.EBADF)
}

// statFD looks at the file behind a descriptor of a thread: EBADF when there is none. A file system
// that is a program, or on another machine, is not asked: it may not answer.
func statFD(tid, fd int) (*unix.Stat_t, error) {
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/fd/%d", tid, fd), unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_INO, &x); err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, errors.Join(syscall.EBADF, err))
	}
	return &unix.Stat_t{Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino, Mode: uint32(x.Mode), Rdev: unix.Mkdev(x.Rdev_major, x.Rdev_minor)}, nil
}
