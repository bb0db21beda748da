// Package pcie is the bus between a host and its devices: posted writes, reads
// with completions, ordering, credits, bandwidth and exact byte accounting. It
// declares Function, the whole face of a device.
package pcie

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Function is a PCI function as its host sees it. Only bytes cross.
type Function interface {
	// MMIOWrite is a posted write to BAR 0 that has arrived; p is the payload of one
	// TLP and may not be kept.
	MMIOWrite(off uint64, p []byte)
	// MMIORead fills p from BAR 0.
	MMIORead(off uint64, p []byte)
	// Command executes a command mailbox (layout of mlx5_ifc.h) and fills out. It
	// returns the time that the firmware takes, which the caller waits.
	Command(in, out []byte) sim.Time
	// BAR0Size is the size of the register window in bytes.
	BAR0Size() uint64
}

// Bus is what a device may do to its host. One Link implements it.
type Bus interface {
	// ReadDMA reads len(p) bytes at pa; when the completion data has arrived p is
	// filled and done(arg) runs. p is the device's until then. Bytes are sampled
	// when the request reaches memory.
	ReadDMA(pa mem.PA, p []byte, done sim.Handler, arg uint64)
	// WriteDMA posts a write: p is copied now and becomes visible in memory later, in
	// the order of the writes of this device.
	WriteDMA(pa mem.PA, p []byte)
	// WriteDMANotify is WriteDMA and runs done(arg) at the instant at which the
	// bytes become visible (models use it where a unit must order itself behind data).
	WriteDMANotify(pa mem.PA, p []byte, done sim.Handler, arg uint64)
	// Interrupt sends MSI-X vector n behind all earlier writes.
	Interrupt(vector int)
}

// Params of a link. Sizes in bytes.
type Params struct {
	Bandwidth      uint64   // bits per second that TLPs can use, each direction
	PostedLatency  sim.Time // core or root complex to device, and device to memory, one way
	ReadLatency    sim.Time // DMA read, idle, request to last completion of a small read
	MPS, MRRS, RCB int      // payload of a write, of a read request, of a completion
	WriteHeader    int      // overhead of a posted write TLP
	ReadHeader     int      // of a read request
	CplHeader      int      // of a completion
	ReadsInFlight  int      // tags
	MemoryLatency  sim.Time // root complex to memory visible to a core
}

// Counters of a link, by direction as the device sees it.
type Counters struct {
	RxTLPs, RxBytes          uint64 // host to device, headers included
	TxTLPs, TxBytes          uint64 // device to host
	MMIOWrites, MMIOBytes    uint64 // payload
	DMAReads, DMAReadBytes   uint64
	DMAWrites, DMAWriteBytes uint64
	Interrupts               uint64
}

// Link joins one Function to a host.
type Link struct{ impl }

type impl struct{}

// NewLink makes a link to memory m. The function is attached afterwards, since it
// needs the link as its Bus.
func NewLink(e *sim.Engine, m *mem.Memory, p Params) *Link { panic("skeleton") }

// Attach names the function and the handler of its interrupts.
func (l *Link) Attach(f Function, interrupt func(vector int)) { panic("skeleton") }

// Function is the attached function.
func (l *Link) Function() Function { panic("skeleton") }

// PostMMIO makes a posted write leave the core's side at p's local time.
func (l *Link) PostMMIO(p *sim.Proc, off uint64, b []byte) { panic("skeleton") }

// ReadMMIO is a non-posted read by p, which waits for it.
func (l *Link) ReadMMIO(p *sim.Proc, off uint64, b []byte) { panic("skeleton") }

// Counters reads the counters.
func (l *Link) Counters() *Counters { panic("skeleton") }

func (l *Link) ReadDMA(pa mem.PA, p []byte, done sim.Handler, arg uint64)        { panic("skeleton") }
func (l *Link) WriteDMA(pa mem.PA, p []byte)                                     { panic("skeleton") }
func (l *Link) WriteDMANotify(pa mem.PA, p []byte, done sim.Handler, arg uint64) { panic("skeleton") }
func (l *Link) Interrupt(vector int)                                             { panic("skeleton") }
