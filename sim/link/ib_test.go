package link

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
)

// testEDR has the same 80 ps a byte as test100G.
func testEDR() Params {
	return Params{Propagation: 140 * sim.Nanosecond, InfiniBand: true, IB: IBParams{Speed: EDR, Width: 4, Delimiters: 2, VLs: 2, Credits: 256, Sweep: sim.Millisecond}}
}

func TestIBRates(t *testing.T) {
	for _, c := range []struct {
		speed Speed
		width int
		rate  uint64
		code  uint32
	}{
		{SDR, 1, 2_000_000_000, 1}, {DDR, 4, 16_000_000_000, 2}, {QDR, 4, 32_000_000_000, 4}, {FDR10, 4, 40_000_000_000, 8},
		{FDR, 4, 54_545_454_545, 16}, {FDR, 8, 109_090_909_090, 16}, {EDR, 4, 100_000_000_000, 32}, {HDR, 4, 200_000_000_000, 64},
	} {
		p := IBParams{Speed: c.speed, Width: c.width}
		if p.Rate() != c.rate || p.SpeedCode() != c.code {
			t.Errorf("%s %dX: %d bit/s, code %d", SpeedWords[c.speed], c.width, p.Rate(), p.SpeedCode())
		}
	}
	if p := (IBParams{Width: 4}); p.WidthCode() != 2 {
		t.Errorf("4X has code %d", p.WidthCode())
	}
	for _, spoil := range []func(*IBParams){
		func(p *IBParams) { *p = IBParams{} }, func(p *IBParams) { p.Speed = 99 }, func(p *IBParams) { p.Width = 3 },
		func(p *IBParams) { p.VLs = 3 }, func(p *IBParams) { p.Credits = 65 }, func(p *IBParams) { p.Sweep = -1 }, func(p *IBParams) { p.Delimiters = 99 },
	} {
		p := testEDR().IB
		if p.Check() != nil {
			t.Fatal(p.Check())
		}
		spoil(&p)
		if p.Check() == nil {
			t.Errorf("%+v passes", p)
		}
	}
}

// slow takes a packet out of its buffer every so often.
type slow struct {
	sinkhole
	each, free sim.Time
}

func (s *slow) Receive(f *roce.Frame) {
	s.free = max(s.free, s.e.Now()) + s.each
	a := arrival{at: s.e.Now(), good: f.ICRCOK()}
	if p, err := f.Parse(); err == nil {
		a.psn = p.BTH().PSN()
	}
	s.got = append(s.got, a)
	f.Release()
}

func (s *slow) Drained() sim.Time { return s.free }

// ibBench is two ports and the packets from port 0 to port 1.
type ibBench struct {
	bench
	rx *slow
}

func newIBBench(t testing.TB, p Params) *ibBench {
	b := &ibBench{}
	b.t, b.e = t, sim.New(sim.Options{Seed: 1})
	b.c = NewCable(b.e, p, "a", "b")
	b.rx = &slow{sinkhole: sinkhole{e: b.e}}
	b.bench.rx[0] = &sinkhole{e: b.e}
	b.c.End(0).Attach(b.bench.rx[0])
	b.c.End(1).Attach(b.rx)
	return b
}

func ibFrame(t testing.TB, pool *roce.Pool, from, to uint16, vl uint8, psn uint32, n int) *roce.Frame {
	tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.InfiniBand, SLID: from, DLID: to, VL: vl, SL: vl, PKey: roce.DefaultPKey, DestQP: 5})
	if err != nil {
		t.Fatal(err)
	}
	f := tmpl.New(pool, roce.RCSendOnly, psn, n, 0)
	clear(f.Payload())
	return f
}

func TestIBSerialisation(t *testing.T) {
	b := newIBBench(t, testEDR())
	a := b.c.End(0)
	a.Send(ibFrame(t, &b.pool, 1, 2, 0, 1, 0))
	a.Send(ibFrame(t, &b.pool, 1, 2, 0, 2, 100))
	b.run()
	// 24 bytes of headers and ICRC, VCRC, and a delimiter before and behind.
	want := []sim.Time{140*sim.Nanosecond + 27*byteTime, 140*sim.Nanosecond + (28+127)*byteTime}
	if len(b.rx.got) != 2 || b.rx.got[0].at != want[0] || b.rx.got[1].at != want[1] {
		t.Errorf("arrived %+v, want at %v", b.rx.got, want)
	}
	if b.e.Events() != 2 || a.C.TxBytes != 26+126 || a.C.TxWireBytes != 28+128 {
		t.Errorf("%d events, counters %+v", b.e.Events(), a.C)
	}
}

