//go:build linux

package peer

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pace"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// Host is a simulated host on a real network. Only one goroutine may use it; others only post work
// through Wait.
type Host struct {
	cfg   Config
	began time.Time
	grace time.Duration
	port  wire.End
	tb    *testbed.Testbed
	net   *network.Network
	pace  *pace.Clock
	pfds  []unix.PollFd
	ts    unix.Timespec // of poll: the kernel reads it

	idle    bool               // the device has been idle since the last look
	came    sim.Time           // when datagrams came last
	pollers []*provider.Thread // that wait for some

	queued int // frames that waited for the socket after the last round
	unsent int // rounds of work since frames wait for the socket

	mu       sync.Mutex
	work     []func() // from other goroutines
	taken    []func()
	sleeping bool
	closed   bool
	wake     int // eventfd
}

// Shapes of the host.
const (
	cores  = 4
	memory = 64 << 30 // what is never written takes none
)

// Open opens the way out and makes the host. Its errors say what to do.
func Open(cfg Config) (*Host, error) {
	if cfg.Profile.Resolved().Link.InfiniBand {
		return nil, fmt.Errorf("%v carries RoCE v2: choose a profile without -ib", cfg.Place)
	}
	h := &Host{cfg: cfg, began: time.Now(), grace: patience}
	var err error
	if h.port, err = wire.Open(wire.Config{Place: cfg.Place, MTU: cfg.MTU, Allow: cfg.Allow, Say: cfg.Say}); err != nil {
		return nil, err
	}
	if cfg.Pcap != nil {
		h.port.Alone() // with the identification that is in the capture
	}
	if h.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = h.port.Close()
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	h.pfds = []unix.PollFd{{Fd: int32(h.wake), Events: unix.POLLIN}, {Fd: int32(h.port.FD()), Events: unix.POLLIN}}
	if err := h.build(); err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

// most is how many devices may be at one address, one after the other, whose numbers are apart.
const most = 16

func (h *Host) build() (err error) {
	p := wire.Profile(h.cfg.Profile.Resolved(), h.port.MTU())
	c := testbed.Default(p)
	c.Seed, c.NoTap = h.cfg.Seed^uint64(h.began.UnixNano()), true // peers remember what an earlier run has sent
	c.Hosts = []testbed.HostConfig{{Name: "host0", Cores: cores, Memory: memory, Devices: 1}}
	c.Outside = &testbed.Outside{
		Identity: h.port.Identity(0, most), Address: h.port.Address(),
		Join: func(e *sim.Engine, d *hca.Device) (near *link.Port) {
			h.net = network.NewOutside(e, p, []*hca.Device{d}, func(_ int, far *link.Port) {
				far.Attach(h.port)
				h.port.Attach(far, d.Frames())
				near = far.Peer()
			})
			return near
		},
		Reach:     h.port.Allows,
		Neighbour: func(ip netip.Addr) (kernel.MAC, bool) { mac, ok := h.port.Neighbour(ip); return kernel.MAC(mac), ok },
		Now:       func() time.Duration { return time.Since(h.began) },
	}
	if h.tb, err = testbed.New(c); err != nil {
		return err
	}
	if h.cfg.Pcap != nil {
		if err := h.net.Capture(h.cfg.Pcap, h.cfg.PcapLimit); err != nil {
			return err
		}
	}
	if h.cfg.Faults == nil {
		return nil
	}
	return h.net.PlanFor(h.cfg.Faults, fault.Target{Cannot: func(fault.EventKind) string {
		return "rdmasim wire accepts faults of frames and links only; rdmasim run and rdmasim exec carry out events"
	}})
}

// Close closes the socket and finishes the capture.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	var err error
	if h.tb != nil {
		err = h.tb.Close()
	}
	if h.net != nil {
		err = joined(err, h.net.Close())
	}
	_ = unix.Close(h.wake)
	return joined(err, h.port.Close())
}

func joined(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// Wire returns the end of the adapter's cable; its name and counters can be read after Run, too.
func (h *Host) Wire() wire.End { return h.port }

// Counters returns the counters of the device, under the names that they have on hardware.
func (h *Host) Counters() map[string]uint64 { return h.tb.HardwareCountersOutside() }

// Faults returns what each rule of the fault script did, one a line.
func (h *Host) Faults() (lines []string) {
	p := h.cfg.Faults
	if p == nil {
		return nil
	}
	for i, c := range h.net.Rules() {
		lines = append(lines, fmt.Sprintf("fault %d (%v) has acted upon %d of %s that it matches", i+1, p.Rules[i].Action, c.Acted, plain.Count(c.Matched, "frame")))
	}
	for _, l := range p.Links {
		state := "down"
		if l.Up {
			state = "up"
		}
		if sim.Time(l.At) > h.tb.Engine().Now() {
			lines = append(lines, fmt.Sprintf("the link of %s was not yet to be taken %s at %v", l.Port, state, sim.Time(l.At)))
		} else {
			lines = append(lines, fmt.Sprintf("the link of %s was taken %s at %v", l.Port, state, sim.Time(l.At)))
		}
	}
	return lines
}

// instantsPerLook is how many instants of virtual time are run between two looks at the socket.
// Without work the thread sleeps at once: the peer may need the CPU to send what is waited for.
const instantsPerLook = 16

// A busy device's frames wait for others, so that one call of the kernel takes many: for as many
// frames, or rounds of work.
const (
	enoughFrames = 48
	enoughRounds = 6
)

// patience is how long a body may take to end after it was asked to.
const patience = 4 * time.Second

// Run runs body in a thread of a process of the host until it returns, or until some time after the
// context ends. The error is the simulation's or the context's. Run can be called once.
func (h *Host) Run(ctx context.Context, body func(verbs.Thread)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	eng := h.tb.Engine()
	defer eng.Close()                       // programs end on the thread that started them
	eng.At(sim.Never-1, func(uint64) {}, 0) // with an end outside nobody can say that nothing will happen
	late := false
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(h.grace, func() { h.post(func() { late = true }) }) })
	defer stop()
	s := h.tb.Start(body)
	h.pace = pace.New(eng, false)
	h.pace.Bound(wire.Lead)
	for {
		worked := h.drain()
		h.passTime()
		if h.port.Fetch() {
			h.port.Deliver()
			h.wakePollers()
			worked = true
		}
		worked = h.pace.Advance(instantsPerLook, false) || worked
		if ended, err := s.Ended(h.pace.Err()); ended {
			h.finish()
			return err
		}
		if late {
			return ctx.Err()
		}
		h.flush(!worked)
		if worked {
			h.idle = false
			continue
		}
		if !h.idle {
			h.pace.Rest()
			h.idle = true
		}
		h.sleep()
	}
}

