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
	"github.com/rdmasim/rdmasim/attach/pace"
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/sim"
)

// How the engine's thread shares its CPU with the programs, which spin too: some
// passes over the registers, then sleep. Three spinning threads on two CPUs are ten times
// slower with a yield, or with nothing, in place of the short sleep. While there is a CPU
// for each thread it goes on polling for spinLong, since to sleep and to wake up would cost
// programs that wait for events half of their latency.
const (
	spinPasses  = 100
	spinLong    = 200 * time.Microsecond
	sleepShort  = 20 * time.Microsecond
	sleepMiddle = 100 * time.Microsecond
	sleepLong   = time.Millisecond
	quietShort  = 50 * time.Millisecond // without work for so long: middle sleeps
	quietLong   = time.Second           // long sleeps
)

// minProcs is how many of Go's processors a session has at least.
const minProcs = 4

// instantsPerLook is how many instants of virtual time are run between two passes over the
// registers.
const instantsPerLook = 16

// maxRounds is the number of rounds of work after which writes become visible that no
// completion announces.
const maxRounds = 16

// engine owns the machine: its thread alone touches what is simulated.
type engine struct {
	m          *machine
	streams    *procmem.Streams
	pace       *pace.Clock
	log        *uarLog
	pages      []*page // those polled
	clocks     []*clockPage
	deviceIdle bool      // the device has been idle since the anchor
	shownTime  sim.Time  // what the clocks show
	epoch      time.Time // time of day at virtual time 0

	mu       sync.Mutex
	work     []func() // from other goroutines
	freeWork []func()
	sleeping bool
	ending   bool
	wake     int // eventfd
	done     chan struct{}

	// Of sleep: the kernel reads them.
	pfds []unix.PollFd // the wake-up, and sockets
	ts   unix.Timespec

	unsent int // rounds of work since frames wait for a socket

	cpuLoad    *cpuLoad
	hasIdleCPU bool      // no thread waited for a CPU when this was last checked
	idleSince  time.Time // when the present idle time began

	reap      func() // ends what programs have closed
	showPorts func() // brings the files of ports up to date

	lastWork   time.Time // when there was work last
	countersAt time.Time // when the files of counters were last brought up to date
	trafficAt  time.Time // when those of traffic were
	trafficOld bool      // there was work since
}

func newEngine(m *machine, streams *procmem.Streams, throttle bool) (*engine, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	e := &engine{
		m: m, streams: streams, pace: pace.New(m.eng, throttle), wake: fd, done: make(chan struct{}), epoch: time.Now(), cpuLoad: newCPULoad(), reap: func() {}, showPorts: func() {},
	}
	e.pace.Before = e.showBefore
	e.pfds = []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if m.wires != nil {
		e.pace.Bound(wire.Lead)
		e.pollWires()
	}
	return e, nil
}

// do runs f on the engine's thread, between events, and waits for it. After the end
// of the engine it runs f here.
func (e *engine) do(f func()) {
	ready := make(chan struct{})
	e.post(func() { defer close(ready); f() })
	select {
	case <-ready:
	case <-e.done:
	}
}

// post is do without the wait.
func (e *engine) post(f func()) {
	e.mu.Lock()
	if e.ending {
		e.mu.Unlock()
		<-e.done
		f()
		return
	}
	e.work = append(e.work, f)
	wake := e.sleeping
	e.mu.Unlock()
	if wake {
		one := [8]byte{1}
		_, _ = unix.Write(e.wake, one[:])
	}
}

