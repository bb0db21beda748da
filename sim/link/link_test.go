package link

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
)

// test100G has round numbers: 80 ps a byte.
func test100G() Params {
	return Params{Bandwidth: 100_000_000_000, Propagation: 140 * sim.Nanosecond, Preamble: 8, FCS: 4, Gap: 12, MinFrame: 60}
}

const byteTime = 80 * sim.Picosecond

type arrival struct {
	at   sim.Time
	psn  uint32
	good bool
	ecn  uint8
	body string
}

// sinkhole records what arrives and releases it.
type sinkhole struct {
	e     *sim.Engine
	got   []arrival
	links []bool
}

func (s *sinkhole) Receive(f *roce.Frame) {
	a := arrival{at: s.e.Now(), good: f.ICRCOK()}
	if p, err := roce.Parse(f.B); err == nil {
		a.psn, a.body, a.ecn = p.BTH().PSN(), string(p.Payload()), p.TrafficClass()&3
	}
	s.got = append(s.got, a)
	f.Release()
}

func (s *sinkhole) LinkChanged(up bool) { s.links = append(s.links, up) }

func (s *sinkhole) psns() (l []uint32) {
	for _, a := range s.got {
		l = append(l, a.psn)
	}
	return l
}

// bench is two sinkholes with a cable.
type bench struct {
	t    testing.TB
	e    *sim.Engine
	c    *Cable
	rx   [2]*sinkhole
	pool roce.Pool
	tmpl [3]roce.Template // to host 0, 1, 2
}

func host(i int) roce.MAC { return roce.MAC{2, 5: byte(i)} }