// passTime lets virtual time go on beside real time, up to what is due next.
func (h *Host) passTime() {
	if h.idle {
		h.pace.PassIdle()
	} else {
		h.pace.Keep()
	}
}

// lastRounds is how much of what the device does at once is carried out after the end of a body,
// such as answers to a peer.
const lastRounds = 64

func (h *Host) finish() {
	for range lastRounds {
		if !h.pace.Advance(instantsPerLook, false) {
			break
		}
	}
	h.port.Flush()
}

// flush sends what the device has sent, when nothing is left to do, it is much, or no more has come
// in a round: what goes on may be a program that polls.
func (h *Host) flush(idle bool) {
	n := h.port.Queued()
	if n == 0 {
		return
	}
	if h.unsent++; idle || n == h.queued || n >= enoughFrames || h.unsent >= enoughRounds {
		h.unsent, n = 0, 0
		h.port.Flush()
	}
	h.queued = n
}

// sleep waits for a datagram, for work, or until something is due.
func (h *Host) sleep() {
	d := time.Hour
	if due, ok := h.pace.Wait(); ok {
		d = min(d, max(0, due-time.Duration(wire.Lead/sim.Nanosecond)))
	}
	h.mu.Lock()
	if len(h.work) > 0 {
		h.mu.Unlock()
		return
	}
	h.sleeping = true
	h.mu.Unlock()
	if h.poll(d) && h.pfds[0].Revents != 0 {
		var b [8]byte
		_, _ = unix.Read(h.wake, b[:])
	}
	h.mu.Lock()
	h.sleeping = false
	h.mu.Unlock()
}

// short is a sleep for which the Go scheduler's part of a blocking system call would take longer.
const short = 100 * time.Microsecond

// poll waits for the socket or a wake-up, for so long, and reports whether there is something.
func (h *Host) poll(d time.Duration) bool {
	h.ts = unix.NsecToTimespec(int64(d))
	if d > short {
		n, err := unix.Ppoll(h.pfds, &h.ts, nil)
		return err == nil && n > 0
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&h.pfds[0])), uintptr(len(h.pfds)), uintptr(unsafe.Pointer(&h.ts)), 0, 0, 0)
	return errno == 0 && n > 0
}

// post has f run between events.
func (h *Host) post(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.work = append(h.work, f)
	if h.sleeping {
		one := [8]byte{1}
		_, _ = unix.Write(h.wake, one[:])
	}
}

// drain carries out what other goroutines asked for.
func (h *Host) drain() bool {
	h.mu.Lock()
	h.work, h.taken = h.taken[:0], h.work
	h.mu.Unlock()
	if len(h.taken) == 0 {
		return false
	}
	h.passTime()
	for _, f := range h.taken {
		f()
	}
	clear(h.taken)
	return true
}

// Wait runs f in a goroutine and returns when it has ended. Meanwhile only the thread waits, not
// the host.
func (h *Host) Wait(t verbs.Thread, f func()) {
	th := provider.Of(t)
	th.P.Sync()
	done := false
	go func() {
		f()
		h.post(func() {
			done = true
			th.Wake(h.tb.Engine().Now())
		})
	}()
	for !done {
		th.ParkUntil("somebody outside", sim.Never)
	}
}

// A device does with a datagram what it does at once: a program that polls memory looks at it in
// turns meanwhile, and then ever more rarely until the next one comes. Without any it looks each
// quiet, for the user's sake.
const (
	busy  = 5 * sim.Microsecond
	turn  = 200 * time.Nanosecond
	quiet = 10 * sim.Millisecond
)

// Idle is one turn of a program that polls memory: it takes CPU time while datagrams arrive, and
// otherwise parks until one arrives.
func (h *Host) Idle(t verbs.Thread) {
	th := provider.Of(t)
	th.P.Sync()
	since := th.P.Now() - h.came
	if since < busy {
		th.Work(turn)
		return
	}
	h.pollers = append(h.pollers, th)
	th.ParkUntil("a datagram", th.P.Now()+min(since, quiet))
	h.pollers = slices.DeleteFunc(h.pollers, func(x *provider.Thread) bool { return x == th })
}

func (h *Host) wakePollers() {
	h.came = h.tb.Engine().Now()
	for _, th := range h.pollers {
		th.Wake(h.came)
	}
}
