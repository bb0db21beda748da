//go:build hw

package mlx5

/*
#include "verbs.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// ErrWrongThread is what a call panics with when the thread it is given is not the
// one that makes it.
var ErrWrongThread = errors.New("verbs call with another thread's value")

// thread is a goroutine on an operating system thread of its own.
type thread struct {
	p    *process
	name string
	tid  int
	done chan struct{}
	room *C.struct_hw_scratch

	mu    sync.Mutex
	call  string // that it is in; "" when it is in none
	since time.Time

	pending any // panic of a callback, to be raised when the library has returned
}

// start runs body in a new thread. Its operating system thread ends with it.
func (p *process) start(name string, core int, body func(verbs.Thread)) *thread {
	t := &thread{p: p, name: name, done: make(chan struct{})}
	began := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		debug.SetPanicOnFault(true) // a buffer that is no longer mapped is EFAULT, not the end of the process
		t.tid = unix.Gettid()
		p.bed.enter(t)
		if core >= 0 {
			pin(core)
		}
		close(began)
		defer t.end()
		body(t)
	}()
	<-began
	return t
}

// end reports to the testbed how the thread ended, before another thread can join it.
func (t *thread) end() {
	if v := recover(); v != nil {
		fmt.Fprintf(os.Stderr, "thread %s: %v\n%s", t.name, v, debug.Stack())
		t.p.bed.panicked(fmt.Sprintf("thread %s: %v", t.name, v))
	}
	t.p.bed.leave(t)
	if t.room != nil {
		C.hw_release(t.room)
	}
	close(t.done)
}

// pin keeps the thread on one of the cores that the process may use.
func pin(core int) {
	var have, want unix.CPUSet
	if unix.SchedGetaffinity(0, &have) != nil || have.Count() == 0 {
		return
	}
	n := core % have.Count()
	for cpu := 0; ; cpu++ {
		if have.IsSet(cpu) {
			if n == 0 {
				want.Set(cpu)
				_ = unix.SchedSetaffinity(0, &want)
				return
			}
			n--
		}
	}
}

// callingThread is the thread behind t, which must be the calling one.
func callingThread(t verbs.Thread) *thread {
	h, ok := t.(*thread)
	if !ok || h == nil {
		panic(fmt.Errorf("a %T is not a thread of this testbed: %w", t, ErrWrongThread))
	}
	if h.tid != unix.Gettid() {
		panic(fmt.Errorf("thread %q: %w", h.name, ErrWrongThread))
	}
	return h
}

// enterCall notes a call that may not return, for the report on a thread that hangs.
func enterCall(t verbs.Thread, call string) *thread {
	h := callingThread(t)
	h.mu.Lock()
	h.call, h.since = call, time.Now()
	h.mu.Unlock()
	return h
}

// leaveCall notes that the call has returned, and raises the panic of a callback.
func (t *thread) leaveCall() {
	t.mu.Lock()
	t.call = ""
	t.mu.Unlock()
	if v := t.pending; v != nil {
		t.pending = nil
		panic(v)
	}
}

// currentCall is the call that the thread is in and for how long.
func (t *thread) currentCall() (string, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.call == "" {
		return "", 0
	}
	return t.call, time.Since(t.since)
}

// scratch is the thread's C memory, with room for at least the given numbers of send
// requests, receive requests, SGEs and completions.
func (t *thread) scratch(sends, recvs, sges, wcs int) *C.struct_hw_scratch {
	if t.room == nil {
		t.room = (*C.struct_hw_scratch)(C.calloc(1, C.sizeof_struct_hw_scratch))
	}
	r := t.room
	if C.int(sends) > r.sends || C.int(recvs) > r.recvs || C.int(sges) > r.sges || C.int(wcs) > r.wcs {
		const least = 64
		if C.hw_reserve(r, C.int(max(sends, least)), C.int(max(recvs, least)), C.int(max(sges, 4*least)), C.int(max(wcs, least))) != 0 {
			panic(fmt.Errorf("no memory for %d requests: %w", sends+recvs, syscall.ENOMEM))
		}
	}
	return r
}

func (t *thread) Process() verbs.Process { return t.p }
func (t *thread) Name() string           { return t.name }

// Now is the time since the testbed began.
func (t *thread) Now() time.Duration { return time.Since(t.p.bed.began) }

// Sleep yields the CPU for d.
func (t *thread) Sleep(d time.Duration) {
	callingThread(t)
	time.Sleep(d)
}

// Work keeps the CPU busy for d.
func (t *thread) Work(d time.Duration) {
	callingThread(t)
	for end := time.Now().Add(d); time.Now().Before(end); {
		runtime.KeepAlive(t)
	}
}

// Join waits for other to end.
func (t *thread) Join(other verbs.Thread) {
	o, ok := other.(*thread)
	if !ok {
		panic(fmt.Errorf("join a %T: %w", other, ErrWrongThread))
	}
	defer enterCall(t, "join "+o.name).leaveCall()
	<-o.done
}

// Interrupt signals other, as pthread_kill does.
func (t *thread) Interrupt(other verbs.Thread) error {
	callingThread(t)
	o, ok := other.(*thread)
	if !ok {
		panic(fmt.Errorf("interrupt a %T: %w", other, ErrWrongThread))
	}
	select {
	case <-o.done:
		return fmt.Errorf("thread %q signals %q: %w", t.name, o.name, syscall.ESRCH)
	default:
	}
	if e := C.hw_interrupt(C.int(os.Getpid()), C.int(o.tid)); e != 0 {
		return fmt.Errorf("tgkill: %w", syscall.Errno(e))
	}
	return nil
}
