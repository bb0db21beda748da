//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Threads in GET_EVENT wait in a call that the supervisor has taken, which signals do not end. So
// they are looked at now and then, beside the engine's thread: programs may have thousands of them,
// and no other program waits for that.

// signalLook is how often threads in GET_EVENT are looked at, lookShare the most of its time that
// the look may take (one part in so many), and fullLook after how many looks the kernel is asked
// about each: it searches all that wait for each answer. For mostLooks looks another thread may
// take the signal that a wait may have to end for.
const (
	signalLook = 20 * time.Millisecond
	lookShare  = 5
	fullLook   = 64
	mostLooks  = 10
)

// look is what watch knows of threads in GET_EVENT. Its goroutine owns it.
type look struct {
	due       time.Time
	count     int
	signalled map[uint64]int // in how many looks, up to the last one, the threads of calls had a signal pending
}

// watch waits for last closes, and for signals to threads in GET_EVENT.
func (t *channels) watch() {
	var events [64]unix.EpollEvent
	for !t.quit.Load() {
		patience := -1
		if t.waiters.Load() > 0 {
			patience = int(max(0, time.Until(t.look.due))/time.Millisecond) + 1
		}
		n, err := unix.EpollWait(t.epoll, events[:], patience)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		closed := false
		for _, e := range events[:max(n, 0)] {
			if e.Fd == int32(t.kick) {
				var b [8]byte
				_, _ = unix.Read(t.kick, b[:])
			} else {
				closed = true
			}
		}
		if closed {
			t.s.eng.do(t.reap)
		}
		if now := time.Now(); t.waiters.Load() > 0 && !now.Before(t.look.due) {
			t.interrupt()
			t.look.due = time.Now().Add(max(signalLook, lookShare*time.Since(now)))
		}
	}
}

func (t *channels) stop() {
	t.quit.Store(true)
	t.wake()
}

// calling is a thread in a call.
type calling struct {
	id  uint64
	tid int
}

// interrupt ends the waits of threads that have a signal to handle, or are gone.
func (t *channels) interrupt() {
	var list []calling
	t.s.eng.do(func() {
		for _, ch := range t.byPipe {
			for _, w := range ch.waiting {
				list = append(list, calling{w.x.ID, int(w.x.PID)})
			}
		}
	})
	t.look.count++
	all := t.look.count%fullLook == 0
	before := t.look.signalled
	t.look.signalled = map[uint64]int{}
	over := map[uint64]waitEnd{}
	shared := map[int][]calling{} // those of a process that a signal of it may be for
	candidates := map[int]int{}   // threads of a process that have a signal, or may have it
	for _, c := range list {
		s := stateOf(c.tid)
		if (all || !s.alive || s.signalled) && !t.s.notes.l.Valid(c.id) {
			over[c.id] = isGone
			continue
		}
		if !s.signalled {
			continue
		}
		candidates[s.pid]++
		looks := before[c.id] + 1
		t.look.signalled[c.id] = looks
		switch {
		case looks < 2: // another thread may be about to take a signal of the process
		case s.own:
			over[c.id] = hasSignal
		default:
			shared[s.pid] = append(shared[s.pid], c)
		}
	}
	for pid, l := range shared {
		if candidates[pid] == 1 {
			switch r := receiverOf(l[0].tid, threadsOf(pid), stateOf); {
			case r == nobody, r == unknown && t.look.signalled[l[0].id] < mostLooks:
				continue
			case r == unknown:
				candidates[pid]++
			}
		}
		chooseFor(l, candidates[pid], over)
	}
	if len(over) > 0 {
		t.s.eng.do(func() { t.end(over) })
	}
}

// chooseFor ends the waits of those threads that may have been given a signal of their process. The
// kernel gives it to one thread that does not block it: the one that the signal was sent to or
// whose child has ended, or else any other (complete_signal of kernel/signal.c). A restart is the
// answer for that thread alone: others would see its number. So where it may be one of several, all
// are told EINTR.
func chooseFor(l []calling, candidates int, over map[uint64]waitEnd) {
	end := mayHaveSignal
	if candidates == 1 {
		end = hasSignal
	}
	for _, c := range l {
		over[c.id] = end
	}
}

// receiver says which thread of a process a signal may have been given to.
type receiver int

const (
	nobody     receiver = iota // it has been taken
	thisThread                 // the one that waits, and no other
	unknown                    // that, or one that runs, waits for a CPU or is in a vfork
)

// receiverOf finds the thread to which a signal that is pending for the process of tid was given.
// It looks at the others first: a signal that one of them takes meanwhile is not pending for tid at
// the end.
func receiverOf(tid int, threads []int, state func(tid int) threadState) receiver {
	for _, other := range threads {
		if other == tid {
			continue
		}
		if s := state(other); s.signalled && !s.asleep {
			return unknown
		}
	}
	if !state(tid).signalled {
		return nobody
	}
	return thisThread
}

// threadsOf lists the threads of a process.
func threadsOf(pid int) (tids []int) {
	folders, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	for _, f := range folders {
		if tid, err := strconv.Atoi(filepath.Base(f)); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// waitEnd is how a wait ends.
type waitEnd int

const (
	isGone waitEnd = iota + 1
	hasSignal
	mayHaveSignal
)

// end ends the waits of calls.
func (t *channels) end(calls map[uint64]waitEnd) {
	for _, ch := range t.byPipe {
		for i := 0; i < len(ch.waiting); i++ {
			id := ch.waiting[i].x.ID
			if calls[id] == 0 {
				continue
			}
			ch.leave(i)
			i--
			switch calls[id] {
			case hasSignal:
				_ = t.s.notes.l.Fail(id, restartSys)
			case mayHaveSignal:
				_ = t.s.notes.l.Fail(id, syscall.EINTR)
			}
		}
		t.releaseClosed(ch)
	}
}

// threadState is what the kernel says of a thread.
type threadState struct {
	pid       int // of its process
	alive     bool
	signalled bool // it has a signal pending that it does not block, or its process has
	own       bool // it has
	asleep    bool // a signal that it is given wakes it
}

func stateOf(tid int) (s threadState) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return s
	}
	text := string(b)
	mask := func(key string) uint64 {
		v, _ := strconv.ParseUint(statusValue(text, key), 16, 64)
		return v
	}
	state := statusValue(text, "State:")
	taken := ^mask("SigBlk:") &^ mask("SigIgn:")
	s.pid, _ = strconv.Atoi(statusValue(text, "Tgid:"))
	s.alive = state != "" && state[0] != 'Z' && state[0] != 'X'
	s.asleep = state != "" && state[0] == 'S'
	s.own = mask("SigPnd:")&taken != 0
	s.signalled = s.own || mask("ShdPnd:")&taken != 0
	return s
}
