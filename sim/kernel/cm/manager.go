// Package cm is the connection manager of a machine, in Linux's three layers. ib_cm has communication IDs, states, timers and the
// datagrams on QP1 (core/cm.c); rdma_cm has addresses, ports, port spaces, the resolution of addresses and routes, and the header of
// IP in private data (core/cma.c, core/addr.c); ucma has the files of programs, their ids and queues of events (core/ucma.c). Each
// knows those before it only.
package cm

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
)

// Manager is the connection manager of one machine.
type Manager struct {
	eng *sim.Engine
}

// New makes the manager of a machine without devices; name tells machines of a run apart, in draws and counters.
func New(e *sim.Engine, name string) *Manager { return &Manager{eng: e} }

// AddDevice makes a device one of the machine's: its QP1 is made, and wildcard listeners listen on it. Devices are looked through in
// the order in which they came.
func (m *Manager) AddDevice(d *kernel.Device) error { return nil }

// RemoveDevice takes a device away: its ids get CMDeviceRemoval.
func (m *Manager) RemoveDevice(d *kernel.Device) {}

// Owner is what the kernel asks of who opens a file.
type Owner struct {
	Process *kernel.Process // for `rdma resource`; nil: none of this machine
	// NetBindService is the capability of the name, by which ports below 1024 are bound.
	NetBindService bool
}

// Open opens the channel device.
func (m *Manager) Open(c kernel.Caller, o Owner) *File { return &File{} }
