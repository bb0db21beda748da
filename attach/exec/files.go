//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

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
}

// files are the open device files by inode. Only the engine's thread uses them, but
// for watch.
type files struct {
	s       *session
	inotify int
	quit    int // eventfd
	byInode map[uverbs.Inode]*file
	byWatch map[int]*file
	// opened tells the device of null devices that path calls gave out.
	opened map[openedFD]int
}

// openedFD is a descriptor between open and the first ioctl.
type openedFD struct{ tid, fd int }

func newFiles(s *session) (*files, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	q, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &files{
		s: s, inotify: fd, quit: q, byInode: map[uverbs.Inode]*file{}, byWatch: map[int]*file{}, opened: map[openedFD]int{},
	}, nil
}

// find is the device file behind a thread's descriptor, made now if this is the first
// call on it. Nil: the descriptor is something else.
func (t *files) find(l *seccomp.Listener, id uint64, tid, fd int) (*file, error) {
	st, err := statFD(tid, fd)
	if err != nil {
		return nil, err
	}
	in := uverbs.Inode{Dev: st.Dev, Ino: st.Ino}
	if f := t.byInode[in]; f != nil {
		return f, nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(tree.NullMajor, tree.NullMinor) {
		return nil, nil
	}
	k, ok := t.device(tid, fd)
	if !ok {
		return nil, nil
	}
	return t.open(l, id, tid, fd, t.s.m.devs[k])
}

// device is the device that a null device stands for: by its path where the files are
// mounted, or because we gave out the descriptor.
func (t *files) device(tid, fd int) (int, bool) {
	if paths := t.s.started.tree; paths != nil {
		pid, err := threadGroup(tid)
		if err != nil {
			return 0, false
		}
		k, ok := t.opened[openedFD{pid, fd}]
		delete(t.opened, openedFD{pid, fd})
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

// open puts a new memory file behind the program's descriptor.
func (t *files) open(l *seccomp.Listener, id uint64, tid, fd int, d *device) (*file, error) {
	proc, err := t.s.procs.of(tid)
	if err != nil {
		return nil, err
	}
	raw, err := unix.MemfdCreate("uverbs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	first := os.NewFile(uintptr(raw), "uverbs")
	defer first.Close()
	if err := first.Truncate(deviceFileSize); err != nil {
		return nil, err
	}
	// memfd_create's own description sends no notices, so the program gets another one;
	// a third one is the session's, to map pages.
	again := fmt.Sprintf("/proc/self/fd/%d", raw)
	own, err := os.OpenFile(again, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	theirs, err := os.OpenFile(again, os.O_RDWR, 0)
	if err != nil {
		own.Close()
		return nil, err
	}
	defer theirs.Close()
	var st unix.Stat_t
	if err := unix.Fstat(raw, &st); err != nil {
		own.Close()
		return nil, err
	}
	f := &file{s: t.s, dev: d, inode: uverbs.Inode{Dev: st.Dev, Ino: st.Ino}, own: own, proc: proc, pages: map[uint64]*page{}}
	f.verbs = uverbs.Open(d.kern, proc.kern, f)
	f.verbs.DynamicUARs, f.verbs.Logf = t.s.cfg.DynamicUARs, t.s.cfg.Logf
	if f.watch, err = unix.InotifyAddWatch(t.inotify, again, unix.IN_CLOSE_WRITE); err != nil {
		own.Close()
		return nil, err
	}
	if err := l.ReplaceFD(id, int(theirs.Fd()), fd, true); err != nil {
		_, _ = unix.InotifyRmWatch(t.inotify, uint32(f.watch))
		own.Close()
		return nil, err
	}
	proc.files++
	t.byInode[f.inode], t.byWatch[f.watch] = f, f
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
	f.own.Close()
	f.proc.files--
	t.s.procs.sweep()
}

// closeAll releases what is open at the end of the session.
func (t *files) closeAll() {
	for _, f := range t.byInode {
		t.release(f)
	}
}

// watch waits for the ends of files, until stop.
func (t *files) watch() {
	buf := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	p := []unix.PollFd{{Fd: int32(t.inotify), Events: unix.POLLIN}, {Fd: int32(t.quit), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(p, -1); err != nil && err != unix.EINTR {
			return
		}
		if p[1].Revents != 0 {
			return
		}
		if p[0].Revents == 0 {
			continue
		}
		n, err := unix.Read(t.inotify, buf)
		if err != nil {
			continue
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent + int(e.Len)
			if e.Mask&unix.IN_CLOSE_WRITE == 0 {
				continue
			}
			wd := int(e.Wd)
			t.s.eng.do(func() {
				if f := t.byWatch[wd]; f != nil {
					t.release(f)
				}
			})
		}
	}
}

func (t *files) stop() {
	one := [8]byte{1}
	_, _ = unix.Write(t.quit, one[:])
}

// ioctl carries out a call on the file.
func (f *file) ioctl(c *caller, arg uint64) syscall.Errno { return f.verbs.Ioctl(c, arg) }
