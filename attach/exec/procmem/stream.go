//go:build linux && amd64

package procmem

import (
	"sync/atomic"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// Streams joins the DMA accesses of devices. A device moves a message in packets, and
// small messages one by one, each with a read or a write, and a system call for each
// would cost most of the time: more is read than is asked for, and what is written is
// held back and written with others in one call.
//
// Nothing may be read before the doorbell, record or queue entry that makes the device read it. So
// all that was read ahead is discarded when programs ring a doorbell or make a call
// (DropReadAhead), and when the device itself reads a doorbell record or a queue, and may learn of
// work for which no doorbell has been rung yet. Until then what was read is what the owners of the
// work had put there when they posted it.
//
// What is held back is written before everything else that programs can see (Flush):
// before the CQE of any queue, an event, the answer to a call, and when the engine has
// nothing else to do. Writes to one process keep their order; one that a later one covers
// is as if it had been overwritten at once.
type Streams struct {
	dirty      []*Process // whose writes are held back
	reads      [sequences]ahead
	pages      [cachedPages]cachedPage
	clock      uint64
	generation uint64 // counts DropReadAhead
	queuePages int    // of all processes
	// known is the length of the sequences that began at an address: those of the next
	// message are likely to be as long.
	known map[place]int
	// watched is how many processes have memory that is paged on demand.
	watched atomic.Int32
}

// place is an address of a process.
type place struct {
	p    *Process
	addr mem.VA
}

// recordSize is the size of a doorbell record: a read that is no longer may be of one.
const recordSize = 8

// packetLength is the length from which accesses belong to a message of several packets.
const packetLength = 1024

// WorkQueue says that [addr, addr+n) of a process is a queue of work requests, or with on
// false that it no longer is.
func (s *Streams) WorkQueue(p *Process, addr mem.VA, n uint64, on bool) {
	s.queue(p, addr, n, delta(on), 0)
}

// CompletionQueue is WorkQueue for a queue of completions.
func (s *Streams) CompletionQueue(p *Process, addr mem.VA, n uint64, on bool) {
	s.queue(p, addr, n, 0, delta(on))
}

func delta(on bool) int {
	if on {
		return 1
	}
	return -1
}

func (s *Streams) queue(p *Process, addr mem.VA, n uint64, work, completions int) {
	from, to := addr&^(mem.PageSize-1), (addr+mem.VA(n)+mem.PageSize-1)&^(mem.PageSize-1)
	if n == 0 || to <= from {
		return
	}
	s.queuePages -= p.queues.pages
	p.queues.change(from, to, work, completions)
	s.queuePages += p.queues.pages
}

// Queues is the number of pages with queues.
func (s *Streams) Queues() int { return s.queuePages }

// Memory is a process whose accesses are joined (mem.Foreign, mem.Prober and mem.PageTables).
type Memory struct {
	*Process
	S *Streams
}

// WriteAt is Process.WriteAt, now or at the next Flush.
func (m *Memory) WriteAt(addr mem.VA, b []byte) error {
	s := m.S
	s.invalidate(m.Process, addr, len(b))
	if m.window(addr, len(b)) != nil {
		s.Flush()
		return m.Process.WriteAt(addr, b)
	}
	if m.aliased(addr, len(b)) {
		s.Flush()
		s.DropReadAhead()
		return m.Process.WriteAt(addr, b)
	}
	completion := len(b) <= lastByteLast && m.queues.kind(addr).completions > 0
	if completion {
		s.flushOthers(m.Process)
	}
	if !s.hold(m.Process, addr, b, completion) {
		s.flush(m.Process)
		if !s.hold(m.Process, addr, b, completion) {
			return m.Process.WriteAt(addr, b)
		}
	}
	if completion {
		s.flush(m.Process)
	}
	return nil
}

// ReadAt is Process.ReadAt, from what was read before where it can.
func (m *Memory) ReadAt(addr mem.VA, b []byte) error {
	s := m.S
	if m.window(addr, len(b)) != nil {
		s.DropReadAhead()
		return m.Process.ReadAt(addr, b)
	}
	if m.aliased(addr, len(b)) {
		s.Flush()
		s.DropReadAhead()
		return m.Process.ReadAt(addr, b)
	}
	s.flushOverlap(m.Process, addr, len(b))
	switch {
	case len(b) <= recordSize || m.queues.kind(addr).work > 0:
		s.DropReadAhead()
		return m.Process.ReadAt(addr, b)
	case len(b) < packetLength:
		return s.readPage(m.Process, addr, b)
	}
	return s.readAhead(m.Process, addr, b)
}

// Forget drops everything about a process that has ended.
func (s *Streams) Forget(p *Process) {
	s.drop(p)
	for i := range s.reads {
		if s.reads[i].p == p {
			s.reads[i] = ahead{buf: s.reads[i].buf}
		}
	}
	for i := range s.pages {
		if s.pages[i].p == p {
			s.pages[i].p = nil
		}
	}
	s.queuePages -= p.queues.pages
	p.queues = queueRanges{}
	for k := range s.known {
		if k.p == p {
			delete(s.known, k)
		}
	}
}
