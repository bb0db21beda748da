//go:build linux && amd64

package exec

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/sim"
)

// How the engine's thread shares its CPU with the programs, which spin too: some
// passes over the registers, then sleep. Three spinners on two CPUs are ten times
// slower with a yield, or with none, in place of the short sleep. While there is a CPU
// for everybody it goes on looking for spinLong, since the sleep and waking up cost
// programs that wait for events half of their latency.
const (
	spinPasses = 100
	spinLong   = 200 * time.Microsecond
	napShort   = 20 * time.Microsecond
	napMiddle  = 100 * time.Microsecond
	napLong    = time.Millisecond
	quietSoon  = 50 * time.Millisecond // without a ring for so long: middle naps
	quietLong  = time.Second           // long naps
)

// minProcs is how many of Go's processors a session has at least.
const minProcs = 4

// gap is the pause in the device's work that virtual time jumps over. A longer one is
// a timer (of retransmission, of receiver-not-ready), and is waited out in real time,
// in which the programs do what the timer waits for.
const gap = 50 * sim.Microsecond

// batch is how many instants of virtual time are run between two looks at the
// registers.
const batch = 16

// maxRounds is after how many rounds of work writes that no completion tells of become
// visible.
const maxRounds = 16

// lagLimit bounds how far behind real time a throttled run may fall and catch up.
const lagLimit = sim.Millisecond

// engine owns the machine: its thread alone touches what is simulated.
type engine struct {
	m        *machine
	streams  *procmem.Streams
	throttle bool
	log      *uarLog
	pages    []*page // those polled
	clocks   []*clockPage
	resting  bool      // the device is idle since the anchor
	shown    sim.Time  // what the clocks show
	epoch    time.Time // time of day at virtual time 0

	mu       sync.Mutex
	work     []func() // from other goroutines
	spare    []func()
	sleeping bool
	ending   bool
	wake     int // eventfd
	done     chan struct{}
	failure  error

	// Of sleep: the kernel reads them.
	pfd unix.PollFd
	ts  unix.Timespec

	crowd  *crowd
	roomy  bool      // nobody waited for a CPU at the last look
	idleAt time.Time // since when nothing happens

	// Virtual time v0 was at real time r0: pauses count from there.
	v0    sim.Time
	r0    time.Time
	quiet time.Time // when something happened last
}

func newEngine(m *machine, streams *procmem.Streams, throttle bool) (*engine, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &engine{
		m: m, streams: streams, throttle: throttle, wake: fd, done: make(chan struct{}), epoch: time.Now(), crowd: newCrowd(),
	}, nil
}

// do runs f on the engine's thread, between events, and waits for it. After the end
// of the engine it runs f here.
func (e *engine) do(f func()) {
	ready := make(chan struct{})
	e.mu.Lock()
	if e.ending {
		e.mu.Unlock()
		<-e.done
		f()
		return
	}
	e.work = append(e.work, func() { defer close(ready); f() })
	wake := e.sleeping
	e.mu.Unlock()
	if wake {
		one := [8]byte{1}
		_, _ = unix.Write(e.wake, one[:])
	}
	select {
	case <-ready:
	case <-e.done:
	}
}

// stop ends the thread and waits for it.
func (e *engine) stop() {
	e.do(func() {
		e.mu.Lock()
		e.ending = true
		e.mu.Unlock()
	})
	<-e.done
}

// err is what ended the simulation before its time.
func (e *engine) err() error {
	var err error
	e.do(func() { err = e.failure })
	return err
}

// run is the engine's thread.
func (e *engine) run() {
	runtime.LockOSThread()
	defer close(e.done)
	defer e.crowd.close()
	// This thread keeps its share of Go's processors while it spins and sleeps; the
	// others need some too, however few CPUs there are.
	runtime.GOMAXPROCS(max(minProcs, runtime.GOMAXPROCS(0)))
	// Sleeps of 20 us need a finer timer than the usual slack of 50.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	e.r0, e.quiet = time.Now(), time.Now()
	idle, rounds := 0, 0
	for {
		worked, ending := e.drain()
		if ending {
			return
		}
		if e.poll() {
			worked = true
		}
		if e.advance() {
			worked = true
		}
		if worked {
			if idle > 0 {
				e.quiet = time.Now()
			}
			idle, e.resting = 0, false
			e.ticks()
			if rounds++; rounds%maxRounds == 0 {
				e.streams.Flush()
			}
			continue
		}
		if idle++; idle == 1 {
			e.streams.Flush()
			e.streams.Fresh()
			e.idleAt = time.Now()
			e.anchor()
			e.resting = true
		}
		e.ticks()
		if idle >= spinPasses && !e.spin(idle) {
			e.nap()
		}
	}
}