func templateTo(t testing.TB, from, to int) roce.Template {
	tmpl, err := roce.NewTemplate(roce.Path{
		Framing: roce.RoCEv2IPv4, SrcMAC: host(from), DstMAC: host(to), PKey: roce.DefaultPKey, DestQP: uint32(to),
		SrcGID: roce.GIDFromIPv4([4]byte{10, 0, 0, byte(from)}), DstGID: roce.GIDFromIPv4([4]byte{10, 0, 0, byte(to)}), SrcPort: 0xC000,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func newBench(t testing.TB, p Params) *bench {
	b := &bench{t: t, e: sim.New(sim.Options{Seed: 1})}
	b.c = NewCable(b.e, p, "a", "b")
	for i := range b.rx {
		b.rx[i] = &sinkhole{e: b.e}
		b.c.End(i).Attach(b.rx[i])
	}
	for i := range b.tmpl {
		b.tmpl[i] = templateTo(t, 0, i)
	}
	return b
}

func (b *bench) frame(to int, psn uint32, payload string) *roce.Frame {
	f := b.tmpl[to].New(&b.pool, roce.RCSendOnly, psn, len(payload), 0)
	copy(f.Payload(), payload)
	return f
}

func (b *bench) run() {
	b.t.Helper()
	if err := b.e.Run(sim.Never - 1); err != nil {
		b.t.Fatal(err)
	}
	if b.pool.Live != 0 {
		b.t.Errorf("%d frames leaked", b.pool.Live)
	}
}

func TestSerialisation(t *testing.T) {
	b := newBench(t, test100G())
	a := b.c.End(0)
	a.Send(b.frame(1, 1, "")) // 58 bytes, padded to 60
	a.Send(b.frame(1, 2, "0123456789012345678901234567890123456789"))
	if got := a.FreeAt(); got != (84+24+98)*byteTime+0 {
		t.Errorf("line free at %v", got)
	}
	b.e.After(sim.Microsecond, func(uint64) { a.Send(b.frame(1, 3, "")) }, 0)
	b.run()
	want := []arrival{
		{at: 140*sim.Nanosecond + 72*byteTime, psn: 1, good: true},
		{at: 140*sim.Nanosecond + (84+110)*byteTime, psn: 2, good: true, body: "0123456789012345678901234567890123456789"},
		{at: sim.Microsecond + 140*sim.Nanosecond + 72*byteTime, psn: 3, good: true},
	}
	if !slices.Equal(b.rx[1].got, want) {
		t.Errorf("arrived %+v\nwant %+v", b.rx[1].got, want)
	}
	if c := a.C; c.TxPackets != 3 || c.TxBytes != 64+102+64 || c.RxPackets != 0 {
		t.Errorf("sender's counters %+v", c)
	}
	if c := b.c.End(1).C; c.RxPackets != 3 || c.RxBytes != 64+102+64 {
		t.Errorf("receiver's counters %+v", c)
	}
	if b.e.Events() != 4 {
		t.Errorf("%d events for three frames and one timer", b.e.Events())
	}
}

func TestOddBandwidthRoundsUp(t *testing.T) {
	p := test100G()
	p.Bandwidth = 56_250_000_000
	if got := p.bytesTime(9); got != 1280 {
		t.Errorf("9 bytes take %v", got)
	}
	if got := p.bytesTime(1); got != 143 {
		t.Errorf("1 byte takes %v, want 142.2 rounded up", got)
	}
	p.Bandwidth = 10_000_000_000_000
	if got := p.bytesTime(65535 + 64 + 4096 + 16); got != 55769 {
		t.Errorf("the longest burst takes %v", got)
	}
}

func TestParamsThatCannotBe(t *testing.T) {
	good := test100G()
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, spoil := range []func(*Params){
		func(p *Params) { *p = Params{} }, func(p *Params) { p.Bandwidth = 1 }, func(p *Params) { p.Propagation = -1 },
		func(p *Params) { p.FCS = 0 }, func(p *Params) { p.MinFrame = 1000 },
	} {
		p := test100G()
		spoil(&p)
		if p.Check() == nil {
			t.Errorf("%+v passes", p)
		}
	}
	for _, p := range []SwitchParams{{}, {Latency: 1}, {Latency: 1, Buffer: 1, CutThrough: true}, {Buffer: 1}} {
		if p.Check() == nil {
			t.Errorf("%+v passes", p)
		}
	}
}

func TestRules(t *testing.T) {
	type sent struct {
		psn   uint32
		acted fault.Action
	}
	for _, c := range []struct {
		rule fault.Rule
		want []uint32
		see  func(t *testing.T, b *bench)
	}{
		{fault.Rule{Match: fault.MatchPSN, PSN: 2, Count: 1, Action: fault.Drop}, []uint32{1, 3, 2}, func(t *testing.T, b *bench) {
			if b.c.End(0).C.ScriptLost != 1 || b.c.End(0).C.TxPackets != 4 {
				t.Errorf("counters %+v", b.c.End(0).C)
			}
		}},
		{fault.Rule{Match: fault.MatchPort | fault.MatchOpcode, Port: "a", Opcode: 4, Skip: 2, Count: 1, Action: fault.Corrupt}, []uint32{1, 2, 3, 2}, func(t *testing.T, b *bench) {
			for i, a := range b.rx[1].got {
				if a.good != (i != 2) {
					t.Errorf("frame %d: ICRC right is %v", i, a.good)
				}
			}
		}},
		{fault.Rule{Match: fault.MatchPSN, PSN: 3, Action: fault.CorruptFCS}, []uint32{1, 2, 2}, func(t *testing.T, b *bench) {
			if c := b.c.End(1).C; c.RxCRCErrors != 1 || c.RxPackets != 4 {
				t.Errorf("counters %+v", c)
			}
		}},
		{fault.Rule{Match: fault.MatchPSN, PSN: 1, Action: fault.Delay, Delay: int64(sim.Microsecond)}, []uint32{2, 3, 2, 1}, nil},
		{fault.Rule{Match: fault.MatchPSN, PSN: 3, Action: fault.Duplicate}, []uint32{1, 2, 3, 3, 2}, nil},
		{fault.Rule{Match: fault.MatchPSN, PSN: 3, Action: fault.Edit, Edits: []fault.ByteEdit{{Offset: 11, Value: 9}, {Offset: 4000}}}, []uint32{1, 2, 9, 2}, func(t *testing.T, b *bench) {
			if !b.rx[1].got[2].good {
				t.Error("the ICRC of an edited frame is wrong")
			}
		}},
		{fault.Rule{Match: fault.MatchPort, Port: "b", Action: fault.Drop}, []uint32{1, 2, 3, 2}, nil},
		{fault.Rule{Match: fault.MatchPSN, PSN: 2, Count: 1, Action: fault.Reorder}, []uint32{1, 3, 2, 2}, nil},
		{fault.Rule{Match: fault.MatchPSN, PSN: 3, Action: fault.Mark}, []uint32{1, 2, 3, 2}, func(t *testing.T, b *bench) {
			for i, a := range b.rx[1].got {
				if !a.good || (a.ecn == 3) != (i == 2) {
					t.Errorf("frame %d: ICRC right is %v, ECN %d", i, a.good, a.ecn)
				}
			}
		}},
	} {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v held %v", c.rule.Action, held), func(t *testing.T) {
				b := newBench(t, test100G())
				var s fault.Script
				if err := s.Add(c.rule); err != nil {
					t.Fatal(err)
				}
				b.c.End(0).SetScript(&s)
				var log []sent
				b.c.End(0).Tap(func(x Sent) {
					p, err := roce.Parse(x.Frame.B)
					if err != nil || !p.ICRCOK() || x.Port != "a" || x.Loopback {
						t.Errorf("tapped %+v: %v", x, err)
					}
					log = append(log, sent{p.BTH().PSN(), x.Acted})
				})
				var mine []*roce.Frame
				for _, psn := range []uint32{1, 2, 3, 2} {
					f := b.frame(1, psn, "payload")
					if held {
						mine = append(mine, f.Retain())
					}
					b.c.End(0).Send(f)
				}
				for _, f := range mine {
					if p, err := roce.Parse(f.B); err != nil || !p.ICRCOK() || string(p.Payload()) != "payload" || p.BTH().PSN() == 9 {
						t.Errorf("the sender's own frame was changed: %v", err)
					}
					f.Release()
				}
				b.run()
				if got := b.rx[1].psns(); !slices.Equal(got, c.want) {
					t.Errorf("arrived %v, want %v", got, c.want)
				}
				if len(log) != 4 {
					t.Errorf("taps saw %v", log)
				}
				if c.see != nil {
					c.see(t, b)
				}
			})
		}
	}
}

