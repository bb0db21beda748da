//go:build linux && amd64

package procmem

import "github.com/rdmasim/rdmasim/sim/mem"

// Streams joins the DMA accesses of devices. A device moves a message in packets, and
// small messages one by one, each with a read or a write, and a system call for each
// would cost most of the time: more is read than is asked for, and what is written is
// held back and written with others in one call.
//
// Nothing may be read ahead of what told the device to read it. So all that was read
// ahead is forgotten when programs ring or call (Fresh), and when the device itself reads
// a record or a ring, and may learn of work that nobody has rung for yet. Until then what
// was read is what the owners of the work had put there when they posted it.
//
// What is held back is written before everything else that programs can see (Flush):
// before the CQE of any queue, an event, the answer to a call, and when the engine has
// nothing else to do. Writes to one process keep their order; one that a later one covers
// is as if it had been overwritten at once.
type Streams struct {
	dirty []*Process // whose writes are held back
	reads [sequences]ahead
	pages [cachedPages]cachedPage
	clock uint64
	fresh uint64 // counts Fresh
	rings map[ringPage]ringKind
	// known is how long the sequences were that began at an address: those of the next
	// message are likely to be as long.
	known map[place]int
}

// place is an address of a process.
type place struct {
	p    *Process
	addr mem.VA
}

// ringPage is a page of queues.
type ringPage struct {
	p    *Process
	page mem.VA
}

// ringKind counts the queues on a page.
type ringKind struct{ work, completions int }

// recordSize is the size of doorbell records: what is as short or shorter may be one.
const recordSize = 8

// joined is the length from which accesses belong to a message of several packets.
const joined = 1024

// Ring says that [addr, addr+n) of a process is a queue of work requests, or with on
// false that it is one no more.
func (s *Streams) Ring(p *Process, addr mem.VA, n uint64, on bool) {
	s.ring(p, addr, n, func(k *ringKind) { k.work += delta(on) })
}

// Completions is Ring for a queue of completions.
func (s *Streams) Completions(p *Process, addr mem.VA, n uint64, on bool) {
	s.ring(p, addr, n, func(k *ringKind) { k.completions += delta(on) })
}

func delta(on bool) int {
	if on {
		return 1
	}
	return -1
}

func (s *Streams) ring(p *Process, addr mem.VA, n uint64, change func(*ringKind)) {
	if n == 0 {
		return
	}
	if s.rings == nil {
		s.rings = map[ringPage]ringKind{}
	}
	for a := addr &^ (mem.PageSize - 1); a < addr+mem.VA(n); a += mem.PageSize {
		at := ringPage{p, a}
		k := s.rings[at]
		if change(&k); k.work <= 0 && k.completions <= 0 {
			delete(s.rings, at)
		} else {
			s.rings[at] = k
		}
	}
}

func (s *Streams) kind(p *Process, addr mem.VA) ringKind {
	return s.rings[ringPage{p, addr &^ (mem.PageSize - 1)}]
}

// Memory is a process whose accesses are joined (mem.Foreign and mem.Prober).
type Memory struct {
	*Process
	S *Streams
}

// WriteAt is Process.WriteAt, now or at the next Flush.
func (m *Memory) WriteAt(addr mem.VA, b []byte) error {
	s := m.S
	s.spoil(m.Process, addr, len(b))
	if m.window(addr, len(b)) != nil {
		s.Flush()
		return m.Process.WriteAt(addr, b)
	}
	if m.aliased(addr, len(b)) {
		s.Flush()
		s.Fresh()
		return m.Process.WriteAt(addr, b)
	}
	completion := len(b) <= lastByteLast && s.kind(m.Process, addr).completions > 0
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
	if w := m.window(addr, len(b)); w != nil {
		s.Fresh()
		copy(b, w)
		return nil
	}
	if m.aliased(addr, len(b)) {
		s.Flush()
		s.Fresh()
		return m.Process.ReadAt(addr, b)
	}
	s.settle(m.Process, addr, len(b))
	switch {
	case len(b) <= recordSize || s.kind(m.Process, addr).work > 0:
		s.Fresh()
		return m.Process.ReadAt(addr, b)
	case len(b) < joined:
		return s.readPage(m.Process, addr, b)
	}
	return s.readAhead(m.Process, addr, b)
}

// Forget drops what belongs to a process that is gone.
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
	for k := range s.rings {
		if k.p == p {
			delete(s.rings, k)
		}
	}
	for k := range s.known {
		if k.p == p {
			delete(s.known, k)
		}
	}
}
