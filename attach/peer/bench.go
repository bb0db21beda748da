//go:build linux

package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// Bench is a host for the cases of a suite: the processes of one end of each run there, in real
// time, and what its adapter sends and receives is in a tester's hands. Unlike a Host's, its
// methods may be called by any goroutine; those that take a thread of the host, by this thread.
type Bench struct {
	h       *Host
	remote  network.Remote
	players []verbs.Player // of the process of Run
	closing chan struct{}
	ended   chan struct{}
	err     error // of the simulation, when it has ended
}

// errEnded is why nothing is left of a bench.
var errEnded = errors.New("the simulated peer has ended")

// OpenBench makes a bench and begins its time.
func OpenBench(cfg Config) (*Bench, error) {
	h, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	h.port.Alone() // with the identification that a recording shows
	b := &Bench{h: h, closing: make(chan struct{}), ended: make(chan struct{})}
	tester := h.net.NewTester()
	tester.Outside = true
	b.remote = network.Remote{Tester: tester, Enter: b.enter, Settle: func() {}, Quiet: network.GuestQuiet}
	began := make(chan struct{})
	go func() {
		defer close(b.ended)
		defer func() {
			if p := recover(); p != nil {
				b.err = fmt.Errorf("%w: %v", errEnded, p)
			}
		}()
		b.err = errors.Join(errEnded, h.Run(context.Background(), func(t verbs.Thread) {
			close(began)
			h.Wait(t, func() { <-b.closing })
		}))
	}()
	select {
	case <-began:
		return b, nil
	case <-b.ended:
		return nil, errors.Join(b.err, h.Close())
	}
}

// Close ends the processes and gives the way out back.
func (b *Bench) Close() error {
	close(b.closing)
	<-b.ended
	return b.h.Close()
}

// Name says what and where the host is.
func (b *Bench) Name() string { return "simulated " + b.h.cfg.Profile.Name + " at " + b.h.port.Name() }

// Address is the adapter's.
func (b *Bench) Address() netip.Addr { return b.h.port.Address() }

// Has reports whether the host, with what is at its cable, has a capability of the catalogue.
func (b *Bench) Has(token string) bool {
	switch token {
	case "ipv6": // the adapter has one address
		return b.Address().Is6()
	case "inj.ip": // what a socket sends has the addresses of sockets
		return b.h.cfg.Place.Kind != wire.KindUDP
	case "mcast":
		return b.h.cfg.Place.Kind != wire.KindUDP && b.h.tb.Capability(token) == verbs.Present
	}
	return b.h.tb.Capability(token) == verbs.Present
}

// enter keeps everybody else from the simulation until leave is called.
func (b *Bench) enter() (leave func()) {
	entered, left := make(chan struct{}), make(chan struct{})
	b.h.post(func() {
		close(entered)
		<-left
	})
	select {
	case <-entered:
	case <-b.ended:
	}
	return func() { close(left) }
}

// start runs body in a new thread of the host that belongs to no case, and returns what is closed
// when it has returned.
func (b *Bench) start(body func(t verbs.Thread)) (done <-chan struct{}) {
	d := make(chan struct{})
	b.h.post(func() {
		b.h.tb.Go("tester", func(t verbs.Thread) {
			defer close(d)
			body(t)
		})
	})
	return d
}

// do is start, and waits.
func (b *Bench) do(body func(t verbs.Thread)) error {
	select {
	case <-b.start(body):
		return nil
	case <-b.ended:
		return b.err
	}
}

// Player is a process of the host that carries out commands, for threads elsewhere.
type Player struct {
	b    *Bench
	p    verbs.Player
	mu   sync.Mutex // one command at a time
	work chan func(t verbs.Thread)
	kill sync.Once
	dead chan struct{}
}

// Begin starts a process that carries out the commands of package player. Any goroutine may use it,
// with any thread or none; who began it kills it.
func (b *Bench) Begin(env map[string]string) (verbs.Player, error) {
	p := &Player{b: b, work: make(chan func(verbs.Thread)), dead: make(chan struct{})}
	began := make(chan error, 1)
	b.start(func(t verbs.Thread) {
		var err error
		p.p, err = b.h.tb.Player(t, 0, env)
		began <- err
		for err == nil {
			var f func(verbs.Thread)
			b.h.Wait(t, func() {
				select {
				case f = <-p.work:
				case <-p.dead:
				}
			})
			if f == nil {
				return
			}
			f(t)
		}
	})
	select {
	case err := <-began:
		if err != nil {
			return nil, err
		}
		return p, nil
	case <-b.ended:
		return nil, b.err
	}
}

// Do runs one command.
func (p *Player) Do(_ verbs.Thread, cmd verbs.PlayerCommand) (r verbs.PlayerReply, err error) {
	if !p.mu.TryLock() {
		return r, fmt.Errorf("player: two commands at once: %w", syscall.EBUSY)
	}
	defer p.mu.Unlock()
	type answer struct {
		r   verbs.PlayerReply
		err error
	}
	answered := make(chan answer, 1)
	select {
	case p.work <- func(t verbs.Thread) {
		var a answer
		a.r, a.err = p.p.Do(t, cmd)
		answered <- a
	}:
	case <-p.dead:
		return r, verbs.ErrProcessDied
	case <-p.b.ended:
		return verbs.PlayerReply{Text: p.b.err.Error()}, verbs.ErrProcessDied
	}
	select {
	case a := <-answered:
		return a.r, a.err
	case <-p.b.ended:
		return verbs.PlayerReply{Text: p.b.err.Error()}, verbs.ErrProcessDied
	}
}