func TestLoopback(t *testing.T) {
	b := newBench(t, test100G())
	a := b.c.End(0)
	var seen int
	a.Tap(func(s Sent) {
		seen++
		if !s.Loopback {
			t.Error("not marked as loopback")
		}
	})
	var s fault.Script
	if err := s.Add(fault.Rule{Match: fault.MatchPSN, PSN: 2, Action: fault.Drop}); err != nil {
		t.Fatal(err)
	}
	a.SetScript(&s)
	a.SetLink(false) // a device reaches itself without a link
	for psn := range uint32(4) {
		a.Loopback(b.frame(0, psn, "x"), 50*sim.Nanosecond)
	}
	b.run()
	if got := b.rx[0].psns(); !slices.Equal(got, []uint32{0, 1, 3}) || b.rx[0].got[2].at != 50*sim.Nanosecond {
		t.Errorf("arrived %+v", b.rx[0].got)
	}
	if seen != 4 || a.C.Loopback != 4 || a.C.TxPackets != 0 || len(b.rx[1].got) != 0 {
		t.Errorf("tap saw %d, counters %+v", seen, a.C)
	}
}

func TestPulledCable(t *testing.T) {
	b := newBench(t, test100G())
	a := b.c.End(0)
	a.Send(b.frame(1, 1, ""))
	b.e.After(100*sim.Nanosecond, func(uint64) { a.SetLink(false); a.Send(b.frame(1, 2, "")) }, 0)
	b.e.After(110*sim.Nanosecond, func(uint64) { a.SetLink(true); a.SetLink(true); a.Send(b.frame(1, 3, "")) }, 0)
	b.run()
	if got := b.rx[1].psns(); !slices.Equal(got, []uint32{3}) {
		t.Errorf("arrived %v: 1 was on the cable and 2 met no link", got)
	}
	if a.C.TxDiscards != 1 || a.C.LinkDownEvents != 1 || b.c.End(1).C.LostInFlight != 1 || b.c.End(1).C.LinkDownEvents != 1 {
		t.Errorf("counters %+v, %+v", a.C, b.c.End(1).C)
	}
	for i, r := range b.rx {
		if !slices.Equal(r.links, []bool{false, true}) {
			t.Errorf("end %d heard %v", i, r.links)
		}
	}
}

