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

// A transaction of n bytes at any address splits as the rules say.
func TestTransactionsSplitAtBoundaries(t *testing.T) {
	p := kalia()
	sizes := p.sizes()
	for _, c := range []struct {
		a         uint64
		n, unit   int
		req, cpls int
	}{
		{0, 0, 256, 1, 1}, {0, 1, 256, 1, 1}, {0, 256, 256, 1, 2}, {0, 257, 256, 2, 3},
		{4095, 2, 256, 2, 2}, {4000, 256, 256, 2, 3}, {0, 4096, 256, 16, 32}, {64, 64, 512, 1, 1},
		{100, 64, 512, 1, 2}, {127, 2, 512, 1, 2}, {0, 512, 512, 1, 4}, {1, 512, 512, 1, 5},
		{1, 1024, 512, 2, 10}, {4096 - 512, 1024, 512, 2, 8},
	} {
		if got := requests(c.a, c.n, log2(c.unit)); got != c.req {
			t.Errorf("%d bytes at %d by %d: %d requests, want %d", c.n, c.a, c.unit, got, c.req)
		}
		if got := sizes.completions(c.a, c.n); got != c.cpls {
			t.Errorf("%d bytes at %d: %d completions, want %d", c.n, c.a, got, c.cpls)
		}
	}
}

// Useful bandwidth as pcie-model gives it for Gen3 x16 at MPS 256, 24 and 20 byte
// headers: writes of 256 B 104.0 Gb/s, of 64 B 82.7; reads of 64 B 86.6.
func TestBandwidth(t *testing.T) {
	p := kalia()
	p.Bandwidth, p.WriteHeader, p.ReadHeader, p.CplHeader = 113_700_000_000, 24, 24, 20
	p.ReadsInFlight = 256
	const total = 1 << 20
	for _, c := range []struct {
		n    int
		read bool
		gbps float64
	}{{64, false, 82.7}, {256, false, 104.0}, {64, true, 86.6}} {
		r := newRig(p)
		pa := r.alloc(t, 4096)
		var last sim.Time
		done := func(uint64) { last = r.e.Now() }
		for range total / c.n {
			if c.read {
				r.l.ReadDMA(pa, make([]byte, c.n), done, 0)
			} else {
				r.l.WriteDMANotify(pa, make([]byte, c.n), done, 0)
			}
		}
		r.run(t)
		if got := total * 8 / last.Nanoseconds(); got < c.gbps*0.985 || got > c.gbps*1.005 {
			t.Errorf("%d bytes, read %v: %.1f Gb/s, want %.1f", c.n, c.read, got, c.gbps)
		}
	}
}

// With few tags reads are bound by latency, and are served in order.
func TestFewTagsBoundReadsByLatency(t *testing.T) {
	p := kalia()
	p.ReadsInFlight = 4
	r := newRig(p)
	pa := r.alloc(t, 8192)
	var order []uint64
	var last sim.Time
	for i := range uint64(40) {
		r.l.ReadDMA(pa, make([]byte, 64), func(i uint64) { order = append(order, i); last = r.e.Now() }, i)
	}
	r.run(t)
	for i, k := range order {
		if uint64(i) != k {
			t.Fatalf("order %v", order)
		}
	}
	if lo, hi := 4000*sim.Nanosecond, 4200*sim.Nanosecond; last < lo || last > hi {
		t.Errorf("40 reads by 4 took %v, want about 10 x 400ns", last)
	}
	if r.l.Counters().TagWaits != 36 {
		t.Errorf("%d waits", r.l.Counters().TagWaits)
	}
	done := false
	r.l.ReadDMA(pa, make([]byte, 8192), func(uint64) { done = true }, 0) // 16 requests, 4 tags
	r.run(t)
	if !done {
		t.Error("a read of more requests than tags never ends")
	}
}

// With few posted credits the round trip bounds the rate of writes.
func TestCredits(t *testing.T) {
	p := kalia()
	p.PostedCredits = 4
	r := newRig(p)
	pa := r.alloc(t, 4096)
	var last sim.Time
	for range 40 {
		r.l.WriteDMANotify(pa, make([]byte, 64), func(uint64) { last = r.e.Now() }, 0)
	}
	r.run(t)
	if lo, hi := 9*240*sim.Nanosecond, 10*260*sim.Nanosecond; last < lo || last > hi {
		t.Errorf("40 writes by 4 took %v, want about 10 x 240ns", last)
	}
	if r.l.Counters().CreditWaits == 0 {
		t.Error("no waits counted")
	}
}

// Interrupts and completions stay behind the writes before them.
func TestOrderBehindWrites(t *testing.T) {
	r := newRig(kalia())
	pa := r.alloc(t, 4096)
	var got []string
	r.l.Attach(r.f, func(v int) {
		var b [1]byte
		r.m.Read(pa, b[:])
		if b[0] != 9 || v != 5 {
			t.Errorf("interrupt %d before its data (%d)", v, b[0])
		}
		got = append(got, "interrupt")
	})
	r.l.WriteDMANotify(pa, []byte{9}, func(uint64) { got = append(got, "write") }, 0)
	r.l.Interrupt(5)
	r.l.WriteDMANotify(pa, []byte{8}, func(uint64) { got = append(got, "write 2") }, 0)
	r.run(t)
	if len(got) != 3 || got[0] != "write" || got[1] != "interrupt" || got[2] != "write 2" {
		t.Errorf("order %v", got)
	}
}

