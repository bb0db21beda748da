// Package cpu sells loads, stores, fences, locks and lines at a price: the cores
// of a host, their write-combining buffers, and the ownership of the cache lines
// that threads share. It has no opinion on RDMA.
//
// A thread is a program that runs on one core for life. Two threads of one core
// share its time and its buffers: each piece of work waits for the one before it
// (no preemption, no time slices), and a thread that spins on a lock does not hold
// the core. A core with a single thread costs no synchronisation.
package cpu

import (
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/sim"
)

// Host is a set of cores with one root complex.
type Host struct {
	e     *sim.Engine
	p     Params
	cores []Core
	// contended are the locks for which a thread has waited.
	contended []*Spinlock
	handOvers uint64 // of locks, on a host of two sockets
}

// NewHost makes n cores. Wrong Params panic: profiles are validated where they are
// read.
func NewHost(e *sim.Engine, n int, p Params) *Host {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	h := &Host{e: e, p: p, cores: make([]Core, n)}
	for i := range h.cores {
		h.cores[i] = Core{host: h, p: &h.p, id: int32(i), wc: make([]wcBuffer, 0, p.WCBuffers)}
		if p.apart(int32(i), 0) {
			h.cores[i].mmioFar, h.cores[i].dmaFar = p.MMIOFar, p.DMAFar
		}
	}
	return h
}

// Core returns core i.
func (h *Host) Core(i int) *Core {
	if i < 0 || i >= len(h.cores) {
		panic(fmt.Sprintf("cpu: core %d of a host with %d", i, len(h.cores)))
	}
	return &h.cores[i]
}

// Cores is how many cores the host has.
func (h *Host) Cores() int { return len(h.cores) }

// Params are those the host was made with.
func (h *Host) Params() *Params { return &h.p }

// HasWC reports whether write-combining mappings combine on this host.
func (h *Host) HasWC() bool { return h.p.WCBuffers > 0 }

// Core is one CPU. Threads on one core share its time and its buffers.
type Core struct {
	host    *Host
	p       *Params
	id      int32
	threads int
	mmioFar sim.Time // of Params, and 0 at the devices' socket
	dmaFar  sim.Time
	procs   []*sim.Proc // the threads
	srv     sim.Server
	wc      []wcBuffer // dirty, oldest first
	c       Counters
	track   int32  // of the timeline, when there is one
	asked   uint64 // the last of Host.handOvers in which this core, or its second thread, asked for the lock's line
}

// Counters of a core.
type Counters struct {
	LineMisses               uint64 // lines that came from elsewhere (modelled L1 misses)
	LockAcquired, LockWaited uint64
	LockWait                 sim.Time
	WCFull, WCPartial        uint64 // buffers that left whole / torn
	WCEvicted                uint64 // of the torn ones, those that left for want of a buffer
	UCStores                 uint64 // 8-byte stores that left alone
	Fences                   uint64
}

// Counters reads the core's counters.
func (c *Core) Counters() *Counters { return &c.c }

// ID is the core's number.
func (c *Core) ID() int { return int(c.id) }

// Host is the host of the core.
func (c *Core) Host() *Host { return c.host }

// Costs are the costs of the core.
func (c *Core) Costs() *Params { return c.p }

// Busy is the CPU time spent.
func (c *Core) Busy() sim.Time { return c.srv.Busy }

// Attach says that one more thread runs on the core, until it ends. The caller is
// in order with it (a program that synchronised, or the set-up of a run).
func (c *Core) Attach(p *sim.Proc) {
	c.threads++
	c.procs = append(c.procs, p)
	p.OnExit(func() {
		c.threads--
		c.procs = slices.DeleteFunc(c.procs, func(q *sim.Proc) bool { return q == p })
	})
}

// Idle reports, to a program that has synchronised, whether no thread of the core is ahead of
// the queue or spins on a lock (sim.Proc.Idle).
func (c *Core) Idle() bool {
	return !slices.ContainsFunc(c.procs, func(p *sim.Proc) bool { return !p.Idle() })
}

// Run spends d of CPU time on the core, after what other threads of the core do.
func (c *Core) Run(p *sim.Proc, d sim.Time) {
	if c.threads > 1 || d < 0 {
		c.runShared(p, d)
		return
	}
	_, end := c.srv.Take(p.Now(), d)
	p.AdvanceTo(end)
}

func (c *Core) runShared(p *sim.Proc, d sim.Time) {
	if d < 0 {
		panic(fmt.Sprintf("cpu: at %v %s runs for %v", p.Now(), p.Name(), d))
	}
	p.Sync()
	_, end := c.srv.Take(p.Now(), d)
	p.Sleep(end - p.Now())
}

// DMABarrier is udma_to_device_barrier.
func (c *Core) DMABarrier(p *sim.Proc) { c.Run(p, c.p.DMABarrier) }

// LoadFence is udma_from_device_barrier.
func (c *Core) LoadFence(p *sim.Proc) { c.Run(p, c.p.LoadFence) }

// Register enters the cores' counters in the engine's registry, and makes their
// lines of the timeline when one is recorded. The name is that of the host.
func (h *Host) Register(name string) {
	for i := range h.cores {
		c := &h.cores[i]
		unit := fmt.Sprintf("%s/core %d", name, i)
		for _, x := range []struct {
			name string
			p    *uint64
		}{
			{"line_misses", &c.c.LineMisses}, {"lock_acquired", &c.c.LockAcquired}, {"lock_waited", &c.c.LockWaited},
			{"wc_full", &c.c.WCFull}, {"wc_partial", &c.c.WCPartial}, {"wc_evicted", &c.c.WCEvicted},
			{"uc_stores", &c.c.UCStores}, {"fences", &c.c.Fences},
		} {
			h.e.Counters.Add(unit, x.name, x.p)
		}
		h.e.Counters.AddTime(unit, "lock_wait_ps", &c.c.LockWait)
		h.e.Counters.AddTime(unit, "busy_ps", &c.srv.Busy)
		if h.e.Spans != nil {
			c.track = h.e.Spans.Track(unit) + 1
		}
	}
}

// span records what the core did when a timeline is recorded.
func (c *Core) span(what string, start, end sim.Time, arg uint64) {
	if c.track != 0 && c.host.e.Spans != nil {
		c.host.e.Spans.Span(c.track-1, what, start, end, arg)
	}
}