// star is three hosts around a switch.
type star struct {
	*bench
	sw   *Switch
	ends [3]*Port
	rx   [3]*sinkhole
}

func newStar(t testing.TB, sp SwitchParams, rates ...uint64) *star {
	s := &star{bench: &bench{t: t, e: sim.New(sim.Options{Seed: 1})}}
	s.sw = NewSwitch(s.e, "sw", sp)
	for i := range s.ends {
		p := test100G()
		if i < len(rates) {
			p.Bandwidth = rates[i]
		}
		c := NewCable(s.e, p, fmt.Sprint("host", i), fmt.Sprint("sw/", i))
		s.sw.Plug(c.End(1))
		s.rx[i] = &sinkhole{e: s.e}
		s.ends[i] = c.End(0)
		s.ends[i].Attach(s.rx[i])
	}
	return s
}

func (s *star) send(from, to int, psn uint32, payload string) {
	tmpl := templateTo(s.t, from, to)
	f := tmpl.New(&s.pool, roce.RCSendOnly, psn, len(payload), 0)
	copy(f.Payload(), payload)
	s.ends[from].Send(f)
}

func TestSwitchLearnsAndFloods(t *testing.T) {
	s := newStar(t, SwitchParams{Latency: 300 * sim.Nanosecond, Buffer: 1 << 16})
	at := func(us sim.Time, f func()) { s.e.After(us*sim.Microsecond, func(uint64) { f() }, 0) }
	s.send(0, 1, 1, "")                   // unknown: everybody gets it
	at(2, func() { s.send(1, 0, 2, "") }) // known by now
	at(4, func() { s.send(0, 1, 3, "") }) // known too
	at(6, func() { s.send(2, 2, 4, "") }) // to itself
	at(8, func() {                        // a frame without a header
		f := s.pool.Get(5)
		clear(f.B)
		s.ends[0].Send(f)
	})
	s.run()
	if !slices.Equal(s.rx[0].psns(), []uint32{2}) || !slices.Equal(s.rx[1].psns(), []uint32{1, 3}) || !slices.Equal(s.rx[2].psns(), []uint32{1}) {
		t.Errorf("arrived %v %v %v", s.rx[0].psns(), s.rx[1].psns(), s.rx[2].psns())
	}
	if s.sw.Flooded != 1 || s.sw.Filtered != 1 || s.sw.Runts != 1 {
		t.Errorf("flooded %d, filtered %d, runts %d", s.sw.Flooded, s.sw.Filtered, s.sw.Runts)
	}
	// Two cables, twice the bits, once the latency.
	if want := 2*(72*byteTime+140*sim.Nanosecond) + 300*sim.Nanosecond; s.rx[1].got[0].at != want {
		t.Errorf("store and forward took %v, want %v", s.rx[1].got[0].at, want)
	}
}

