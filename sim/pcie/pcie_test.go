package pcie

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// kalia are the TLP sizes of Kalia, ATC 2016, Fig. 2a on PCIe 3.0 x16.
func kalia() Params {
	return Params{
		Bandwidth: 16 * 984_600_000 * 8, PostedLatency: 120 * sim.Nanosecond, ReadLatency: 400 * sim.Nanosecond,
		MPS: 256, MRRS: 512, RCB: 128, WriteHeader: 26, ReadHeader: 26, CplHeader: 22,
		ReadsInFlight: 64, MemoryLatency: 100 * sim.Nanosecond,
	}
}

// husky counts 20 bytes a TLP (Husky, NSDI 2023, App. A).
func husky() Params {
	p := kalia()
	p.WriteHeader, p.ReadHeader, p.CplHeader = 20, 20, 20
	return p
}

// probe is a function that logs what arrives.
type probe struct {
	e      *sim.Engine
	offs   []uint64
	at     []sim.Time
	data   [][]byte
	quiet  bool
	writes int
}

func (f *probe) MMIOWrite(off uint64, p []byte) {
	f.writes++
	if f.quiet {
		return
	}
	f.offs = append(f.offs, off)
	f.at = append(f.at, f.e.Now())
	f.data = append(f.data, bytes.Clone(p))
}
func (f *probe) MMIORead(off uint64, p []byte) {
	for i := range p {
		p[i] = byte(off) + byte(i)
	}
}
func (f *probe) Command(in, out []byte) sim.Time { return 0 }
func (f *probe) BAR0Size() uint64                { return 1 << 20 }

type rig struct {
	e *sim.Engine
	m *mem.Memory
	l *Link
	f *probe
}

func newRig(p Params) *rig {
	e := sim.New(sim.Options{})
	m := mem.New(64 << 20)
	r := &rig{e, m, NewLink(e, m, p), &probe{e: e}}
	r.l.Attach(r.f, nil)
	return r
}

func (r *rig) run(t *testing.T) {
	t.Helper()
	if err := r.e.Run(sim.Never); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) alloc(t *testing.T, n uint64) mem.PA {
	t.Helper()
	pa, err := r.m.Alloc(n, 0)
	if err != nil {
		t.Fatal(err)
	}
	return pa
}

// Kalia, ATC 2016, App. A: bytes from CPU to NIC for 10 WQEs of 65 B.
func TestBytesOfTenWQEs(t *testing.T) {
	t.Run("doorbell", func(t *testing.T) {
		r := newRig(kalia())
		pa := r.alloc(t, 4096)
		r.e.Go("cpu", func(p *sim.Proc) { r.l.PostMMIO(p, 0x800, make([]byte, 8)) })
		buf := make([]byte, 10*128)
		r.l.ReadDMA(pa, buf, nil, 0)
		r.run(t)
		if got := r.l.Counters().RxBytes; got != 1534 {
			t.Errorf("host to device: %d bytes, want 1534", got)
		}
	})
	t.Run("mmio", func(t *testing.T) {
		r := newRig(kalia())
		r.e.Go("cpu", func(p *sim.Proc) {
			for range 10 {
				r.l.PostMMIO(p, 0x800, make([]byte, 128))
			}
		})
		r.run(t)
		if got := r.l.Counters().RxBytes; got != 1800 {
			t.Errorf("host to device: %d bytes, want 1800", got)
		}
	})
}

// Husky, NSDI 2023, App. A: a WRITE of 29 B is 64 B of MMIO, 36 B of WQE and 29 B
// of payload, in three TLPs towards the device.
func TestBytesOfHuskyWrite(t *testing.T) {
	r := newRig(husky())
	pa := r.alloc(t, 4096)
	r.e.Go("cpu", func(p *sim.Proc) { r.l.PostMMIO(p, 0x800, make([]byte, 64)) })
	r.l.ReadDMA(pa, make([]byte, 36), nil, 0)
	r.l.ReadDMA(pa+1024, make([]byte, 29), nil, 0)
	r.run(t)
	if c := r.l.Counters(); c.RxBytes != 189 || c.RxTLPs != 3 {
		t.Errorf("host to device: %d bytes in %d TLPs, want 189 in 3", c.RxBytes, c.RxTLPs)
	}
}

func TestLatencies(t *testing.T) {
	r := newRig(kalia())
	pa := r.alloc(t, 4096)
	var read, wrote sim.Time
	r.l.ReadDMA(pa, make([]byte, 64), func(uint64) { read = r.e.Now() }, 0)
	r.run(t)
	start := r.e.Now()
	r.l.WriteDMANotify(pa, make([]byte, 64), func(uint64) { wrote = r.e.Now() - start }, 0)
	r.run(t)
	start = r.e.Now()
	r.e.Go("cpu", func(p *sim.Proc) { r.l.PostMMIO(p, 0x800, make([]byte, 64)) })
	r.run(t)
	if read != 400*sim.Nanosecond || wrote != 220*sim.Nanosecond || r.f.at[0]-start != 120*sim.Nanosecond {
		t.Errorf("read %v, write %v, MMIO %v; want 400ns, 220ns, 120ns", read, wrote, r.f.at[0]-start)
	}
}

func TestReadAndWriteMove(t *testing.T) {
	r := newRig(kalia())
	pa := r.alloc(t, 8192)
	in := make([]byte, 5000)
	for i := range in {
		in[i] = byte(i * 7)
	}
	out := make([]byte, 5000)
	r.l.WriteDMA(pa+3, in)
	r.l.ReadDMA(pa+3, out, nil, 0) // does not pass the write
	r.run(t)
	if !bytes.Equal(in, out) {
		t.Error("a read passed an earlier write of the same bytes")
	}
	c := r.l.Counters()
	// 4093 bytes to the page's end are 16 TLPs of 256, the other 907 are 4.
	if c.TxBytes != 5000+20*26+10*26 || c.DMAWriteBytes != 5000 || c.DMAReadBytes != 5000 {
		t.Errorf("counters %+v", *c)
	}
}
