//go:build linux && amd64

package procmem

import "github.com/rdmasim/rdmasim/sim/mem"

const (
	sequences = 16
	maxAhead  = 64 << 10
	firstGrow = 2 // the read-ahead doubles with each sequential miss
	maxKnown  = 1 << 12

	cachedPages = 64 // power of two
)

// ahead is memory that was read ahead for a sequence of reads.
type ahead struct {
	p          *Process
	start      mem.VA
	next       mem.VA // where the sequence goes on
	end        mem.VA // where it is likely to end
	addr       mem.VA // of b
	b          []byte
	generation uint64 // Streams.generation when b was read
	buf        []byte
	size       int    // of the next read-ahead
	used       uint64 // Streams.clock at the last use
}

// cachedPage is a page of which a small message was read.
type cachedPage struct {
	p          *Process
	addr       mem.VA
	generation uint64 // Streams.generation when it was read
	b          []byte
}

// DropReadAhead forgets everything that was read ahead.
func (s *Streams) DropReadAhead() { s.generation++ }

// invalidate forgets what was read ahead of the bytes that a write changes.
func (s *Streams) invalidate(p *Process, addr mem.VA, n int) {
	for i := range s.reads {
		r := &s.reads[i]
		if r.p == p && len(r.b) > 0 && addr < r.addr+mem.VA(len(r.b)) && r.addr < addr+mem.VA(n) {
			r.b = nil
		}
	}
	for a := addr &^ (mem.PageSize - 1); a < addr+mem.VA(n); a += mem.PageSize {
		if c := s.page(a); c.p == p && c.addr == a {
			c.p = nil
		}
	}
}

// page is where the page at addr is cached.
func (s *Streams) page(addr mem.VA) *cachedPage {
	return &s.pages[addr>>mem.PageShift&(cachedPages-1)]
}

// readPage reads a small message, and the page around it for the next one.
func (s *Streams) readPage(p *Process, addr mem.VA, b []byte) error {
	at := addr &^ (mem.PageSize - 1)
	if addr+mem.VA(len(b)) > at+mem.PageSize {
		return p.ReadAt(addr, b)
	}
	c := s.page(at)
	if c.p != p || c.addr != at || c.generation != s.generation {
		if c.b == nil {
			c.b = make([]byte, mem.PageSize)
		}
		s.flushOverlap(p, at, mem.PageSize)
		if err := p.ReadAt(at, c.b); err != nil {
			c.p = nil
			return err
		}
		c.p, c.addr, c.generation = p, at, s.generation
	}
	copy(b, c.b[addr-at:])
	return nil
}

// readAhead reads a packet's part of a message.
func (s *Streams) readAhead(p *Process, addr mem.VA, b []byte) error {
	s.clock++
	r := s.sequence(p, addr)
	if r == nil {
		r = s.begin(p, addr, len(b))
	}
	r.next, r.used = addr+mem.VA(len(b)), s.clock
	if r.generation == s.generation && r.take(addr, b) {
		return nil
	}
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
		s.flushOverlap(p, addr, n)
		if p.ReadAt(addr, r.buf[:n]) == nil {
			r.addr, r.b, r.generation = addr, r.buf[:n], s.generation
			r.take(addr, b)
			return nil
		}
		// The mapping ends before that.
		r.b, r.size, r.end = nil, 0, 0
	}
	return p.ReadAt(addr, b)
}

// take copies from what was read ahead when all of b is there.
func (r *ahead) take(addr mem.VA, b []byte) bool {
	if len(r.b) == 0 || addr < r.addr || addr+mem.VA(len(b)) > r.addr+mem.VA(len(r.b)) {
		return false
	}
	copy(b, r.b[addr-r.addr:])
	return true
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

// learn remembers the length of a sequence that gives way to another.
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