func TestCutThrough(t *testing.T) {
	payload := string(bytes.Repeat([]byte{'x'}, 1000))
	bits := (8 + 58 + 1000 + 4) * byteTime
	sp := SwitchParams{Latency: 300 * sim.Nanosecond, CutThrough: true, HeaderBytes: 14, Buffer: 1 << 16}
	for _, c := range []struct {
		name  string
		rates []uint64
		want  sim.Time
	}{
		{"same rate", nil, 280*sim.Nanosecond + 22*byteTime + sp.Latency + bits},
		// The way out is four times as slow: its bits decide.
		{"slower out", []uint64{100e9, 25e9}, 280*sim.Nanosecond + 22*byteTime + sp.Latency + 4*bits},
		// The way in is four times as slow: the last bit cannot leave before it came.
		{"faster out", []uint64{25e9, 100e9}, 280*sim.Nanosecond + 4*bits + sp.Latency},
	} {
		s := newStar(t, sp, c.rates...)
		s.send(0, 1, 1, payload)
		s.run()
		if got := s.rx[1].got[0].at; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestBrokenFrameAtSwitch(t *testing.T) {
	for _, cut := range []bool{false, true} {
		s := newStar(t, SwitchParams{Latency: 1, CutThrough: cut, HeaderBytes: 14, Buffer: 1 << 16})
		var script fault.Script
		if err := script.Add(fault.Rule{Action: fault.CorruptFCS}); err != nil {
			t.Fatal(err)
		}
		s.ends[0].SetScript(&script)
		s.send(0, 1, 1, "")
		s.run()
		if len(s.rx[1].got) != 0 {
			t.Errorf("cut-through %v: a frame with a wrong FCS was delivered", cut)
		}
		want := uint64(0) // a cut-through switch has passed it on before it knew
		if cut {
			want = 1
		}
		if s.ends[1].C.RxCRCErrors != want {
			t.Errorf("cut-through %v: %d FCS errors at the host", cut, s.ends[1].C.RxCRCErrors)
		}
	}
}

func TestEgressBufferOverflows(t *testing.T) {
	s := newStar(t, SwitchParams{Latency: sim.Nanosecond, Buffer: 4000})
	s.send(2, 0, 0, "") // so that 2 is known
	payload := string(bytes.Repeat([]byte{'x'}, 1000))
	s.e.After(sim.Microsecond, func(uint64) {
		for psn := range uint32(20) {
			s.send(0, 2, psn, payload)
			s.send(1, 2, psn, payload)
		}
	}, 0)
	s.run()
	var drops uint64
	for _, p := range s.sw.ports {
		drops += p.C.TxDiscards
	}
	if got := uint64(len(s.rx[2].got)); got+drops != 40 || drops < 10 || got < 20 {
		t.Errorf("%d of 40 arrived, %d dropped", got, drops)
	}
}

func TestOrderedTaps(t *testing.T) {
	b := newBench(t, test100G())
	var times []sim.Time
	o := NewOrdered(b.e, func(s Sent) { times = append(times, s.At) })
	for i := range 2 {
		b.c.End(i).Tap(o.Tap)
	}
	for i := range 5 {
		b.c.End(0).Send(b.frame(1, uint32(i), "a long frame that keeps the line busy for a while"))
	}
	for i := range 10 {
		b.e.After(sim.Time(i)*5*sim.Nanosecond, func(uint64) { b.c.End(1).Send(b.frame(0, 0, "")) }, 0)
	}
	if err := b.e.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
	o.Close()
	if len(times) != 15 || !slices.IsSorted(times) || b.pool.Live != 0 {
		t.Errorf("%d frames, sorted %v, %d leaked", len(times), slices.IsSorted(times), b.pool.Live)
	}
}

func TestCountersHaveNames(t *testing.T) {
	c := Counters{TxPackets: 1, RxCRCErrors: 2, LostInFlight: 3}
	got := map[string]uint64{}
	c.each(func(name string, v uint64) { got[name] = v })
	if len(got) != 31 || got["tx_packets_phy"] != 1 || got["rx_crc_errors_phy"] != 2 || got["sim_lost_in_flight"] != 3 {
		t.Errorf("%v", got)
	}
}

// echo sends every frame back, so that the benchmark needs one engine run.
type echo struct {
	port *Port
	left int
}

func (x *echo) Receive(f *roce.Frame) {
	if x.left--; x.left < 0 {
		f.Release()
		return
	}
	x.port.Send(f)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	b := newBench(t, test100G())
	x := &echo{port: b.c.End(1)}
	y := &echo{port: b.c.End(0)}
	b.c.End(1).Attach(x)
	b.c.End(0).Attach(y)
	round := func() {
		x.left, y.left = 100, 100
		b.c.End(0).Send(b.frame(1, 1, "payload"))
		if err := b.e.Run(sim.Never - 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, round); n != 0 {
		t.Errorf("%v allocations in 200 frames", n)
	}
}

func BenchmarkFrame(b *testing.B) {
	w := newBench(b, test100G())
	x, y := &echo{port: w.c.End(1), left: b.N}, &echo{port: w.c.End(0), left: b.N}
	w.c.End(1).Attach(x)
	w.c.End(0).Attach(y)
	b.ReportAllocs()
	b.ResetTimer()
	for range min(16, b.N) {
		w.c.End(0).Send(w.frame(1, 1, "payload"))
	}
	if err := w.e.Run(sim.Never - 1); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(w.e.Events()), "ns/frame")
}
