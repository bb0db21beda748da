// Package cpu sells loads, stores, fences, locks and lines at a price: the cores
// of a host, their write-combining buffers, and the ownership of the cache lines
// that threads share. It has no opinion on RDMA.
package cpu

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// Params are the costs of a core. The zero value is not usable.
type Params struct {
	LineTransfer sim.Time // a line owned by another core, or written by a device, comes over
	LockFree     sim.Time // taking a free lock whose line is owned
	LockHandover sim.Time // extra when a lock passes from one core to a waiting one
	Unlock       sim.Time
	StoreFence   sim.Time // sfence / dsb st with nothing to flush
	DMABarrier   sim.Time // udma_to_device_barrier
	LoadFence    sim.Time // udma_from_device_barrier
	UCStore      sim.Time // 8-byte store to an uncached mapping, until the core goes on
	WCStore      sim.Time // 8-byte store into a write-combining buffer
	WCLine       sim.Time // a full 64-byte line leaves a buffer
	WCFlush      sim.Time // fence with dirty buffers, for each
	WCBuffers    int      // write-combining buffers of a core
	NoWC         sim.Time // one 8-byte store where a WC mapping is not available
	CacheLine    int      // bytes
}

// Host is a set of cores with one root complex.
type Host struct{ impl }

type impl struct{}

// NewHost makes n cores.
func NewHost(e *sim.Engine, n int, p Params) *Host { panic("skeleton") }

// Core returns core i.
func (h *Host) Core(i int) *Core { panic("skeleton") }

// Core is one CPU. Threads on one core share its buffers.
type Core struct{ impl }

// Counters of a core.
type Counters struct {
	LineMisses               uint64 // lines that came from elsewhere (modelled L1 misses)
	LockAcquired, LockWaited uint64
	LockWait                 sim.Time
	WCFull, WCPartial        uint64 // buffers that left whole / torn
	Fences                   uint64
}

// Counters reads the core's counters.
func (c *Core) Counters() *Counters { panic("skeleton") }

// Line is a cache line that more than one agent touches: a lock word, a queue
// head, a doorbell record, a completion entry. Its owner is a core, a device, or
// nobody yet.
type Line struct {
	owner int32 // core number + 1; 0 nobody, -1 a device
}

// Touch brings the line to the core for p, which pays LineTransfer when another
// owner had it. Read sharing is not modelled apart: a line has one owner.
func (c *Core) Touch(p *sim.Proc, l *Line) { panic("skeleton") }

// DeviceWrote marks the line as last written by a device.
func (l *Line) DeviceWrote() { l.owner = -1 }

// Spinlock is a lock on its own line, fair in the order of arrival. The zero
// value is free.
type Spinlock struct {
	line Line
	impl
}

// Lock takes the lock for p on core c, spinning while it is held. It reports
// how long p waited.
func (l *Spinlock) Lock(p *sim.Proc, c *Core) sim.Time { panic("skeleton") }

// Unlock releases it at p's local time.
func (l *Spinlock) Unlock(p *sim.Proc, c *Core) { panic("skeleton") }

// Held reports whether the lock is held now, for the in-use check of a
// single-threaded program.
func (l *Spinlock) Held() bool { panic("skeleton") }

// MapKind is how a register page is mapped.
type MapKind uint8

// Mappings of registers.
const (
	Uncached MapKind = iota + 1
	WriteCombining
)

// Mapping is a page of a device's BAR 0 as a process mapped it.
type Mapping struct {
	Dev  *pcie.Link
	Off  uint64 // of the page in BAR 0
	Kind MapKind
}

// Store writes b (a multiple of 8 bytes, aligned) to the mapping at off. Uncached:
// each 8 bytes leave as one posted write. Write-combining: they gather in the
// core's buffers by 64-byte line; a full line leaves as one posted write; a fence,
// or the eviction for want of a buffer, makes partial lines leave as they are.
// Writes leave at p's local time as posted events; Store does not yield.
func (c *Core) Store(p *sim.Proc, m *Mapping, off uint64, b []byte) { panic("skeleton") }

// Fence drains the core's buffers (mmio_flush_writes, mmio_wc_start).
func (c *Core) Fence(p *sim.Proc) { panic("skeleton") }