// A receiver that is slower than the line makes the sender wait, and nothing is lost.
func TestCreditsHoldTheSenderBack(t *testing.T) {
	p := testEDR()
	p.IB.Credits = 128 // three packets of 41 blocks
	b := newIBBench(t, p)
	b.rx.each = sim.Microsecond
	const n = 40
	for i := range uint32(n) {
		b.c.End(0).Send(ibFrame(t, &b.pool, 1, 2, 0, i, 2560))
	}
	b.run()
	l := b.c.End(0).lanes
	if len(b.rx.got) != n || l.Stalls == 0 || l.StallFor == 0 {
		t.Fatalf("%d arrived, %d stalls", len(b.rx.got), l.Stalls)
	}
	for i, a := range b.rx.got {
		if a.psn != uint32(i) {
			t.Fatalf("packet %d has PSN %d", i, a.psn)
		}
		// Never more than three in the buffer or on the way.
		if i >= 3 && a.at < b.rx.got[i-3].at+sim.Microsecond {
			t.Errorf("packet %d at %v, the third before it at %v", i, a.at, b.rx.got[i-3].at)
		}
	}
	if last := b.rx.got[n-1].at; last < (n-3)*sim.Microsecond || last > (n+2)*sim.Microsecond {
		t.Errorf("the last one came at %v: the receiver takes one a microsecond", last)
	}
}

// Lanes have credits of their own.
func TestLanesDoNotBlockEachOther(t *testing.T) {
	p := testEDR()
	p.IB.Credits = 66
	b := newIBBench(t, p)
	b.rx.each = 10 * sim.Microsecond
	for i := range uint32(4) {
		b.c.End(0).Send(ibFrame(t, &b.pool, 1, 2, 0, i, 4096))
	}
	b.c.End(0).Send(ibFrame(t, &b.pool, 1, 2, 1, 99, 64))
	b.run()
	if got := b.rx.psns(); !slices.Equal(got, []uint32{0, 99, 1, 2, 3}) {
		t.Errorf("arrived %v", got)
	}
}

// What a rule drops, doubles or breaks leaves the credits as they were.
func TestCreditsSurviveRules(t *testing.T) {
	for _, act := range []fault.Action{fault.Drop, fault.Corrupt, fault.CorruptFCS, fault.Duplicate, fault.Delay, fault.Reorder, fault.Mark} {
		p := testEDR()
		p.IB.Credits = 66
		b := newIBBench(t, p)
		var s fault.Script
		rule := fault.Rule{Action: act, Skip: 1, Count: 3}
		if act == fault.Delay {
			rule.Delay = int64(sim.Microsecond)
		}
		if err := s.Add(rule); err != nil {
			t.Fatal(err)
		}
		b.c.End(0).SetScript(&s)
		for i := range uint32(20) {
			b.c.End(0).Send(ibFrame(t, &b.pool, 1, 2, 0, i, 4000))
		}
		b.run()
		want := map[fault.Action]int{fault.Drop: 17, fault.CorruptFCS: 17, fault.Duplicate: 23, fault.Reorder: 18}[act]
		if want == 0 {
			want = 20
		}
		if len(b.rx.got) != want {
			t.Errorf("%v: %d arrived, want %d", act, len(b.rx.got), want)
		}
		if n, came := b.e.Events(), b.c.End(1).C.RxPackets; n > came+19 { // all but the first wait, and wake the lane once
			t.Errorf("%v: %d events for %d arrivals", act, n, came)
		}
		l := b.c.End(0).lanes
		l.claim(&l.vl[0], 1, sim.Second)
		if got := l.vl[0].avail; got != 65 {
			t.Errorf("%v: %d blocks are left of 66 behind a packet of one", act, got)
		}
	}
}

