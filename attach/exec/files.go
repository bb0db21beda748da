//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
)

// deviceFileSize is the size of a device file, sparse: it holds the offsets of every
// mmap command, with those of dynamic registers, whose index goes on above bit 16.
const deviceFileSize = 1 << 30

// file is an open device file: a memory file that the program maps its register pages
// from. It begins with the first RDMA ioctl on the null device that stands for it.
type file struct {
	s     *session
	dev   *device
	inode uverbs.Inode
	own   *os.File // the session's own description of it
	watch int
	proc  *process
	verbs *uverbs.File
	pages map[uint64]*page // by page number in the file
	uars  []*uarPage
	// memory are pages of device memory, by the first.
	memory map[uint64][]byte

	buffers []*buffer // memory of queues, from the same descriptor
	held    *os.File  // the program's description, while there are buffers
	mapping *mapping  // the last mmap that a descriptor was changed for
}

// files are the open device files by inode. Only the engine's thread uses them, but
// for watch.
type files struct {
	s       *session
	inotify int
	quit    int    // eventfd
	dev     uint64 // of all memory files
	byInode map[uverbs.Inode]*file
	byWatch map[int]watched
	// opened maps the null devices that answers to path calls gave out to their devices.
	opened map[openedFD]int

	unmaps chan []byte // memory of ended queues

	notices [64 * (unix.SizeofInotifyEvent + unix.NAME_MAX + 1)]byte // of reap
	lost    atomic.Bool                                              // the kernel had no room for a notice

	shared, copied int // queues so far, by how they are reached
}

// watched is the memory file that a watch belongs to: the device file's, or a buffer's.
type watched struct {
	f *file
	b *buffer
	// reopened says that somebody has opened it by way of /proc, so that the end of a description
	// may not be that of the file.
	reopened bool
}

// openedFD is a descriptor between open and the first ioctl.
type openedFD struct{ tid, fd int }

func newFiles(s *session) (*files, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	q, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	m, err := newMemfd(0)
	if err != nil {
		return nil, err
	}
	defer m.close()
	t := &files{
		s: s, inotify: fd, quit: q, dev: m.inode.Dev, byInode: map[uverbs.Inode]*file{}, byWatch: map[int]watched{}, opened: map[openedFD]int{},
		unmaps: make(chan []byte, 1<<12),
	}
	go func() {
		for b := range t.unmaps {
			_ = unix.Munmap(b)
		}
	}()
	return t, nil
}

// unmapLater gives memory back beside the engine's thread: for a long queue it takes milliseconds.
func (t *files) unmapLater(b []byte) {
	select {
	case t.unmaps <- b:
	default:
		_ = unix.Munmap(b)
	}
}

// find is the device file behind a thread's descriptor, made now if this is the first
// call on it, and the inode that it shows. Nil: the descriptor is something else.
func (t *files) find(l *seccomp.Listener, id uint64, tid, fd int) (*file, uverbs.Inode, error) {
	st, err := statFD(tid, fd)
	if err != nil {
		return nil, uverbs.Inode{}, err
	}
	in := uverbs.Inode{Dev: st.Dev, Ino: st.Ino}
	if f := t.byInode[in]; f != nil {
		return f, in, nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(tree.NullMajor, tree.NullMinor) {
		return nil, in, nil
	}
	k, ok := t.device(tid, fd)
	if !ok {
		return nil, in, nil
	}
	f, err := t.open(l, id, tid, fd, t.s.m.devs[k])
	if err != nil {
		return nil, in, err
	}
	return f, f.inode, nil
}

// device is the device that a null device stands for: found by its path where the files
// are mounted, or by the descriptor that we gave out.
func (t *files) device(tid, fd int) (int, bool) {
	if paths := t.s.started.tree; paths != nil {
		pid, err := threadGroup(tid)
		if err != nil {
			return 0, false
		}
		k, ok := t.opened[openedFD{pid, fd}]
		return k, ok
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, fd))
	if err != nil {
		return 0, false
	}
	for k := range t.s.m.devs {
		if name == tree.DevFile(k) {
			return k, true
		}
	}
	return 0, false
}

// memfd is a new memory file. The description that memfd_create opens is no user's: on Linux 6.18
// its end causes no inotify event, so each user gets another one; on 6.12 it causes one, so it ends
// before the file is watched.
type memfd struct {
	fd    int
	path  string
	inode uverbs.Inode
}