// later runs f on the engine's thread, which calls this, when the events of now have been carried
// out.
func (e *engine) later(f func()) {
	e.mu.Lock()
	e.work = append(e.work, f)
	e.mu.Unlock()
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

// err is the failure that ended the simulation early, or nil.
func (e *engine) err() error {
	var err error
	e.do(func() { err = e.pace.Err() })
	return err
}

// run is the engine's thread.
func (e *engine) run() {
	runtime.LockOSThread()
	sharedmem.SurviveFaults()
	defer close(e.done)
	defer e.cpuLoad.close()
	// The programs of the simulation, which belong to the driver, end on the thread that started
	// them.
	defer e.m.eng.Close()
	// This thread keeps one of Go's processors while it spins and sleeps; the other
	// goroutines need some too, however few CPUs there are.
	runtime.GOMAXPROCS(max(minProcs, runtime.GOMAXPROCS(0)))
	// Sleeps of 20 us need a finer timer than the usual slack of 50.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	e.pace.Rest()
	e.lastWork = time.Now()
	idle, rounds := 0, 0
	for {
		worked, ending := e.drain()
		if ending {
			return
		}
		if e.m.wires != nil {
			e.passTime()
			worked = e.takeWires() || worked
		}
		if e.poll() {
			worked = true
		}
		if e.pace.Advance(instantsPerLook, false) {
			worked = true
		}
		e.flushWires(!worked)
		if worked {
			if idle > 0 {
				e.lastWork = time.Now()
			}
			idle, e.deviceIdle = 0, false
			e.showClocks()
			e.showCounters(false)
			if rounds++; rounds%maxRounds == 0 {
				e.streams.Flush()
			}
			continue
		}
		if idle++; idle == 1 {
			e.streams.Flush()
			e.streams.DropReadAhead()
			e.idleSince = time.Now()
			e.pace.Rest()
			e.showCounters(true)
			e.deviceIdle = true
		}
		e.showClocks()
		if idle >= spinPasses && !e.spin(idle) {
			e.waitForWork()
		}
	}
}

// spin reports whether to look at the registers again without a pause.
func (e *engine) spin(idle int) bool {
	if idle%spinPasses == 0 {
		e.hasIdleCPU = len(e.pages) > 0 && time.Since(e.idleSince) < spinLong && e.cpuLoad.hasIdleCPU()
	}
	return e.hasIdleCPU
}

// drain carries out what other goroutines asked for.
func (e *engine) drain() (worked, ending bool) {
	e.mu.Lock()
	if len(e.work) == 0 {
		e.mu.Unlock()
		return false, e.ending
	}
	list := e.work
	e.work = e.freeWork[:0]
	e.mu.Unlock()
	e.streams.Flush()
	e.streams.DropReadAhead()
	e.catchUp()
	for _, f := range list {
		f()
	}
	clear(list)
	e.freeWork = list
	return true, e.ending
}

// catchUp lets the pause that ends now pass in virtual time.
func (e *engine) catchUp() {
	if e.m.wires != nil {
		e.passTime()
		return
	}
	if len(e.clocks) > 0 && e.deviceIdle && e.m.eng.Next() == sim.Never {
		e.pace.Pass(max(e.m.eng.Now(), e.pace.Real()))
	}
	e.pace.CatchUp()
}

// waitForWork sleeps until there is work from another goroutine, a timer is due, or it is time
// to look at the registers again.
func (e *engine) waitForWork() {
	d := sleepLong
	switch quiet := time.Since(e.lastWork); {
	case len(e.pages) == 0:
	case quiet < quietShort:
		d = sleepShort
	case quiet < quietLong:
		d = sleepMiddle
	}
	if due, ok := e.pace.Wait(); ok {
		d = min(d, due)
	} else if len(e.pages) == 0 && len(e.clocks) == 0 {
		d = time.Hour
	}
	if e.trafficOld {
		if left := e.showTraffic(false); left > 0 {
			d = min(d, left)
		}
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

// sleep waits for the wake-up or for d, and reports whether there was a wake-up. Short
// sleeps bypass the Go scheduler, whose part of a blocking system call takes longer than
// they last.
func (e *engine) sleep(d time.Duration) bool {
	e.ts = unix.NsecToTimespec(int64(d))
	if d > sleepMiddle {
		n, err := unix.Ppoll(e.pfds, &e.ts, nil)
		return err == nil && n > 0 && e.pfds[0].Revents != 0
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&e.pfds[0])), uintptr(len(e.pfds)), uintptr(unsafe.Pointer(&e.ts)), 0, 0, 0)
	return errno == 0 && n > 0 && e.pfds[0].Revents != 0
}

// poll looks at every register page once.
func (e *engine) poll() (rung bool) {
	defer e.loseGone()
	if !slices.ContainsFunc(e.pages, (*page).rung) {
		return false
	}
	// A pass takes many requests of programs that post without a pause, so that to ask the kernel
	// costs little.
	e.reap() // may end pages
	if slices.ContainsFunc(e.pages, (*page).byCommand) {
		return e.pollInOrder()
	}
	for _, p := range e.pages {
		if p.poll(e) {
			rung = true
		}
	}
	return rung
}

// settleLooks bounds how often instantsPerLook instants are run for what queues of commands are to
// do first.
const settleLooks = 64

// pollInOrder is poll where QPs of commands ring.
func (e *engine) pollInOrder() bool {
	return takeInOrder(e.pages, func(p *page) bool { return p.poll(e) }, func() {
		for range settleLooks {
			if !e.pace.Advance(instantsPerLook, false) {
				break
			}
		}
	})
}

// takeInOrder takes what rings at pages. By QPs of commands a library writes flow table entries,
// and then the program sends packets that they are for: a thread's stores become visible in their
// order, so that a store to another page is taken only after those to the pages of such QPs that
// were there when it was seen, and after the device has carried these out (settle).
func takeInOrder[P interface {
	byCommand() bool
	rung() bool
}](pages []P, poll func(P) bool, settle func()) (rung bool) {
	commands := func() (taken bool) {
		for _, p := range pages {
			if p.byCommand() && poll(p) {
				taken = true
			}
		}
		return taken
	}
	rung = commands()
	waits := rung
	for _, p := range pages {
		if p.byCommand() || !p.rung() {
			continue
		}
		if commands() || waits {
			settle()
			waits, rung = false, true
		}
		rung = poll(p) || rung
	}
	return rung
}

// loseGone stops looking at the page whose memory has turned out to be gone: what its program
// stores there is not seen any more.
func (e *engine) loseGone() {
	r := recover()
	if r == nil {
		return
	}
	at := sharedmem.Fault(r)
	lost := func(b []byte) bool { return sharedmem.Within(at, b) }
	pages, clocks := len(e.pages), len(e.clocks)
	e.pages = slices.DeleteFunc(e.pages, func(p *page) bool { p.gone = p.gone || lost(p.mem); return p.gone })
	e.clocks = slices.DeleteFunc(e.clocks, func(c *clockPage) bool { return lost(c.mem) })
	if pages+clocks == len(e.pages)+len(e.clocks) {
		panic(r) // the memory is nobody's
	}
	say("the memory of a page of registers is gone; what programs store there is not seen any more")
}

func (e *engine) addPage(p *page) {
	if !p.gone {
		e.pages = append(e.pages, p)
	}
}

func (e *engine) removePage(p *page) {
	if i := slices.Index(e.pages, p); i >= 0 {
		e.pages = slices.Delete(e.pages, i, i+1)
	}
}
