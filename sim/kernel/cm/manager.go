// Package cm is the connection manager of a machine, in Linux's three layers. ib_cm has
// communication IDs, states, timers and the datagrams on QP1 (core/cm.c; files port.go and
// conn*.go); rdma_cm has addresses, ports, port spaces, the resolution of addresses and routes, and
// the header of IP in private data (core/cma.c, core/addr.c; files id*.go, ports.go, route.go);
// ucma has the files of programs, their ids and queues of events (core/ucma.c; files file.go and
// user*.go). Each layer calls only those before it, and they call it through one function.
// Functions named in comments are those of Linux 6.12.
//
// Neighbours come from the tables of the testbed: nothing is asked on the wire. Datagrams on QP1
// all cross the wire.
//
// On InfiniBand addresses are those of IPoIB's interface; paths and multicast groups are the subnet
// administrator's (core/sa_query.c, core/multicast.c; files sa.go and ib*.go).
package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Timers run functions later. They are the host's: of a machine whose programs are not simulated
// they go by the programs' time.
type Timers interface {
	// After runs f in the engine's thread d after now, unless what it returns is called before.
	After(d sim.Time, f func()) (cancel func())
}

// Manager is the connection manager of one machine.
type Manager struct {
	eng    *sim.Engine
	name   string
	p      Params
	timers Timers
	rand   *sim.Rand
	loaded bool

	ports []*port               // of the devices, in the order in which they came
	other []netip.Addr          // of interfaces without RDMA
	reach func(netip.Addr) bool // addresses of other networks to which there is a route; nil: none
	work  workQueue

	conns conns
	ids   ids
	users users
}

// Params are what the manager's own steps cost.
type Params struct {
	Syscall sim.Time // entry and exit of a call
	Wakeup  sim.Time // until a worker of the kernel, or a thread that waits for an event, runs
}

// New makes the manager of a machine without devices; name tells machines of a run apart in its
// draws. Timers nil: the clock of the simulation.
func New(e *sim.Engine, name string, p Params, t Timers) *Manager {
	m := &Manager{eng: e, name: name, p: p, timers: t, rand: e.Rand("cm/" + name)}
	if t == nil {
		m.timers = &clock{eng: e}
	}
	m.work.init(e, p.Wakeup)
	m.conns.init(m)
	m.ids.init(m)
	m.users.init()
	return m
}

// breaks says whether the run breaks a rule, to see whether that is noticed (sim/mutant).
func (m *Manager) breaks(r rule.Rule) bool { return rule.Mutants && m.eng.Broken().Has(r) }

// AddDevice makes a device one of the machine's. Devices are looked through in the order in which
// they came.
func (m *Manager) AddDevice(d *kernel.Device) error {
	p := &port{m: m, d: d, agent: uint64(len(m.ports) + 1)}
	p.sa.p = p
	m.ports = append(m.ports, p)
	if !m.loaded {
		return nil
	}
	return p.open()
}

// AddOtherAddress gives the machine an address on an interface without RDMA.
func (m *Manager) AddOtherAddress(ip netip.Addr) { m.other = append(m.other, ip.Unmap()) }

// SetReach has packets of every device get to the addresses that reach accepts, of whatever network
// they are: there are routes to them.
func (m *Manager) SetReach(reach func(netip.Addr) bool) { m.reach = reach }

// Load makes the QP1 of each device, as the kernel does when the device is found. It is put off
// until programs use the connection manager: until then nobody can tell, and the numbers of QPs are
// those of a machine without it. Of machines that are joined all are loaded when one is.
func (m *Manager) Load() error {
	if m.loaded {
		return nil
	}
	m.loaded = true
	for _, p := range m.ports {
		if err := p.open(); err != nil {
			return fmt.Errorf("connection manager of %s: %w", m.name, err)
		}
	}
	return nil
}

// RemoveDevice takes a device away: its ids get an event of it, and are good for nothing but their
// end.
func (m *Manager) RemoveDevice(d *kernel.Device) {
	for i, p := range m.ports {
		if p.d == d {
			m.ports = append(m.ports[:i:i], m.ports[i+1:]...)
			p.removed = true
			m.ids.removePort(p)
			return
		}
	}
}

// Counters calls f with the counters of a device's port as its files have them (cm_tx_msgs,
// cm_tx_retries, cm_rx_msgs, cm_rx_duplicates), each for each kind of message.
func (m *Manager) Counters(d *kernel.Device, f func(group, message string, n uint64)) {
	for _, p := range m.ports {
		if p.d != d {
			continue
		}
		for g, group := range counterGroups {
			for k, kind := range messageKinds {
				f(group, kind, p.c[g][k])
			}
		}
	}
}

// clock is Timers by the clock of the simulation.
type clock struct {
	eng *sim.Engine
}

func (c *clock) After(d sim.Time, f func()) (cancel func()) {
	live := true
	c.eng.After(d, func(uint64) {
		if live {
			live = false
			f()
		}
	}, 0)
	return func() { live = false }
}

// workQueue runs functions in their order by a worker of the kernel, each one wake-up after it was
// queued.
type workQueue struct {
	eng   *sim.Engine
	delay sim.Time
	queue []func()
	run   sim.Handler
}

func (w *workQueue) init(e *sim.Engine, delay sim.Time) {
	w.eng, w.delay = e, delay
	w.run = func(uint64) {
		f := w.queue[0]
		w.queue[0] = nil
		w.queue = w.queue[1:]
		f()
	}
}

func (w *workQueue) add(f func()) {
	w.queue = append(w.queue, f)
	w.eng.After(w.delay, w.run, 0)
}

// enter pays for the entry of a call.
func (m *Manager) enter(c kernel.Caller) {
	if c.P != nil {
		c.P.Advance(m.p.Syscall)
		c.P.Sync()
	}
}

var (
	errInvalid = syscall.EINVAL
	errNoDev   = syscall.ENODEV
)
