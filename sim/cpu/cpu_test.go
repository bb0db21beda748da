package cpu

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

const ns = sim.Nanosecond

func params() Params {
	return Params{
		LineTransfer: 30 * ns, LockFree: 20 * ns, LockHandover: 80 * ns, Unlock: 5 * ns,
		StoreFence: 4 * ns, DMABarrier: 1 * ns, LoadFence: 2 * ns, UCStore: 40 * ns,
		WCStore: 1 * ns, WCLine: 20 * ns, WCFlush: 10 * ns, WCBuffers: 2, NoWC: 160 * ns, CacheLine: 64,
	}
}

// probe logs MMIO writes as "time offset+length".
type probe struct {
	e   *sim.Engine
	log []string
	mem [8192]byte
}

func (f *probe) MMIOWrite(off uint64, p []byte) {
	f.log = append(f.log, fmt.Sprintf("%v %#x+%d", f.e.Now(), off, len(p)))
	copy(f.mem[off:], p)
}
func (f *probe) MMIORead(off uint64, p []byte)   { copy(p, f.mem[off:]) }
func (f *probe) Command(in, out []byte) sim.Time { return 0 }
func (f *probe) BAR0Size() uint64                { return 8192 }

type rig struct {
	e *sim.Engine
	h *Host
	f *probe
	l *pcie.Link
}

func newRig(o sim.Options, p Params) *rig {
	e := sim.New(o)
	l := pcie.NewLink(e, mem.New(4<<20), pcie.Params{
		Bandwidth: 8e15, PostedLatency: 100 * ns, ReadLatency: 400 * ns, MPS: 256, MRRS: 512, RCB: 64,
		ReadsInFlight: 8,
	})
	f := &probe{e: e}
	l.Attach(f, nil)
	return &rig{e, NewHost(e, 8, p), f, l}
}

func (r *rig) mapping(k MapKind) *Mapping { return &Mapping{Dev: r.l, Off: 4096, Kind: k} }

func (r *rig) run(t *testing.T) {
	t.Helper()
	if err := r.e.Run(sim.Never); err != nil {
		t.Fatal(err)
	}
}

// thread starts a program on core i.
func (r *rig) thread(i int, body func(p *sim.Proc, c *Core)) {
	c := r.h.Core(i)
	p := r.e.Go(fmt.Sprintf("t%d", i), func(p *sim.Proc) { body(p, c) })
	c.Attach(p)
}

func wantLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

func TestUncachedStores(t *testing.T) {
	r := newRig(sim.Options{}, params())
	r.thread(0, func(p *sim.Proc, c *Core) { c.Store(p, r.mapping(Uncached), 0x800, pattern(16)) })
	r.run(t)
	wantLog(t, r.f.log, "140ns 0x1800+8", "180ns 0x1808+8")
}

func TestFullLinesLeaveWhole(t *testing.T) {
	r := newRig(sim.Options{}, params())
	r.thread(0, func(p *sim.Proc, c *Core) {
		c.CopyToDevice(p, r.mapping(WriteCombining), 0x800, pattern(128))
		if p.Now() != 2*(8+20)*ns {
			t.Errorf("the copy took %v", p.Now())
		}
		c.Fence(p)
		if p.Now() != 60*ns {
			t.Errorf("with the fence %v", p.Now())
		}
	})
	r.run(t)
	wantLog(t, r.f.log, "128ns 0x1800+64", "156ns 0x1840+64")
	if !bytes.Equal(r.f.mem[0x1800:0x1880], pattern(128)) {
		t.Error("bytes differ")
	}
	if c := r.h.Core(0).Counters(); c.WCFull != 2 || c.WCPartial != 0 || c.Fences != 1 {
		t.Errorf("%+v", *c)
	}
}

func TestTheLastPartOfACopyIsPadded(t *testing.T) {
	r := newRig(sim.Options{}, params())
	r.thread(0, func(p *sim.Proc, c *Core) { c.CopyToDevice(p, r.mapping(WriteCombining), 0x800, pattern(70)) })
	r.run(t)
	wantLog(t, r.f.log, "128ns 0x1800+64", "156ns 0x1840+64")
}

func TestPartialLinesLeaveTornAtTheFence(t *testing.T) {
	r := newRig(sim.Options{}, params())
	r.thread(0, func(p *sim.Proc, c *Core) {
		m := r.mapping(WriteCombining)
		c.Store(p, m, 0x800, pattern(24))
		c.Store(p, m, 0x820, pattern(8))
		c.Store(p, m, 0x838, pattern(16)) // ends in the next line
		c.Fence(p)
	})
	r.run(t)
	wantLog(t, r.f.log, "120ns 0x1800+24", "120ns 0x1820+8", "120ns 0x1838+8", "130ns 0x1840+8")
	if c := r.h.Core(0).Counters(); c.WCPartial != 2 || c.WCEvicted != 0 {
		t.Errorf("%+v", *c)
	}
}

func TestTheOldestBufferIsEvicted(t *testing.T) {
	r := newRig(sim.Options{}, params())
	r.thread(0, func(p *sim.Proc, c *Core) {
		m := r.mapping(WriteCombining)
		for _, off := range []uint64{0x100, 0x200, 0x108, 0x300} {
			c.Store(p, m, off, pattern(8))
		}
		c.Store(p, m, 0x200, pattern(8)) // the same word again: gathered
		c.Fence(p)
	})
	r.run(t)
	wantLog(t, r.f.log, "114ns 0x1100+16", "129ns 0x1200+8", "139ns 0x1300+8")
	if c := r.h.Core(0).Counters(); c.WCPartial != 3 || c.WCEvicted != 1 {
		t.Errorf("%+v", *c)
	}
}