// Kill ends the process as SIGKILL does, also in the middle of a command.
func (p *Player) Kill(verbs.Thread) {
	p.kill.Do(func() {
		_ = p.b.do(func(t verbs.Thread) { p.p.Kill(t) })
		close(p.dead)
	})
}

// farWire is the wire for threads elsewhere.
type farWire struct{ *network.Remote }

// FarWire is the wire at the host's end, in the hands of threads elsewhere.
func (b *Bench) FarWire() verbs.Wire { return farWire{&b.remote} }

func (w farWire) StartTap(verbs.Thread) error                     { return w.Remote.StartTap() }
func (w farWire) StopTap(verbs.Thread) ([]verbs.WireFrame, error) { return w.Remote.StopTap() }
func (w farWire) Inject(_ verbs.Thread, r verbs.WireRule) error   { return w.Remote.Inject(r) }
func (w farWire) ClearRules(verbs.Thread) ([]int, error)          { return w.Remote.ClearRules(), nil }
func (w farWire) SetLink(verbs.Thread, int, int, bool) error      { return errLink }

// errLink is the answer to a link that is to be set: one end of it is real.
var errLink = fmt.Errorf("the link between a device and a simulated peer: %w", syscall.EOPNOTSUPP)

// Reset undoes what was changed on the wire.
func (b *Bench) Reset() { b.remote.Reset() }

// nearWire is the wire for threads of the host.
type nearWire struct{ b *Bench }

// NearWire is the wire at the host's end, in the hands of its threads.
func (b *Bench) NearWire() verbs.Wire { return nearWire{b} }

func (w nearWire) tester(t verbs.Thread) *network.Tester {
	provider.Of(t).P.Sync()
	return w.b.remote.Tester
}

func (w nearWire) StartTap(t verbs.Thread) error {
	w.tester(t).StartTap()
	return nil
}

// StopTap waits until what the device at the other end has sent must have come.
func (w nearWire) StopTap(t verbs.Thread) ([]verbs.WireFrame, error) {
	for n := -1; n != w.tester(t).Recorded(); {
		n = w.tester(t).Recorded()
		t.Sleep(w.b.remote.Quiet)
	}
	return w.tester(t).StopTap()
}

func (w nearWire) Inject(t verbs.Thread, r verbs.WireRule) error { return w.tester(t).Inject(r) }
func (w nearWire) ClearRules(t verbs.Thread) ([]int, error)      { return w.tester(t).ClearRules(), nil }
func (w nearWire) SetLink(verbs.Thread, int, int, bool) error    { return errLink }

// Host is the host, for its threads.
func (b *Bench) Host() verbs.Host { return b.h.tb.Hosts()[0] }

// PlayerOf starts a process on the host, for the threads of Run, which ends it.
func (b *Bench) PlayerOf(t verbs.Thread, env map[string]string) (verbs.Player, error) {
	p, err := b.h.tb.Player(t, 0, env)
	if err == nil {
		b.players = append(b.players, p)
	}
	return p, err
}

// Wait is Host.Wait.
func (b *Bench) Wait(t verbs.Thread, f func()) { b.h.Wait(t, f) }

// ErrDeadline is what Run returns when the body has not returned in time.
var ErrDeadline = errors.New("the deadline has passed")

// Run runs body in a thread of a process of its own until it returns, and then ends the process,
// but at the latest after deadline. A panic of body is raised here.
func (b *Bench) Run(deadline time.Duration, body func(verbs.Thread)) error {
	var (
		proc    verbs.Process
		failed  error
		text    string
		ended   bool // the body has returned
		over    bool // the process is to end
		waits   *provider.Thread
		started = make(chan struct{})
	)
	// A thread that is killed while it sleeps is where it would have woken: whoever joins it would
	// wait until then.
	end := func() {
		over = true
		waits.Wake(b.h.tb.Engine().Now())
	}
	done := b.start(func(t verbs.Thread) {
		waits = provider.Of(t)
		p, err := b.Host().NewProcess(t, nil)
		if proc, failed = p, err; err != nil {
			close(started)
			return
		}
		proc.Start(t, "main", -1, func(t verbs.Thread) {
			defer end()
			defer func() {
				if p := recover(); p != nil {
					passOn(p)
					text = fmt.Sprintf("%v\n%s", p, debug.Stack())
				}
			}()
			body(t)
			provider.Of(t).P.Sync()
			ended = true
		})
		close(started)
		for !over {
			waits.ParkUntil("the case", sim.Never)
		}
		proc.Kill(t)
		for _, p := range b.players {
			p.Kill(t)
		}
		b.players = nil
	})
	var late <-chan time.Time
	if deadline > 0 {
		timer := time.NewTimer(deadline)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-done:
	case <-b.ended:
		return b.err
	case <-late:
		<-started
		if err := b.do(func(t verbs.Thread) {
			proc.Kill(t)
			end()
		}); err != nil {
			return err
		}
		select {
		case <-done:
			return fmt.Errorf("%w (%v)", ErrDeadline, deadline)
		case <-b.ended:
			return b.err
		}
	}
	switch {
	case failed != nil:
		return failed
	case text != "":
		panic(text)
	case !ended:
		return errors.New("the process of the case has ended before its body")
	}
	return nil
}

// passOn raises a panic again by which the simulation ends a thread.
func passOn(p any) {
	switch p.(type) {
	case sim.Killed, provider.Abort:
		panic(p)
	}
}
