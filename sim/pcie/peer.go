package pcie

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Peer is the way from a function to the memory of another device of the host, through a switch or
// a root complex.
type Peer struct {
	// WriteRate and ReadRate are what the way carries of data written and read, in bits per second.
	WriteRate, ReadRate uint64
	// Latency is what the way takes longer than that to the host's memory, in each direction.
	Latency sim.Time
	// Buffer is how many bytes of writes the function takes in while the way is busy. Beyond, it
	// calls Stall with the time at which there is room again; nil: nobody is told.
	Buffer int
	Stall  func(until sim.Time)
}

// Validate says what is impossible in p.
func (p *Peer) Validate() error {
	if p.WriteRate == 0 || p.ReadRate == 0 || p.Latency < 0 || p.Buffer < 0 {
		return fmt.Errorf("pcie: a way to another device that carries %d and %d bit/s, takes %v longer and has a buffer of %d B: rates must be positive, the others not negative",
			p.WriteRate, p.ReadRate, p.Latency, p.Buffer)
	}
	return nil
}

// PeerCounters are those of the way to another device. Busy is for how long it carried bytes.
type PeerCounters struct {
	Writes, WriteBytes, Reads, ReadBytes uint64
	WriteBusy, ReadBusy                  sim.Time
}

// peerPath is the way, as a link has it. Posted writes that it cannot take stand in the way of all
// that the function posts behind them; reads queue at the other device, and others pass them.
type peerPath struct {
	write, read uint64 // picoseconds per byte, as Link.rate
	latency     sim.Time
	buffer      sim.Time // that the buffer takes on the way
	stall       func(until sim.Time)
	reads       sim.Server
	c           PeerCounters
}

// noPeer is behind all addresses that are looked at.
const noPeer = ^mem.PA(0)

// AddPeer says that what lies at an address from from on is another device's memory, and what the
// way there is like. Without this call nothing is.
func (l *Link) AddPeer(from mem.PA, p Peer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	rate := func(bits uint64) uint64 { return (8e12 << 20) / bits }
	x := &peerPath{write: rate(p.WriteRate), read: rate(p.ReadRate), latency: p.Latency, stall: p.Stall}
	x.buffer = serialise(x.write, p.Buffer)
	l.peerFrom, l.peer = from, x
	return nil
}

// PeerCounters reads those of the way to another device; nil while there is none.
func (l *Link) PeerCounters() *PeerCounters {
	if l.peer == nil {
		return nil
	}
	return &l.peer.c
}

// peerWrite is for how long a posted write of n bytes, which takes dur on the function's own wire,
// occupies it, and what it takes beyond.
//
//go:noinline
func (l *Link) peerWrite(n int, dur, beyond sim.Time) (sim.Time, sim.Time) {
	x := l.peer
	slow := serialise(x.write, n)
	x.c.Writes++
	x.c.WriteBytes += uint64(n)
	x.c.WriteBusy += slow
	if full := max(l.tx.FreeAt(), l.e.Now()) + slow - x.buffer; slow > dur && full > l.e.Now() && x.stall != nil {
		x.stall(full)
	}
	return max(dur, slow), beyond + x.latency
}

// peerRead sends the completions of a read when the other device and the way have brought them.
//
//go:noinline
func (l *Link) peerRead(s *readSlot, i uint64) {
	x := l.peer
	s.peer = true
	x.c.Reads++
	x.c.ReadBytes += uint64(len(s.p))
	dur := serialise(x.read, len(s.p))
	_, end := x.reads.Take(l.e.Now()+x.latency, dur)
	x.c.ReadBusy += dur
	// What the function's own wire takes for the same bytes is counted there.
	own := l.ser(len(s.p))
	l.e.At(max(end-min(own, dur), l.e.Now())+x.latency, l.rd.sample, i)
}