func TestWithoutWriteCombining(t *testing.T) {
	p := params()
	p.WCBuffers = 0
	r := newRig(sim.Options{}, p)
	r.thread(0, func(p *sim.Proc, c *Core) {
		c.CopyToDevice(p, r.mapping(WriteCombining), 0, pattern(64))
		if p.Now() != 8*160*ns {
			t.Errorf("took %v", p.Now())
		}
	})
	r.run(t)
	if len(r.f.log) != 8 || r.h.HasWC() {
		t.Errorf("%d writes", len(r.f.log))
	}
}

func TestLoadComesBehindStores(t *testing.T) {
	r := newRig(sim.Options{}, params())
	r.thread(0, func(p *sim.Proc, c *Core) {
		c.Store(p, r.mapping(WriteCombining), 0, pattern(8))
		b := make([]byte, 16)
		c.Load(p, r.mapping(Uncached), 0, b)
		if !bytes.Equal(b[:8], pattern(8)) || p.Now() < 400*ns {
			t.Errorf("%v at %v", b, p.Now())
		}
	})
	r.run(t)
}

func TestLinesMove(t *testing.T) {
	r := newRig(sim.Options{}, params())
	var l Line
	var took [2][3]sim.Time
	for i := range 2 {
		r.thread(i, func(p *sim.Proc, c *Core) {
			for k := range 3 {
				p.Advance(sim.Time(100*k)*ns - p.Now() + sim.Time(300*k)*ns)
				at := p.Now()
				c.Touch(p, &l)
				took[i][k] = p.Now() - at
			}
		})
	}
	r.run(t)
	// First touch is free. Core 1 waits for no transfer but its own; then core 0's
	// comes first and core 1's after it.
	want := [2][3]sim.Time{{0, 30 * ns, 30 * ns}, {30 * ns, 60 * ns, 60 * ns}}
	if took != want {
		t.Errorf("got %v, want %v", took, want)
	}
	if a, b := r.h.Core(0).Counters().LineMisses, r.h.Core(1).Counters().LineMisses; a != 2 || b != 3 {
		t.Errorf("misses %d, %d", a, b)
	}
	l.DeviceWrote()
	r.thread(0, func(p *sim.Proc, c *Core) {
		at := p.Now()
		c.Touch(p, &l)
		c.Touch(p, &l)
		if p.Now()-at != 30*ns {
			t.Errorf("a line that a device wrote took %v", p.Now()-at)
		}
	})
	r.run(t)
}

func TestThreadsOfOneCoreShareItsTime(t *testing.T) {
	for _, lockstep := range []bool{false, true} {
		r := newRig(sim.Options{Lockstep: lockstep}, params())
		var ends []sim.Time
		for range 3 {
			r.thread(0, func(p *sim.Proc, c *Core) {
				for range 4 {
					c.Run(p, 10*ns)
				}
				ends = append(ends, p.Now())
			})
		}
		r.run(t)
		want := []sim.Time{100 * ns, 110 * ns, 120 * ns}
		if d := cmp.Diff(want, ends); d != "" {
			t.Errorf("lockstep %v: %s", lockstep, d)
		}
		if b := r.h.Core(0).Busy(); b != 120*ns {
			t.Errorf("busy %v", b)
		}
	}
}

func TestParamsAreChecked(t *testing.T) {
	p := params()
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []func(p *Params){
		func(p *Params) { *p = Params{} },
		func(p *Params) { p.LockFree = -1 },
		func(p *Params) { p.CacheLine = 65 },
		func(p *Params) { p.WCBuffers, p.NoWC = 0, 0 },
	} {
		p := params()
		bad(&p)
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

func TestCountersAndTimeline(t *testing.T) {
	r := newRig(sim.Options{}, params())
	r.e.Spans = new(sim.Spans)
	r.h.Register("host0")
	r.l.Register("mlx5_0")
	r.thread(3, func(p *sim.Proc, c *Core) {
		c.CopyToDevice(p, r.mapping(WriteCombining), 0, pattern(64))
		c.Fence(p)
	})
	r.run(t)
	got := make(map[string]uint64)
	for _, c := range r.e.Counters.Sorted() {
		got[c.Unit+" "+c.Name] = c.Value()
	}
	for name, want := range map[string]uint64{
		"host0/core 3 wc_full": 1, "host0/core 3 busy_ps": 32_000, "mlx5_0/pcie mmio_bytes": 64, "host0/core 0 fences": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %d, want %d", name, v, want)
		}
	}
	var b bytes.Buffer
	if err := r.e.Spans.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{`"WC store"`, `"fence"`, `"MMIO write"`, `"core 3"`} {
		if !bytes.Contains(b.Bytes(), []byte(s)) {
			t.Errorf("no %s in the timeline", s)
		}
	}
}

// BlueFlame of one line with its fence, to the device.
func BenchmarkBlueFlame(b *testing.B) {
	r := newRig(sim.Options{}, params())
	m := r.mapping(WriteCombining)
	c := r.h.Core(0)
	r.l.Attach(sink{}, nil)
	wqe := pattern(64)
	r.e.Go("cpu", func(p *sim.Proc) {
		for i := range b.N {
			c.CopyToDevice(p, m, 0x800, wqe)
			c.Fence(p)
			if i%16 == 0 {
				p.Sync()
			}
		}
	})
	b.ReportAllocs()
	_ = r.e.Run(sim.Never)
}

// sink takes everything.
type sink struct{}

func (sink) MMIOWrite(off uint64, p []byte)  {}
func (sink) MMIORead(off uint64, p []byte)   {}
func (sink) Command(in, out []byte) sim.Time { return 0 }
func (sink) BAR0Size() uint64                { return 8192 }
