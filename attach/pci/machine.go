//go:build linux && amd64

package pci

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pace"
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// instants is how many instants of virtual time are run at a time, between which others get the
// lock.
const instants = 256

// machine is all that is simulated: functions and the network between them.
type machine struct {
	mu        sync.Mutex // guards all but what has its own
	eng       *sim.Engine
	clock     *pace.Clock
	prof      *profile.Profile
	net       *network.Network
	fns       []*function
	verbose   bool
	blueFlame time.Duration // Config.BlueFlame
	tell      func(format string, args ...any)
	identity  func(k int) hca.Identity

	lan *wire.LAN // the Ethernet that the functions are on too; nil: there is none
	// listening is the end of the goroutine that takes frames from there.
	listening chan struct{}

	host *Host         // whose simulation this is; nil: it is its own, with a pacer
	wake chan struct{} // has the pacer look again
	due  time.Time     // when the pacer looks by itself; zero: not
	quit chan struct{}
	done chan struct{}
	// failed is closed when the simulation cannot go on.
	failed chan struct{}
}

// newMachine makes functions that are off, as no guest is connected.
func newMachine(cfg *Config, lan *wire.LAN) *machine {
	p := cfg.Profile.Resolved()
	m := &machine{
		eng: sim.New(sim.Options{Seed: cfg.Seed}), prof: p, verbose: cfg.Verbose, blueFlame: cfg.BlueFlame, tell: cfg.Logf, identity: netdevIdentity, lan: lan,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
	if lan != nil {
		m.identity = m.lanIdentity
	}
	var devices []*hca.Device
	for k := range cfg.Functions {
		f := newFunction(m, fmt.Sprintf("mlx5_%d", k), k)
		m.fns = append(m.fns, f)
		devices = append(devices, f.hca)
	}
	if lan != nil {
		m.joinLAN(p, devices)
	} else {
		m.net = network.NewManaged(m.eng, p, devices)
	}
	m.clock = pace.New(m.eng, false)
	return m
}

// netdevIdentity is the identity of function k. On Ethernet its driver makes a network interface.
func netdevIdentity(k int) hca.Identity {
	id := network.Identity(k)
	id.Netdev = true
	return id
}

func (m *machine) logf(format string, args ...any) {
	if m.tell != nil {
		m.tell(format, args...)
	}
}

// enter takes the lock and lets the pause that ends now pass in virtual time. The result is to be
// called at the end.
func (m *machine) enter() (leave func()) {
	if m.host != nil {
		return m.take()
	}
	m.mu.Lock()
	m.clock.Pass(max(m.eng.Now(), m.clock.Real()))
	return m.leave
}

// leave lets the device do what it does at once, and gives the lock back. What takes longer the
// pacer does.
func (m *machine) leave() {
	look := m.work()
	earlier := !look.IsZero() && (m.due.IsZero() || look.Before(m.due)) || m.clock.Err() != nil
	m.mu.Unlock()
	if earlier {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// work runs what is due, and returns when to look again; zero: when something has happened.
func (m *machine) work() time.Time {
	m.clock.Advance(instants, m.busy())
	m.clock.Rest()
	if m.lan != nil {
		m.lan.Flush()
	}
	wait, ok := m.clock.Wait()
	if !ok {
		return time.Time{}
	}
	if m.busy() || wait < time.Duration(pace.Gap/sim.Nanosecond) {
		wait = 0
	}
	return time.Now().Add(wait)
}

// busy reports whether a guest waits for the answer to a command: such a wait takes virtual time
// only.
func (m *machine) busy() bool {
	return slices.ContainsFunc(m.fns, func(f *function) bool { return f.queue.busy() })
}

// run is the pacer: it runs what the device does by itself.
func (m *machine) run() {
	defer close(m.done)
	sharedmem.SurviveFaults()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		m.mu.Lock()
		m.clock.CatchUp()
		look := m.work()
		m.due = look
		failed := m.clock.Err() != nil
		m.mu.Unlock()
		if failed {
			close(m.failed)
			<-m.quit
			return
		}
		wait := time.Hour
		if !look.IsZero() {
			wait = time.Until(look)
		}
		if wait <= 0 {
			select {
			case <-m.quit:
				return
			default:
				runtime.Gosched()
				continue
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-m.wake:
		case <-m.quit:
			return
		}
	}
}

// close ends the pacer and the run, and completes the capture.
func (m *machine) close() error {
	close(m.quit)
	<-m.done
	m.closeLAN()
	m.eng.Close()
	return m.net.Close()
}
