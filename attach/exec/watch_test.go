//go:build linux && amd64

package exec

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
)

// TestNotices: events that were lost are told by one of their own, which names no watch.
func TestNotices(t *testing.T) {
	event := func(wd int32, mask uint32, name string) []byte {
		e := unix.InotifyEvent{Wd: wd, Mask: mask, Len: uint32(len(name))}
		return append(slices.Clone((*[unix.SizeofInotifyEvent]byte)(unsafe.Pointer(&e))[:]), name...)
	}
	b := slices.Concat(event(3, unix.IN_CLOSE_WRITE, "x\x00\x00\x00"), event(4, unix.IN_IGNORED, ""), event(5, unix.IN_OPEN, ""), event(5, unix.IN_CLOSE_NOWRITE, ""))
	want := []notice{{3, false, true}, {5, true, false}, {5, false, false}}
	if told, lost := notices(b); !slices.Equal(told, want) || lost {
		t.Errorf("%v, lost %v", told, lost)
	}
	if told, lost := notices(append(event(-1, unix.IN_Q_OVERFLOW, ""), b...)); !slices.Equal(told, want) || !lost {
		t.Errorf("%v, lost %v", told, lost)
	}
}

// TestReopenedFiles: a device file ends with its last descriptor, also if it was opened again by
// way of /proc.
func TestReopenedFiles(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "reopened")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{nil, {"-copy-queues", "-static"}} {
			if out, status := u.session(t, append(slices.Clone(flags), "--", bin)...); status != 0 || strings.Contains(out, "still") {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}

// TestFilesInUse looks for memory files of this process: one that is open, one that is only mapped,
// one that is closed.
func TestFilesInUse(t *testing.T) {
	var files [3]*memfd
	for i := range files {
		m, err := newMemfd(pageSize)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = m
	}
	b, err := unix.Mmap(files[1].fd, 0, pageSize, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	files[1].close()
	files[2].close()
	defer files[0].close()
	used := map[uverbs.Inode]bool{}
	const noProcess = 1 << 30
	if !inodesOf([]int{os.Getpid(), noProcess}, used) || !used[files[0].inode] || !used[files[1].inode] || used[files[2].inode] {
		t.Errorf("open %v, mapped %v, closed %v", used[files[0].inode], used[files[1].inode], used[files[2].inode])
	}
}

// TestFilesOfAProcessWithoutItsMainThread looks for a memory file that only another thread has
// open.
func TestFilesOfAProcessWithoutItsMainThread(t *testing.T) {
	m, err := newMemfd(pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	f, err := m.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := osexec.Command(compile(t, "mainless"))
	ready := filepath.Join(shared(t), "ready")
	c.Env, c.ExtraFiles = []string{"READY=" + ready}, []*os.File{f}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL) // with its child
		_ = c.Wait()
	}()
	if !inTime(func() bool { _, err := os.Stat(ready); return err == nil }) {
		t.Fatal("the main thread does not end")
	}
	used := map[uverbs.Inode]bool{}
	if !inodesOf([]int{c.Process.Pid}, used) || !used[m.inode] {
		t.Errorf("the file is not seen among %d", len(used))
	}
}

// TestEndIsHeardFirst: what a process had is gone when waitpid has returned, also for a request
// that is posted right after it.
func TestEndIsHeardFirst(t *testing.T) {
	canListen(t)
	needs(t, "ibv_devinfo")
	bin := compile(t, "ends")
	for _, flags := range [][]string{nil, {"-copy-queues"}, {"-no-odp"}} {
		if out, status := users()[0].session(t, append(flags, "--", bin, strconv.Itoa(3**times))...); status != 0 {
			t.Errorf("%v: status %d:\n%s", flags, status, out)
		}
	}
}

// TestClockAfterACompletion: a program that has found a completion does not read a time before it.
func TestClockAfterACompletion(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "clock")
	each(t, func(t *testing.T, u user) {
		if out, status := u.session(t, "--", bin, "2000"); status != 0 || !strings.HasPrefix(out, "0 late") {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}
