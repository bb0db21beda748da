// Package pcie is the bus between a host and its devices: posted writes, reads
// with completions, ordering, credits, bandwidth and exact byte accounting. It
// declares Function, the whole face of a device.
//
// A transaction is one or two events, whatever the number of its TLPs: splits, headers, credits and
// the time on the wire are arithmetic. Each direction is a server that carries one TLP at a time; a
// TLP takes its turn when it would reach the far end of an idle link (MMIO) or when its data is
// there (DMA). Ordering (PCI Express Base, 2.4.1): posted writes of a direction stay in order; a
// read does not overtake posted writes ahead of it; completions do not overtake posted writes.
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

// AheadFunction is a Function that takes a posted write already when it is known at
// which instant a busy link delivers it, so that the wait costs no event of its own.
type AheadFunction interface {
	Function
	// MMIOWriteAt is MMIOWrite in a later place, behind all earlier writes. It reports
	// false, with nothing done, when the write shall come by MMIOWrite then. Nobody may see
	// before that place that the write was taken.
	MMIOWriteAt(at sim.Place, off uint64, p []byte) bool
}

// BusAddress is an address on the bus, as the host gives it to devices.
type BusAddress = mem.PA

// OwnBAR0 is where BAR 0 of a device lies on the bus, as the device itself reaches it: a request to
// an address there never leaves it. (Whether hardware sends such a request out is not published.)
// No other device has a way there.
const OwnBAR0 BusAddress = 1 << 63

// Bus is what a device may do to its host. One Link implements it.
type Bus interface {
	// ReadDMA reads len(p) bytes at pa; when the completion data has arrived p is
	// filled and done(arg) runs. p is the device's until then. Bytes are sampled
	// when the request reaches memory. Memory that nobody allocated reads as ones,
	// and counts as Unsupported.
	ReadDMA(pa mem.PA, p []byte, done sim.Handler, arg uint64)
	// PeekDMA reads len(p) bytes at pa at once: what firmware reads while it carries out
	// a command, in the time that the command takes.
	PeekDMA(pa mem.PA, p []byte)
	// WriteDMA posts a write: p is copied now and becomes visible in memory later, in
	// the order of the writes of this device.
	WriteDMA(pa mem.PA, p []byte)
	// WriteBacklog is for how long a write that is posted now waits for the bus.
	WriteBacklog() sim.Time
	// WriteDMANotify is WriteDMA and runs done(arg) at the instant at which the
	// bytes become visible (models use it where a unit must order itself behind data).
	WriteDMANotify(pa mem.PA, p []byte, done sim.Handler, arg uint64)
	// Interrupt sends MSI-X vector n behind all earlier writes.
	Interrupt(vector int)
}

// Counters of a link, by direction as the device sees it.
type Counters struct {
	RxTLPs, RxBytes          uint64 // host to device, headers included
	TxTLPs, TxBytes          uint64 // device to host
	MMIOWrites, MMIOBytes    uint64 // payload
	MMIOReads                uint64
	DMAReads, DMAReadBytes   uint64
	DMAWrites, DMAWriteBytes uint64
	Interrupts               uint64
	TagWaits, CreditWaits    uint64 // requests that waited for a tag; for a posted credit
	Unsupported              uint64 // requests to addresses that nobody claims
}

// Link joins one Function to a host.
type Link struct {
	e      *sim.Engine
	m      *mem.Memory
	p      Params
	rate   uint64
	sizes  sizes
	f      Function
	ahead  AheadFunction // f, if it is one
	bar    uint64        // its BAR0Size
	intr   func(vector int)
	rx, tx direction
	c      Counters
	mmio   mmioSide
	wr     writeSide
	rd     readSide
	// peer is the way to another device's memory, at addresses from peerFrom on; nil while there is
	// none.
	peer     *peerPath
	peerFrom mem.PA
	// time on the wire that the latencies already include
	smallWrite, smallCpl sim.Time
	tracks               [2]int32 // of the timeline, plus 1: rx, tx
}

// direction carries TLPs one way. Credits are a ring with the time at which the
// credit of each of the last TLPs comes back.
type direction struct {
	sim.Server
	credit  []sim.Time
	next    int
	stalled sim.Time // free, and without a credit for what waited
}

// take sends tlps posted or completion TLPs that need d on the wire, from t.
func (d *direction) take(t, dur sim.Time) (start sim.Time) {
	start, _ = d.Take(t, dur)
	return start
}

// post is take for posted TLPs: each needs a credit, which returns after rtt.
func (d *direction) post(t, dur, rtt sim.Time, tlps int) (start sim.Time, waited bool) {
	if len(d.credit) == 0 {
		return d.take(t, dur), false
	}
	if tlps == 1 { // the rule
		c := &d.credit[d.next]
		if *c > t && *c > d.FreeAt() {
			d.stalled += *c - max(t, d.FreeAt())
			t, waited = *c, true
		}
		start = d.take(t, dur)
		*c = start + dur + rtt
		if d.next++; d.next == len(d.credit) {
			d.next = 0
		}
		return start, waited
	}
	return d.postMany(t, dur, rtt, tlps)
}