func TestIBLinkDown(t *testing.T) {
	p := testEDR()
	p.IB.Credits = 66
	b := newIBBench(t, p)
	a := b.c.End(0)
	for i := range uint32(3) {
		a.Send(ibFrame(t, &b.pool, 1, 2, 0, i, 4000))
	}
	b.e.After(200*sim.Nanosecond, func(uint64) { a.SetLink(false) }, 0)
	b.e.After(sim.Microsecond, func(uint64) {
		a.SetLink(true)
		a.Send(ibFrame(t, &b.pool, 1, 2, 0, 9, 4000))
	}, 0)
	b.run()
	if got := b.rx.psns(); !slices.Equal(got, []uint32{9}) {
		t.Errorf("arrived %v", got)
	}
	if a.C.TxDiscards != 2 || b.c.End(1).C.LostInFlight != 1 {
		t.Errorf("%d discards, %d lost", a.C.TxDiscards, b.c.End(1).C.LostInFlight)
	}
}

// endNode is a port without a device.
type endNode struct {
	slow
	info roce.PortInfo
	keys []uint16
	log  []roce.PortState
}

func (n *endNode) PortInfo() roce.PortInfo { return n.info }
func (n *endNode) SetPortInfo(i roce.PortInfo) {
	n.info = i
	n.log = append(n.log, i.State)
}
func (n *endNode) SetPKeys(k []uint16) { n.keys = k }
func (n *endNode) LinkChanged(up bool) {
	n.info.State = roce.PortDown
	if up {
		n.info.State = roce.PortInit
	}
}

func newSubnet(t testing.TB, p Params, n int) (e *sim.Engine, sm *SubnetManager, ends []*Port, nodes []*endNode) {
	e = sim.New(sim.Options{Seed: 1})
	sw := NewSwitch(e, "sw", SwitchParams{Latency: 200 * sim.Nanosecond, CutThrough: true, HeaderBytes: 64, Buffer: 1 << 20})
	sm = NewSubnetManager(e, DefaultFabric(), p.IB.Sweep)
	for i := range n {
		c := NewCable(e, p, "host", "sw")
		x := &endNode{slow: slow{sinkhole: sinkhole{e: e}}, info: roce.PortInfo{State: roce.PortInit}}
		c.End(0).Attach(x)
		sw.Plug(c.End(1))
		sm.Add(c.End(0), x, sw, i)
		ends, nodes = append(ends, c.End(0)), append(nodes, x)
	}
	sm.Sweep()
	return e, sm, ends, nodes
}

func TestSubnetManager(t *testing.T) {
	e, sm, ends, nodes := newSubnet(t, testEDR(), 3)
	for i, n := range nodes {
		if n.info.LID != uint16(i+1) || n.info.SMLID != 1 || n.info.GIDPrefix != roce.DefaultGIDPrefix || n.info.VLs != 2 ||
			!slices.Equal(n.keys, []uint16{0xFFFF}) || !slices.Equal(n.log, []roce.PortState{roce.PortArmed, roce.PortActive}) {
			t.Errorf("port %d: %+v, P_Keys %x, states %v", i, n.info, n.keys, n.log)
		}
	}
	ends[1].SetLink(false)
	if nodes[1].info.State != roce.PortDown {
		t.Errorf("state %d behind a cable that is not there", nodes[1].info.State)
	}
	e.After(sim.Second, func(uint64) { ends[1].SetLink(true) }, 0)
	var before roce.PortState
	e.At(sim.Second+sim.Microsecond, func(uint64) { before = nodes[1].info.State }, 0)
	if err := e.Run(2 * sim.Second); err != nil {
		t.Fatal(err)
	}
	if before != roce.PortInit || nodes[1].info.State != roce.PortActive {
		t.Errorf("state %d before the sweep, %d after it", before, nodes[1].info.State)
	}
	f := sm.Fabric()
	f.FirstLID, f.PKeys = 0x40, []uint16{0x7FFF, 0x8001}
	sm.Configure(f, true)
	if n := nodes[2]; n.info.LID != 0x42 || !n.info.Reregister || len(n.keys) != 2 || n.info.State != roce.PortActive {
		t.Errorf("after a change %+v, P_Keys %x", n.info, n.keys)
	}
}

