package link

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// measures are what a frame of some length takes of a line, and counts.
type measures struct {
	n           int
	bits, line  sim.Time // from its first to its last bit; how long it keeps the line
	bytes, wire uint64   // with the FCS; with all that it takes on the line
}

// measure is what a frame of n bytes takes. Streams have few lengths, so the last one is kept.
func (p *Port) measure(n int) *measures {
	if n != p.last.n {
		p.measureAnew(n)
	}
	return &p.last
}

//go:noinline
func (p *Port) measureAnew(n int) {
	whole := max(n, p.p.MinFrame) + p.p.FCS
	body := p.p.Preamble + whole
	p.last = measures{n, p.p.bytesTime(body), p.p.bytesTime(body + p.p.Gap), uint64(whole), uint64(body + p.p.Gap)}
}

// sent counts a frame of the given measures.
func (c *Counters) sent(m *measures) {
	c.TxPackets++
	c.TxBytes += m.bytes
	c.TxWireBytes += m.wire
}

// countTx counts a frame that is sent.
func (p *Port) countTx(f *roce.Frame, m *measures) {
	p.C.sent(m)
	if p.maybeToGroup(f) {
		p.countGroup(f, &p.C.TxMulticast, &p.C.TxBroadcast)
	}
}

// countRx counts a frame that has come.
func (p *Port) countRx(f *roce.Frame) {
	p.C.RxPackets++
	p.C.RxBytes += uint64(max(len(f.B), p.p.MinFrame) + p.p.FCS)
	if p.maybeToGroup(f) {
		p.countGroup(f, &p.C.RxMulticast, &p.C.RxBroadcast)
	}
}

// maybeToGroup says whether a frame need be looked at closer to know where it goes: those
// that go to one address need not.
func (p *Port) maybeToGroup(f *roce.Frame) bool {
	if p.lanes != nil {
		return roce.IsMulticastLID(roce.LRH(f.B).DLID())
	}
	return len(f.B) >= roce.EthernetSize && roce.Ethernet(f.B).ToGroup()
}

// countGroup counts a frame that goes to a group, if it does.
//
//go:noinline
func (p *Port) countGroup(f *roce.Frame, multicast, broadcast *uint64) {
	if p.lanes != nil {
		*multicast++
		return
	}
	if dst := roce.Ethernet(f.B).Dst(); dst.IsBroadcast() {
		*broadcast++
	} else if dst.IsGroup() {
		*multicast++
	}
}