//go:noinline
func (d *direction) postMany(t, dur, rtt sim.Time, tlps int) (start sim.Time, waited bool) {
	n := min(tlps, len(d.credit))
	last := d.next + n - 1
	if last >= len(d.credit) {
		last -= len(d.credit)
	}
	if c := d.credit[last]; c > t && c > d.FreeAt() {
		d.stalled += c - max(t, d.FreeAt())
		t, waited = c, true
	}
	start = d.take(t, dur)
	credit, next, back := d.credit, uint(d.next), start+dur+rtt
	for range n {
		credit[next] = back
		if next++; next == uint(len(credit)) {
			next = 0
		}
	}
	d.next = int(next)
	return start, waited
}

// NewLink makes a link to memory m. The function is attached afterwards, since it
// needs the link as its Bus. Wrong Params panic: profiles are validated where they
// are read.
func NewLink(e *sim.Engine, m *mem.Memory, p Params) *Link {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	l := &Link{e: e, m: m, p: p, rate: p.rate(), sizes: p.sizes(), peerFrom: noPeer}
	l.smallWrite, l.smallCpl = l.ser(64+p.WriteHeader), l.ser(64+p.CplHeader)
	l.rx.credit = make([]sim.Time, p.PostedCredits)
	l.tx.credit = make([]sim.Time, p.PostedCredits)
	l.mmio.bind(l)
	l.wr.bind(l)
	l.rd.bind(l)
	return l
}

// ser is the time that bytes take on the wire.
func (l *Link) ser(bytes int) sim.Time { return serialise(l.rate, bytes) }

// Attach names the function and the handler of its interrupts.
func (l *Link) Attach(f Function, interrupt func(vector int)) {
	l.f, l.intr, l.bar = f, interrupt, f.BAR0Size()
	if !l.e.Lockstep() {
		l.ahead, _ = f.(AheadFunction)
	}
}

// Function is the attached function.
func (l *Link) Function() Function { return l.f }

// Memory is the host memory behind the link.
func (l *Link) Memory() *mem.Memory { return l.m }

// Params are those the link was made with.
func (l *Link) Params() *Params { return &l.p }

// Counters reads the counters.
func (l *Link) Counters() *Counters { return &l.c }

// Busy is how long each direction carried TLPs, for utilisation.
func (l *Link) Busy() (rx, tx sim.Time) { return l.rx.Busy, l.tx.Busy }

func (c *Counters) rx(tlps, bytes int) {
	c.RxTLPs += uint64(tlps)
	c.RxBytes += uint64(bytes)
}

func (c *Counters) tx(tlps, bytes int) {
	c.TxTLPs += uint64(tlps)
	c.TxBytes += uint64(bytes)
}

// Register enters the link's counters in the engine's registry, and makes its two
// lines of the timeline when one is recorded. The name is that of the device.
func (l *Link) Register(name string) {
	unit := name + "/pcie"
	c := &l.c
	for _, x := range []struct {
		name string
		p    *uint64
	}{
		{"rx_tlps", &c.RxTLPs}, {"rx_bytes", &c.RxBytes}, {"tx_tlps", &c.TxTLPs}, {"tx_bytes", &c.TxBytes},
		{"mmio_writes", &c.MMIOWrites}, {"mmio_bytes", &c.MMIOBytes}, {"mmio_reads", &c.MMIOReads},
		{"dma_reads", &c.DMAReads}, {"dma_read_bytes", &c.DMAReadBytes},
		{"dma_writes", &c.DMAWrites}, {"dma_write_bytes", &c.DMAWriteBytes},
		{"interrupts", &c.Interrupts}, {"tag_waits", &c.TagWaits}, {"credit_waits", &c.CreditWaits},
		{"unsupported", &c.Unsupported},
	} {
		l.e.Counters.Add(unit, x.name, x.p)
	}
	l.e.Counters.AddTime(unit, "rx_busy_ps", &l.rx.Busy)
	l.e.Counters.AddTime(unit, "tx_busy_ps", &l.tx.Busy)
	if s := l.e.Spans; s != nil {
		l.tracks = [2]int32{s.Track(unit+" rx") + 1, s.Track(unit+" tx") + 1}
	}
}

const (
	toDevice = iota
	toHost
)

// span records the time of a transaction on the wire when a timeline is recorded.
func (l *Link) span(dir int, what string, start, dur sim.Time, bytes int) {
	if l.tracks[dir] != 0 && l.e.Spans != nil {
		l.e.Spans.Span(l.tracks[dir]-1, what, start, start+dur, uint64(bytes))
	}
}
