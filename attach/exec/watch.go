//go:build linux && amd64

package exec

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
)

// watch waits for the ends of files, until stop.
func (t *files) watch() {
	p := []unix.PollFd{{Fd: int32(t.inotify), Events: unix.POLLIN}, {Fd: int32(t.quit), Events: unix.POLLIN}}
	for next := time.Now().Add(trimPeriod); ; {
		wait := max(0, time.Until(next))
		if _, err := unix.Poll(p, int(wait/time.Millisecond)+1); err != nil && err != unix.EINTR {
			return
		}
		if p[1].Revents != 0 {
			return
		}
		if now := time.Now(); now.After(next) {
			t.trim()
			next = now.Add(trimPeriod)
		}
		if p[0].Revents != 0 {
			t.s.eng.do(t.reap)
		}
		if t.lost.Swap(false) {
			t.endUnused()
		}
	}
}

// reap ends what programs have closed. The engine's thread reads the notices itself, before it
// takes what has been stored to registers: the kernel gives notice before waitpid tells a program
// of the end of a process, so that what the program then asks of that process's queues finds them
// gone.
func (t *files) reap() {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(t.inotify), uintptr(unsafe.Pointer(&t.notices[0])), uintptr(len(t.notices)))
		if errno != 0 || n == 0 {
			return
		}
		told, lost := notices(t.notices[:n])
		for _, x := range told {
			w := t.byWatch[x.watch]
			switch {
			case x.opened:
				if w.f != nil {
					w.reopened = true
					t.byWatch[x.watch] = w
				}
			case w.reopened:
				lost = true // which of its descriptions it was is not told
			case x.written:
				t.end(x.watch)
			}
		}
		if lost {
			t.lost.Store(true) // watch looks who has what
		}
	}
}

// noticed are the events of files that are watched: a description was opened, by way of /proc, or
// closed.
const noticed = unix.IN_OPEN | unix.IN_CLOSE_WRITE | unix.IN_CLOSE_NOWRITE

// notice is an event of a watch: a description of its file was opened, or it was closed and could
// be written by.
type notice struct {
	watch           int
	opened, written bool
}

// notices are events, in order, and whether the kernel had no room for more (IN_Q_OVERFLOW).
func notices(events []byte) (told []notice, lost bool) {
	for len(events) >= unix.SizeofInotifyEvent {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&events[0]))
		switch {
		case e.Mask&unix.IN_Q_OVERFLOW != 0:
			lost = true
		case e.Mask&noticed != 0:
			told = append(told, notice{int(e.Wd), e.Mask&unix.IN_OPEN != 0, e.Mask&unix.IN_CLOSE_WRITE != 0})
		}
		events = events[unix.SizeofInotifyEvent+int(e.Len):]
	}
	return told, lost
}

// end is the end of what has the watch: an open file or a buffer.
func (t *files) end(wd int) {
	switch w := t.byWatch[wd]; {
	case w.b != nil:
		w.f.dropBuffer(w.b)
	case w.f != nil:
		t.release(w.f)
	}
}

// endUnused ends the files and buffers that no process of the session has any more, after events
// were lost or a file has had several descriptions.
func (t *files) endUnused() {
	watches := map[int]uverbs.Inode{}
	t.s.eng.do(func() {
		for wd, w := range t.byWatch {
			watches[wd] = w.f.inode
			if w.b != nil {
				watches[wd] = w.b.inode
			}
		}
	})
	// Twice, since a process may have given one to another that was looked at before. One that is
	// on its way in a message is not seen.
	used := map[uverbs.Inode]bool{}
	for range 2 {
		if !inodesOf(descendants(os.Getpid(), t.s.started.janitor), used) {
			return // a later close may tell
		}
	}
	t.s.eng.do(func() {
		for wd, in := range watches {
			w := t.byWatch[wd]
			if same := w.b != nil && w.b.inode == in || w.b == nil && w.f != nil && w.f.inode == in; !same || used[in] {
				continue
			}
			if w.b == nil && w.f.held != nil { // here, while its descriptor shows a buffer
				t.lost.Store(true)
				continue
			}
			t.end(wd)
		}
	})
}

// inodesOf adds the files that processes have open or mapped. It reports false if it could not look
// at one.
func inodesOf(pids []int, to map[uverbs.Inode]bool) bool {
	for _, pid := range pids {
		if err := inodesOfOne(pid, to); err != nil && !gone(err) {
			return false
		}
	}
	return true
}

func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// inodesOfOne asks the threads in turn: one that has ended, maybe the main one, has no files, and
// root owns what /proc has of it.
func inodesOfOne(pid int, to map[uverbs.Inode]bool) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	var fds, mappings int
	cannotOpen, cannotMap := os.ErrNotExist, os.ErrNotExist // until a thread can be asked
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		if fds == 0 {
			var entries []os.DirEntry
			if entries, err = os.ReadDir(fmt.Sprintf("/proc/%d/task/%d/fd", pid, tid)); err == nil || cannotOpen != nil {
				cannotOpen = err
			}
			for _, e := range entries {
				fd, _ := strconv.Atoi(e.Name())
				if st, err := statFD(tid, fd); err == nil {
					to[uverbs.Inode{Dev: st.Dev, Ino: st.Ino}] = true
					fds++
				}
			}
		}
		if mappings == 0 {
			if mappings, err = mappedInodes(tid, to); err == nil || cannotMap != nil {
				cannotMap = err
			}
		}
	}
	return cmp.Or(cannotOpen, cannotMap)
}

func mappedInodes(tid int, to map[uverbs.Inode]bool) (n int, err error) {
	p, err := procmem.Open(tid)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	err = p.Mappings(func(m *procmem.Mapping) bool {
		to[uverbs.Inode{Dev: m.Dev, Ino: m.Inode}] = true
		n++
		return true
	})
	return n, err
}
