//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Sizes of the kernel's structures for a program of x86-64.
const (
	pageSize  = 4096
	statSize  = unsafe.Sizeof(unix.Stat_t{})
	statxSize = unsafe.Sizeof(unix.Statx_t{})
)

// pathArg is which argument of a path call is the path; the flags of an open are the
// one after it.
func pathArg(nr int32) int {
	switch nr {
	case unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK:
		return 0
	}
	return 1
}

// nofollow reports whether a call is about a symbolic link itself.
func nofollow(x *seccomp.Notif) bool {
	switch x.Nr {
	case unix.SYS_LSTAT, unix.SYS_READLINK, unix.SYS_READLINKAT:
		return true
	case unix.SYS_NEWFSTATAT, unix.SYS_FACCESSAT2:
		return x.Args[3]&unix.AT_SYMLINK_NOFOLLOW != 0
	case unix.SYS_STATX:
		return x.Args[2]&unix.AT_SYMLINK_NOFOLLOW != 0
	case unix.SYS_OPEN:
		return x.Args[1]&unix.O_NOFOLLOW != 0
	case unix.SYS_OPENAT:
		return x.Args[2]&unix.O_NOFOLLOW != 0
	}
	return false
}

// absolute is the path of a call as seen from the root. A relative one begins at a folder that the
// program has open or is in; below one of the tree the kernel finds everything but device files.
// False: the path does not concern the tree.
func absolute(t *tree.Tree, x *seccomp.Notif, name string) (string, bool) {
	if strings.HasPrefix(name, "/") || name == "" {
		return name, name != ""
	}
	folder := fmt.Sprintf("/proc/%d/cwd", x.PID)
	if fd := int32(x.Args[0]); pathArg(x.Nr) == 1 && fd != unix.AT_FDCWD {
		folder = fmt.Sprintf("/proc/%d/fd/%d", x.PID, fd)
	}
	folder, err := os.Readlink(folder)
	if err != nil || !t.MayConcern(folder) {
		return "", false
	}
	seen := t.Seen(folder)
	return seen + "/" + name, seen == folder || strings.HasPrefix(seen, "/dev/")
}

// path answers a path call about the files of devices, and lets the kernel carry out all
// others.
func (n *notifier) path(x *seccomp.Notif) {
	t := n.s.started.tree
	at := pathArg(x.Nr)
	p, err := procmem.Open(int(x.PID))
	if err != nil {
		p, err = openThread(int(x.PID))
	}
	if err != nil {
		_ = n.l.Continue(x.ID)
		return
	}
	defer p.Close()
	if t == nil {
		n.openChannelPath(x, p)
		return
	}
	name, ok := cString(p, x.Args[at])
	if !ok {
		_ = n.l.Continue(x.ID)
		return
	}
	if name, ok = absolute(t, x, name); !ok {
		_ = n.l.Continue(x.ID)
		return
	}
	f, ok := t.Resolve(name, !nofollow(x))
	if !ok {
		_ = n.l.Continue(x.ID)
		return
	}
	switch x.Nr {
	case unix.SYS_OPEN:
		n.open(x, f, x.Args[1])
	case unix.SYS_OPENAT:
		n.open(x, f, x.Args[2])
	case unix.SYS_OPENAT2:
		var how [8]byte // flags are the first word of open_how
		if err := p.ReadAt(mem.VA(x.Args[2]), how[:]); err != nil {
			_ = n.l.Fail(x.ID, unix.EFAULT)
			return
		}
		n.open(x, f, *(*uint64)(unsafe.Pointer(&how)))
	case unix.SYS_STAT, unix.SYS_LSTAT:
		n.stat(x, f, p, x.Args[1])
	case unix.SYS_NEWFSTATAT:
		n.stat(x, f, p, x.Args[2])
	case unix.SYS_STATX:
		n.statx(x, f, p)
	case unix.SYS_ACCESS:
		n.access(x, f, uint32(x.Args[1]))
	case unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2:
		n.access(x, f, uint32(x.Args[2]))
	default:
		n.readlink(x, f, p)
	}
}

// readlink answers with where a link leads. What the tree has as a link to a changing file is a
// file for programs.
func (n *notifier) readlink(x *seccomp.Notif, f tree.Found, p *procmem.Process) {
	at := pathArg(x.Nr) + 1
	var b [unix.PathMax]byte
	size, err := 0, unix.Access(f.Path, 0)
	if err == nil {
		err = unix.EINVAL
	}
	if f.Link {
		size, err = unix.Readlink(f.Path, b[:min(x.Args[at+1], unix.PathMax)])
	}
	if err == nil {
		n.askedForDevices.Store(true)
		err = p.WriteAt(mem.VA(x.Args[at]), b[:size])
	}
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	_ = n.l.Return(x.ID, int64(size))
}