// spin reports whether to look at the registers again without a pause.
func (e *engine) spin(idle int) bool {
	if idle%spinPasses == 0 {
		e.roomy = len(e.pages) > 0 && time.Since(e.idleAt) < spinLong && e.crowd.spare()
	}
	return e.roomy
}

// drain carries out what other goroutines asked for.
func (e *engine) drain() (worked, ending bool) {
	e.mu.Lock()
	if len(e.work) == 0 {
		e.mu.Unlock()
		return false, e.ending
	}
	list := e.work
	e.work = e.spare[:0]
	e.mu.Unlock()
	e.streams.Flush()
	e.streams.Fresh()
	e.catchUp()
	for _, f := range list {
		f()
	}
	clear(list)
	e.spare = list
	return true, e.ending
}

// anchor notes that the device is idle from now on.
func (e *engine) anchor() {
	if e.throttle && e.real()-e.m.eng.Now() < lagLimit {
		return
	}
	e.v0, e.r0 = e.m.eng.Now(), time.Now()
}

// real is what virtual time is if it has run as real time since the anchor.
func (e *engine) real() sim.Time {
	return e.v0 + sim.Time(time.Since(e.r0))*sim.Nanosecond
}

// catchUp lets the pause that ends now pass in virtual time.
func (e *engine) catchUp() {
	now := max(e.m.eng.Now(), e.real())
	if e.m.eng.Next() != sim.Never {
		e.runUntil(now)
	} else if len(e.clocks) > 0 && e.resting {
		e.passTo(now)
	}
}

func (e *engine) runUntil(t sim.Time) {
	if err := e.m.eng.Run(t); err != nil && e.failure == nil {
		e.failure = fmt.Errorf("the simulator: %w", err)
	}
}

// advance runs some of what is due, and reports whether there was anything.
func (e *engine) advance() bool {
	s := e.m.eng
	for n := range batch {
		next := s.Next()
		if next == sim.Never || e.failure != nil {
			return n > 0
		}
		if (e.throttle || next-s.Now() > gap) && next > e.real() {
			return n > 0
		}
		e.runUntil(next)
	}
	return true
}

// nap sleeps until there is work from another goroutine, a timer is due, or it is time
// to look at the registers again.
func (e *engine) nap() {
	d := napLong
	switch quiet := time.Since(e.quiet); {
	case len(e.pages) == 0:
	case quiet < quietSoon:
		d = napShort
	case quiet < quietLong:
		d = napMiddle
	}
	if next := e.m.eng.Next(); next != sim.Never {
		d = min(d, max(0, time.Duration((next-e.real())/sim.Nanosecond)))
	} else if len(e.pages) == 0 && len(e.clocks) == 0 {
		d = time.Hour
	}
	e.mu.Lock()
	if len(e.work) > 0 || e.ending {
		e.mu.Unlock()
		return
	}
	e.sleeping = true
	e.mu.Unlock()
	if e.sleep(d) {
		var b [8]byte
		_, _ = unix.Read(e.wake, b[:])
	}
	e.mu.Lock()
	e.sleeping = false
	e.mu.Unlock()
}

// sleep waits for the wake-up or for d, and reports whether there was a wake-up. The Go
// scheduler is not told of short sleeps: its part of a system call that blocks costs
// more than they last.
func (e *engine) sleep(d time.Duration) bool {
	e.pfd = unix.PollFd{Fd: int32(e.wake), Events: unix.POLLIN}
	e.ts = unix.NsecToTimespec(int64(d))
	if d > napMiddle {
		n, err := unix.Ppoll([]unix.PollFd{e.pfd}, &e.ts, nil)
		return err == nil && n > 0
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&e.pfd)), 1, uintptr(unsafe.Pointer(&e.ts)), 0, 0, 0)
	return errno == 0 && n > 0
}

// poll looks at every register page once.
func (e *engine) poll() bool {
	rung := false
	for _, p := range e.pages {
		if p.poll(e) {
			rung = true
		}
	}
	return rung
}

func (e *engine) addPage(p *page) { e.pages = append(e.pages, p) }

func (e *engine) removePage(p *page) {
	if i := slices.Index(e.pages, p); i >= 0 {
		e.pages = slices.Delete(e.pages, i, i+1)
	}
}
