package link

import "github.com/rdmasim/rdmasim/sim"

// returns holds the credits that are on their way back, in order of time, from head to tail in a
// ring whose length is 0 or a power of two. (A sim.FIFO would not be inlined.)
type returns struct {
	ring       []credit
	head, tail uint32
}

// at returns slot i; indexes run on beyond the length of the ring.
func (r *returns) at(i uint32) *credit { return &r.ring[int(i)&(len(r.ring)-1)] }

// full reports whether no slot is free.
func (r *returns) full() bool { return int(r.tail-r.head) == len(r.ring) }

// grow doubles the ring; the first one has 8 slots.
func (r *returns) grow() {
	ring := make([]credit, max(8, 2*len(r.ring)))
	n := uint32(0)
	for i := r.head; i != r.tail; i++ {
		ring[n] = *r.at(i)
		n++
	}
	*r = returns{ring: ring, tail: n}
}

// credit is a number of blocks that come back at an instant.
type credit struct {
	at     sim.Time
	blocks int
}