// cString reads a string of a program, page by page.
func cString(p *procmem.Process, addr uint64) (string, bool) {
	var s []byte
	for len(s) < unix.PathMax {
		b := make([]byte, min(256, pageSize-addr%pageSize))
		if err := p.ReadAt(mem.VA(addr), b); err != nil {
			return "", false
		}
		for i, c := range b {
			if c == 0 {
				return string(append(s, b[:i]...)), true
			}
		}
		s, addr = append(s, b...), addr+uint64(len(b))
	}
	return "", false
}

// open answers an open of a file of a device. The kernel hands nobody a descriptor of O_PATH (fget
// in seccomp_handle_addfd): one for reading does all that such a descriptor does. Files below /sys
// cannot be written, as where they are mounted.
func (n *notifier) open(x *seccomp.Notif, f tree.Found, flags uint64) {
	if flags&unix.O_PATH != 0 {
		flags &= unix.O_CLOEXEC | unix.O_DIRECTORY | unix.O_NOFOLLOW
	} else if f.Kind == tree.ChannelFile {
		n.openChannel(x, flags, nil)
		return
	} else if f.Kind == tree.UMADDevice {
		n.openChannel(x, flags, n.s.m.devs[f.Index])
		return
	}
	const changes = unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY
	if !f.Link {
		flags &^= unix.O_NOFOLLOW // what the tree has as a link to a changing file
	}
	fd, err := unix.Open(f.Path, int(flags)&^changes|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	defer unix.Close(fd)
	if f.Kind == tree.File && flags&(unix.O_ACCMODE|unix.O_TRUNC) != unix.O_RDONLY {
		_ = n.l.Fail(x.ID, unix.EROFS)
		return
	}
	cloexec := flags&unix.O_CLOEXEC != 0
	if f.Kind != tree.DeviceFile {
		if !f.Host {
			n.askedForDevices.Store(true)
		}
		if _, err := n.l.ReturnFD(x.ID, fd, cloexec); err != nil {
			_ = n.l.Fail(x.ID, errno(err))
		}
		return
	}
	// The engine must know the number before the program can use it.
	n.s.eng.do(func() {
		pid, err := threadGroup(int(x.PID))
		if err != nil {
			_ = n.l.Fail(x.ID, errno(err))
			return
		}
		got, err := n.l.AddFD(x.ID, fd, cloexec)
		if err != nil {
			_ = n.l.Fail(x.ID, errno(err))
			return
		}
		n.s.files.opened[openedFD{pid, got}] = f.Index
		_ = n.l.Return(x.ID, int64(got))
	})
}

func (n *notifier) stat(x *seccomp.Notif, f tree.Found, p *procmem.Process, addr uint64) {
	var st unix.Stat_t
	of := unix.Stat
	if f.Link {
		of = unix.Lstat
	}
	if err := of(f.Path, &st); err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	n.put(x, p, addr, (*[statSize]byte)(unsafe.Pointer(&st))[:])
}

func (n *notifier) statx(x *seccomp.Notif, f tree.Found, p *procmem.Process) {
	var st unix.Statx_t
	flags := int(x.Args[2])
	if !f.Link {
		flags &^= unix.AT_SYMLINK_NOFOLLOW
	}
	if err := unix.Statx(unix.AT_FDCWD, f.Path, flags, int(x.Args[3]), &st); err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	n.put(x, p, x.Args[4], (*[statxSize]byte)(unsafe.Pointer(&st))[:])
}

// put writes a result into the caller's memory and ends the call.
func (n *notifier) put(x *seccomp.Notif, p *procmem.Process, addr uint64, b []byte) {
	b = append([]byte(nil), b...)
	if err := p.WriteAt(mem.VA(addr), b); err != nil {
		_ = n.l.Fail(x.ID, unix.EFAULT)
		return
	}
	_ = n.l.Return(x.ID, 0)
}

func (n *notifier) access(x *seccomp.Notif, f tree.Found, mode uint32) {
	if err := unix.Access(f.Path, mode); err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	_ = n.l.Return(x.ID, 0)
}

// openThread is procmem.Open for a thread that is not the first of its process.
func openThread(tid int) (*procmem.Process, error) {
	pid, err := threadGroup(tid)
	if err != nil {
		return nil, err
	}
	return procmem.Open(pid)
}
