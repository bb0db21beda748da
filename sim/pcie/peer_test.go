package pcie

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// peerRig is a link whose memory has a bank behind it, which another device's is.
func peerRig(t *testing.T, p Peer) (*sim.Engine, *Link, mem.PA) {
	e := sim.New(sim.Options{})
	m := mem.New(64 << 20)
	b, err := m.AddBank(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	pa, err := b.Alloc(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	params := Params{Bandwidth: 100e9, PostedLatency: 120 * sim.Nanosecond, ReadLatency: 400 * sim.Nanosecond, MPS: 256, MRRS: 512, RCB: 128,
		WriteHeader: 24, ReadHeader: 24, CplHeader: 20, ReadsInFlight: 64, PostedCredits: 64, MemoryLatency: 130 * sim.Nanosecond}
	l := NewLink(e, m, params)
	if err := l.AddPeer(pa, p); err != nil {
		t.Fatal(err)
	}
	return e, l, pa
}

// Reads from another device come at the rate of the way, and after its latency; reads of the host's
// memory pass them.
func TestPeerReads(t *testing.T) {
	e, l, pa := peerRig(t, Peer{WriteRate: 50e9, ReadRate: 8e9, Latency: 300 * sim.Nanosecond})
	host, err := l.Memory().Alloc(4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{0xa5}, 4096)
	l.Memory().Write(pa+5*4096, want)
	const n = 6 // with room for more tags
	got, other := make([]byte, n*4096), make([]byte, 64)
	var last, first, passed sim.Time
	for i := range n {
		l.ReadDMA(pa+mem.PA(i*4096), got[i*4096:(i+1)*4096], func(uint64) {
			if first == 0 {
				first = e.Now()
			}
			last = e.Now()
		}, 0)
	}
	l.ReadDMA(host, other, func(uint64) { passed = e.Now() }, 0)
	if err := e.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[5*4096:], want) {
		t.Error("other bytes than the device has")
	}
	// 4,096 B at 1 GB/s are 4.096 us.
	if each := (last - first) / (n - 1); each < 4090*sim.Nanosecond || each > 4110*sim.Nanosecond {
		t.Errorf("a read takes %v, at 8 Gb/s 4.096us", each)
	}
	if first < 4090*sim.Nanosecond+600*sim.Nanosecond {
		t.Errorf("the first comes after %v, before the way and back and the data", first)
	}
	if passed == 0 || passed > first {
		t.Errorf("a read of the host's memory comes at %v, behind the first of the other device at %v", passed, first)
	}
	if c := l.PeerCounters(); c.Reads != n || c.ReadBytes != n*4096 || c.Writes != 0 {
		t.Errorf("%+v", c)
	}
}

// Writes that the way does not take keep the wire busy, and who writes is told how long when its
// buffer is full.
func TestPeerWrites(t *testing.T) {
	var until []sim.Time
	e, l, pa := peerRig(t, Peer{WriteRate: 8e9, ReadRate: 8e9, Buffer: 8192, Stall: func(t sim.Time) { until = append(until, t) }})
	want := bytes.Repeat([]byte{0x3c}, 4096)
	var last sim.Time
	for range 5 {
		l.WriteDMANotify(pa, want, func(uint64) { last = e.Now() }, 0)
	}
	if err := e.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
	if last < 5*4096*sim.Nanosecond {
		t.Errorf("20 KiB have arrived after %v, at 8 Gb/s 20.48us", last)
	}
	// The third write finds two in the buffer.
	if len(until) != 3 || until[0] != 4096*sim.Nanosecond || until[2] != 3*4096*sim.Nanosecond {
		t.Errorf("stalls until %v", until)
	}
	got := make([]byte, 4096)
	if l.Memory().Read(pa, got); !bytes.Equal(got, want) {
		t.Error("other bytes than were written")
	}
}

func TestPeerRefused(t *testing.T) {
	e := sim.New(sim.Options{})
	l := NewLink(e, mem.New(1<<20), Params{Bandwidth: 1e9, PostedLatency: 1, ReadLatency: 1, MPS: 128, MRRS: 128, RCB: 64, ReadsInFlight: 1})
	for _, p := range []Peer{{ReadRate: 1}, {WriteRate: 1}, {WriteRate: 1, ReadRate: 1, Latency: -1}, {WriteRate: 1, ReadRate: 1, Buffer: -1}} {
		if l.AddPeer(1<<30, p) == nil || l.PeerCounters() != nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