// Two senders share the way to a third port: they are held back, and nothing is lost.
func TestIBSwitchIsLossless(t *testing.T) {
	p := testEDR()
	p.IB.Credits = 200 // three packets: enough for the line, too little for all
	e, _, ends, nodes := newSubnet(t, p, 3)
	var pool roce.Pool
	const n = 50
	for i := range uint32(n) {
		ends[0].Send(ibFrame(t, &pool, 1, 3, 0, i, 4000))
		ends[1].Send(ibFrame(t, &pool, 2, 3, 0, 1000+i, 4000))
	}
	ends[0].Send(ibFrame(t, &pool, 1, 77, 0, 1, 0)) // nobody's LID
	ends[2].Send(ibFrame(t, &pool, 3, 0xC001, 0, 5, 0))
	if err := e.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
	if got := len(nodes[2].got); got != 2*n {
		t.Errorf("%d of %d arrived", got, 2*n)
	}
	if !slices.Equal(nodes[0].psns(), []uint32{5}) || !slices.Equal(nodes[1].psns(), []uint32{5}) {
		t.Errorf("the group's packet arrived at %v and %v", nodes[0].psns(), nodes[1].psns())
	}
	if ends[0].lanes.Stalls == 0 || ends[0].C.TxDiscards != 0 || pool.Live != 0 {
		t.Errorf("%d stalls, %d discards, %d frames leaked", ends[0].lanes.Stalls, ends[0].C.TxDiscards, pool.Live)
	}
	// The line to the third port was never idle: 4028 bytes a packet.
	if last := nodes[2].got[2*n-1].at; last > 2*n*4030*byteTime+4*sim.Microsecond {
		t.Errorf("the last one came at %v", last)
	}
}

// TestSwitchGroups: a switch whose groups are set sends a packet to their ports, not back, and
// drops those to others.
func TestSwitchGroups(t *testing.T) {
	e, sm, ends, nodes := newSubnet(t, testEDR(), 4)
	var pool roce.Pool
	sw := sm.sw
	sw.SetGroup(0xC001, []int{0, 2, 3})
	sw.SetGroup(0xC002, []int{1})
	sw.SetGroup(0xC003, []int{1})
	sw.SetGroup(0xC003, nil)
	for i, mlid := range []uint16{0xC001, 0xC002, 0xC003, 0xC004} {
		ends[0].Send(ibFrame(t, &pool, 1, mlid, 0, uint32(i), 4000))
	}
	ends[1].Send(ibFrame(t, &pool, 2, 0xC002, 0, 9, 4000)) // its only port is where it came from
	if err := e.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
	want := [][]uint32{nil, {1}, {0}, {0}}
	for i, n := range nodes {
		if got := n.psns(); !slices.Equal(got, want[i]) {
			t.Errorf("host %d received %v, want %v", i, got, want[i])
		}
	}
	if sw.NoRoute != 3 || pool.Live != 0 {
		t.Errorf("%d without a way, %d frames leaked", sw.NoRoute, pool.Live)
	}
	// What was dropped has given its credits back.
	if l := ends[0].lanes; !l.claim(&l.vl[0], 63, sim.Second) || l.vl[0].avail != l.total-63 {
		t.Errorf("%d blocks of %d are left", l.vl[0].avail, l.total)
	}
}

// A lane that is never empty keeps as much memory as waits there at once, however much has passed.
func TestALaneThatAlwaysWaitsKeepsItsMemory(t *testing.T) {
	p := testEDR()
	p.IB.Credits = 128
	b := newIBBench(t, p)
	b.rx.each = 20 * sim.Nanosecond
	a := b.c.End(0)
	l := &a.lanes.vl[0]
	psn, sent := uint32(0), 0
	var more sim.Handler
	more = func(left uint64) {
		for l.queue.Len() < 8 { // there is always more than the credits allow
			psn, sent = psn+1, sent+1
			a.Send(ibFrame(b.t, &b.pool, 1, 2, 0, psn, 0))
		}
		if left > 0 {
			b.e.After(b.rx.each, more, left-1)
		}
	}
	b.e.After(0, more, 2000)
	for range 3 {
		if err := b.e.Run(b.e.Now() + 10*sim.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	if l.queue.Len() == 0 || a.lanes.Stalls < 1000 {
		t.Fatalf("%d wait, %d have waited", l.queue.Len(), a.lanes.Stalls)
	}
	if room := l.queue.Cap(); room > 16 {
		t.Errorf("the queue has room for %d packets after %d, and at most 8 wait", room, sent)
	}
}
