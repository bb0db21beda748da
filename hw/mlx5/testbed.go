//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

// ErrDeadline is what Run returns when the body has not returned in time.
var ErrDeadline = errors.New("the deadline has passed")

// Testbed is the machine with its devices. It implements verbs.Testbed.
type Testbed struct {
	verbs.UnimplementedTestbed
	setup *Setup
	began time.Time
	hosts []*host
	main  *process
	wire  link     // nil unless taken over
	needs []string // of the case
	// records says that the wire is recorded, see Setup.Record.
	records bool

	events  []fault.Event // of a file of faults
	timers  []*time.Timer // of events
	regions regions

	mu           sync.Mutex
	threads      []*thread
	open         map[*context]bool
	players      []*playerProcess
	far          []verbs.Player // at the far end
	panics       chan string
	needsRestart bool // the process cannot run another testbed
	folder       string
	made         *outfile.Dir // the folder, if this process made it
}

var _ verbs.Testbed = (*Testbed)(nil)

// New makes a testbed. Only one may be in use at a time.
func New(s *Setup) *Testbed {
	signals.Do(func() { C.hw_signals() })
	tb := &Testbed{setup: s, began: time.Now(), open: map[*context]bool{}, panics: make(chan string, 16)}
	for i, d := range s.nodes {
		tb.hosts = append(tb.hosts, &host{tb, i, d.Device})
	}
	tb.main = &process{bed: tb, host: tb.hosts[0]}
	return tb
}

var signals sync.Once

// Hosts are one for each node: a second device of the machine is the second.
func (tb *Testbed) Hosts() []verbs.Host {
	l := make([]verbs.Host, len(tb.hosts))
	for i, h := range tb.hosts {
		l[i] = h
	}
	return l
}

// Target describes the device under test.
func (tb *Testbed) Target() verbs.Target {
	return verbs.Target{Kind: "hw", Profile: tb.setup.Profile, Device: tb.setup.nodes[0].Device, Details: maps.Clone(tb.setup.Details)}
}

// Capability answers for a token of the catalogue from what was probed.
func (tb *Testbed) Capability(token string) verbs.Capability {
	return tb.setup.capabilityFor(token, tb.needs)
}

// host is this machine, seen from one of its devices.
type host struct {
	tb    *Testbed
	index int
	first string // the device that comes first in its list
}

func (h *host) Name() string { return hostName(h.index) }

// Cores is how many processors this process may run on.
func (h *host) Cores() int { return runtime.NumCPU() }

// PageSize is the size of a page.
func (h *host) PageSize() int { return os.Getpagesize() }

// NewProcess is refused: another process can only run the fixed commands of a player.
func (h *host) NewProcess(verbs.Thread, map[string]string) (verbs.Process, error) {
	return nil, fmt.Errorf("new process: a closure cannot run in another real process; use a player: %w", syscall.EOPNOTSUPP)
}

// process is this one.
type process struct {
	bed  *Testbed
	host *host
}

func (p *process) Host() verbs.Host { return p.host }
func (p *process) Name() string     { return fmt.Sprintf("%s/p%d", p.host.Name(), os.Getpid()) }

// Start runs body in a new thread.
func (p *process) Start(t verbs.Thread, name string, core int, body func(verbs.Thread)) verbs.Thread {
	callingThread(t)
	return p.start(name, core, body)
}

// Kill ends this process, and with it the worker.
func (p *process) Kill(verbs.Thread) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

func (tb *Testbed) enter(t *thread) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.threads = append(tb.threads, t)
}

func (tb *Testbed) leave(t *thread) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.threads = slices.DeleteFunc(tb.threads, func(x *thread) bool { return x == t })
}

func (tb *Testbed) panicked(text string) {
	select {
	case tb.panics <- text:
	default:
	}
}

// Run runs body in the main thread. When it has not returned after deadline, the error
// says which calls have not, and the process needs a restart. A panic of any thread is raised here.
func (tb *Testbed) Run(deadline time.Duration, body func(verbs.Thread)) error {
	t := tb.main.start("main", -1, body)
	var over <-chan time.Time
	if deadline > 0 {
		timer := time.NewTimer(deadline)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-t.done:
	case text := <-tb.panics:
		tb.markForRestart()
		panic(text)
	case <-over:
		tb.markForRestart()
		return fmt.Errorf("%w (%v): %s", ErrDeadline, deadline, tb.stuck())
	}
	select {
	case text := <-tb.panics:
		tb.markForRestart()
		panic(text)
	default:
		return nil
	}
}

// stuck says in which call each thread is.
func (tb *Testbed) stuck() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var all []string
	for _, t := range tb.threads {
		what := "thread " + t.name
		if call, d := t.currentCall(); call != "" {
			what += fmt.Sprintf(" is in %s for %v", call, d.Round(time.Millisecond))
		} else {
			what += " is in no call"
		}
		all = append(all, what)
	}
	return strings.Join(all, "; ")
}

func (tb *Testbed) markForRestart() {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.needsRestart = true
}

// NeedsRestart reports whether threads or open devices are left, which only the end of the
// process removes.
func (tb *Testbed) NeedsRestart() bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.needsRestart
}

// closeTimeout is how long Close waits for threads that the body left behind.
const closeTimeout = 2 * time.Second

// Close ends the players and undoes what was changed on the wire. Threads and open devices
// that are left make the process need a restart.
func (tb *Testbed) Close() error {
	for _, t := range tb.timers {
		t.Stop()
	}
	for _, h := range tb.players {
		h.end()
	}
	for _, p := range tb.far {
		p.Kill(nil)
	}
	var err error
	if tb.made != nil {
		err = tb.made.Remove()
	}
	if tb.wire != nil {
		err = errors.Join(err, tb.wire.Close())
	}
	end := time.Now().Add(closeTimeout)
	for {
		tb.mu.Lock()
		left := len(tb.threads)
		if left > 0 && time.Now().After(end) || len(tb.open) > 0 {
			tb.needsRestart = true
		}
		stuck := tb.needsRestart
		tb.mu.Unlock()
		if left == 0 || stuck {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
