//go:build linux && amd64

package procmem

import "github.com/rdmasim/rdmasim/sim/mem"

// Streams joins the DMA accesses of devices. A device moves a message in packets, each
// with a read or a write, and a system call for each would cost most of the time: what is
// read in sequence is read ahead, and what is written in sequence is held back and
// written at once.
//
// Nothing may be read ahead of what told the device to read it. So all that was read
// ahead is forgotten when programs ring or call (Fresh), and when the device itself
// reads a record or a work request, which are short or in a Ring, and may tell of work
// that nobody has rung for yet. What is held back is written before everything else
// that programs can see (Flush).
type Streams struct {
	held struct {
		p    *Process
		addr mem.VA
		b    []byte
	}
	reads [streams]ahead
	clock uint64
	rings map[ringPage]int
	// known is how long the sequences were that began at an address: those of the next
	// message are likely to be as long.
	known map[place]int
}

// place is an address of a process.
type place struct {
	p    *Process
	addr mem.VA
}

// ringPage is a page of a queue.
type ringPage struct {
	p    *Process
	page mem.VA
}

// Ring says that [addr, addr+n) of a process is a queue, or with on false that it is
// one no more.
func (s *Streams) Ring(p *Process, addr mem.VA, n uint64, on bool) {
	if n == 0 {
		return
	}
	if s.rings == nil {
		s.rings = map[ringPage]int{}
	}
	for a := addr &^ (mem.PageSize - 1); a < addr+mem.VA(n); a += mem.PageSize {
		k := ringPage{p, a}
		if on {
			s.rings[k]++
		} else if s.rings[k]--; s.rings[k] <= 0 {
			delete(s.rings, k)
		}
	}
}

// Numbers of the joining. Shorter accesses are of queues and records, and never joined.
const (
	streams   = 16
	shortest  = 1024
	maxAhead  = 64 << 10
	maxHeld   = 64 << 10
	firstGrow = 2 // the read-ahead doubles with each sequential miss
	maxKnown  = 1 << 12
)

// ahead is memory that was read ahead for a sequence of reads.
type ahead struct {
	p     *Process
	start mem.VA
	next  mem.VA // where the sequence goes on
	end   mem.VA // where it is likely to end
	addr  mem.VA // of b
	b     []byte
	buf   []byte
	size  int    // of the next read-ahead
	used  uint64 // when
}

// Fresh forgets what was read ahead.
func (s *Streams) Fresh() {
	for i := range s.reads {
		s.reads[i].b = nil
	}
}

// Flush writes what is held back. A failure is that of a DMA write to memory that is
// gone: the device does not learn of it.
func (s *Streams) Flush() {
	h := &s.held
	if h.p == nil {
		return
	}
	_ = h.p.WriteAt(h.addr, h.b)
	h.p, h.b = nil, h.b[:0]
}

// Memory is a process whose accesses are joined (mem.Foreign and mem.Prober).
type Memory struct {
	*Process
	S *Streams
}

// WriteAt is Process.WriteAt, now or at the next Flush.
func (m *Memory) WriteAt(addr mem.VA, b []byte) error {
	s := m.S
	m.spoil(addr, len(b))
	h := &s.held
	if h.p == m.Process && addr == h.addr+mem.VA(len(h.b)) && len(b) >= shortest && len(h.b)+len(b) <= maxHeld {
		h.b = append(h.b, b...)
		return nil
	}
	s.Flush()
	if len(b) < shortest || m.window(addr, len(b)) != nil {
		return m.Process.WriteAt(addr, b)
	}
	h.p, h.addr, h.b = m.Process, addr, append(h.b[:0], b...)
	return nil
}

// spoil forgets read-aheads that a write touches.
func (m *Memory) spoil(addr mem.VA, n int) {
	for i := range m.S.reads {
		r := &m.S.reads[i]
		if r.p == m.Process && len(r.b) > 0 && addr < r.addr+mem.VA(len(r.b)) && r.addr < addr+mem.VA(n) {
			r.b = nil
		}
	}
}

// ReadAt is Process.ReadAt, from what was read ahead where it can.
func (m *Memory) ReadAt(addr mem.VA, b []byte) error {
	s := m.S
	if w := m.window(addr, len(b)); w != nil {
		s.Fresh()
		copy(b, w)
		return nil
	}
	if len(b) < shortest || s.rings[ringPage{m.Process, addr &^ (mem.PageSize - 1)}] > 0 {
		s.Flush()
		s.Fresh()
		return m.Process.ReadAt(addr, b)
	}
	s.clock++
	r := s.sequence(m.Process, addr)
	if r == nil {
		r = s.begin(m.Process, addr, len(b))
	}
	r.next, r.used = addr+mem.VA(len(b)), s.clock
	if r.take(addr, b) {
		return nil
	}
	s.Flush()
	n := r.size
	switch {
	case addr < r.end:
		n = int(r.end - addr)
	case addr == r.start:
		n = 0 // it may end here
	}
	if n = min(n, maxAhead); n > len(b) {
		if cap(r.buf) < n {
			r.buf = make([]byte, maxAhead)
		}
		r.size = firstGrow * n
		if m.Process.ReadAt(addr, r.buf[:n]) == nil {
			r.addr, r.b = addr, r.buf[:n]
			r.take(addr, b)
			return nil
		}
		// It ends before that.
		r.b, r.size, r.end = nil, 0, 0
	}
	return m.Process.ReadAt(addr, b)
}

// begin is a new sequence at addr.
func (s *Streams) begin(p *Process, addr mem.VA, n int) *ahead {
	r := s.oldest(p, addr)
	s.learn(r)
	*r = ahead{p: p, start: addr, buf: r.buf, size: firstGrow * n}
	if k := s.known[place{p, addr}]; k > n {
		r.end = addr + mem.VA(k)
	}
	return r
}

// learn remembers how long a sequence was that ends.
func (s *Streams) learn(r *ahead) {
	if r.p == nil {
		return
	}
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	if s.known == nil {
		s.known = map[place]int{}
	}
	s.known[place{r.p, r.start}] = int(r.next - r.start)
}

// take copies from what was read ahead when all of b is there.
func (r *ahead) take(addr mem.VA, b []byte) bool {
	if len(r.b) == 0 || addr < r.addr || addr+mem.VA(len(b)) > r.addr+mem.VA(len(r.b)) {
		return false
	}
	copy(b, r.b[addr-r.addr:])
	return true
}

// sequence is the sequence that goes on at addr.
func (s *Streams) sequence(p *Process, addr mem.VA) *ahead {
	for i := range s.reads {
		if r := &s.reads[i]; r.p == p && r.next == addr {
			return r
		}
	}
	return nil
}

// oldest is the sequence that gives way to one at addr: that which began there too, or
// the one that was used least recently.
func (s *Streams) oldest(p *Process, addr mem.VA) *ahead {
	best := &s.reads[0]
	for i := range s.reads {
		r := &s.reads[i]
		if r.p == p && r.start == addr {
			return r
		}
		if r.used < best.used {
			best = r
		}
	}
	return best
}

// Forget drops what belongs to a process that is gone.
func (s *Streams) Forget(p *Process) {
	if s.held.p == p {
		s.held.p, s.held.b = nil, s.held.b[:0]
	}
	for i := range s.reads {
		if s.reads[i].p == p {
			s.reads[i] = ahead{buf: s.reads[i].buf}
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