// seals fix the size of a memory file. Programs may do to it what they like, and an access to a
// page that a shrunk file no longer has would end the supervisor (SIGBUS).
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// newMemfd makes a memory file whose size nobody can change.
func newMemfd(size int64) (*memfd, error) {
	fd, err := unix.MemfdCreate("uverbs", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	m := &memfd{fd: fd, path: fmt.Sprintf("/proc/self/fd/%d", fd)}
	var st unix.Stat_t
	if err := errors.Join(unix.Ftruncate(fd, size), unix.Fstat(fd, &st)); err != nil {
		m.close()
		return nil, fmt.Errorf("memory file of %d bytes: %w", size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		m.close()
		return nil, fmt.Errorf("memory file of %d bytes: seal its size: %w", size, err)
	}
	m.inode = uverbs.Inode{Dev: st.Dev, Ino: st.Ino}
	return m, nil
}

func (m *memfd) open() (*os.File, error) { return os.OpenFile(m.path, os.O_RDWR, 0) }

// watch has the end of descriptions of the file told, of which one is open.
func (m *memfd) watch(inotify int, one *os.File) (int, error) {
	m.close()
	return unix.InotifyAddWatch(inotify, fmt.Sprintf("/proc/self/fd/%d", one.Fd()), noticed)
}

func (m *memfd) close() {
	if m.fd >= 0 {
		_ = unix.Close(m.fd)
		m.fd = -1
	}
}

// open puts a new memory file behind the program's descriptor.
func (t *files) open(l *seccomp.Listener, id uint64, tid, fd int, d *device) (*file, error) {
	proc, err := t.s.procs.ofThread(tid)
	if err != nil {
		return nil, err
	}
	if err := proc.files.Take(filesOfContext); err != nil {
		return nil, fmt.Errorf("open %s: %w", d.name, err)
	}
	f, err := t.create(l, id, proc, fd, d)
	if err != nil {
		proc.files.Give(filesOfContext)
	}
	return f, err
}

// create makes the memory file of open.
func (t *files) create(l *seccomp.Listener, id uint64, proc *process, fd int, d *device) (*file, error) {
	m, err := newMemfd(deviceFileSize)
	if err != nil {
		return nil, err
	}
	defer m.close()
	own, err := m.open() // to map pages
	if err != nil {
		return nil, err
	}
	theirs, err := m.open()
	if err != nil {
		own.Close()
		return nil, err
	}
	defer theirs.Close()
	f := &file{s: t.s, dev: d, inode: m.inode, own: own, proc: proc, pages: map[uint64]*page{}, memory: map[uint64][]byte{}}
	f.verbs = uverbs.Open(d.kern, proc.kern, f)
	f.verbs.DynamicUARs, f.verbs.Logf = !t.s.cfg.StaticUARs, t.s.refused
	f.verbs.OnNoPaging = t.s.procs.limits.noPaging
	f.verbs.Objects, f.verbs.Descriptors = proc.objects, proc.files
	if f.watch, err = m.watch(t.inotify, own); err != nil {
		own.Close()
		return nil, err
	}
	if err := l.ReplaceFD(id, int(theirs.Fd()), fd, true); err != nil {
		_, _ = unix.InotifyRmWatch(t.inotify, uint32(f.watch))
		own.Close()
		return nil, err
	}
	proc.open++
	delete(t.opened, openedFD{proc.mem.PID(), fd}) // an open that failed can be tried again
	t.byInode[f.inode], t.byWatch[f.watch] = f, watched{f: f}
	return f, nil
}

// release is the end of an open file: its descriptors and mappings are gone.
func (t *files) release(f *file) {
	if t.byInode[f.inode] != f {
		return
	}
	delete(t.byInode, f.inode)
	delete(t.byWatch, f.watch)
	_, _ = unix.InotifyRmWatch(t.inotify, uint32(f.watch))
	f.verbs.Close()
	for n := range f.pages {
		f.UnmapUAR(n)
	}
	for len(f.buffers) > 0 {
		f.dropBuffer(f.buffers[0])
	}
	f.own.Close()
	t.s.eng.showTraffic(true) // a program that has ended finds its own packets counted
	f.proc.open--
	f.proc.files.Give(filesOfContext)
	t.s.procs.removeEnded()
}

// closeAll releases what is open at the end of the session.
func (t *files) closeAll() {
	for _, w := range t.byWatch {
		if w.b == nil {
			t.release(w.f)
		}
	}
}

func (t *files) stop() {
	one := [8]byte{1}
	_, _ = unix.Write(t.quit, one[:])
}

// ioctl carries out a call on the file.
func (f *file) ioctl(c *caller, arg uint64) syscall.Errno {
	defer f.proc.mem.Once()()
	return f.verbs.Ioctl(c, arg)
}
