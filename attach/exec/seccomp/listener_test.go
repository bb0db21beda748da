//go:build linux && amd64

package seccomp

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// answered makes a thread with a filter call getppid, has f answer it, and returns what the thread
// gets.
func answered(t *testing.T, f func(l *Listener, x *Notif)) uintptr {
	t.Helper()
	listener, got := make(chan int), make(chan uintptr, 1)
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine, and its filter too
		prog := Compile([]Rule{{Nr: unix.SYS_GETPPID, Ret: Notify}})
		p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			failed <- err
			return
		}
		fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
			unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&p)))
		if e != 0 {
			failed <- e
			return
		}
		listener <- int(fd)
		r, _, _ := unix.Syscall(unix.SYS_GETPPID, 0, 0, 0)
		got <- r
	}()
	var l *Listener
	select {
	case err := <-failed:
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL) {
			t.Skipf("needs a machine that lets a thread be supervised: %v", err)
		}
		t.Fatal(err)
	case fd := <-listener:
		l = NewListener(fd)
	}
	x, err := l.Recv()
	if err != nil {
		t.Fatal(err)
	}
	f(l, &x)
	r := <-got
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return r
}

// state waits for a thread to be in one of two states, and says in which: asleep so that a signal
// wakes it (S), or none that does not kill (D).
func state(t *testing.T, tid uint32) byte {
	t.Helper()
	for range 3_000_000 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
		if err != nil {
			t.Fatal(err)
		}
		if s := b[bytes.LastIndexByte(b, ')')+2]; s == 'S' || s == 'D' {
			return s
		}
		time.Sleep(100 * time.Microsecond)
	}
	t.Fatal("the thread does not sleep")
	return 0
}

// TestSettledCallerHearsNoSignal: a caller whose call has been received sleeps on so that signals
// wake it, until it is settled.
func TestSettledCallerHearsNoSignal(t *testing.T) {
	r := answered(t, func(l *Listener, x *Notif) {
		l.Settle = true
		before := state(t, x.PID)
		l.settle(x.ID)
		if after := state(t, x.PID); before != 'S' || after != 'D' {
			t.Errorf("state %c, and %c when it is settled", before, after)
		}
		if err := l.Done(x.ID, 42); err != nil {
			t.Error(err)
		}
		if err := l.Done(x.ID, 43); !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINPROGRESS) {
			t.Errorf("a second answer: %v", err)
		}
	})
	if r != 42 {
		t.Errorf("the answer is %d", r)
	}
}