func TestMMIORead(t *testing.T) {
	r := newRig(kalia())
	r.e.Go("cpu", func(p *sim.Proc) {
		r.l.PostMMIO(p, 8, make([]byte, 8))
		var b [4]byte
		r.l.ReadMMIO(p, 16, b[:])
		if b != [4]byte{16, 17, 18, 19} || r.f.writes != 1 {
			t.Errorf("read %v behind %d writes", b, r.f.writes)
		}
		if p.Now() < 240*sim.Nanosecond || p.Now() > 260*sim.Nanosecond {
			t.Errorf("took %v", p.Now())
		}
		r.l.ReadMMIO(p, 1<<20, b[:])
		if b != [4]byte{0xff, 0xff, 0xff, 0xff} {
			t.Errorf("outside the BAR: %v", b)
		}
		r.l.PostMMIO(p, 1<<20-4, make([]byte, 8))
		r.l.PostMMIO(p, ^uint64(0)-3, make([]byte, 4))
	})
	r.run(t)
	if c := r.l.Counters(); c.Unsupported != 3 || r.f.writes != 2 { // the first half of one was inside
		t.Errorf("%d unsupported, %d writes", c.Unsupported, r.f.writes)
	}
}

func TestAddressesThatNobodyAllocated(t *testing.T) {
	r := newRig(kalia())
	b := make([]byte, 8)
	n := 0
	done := func(uint64) { n++ }
	r.l.ReadDMA(0x1234, b, done, 0)
	r.l.ReadDMA(^mem.PA(0)-3, make([]byte, 8), done, 0)
	r.l.WriteDMANotify(1<<60, b, done, 0)
	r.l.WriteDMANotify(^mem.PA(0)-3, b, done, 0)
	r.run(t)
	if n != 4 || r.l.Counters().Unsupported != 4 || b[0] != 0xff {
		t.Errorf("%d answers, %d unsupported, read %x", n, r.l.Counters().Unsupported, b)
	}
}

// Several programs that ran ahead: what they posted arrives by their local times.
func TestMMIOArrivesByLocalTime(t *testing.T) {
	p := kalia()
	r := newRig(p)
	for c := range uint64(3) {
		r.e.Go("cpu", func(p *sim.Proc) {
			for i := range uint64(10) {
				p.Advance(sim.Time(7+c*3) * sim.Nanosecond)
				r.l.PostMMIO(p, c*0x1000+i*64, []byte{byte(p.Now() / sim.Nanosecond), 0, 0, 0, 0, 0, 0, 0})
			}
		})
	}
	r.run(t)
	if len(r.f.data) != 30 {
		t.Fatalf("%d arrived", len(r.f.data))
	}
	for i := 1; i < len(r.f.data); i++ {
		if r.f.data[i][0] < r.f.data[i-1][0] || r.f.at[i] <= r.f.at[i-1] && r.f.at[i] != r.f.at[i-1] {
			t.Fatalf("write of %dns came after one of %dns", r.f.data[i][0], r.f.data[i-1][0])
		}
	}
}

func TestSteadyTrafficDoesNotAllocate(t *testing.T) {
	r := newRig(kalia())
	r.f.quiet = true
	pa := r.alloc(t, 8192)
	cqe, buf := make([]byte, 64), make([]byte, 1024)
	n := 0
	done := func(uint64) { n++ }
	var wake *sim.Proc
	line := make([]byte, 64)
	wake = r.e.Go("cpu", func(p *sim.Proc) {
		for {
			p.Park("work")
			r.l.PostMMIO(p, 0x800, line)
		}
	})
	wake.SetDaemon()
	work := func() {
		for range 20 {
			r.l.WriteDMANotify(pa, cqe, done, 0)
			r.l.WriteDMA(pa+2048, buf)
			r.l.ReadDMA(pa+1024, buf, done, 0)
			wake.Wake(r.e.Now())
			if err := r.e.Run(sim.Never); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 30 {
		work()
	}
	if a := testing.AllocsPerRun(20, work); a > 1 {
		t.Errorf("%v allocations", a)
	}
	r.e.Close()
}

// What is under way when it is drained was written, and read, once.
func TestDrain(t *testing.T) {
	r := newRig(kalia())
	pa := r.alloc(t, 4096)
	if !r.m.Write(pa+64, []byte("before")) {
		t.Fatal("no memory")
	}
	got, late := make([]byte, 6), make([]byte, 6)
	reads := 0
	done := func(uint64) { reads++ }
	r.l.WriteDMA(pa, []byte("first!"))
	r.l.WriteDMA(pa, []byte("second"))
	r.l.ReadDMA(pa+64, got, done, 0)
	r.l.Drain()
	b := make([]byte, 6)
	if !r.m.Read(pa, b) || string(b) != "second" {
		t.Errorf("memory %q", b)
	}
	// What others store now stays, and is not what the read brings.
	if !r.m.Write(pa, []byte("theirs")) || !r.m.Write(pa+64, []byte("after.")) {
		t.Fatal("no memory")
	}
	r.l.ReadDMA(pa+64, late, done, 0)
	r.run(t)
	if !r.m.Read(pa, b) || string(b) != "theirs" || string(got) != "before" || string(late) != "after." || reads != 2 {
		t.Errorf("memory %q, reads %q and %q, %d done", b, got, late, reads)
	}
}
