package cpu

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Params are the costs of a core. The zero value is not usable.
type Params struct {
	LineTransfer sim.Time `bounds:"0.."` // a line owned by another core, or written by a device, comes over
	LockFree     sim.Time `bounds:"0.."` // taking a free lock whose line is owned
	LockHandover sim.Time `bounds:"0.."` // extra when a lock passes from one core to a waiting one
	Unlock       sim.Time `bounds:"0.."`
	SocketCores  int      // cores of a socket; those beyond two sockets are second threads of the first ones, in the same order; 0: there is one socket
	LineFar      sim.Time `bounds:"0.."` // extra when a line comes from a core of another socket, and when a lock passes for each core where a thread spins on it there; may be 0
	LockNear     int      // times in a row that a lock passes to a waiter of the same socket although one of the other waits longer; 0: first come, first served
	MMIOFar      sim.Time `bounds:"0.."` // extra of a write that leaves for a device from a core of the second socket: devices are at the first; may be 0
	DMAFar       sim.Time `bounds:"0.."` // extra when such a core reads a line that a device wrote: from memory, not from the cache; may be 0
	StoreFence   sim.Time `bounds:"0.."` // sfence / dsb st with nothing to flush
	DMABarrier   sim.Time `bounds:"0.."` // udma_to_device_barrier
	LoadFence    sim.Time `bounds:"0.."` // udma_from_device_barrier
	UCStore      sim.Time `bounds:"0.."` // 8-byte store to an uncached mapping, until the core goes on
	WCStore      sim.Time `bounds:"0.."` // 8-byte store into a write-combining buffer
	WCLine       sim.Time `bounds:"0.."` // a full 64-byte line leaves a buffer
	WCFlush      sim.Time `bounds:"0.."` // fence with dirty buffers, for each
	WCBuffers    int      // write-combining buffers of a core; 0: the host cannot combine writes
	NoWC         sim.Time `bounds:"0.."` // one 8-byte store where a WC mapping is not available
	CacheLine    int      `unit:"size"`  // bytes
}

// mostLockNear still lets the other socket have the lock.
const mostLockNear = 1000

// mostWCBuffers is far above the dozen that cores have, and each of them is made.
const mostWCBuffers = 1024

// mostSocketCores is far above what sockets have.
const mostSocketCores = 65536

// Validate says what is impossible in p.
func (p *Params) Validate() error {
	if errs := sim.OutOfBounds("cpu", p); errs != nil {
		return errors.Join(errs...)
	}
	if p.CacheLine != 64 && p.CacheLine != 128 {
		return fmt.Errorf("cpu: cache line of %d bytes, not 64 or 128", p.CacheLine)
	}
	if p.SocketCores < 0 || p.SocketCores > mostSocketCores {
		return fmt.Errorf("cpu: %d cores in a socket (SocketCores): want 0 for one socket, or up to %d", p.SocketCores, mostSocketCores)
	}
	if p.LockNear < 0 || p.LockNear > mostLockNear {
		return fmt.Errorf("cpu: a lock passes within a socket %d times (LockNear): want 0 to %d", p.LockNear, mostLockNear)
	}
	if p.WCBuffers < 0 || p.WCBuffers > mostWCBuffers {
		return fmt.Errorf("cpu: %d write-combining buffers (WCBuffers): want 0 to %d", p.WCBuffers, mostWCBuffers)
	}
	if p.WCBuffers == 0 && p.NoWC == 0 {
		return fmt.Errorf("cpu: without write-combining buffers the cost of a store without them must be given")
	}
	return nil
}
