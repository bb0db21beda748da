package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// marker marks the next frames of those that may be marked, and remembers when CNPs and data
// came.
type marker struct {
	e    *sim.Engine
	w    Wire
	left int // frames to mark
	cnps []sim.Time
	data []sim.Time
	cnp  []byte
}

func (m *marker) Send(f *roce.Frame) {
	f.FinishICRC()
	p, err := roce.Parse(f.B)
	if err != nil {
		panic(err)
	}
	switch {
	case p.Op == roce.CNPacket:
		m.cnps = append(m.cnps, m.e.Now())
		m.cnp = append([]byte(nil), f.B...)
	case p.Op != roce.RCAcknowledge:
		m.data = append(m.data, m.e.Now())
	}
	if h := p.IPv4(); m.left > 0 && h.TOS()&3 == 2 {
		m.left--
		h.SetTOS(h.TOS() | 3)
		h.SetChecksum(h.ComputeChecksum())
	}
	m.w.Send(f)
}

func dcqcnHosts(t *testing.T, edit func(p *Params)) (ha, hb *host, a, b *tQP, ma, mb *marker) {
	p := testParams()
	p.Congestion.DCQCN = true
	p.PUPacket = 20 * sim.Nanosecond
	if edit != nil {
		edit(&p)
	}
	o := defaults()
	ha, hb, a, b, ab, ba := twoHosts(t, p, 1, o)
	ma, mb = &marker{e: ha.e, w: ab}, &marker{e: ha.e, w: ba}
	ha.d.SetWire(ma)
	hb.d.SetWire(mb)
	return
}

// TestCNP: marked requests draw CNPs, no closer than the interval, of the published form;
// the QP slows down and comes back to the port's rate when the marks end.
func TestCNP(t *testing.T) {
	ha, hb, a, _, ma, mb := dcqcnHosts(t, nil)
	la, lb := ha.newMR(1<<20, rightsAll), hb.newMR(1<<20, rightsAll)
	write := wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 1<<20)}}
	took := func() sim.Time {
		start := ha.e.Now()
		a.post(write)
		for {
			run(t, ha.e, 10*sim.Microsecond)
			if e := a.scq.poll(); e != nil {
				if e.Opcode() != prm.CQEReq {
					t.Fatalf("%v", e.Syndrome())
				}
				return ha.e.Now() - start
			}
		}
	}
	free := took()
	if len(mb.cnps) != 0 || hb.d.c.NpECNMarkedRocePackets != 0 {
		t.Fatal("a CNP without a mark")
	}
	ma.left = 200
	slow := took()
	if slow < 2*free {
		t.Errorf("1 MiB took %v, with marks %v", free, slow)
	}
	for i := 1; i < len(mb.cnps); i++ {
		if gap := mb.cnps[i] - mb.cnps[i-1]; gap < 4*sim.Microsecond {
			t.Errorf("CNP %d came %v after the one before", i+1, gap)
		}
	}
	n := uint64(len(mb.cnps))
	if n < 3 || hb.d.c.NpCNPSent != n || ha.d.c.RpCNPHandled != n || ha.d.c.RpCNPIgnored != 0 || hb.d.c.NpECNMarkedRocePackets != 200 {
		t.Errorf("%d CNPs; %+v", n, hb.d.c)
	}
	p, err := roce.Parse(mb.cnp)
	if err != nil {
		t.Fatal(err)
	}
	h := p.BTH()
	if h.DestQP() != a.n || !h.BECN() || h.MigReq() || h.AckReq() || h.PSN() != 0 || h.PKey() != 0xffff || len(mb.cnp) != 14+20+8+12+16+4 || p.IPv4().TOS() != 48<<2 {
		t.Errorf("CNP % x", mb.cnp)
	}
	for _, x := range p.Ext() {
		if x != 0 {
			t.Errorf("reserved bytes % x", p.Ext())
		}
	}
	run(t, ha.e, 20*ms)
	if again := took(); again >= slow {
		t.Errorf("1 MiB took %v with marks, %v after a while without", slow, again)
	}
}

// TestReadSlowsTheResponder: marks on the data of a READ slow down the side that sends it.
func TestReadSlowsTheResponder(t *testing.T) {
	ha, hb, a, _, ma, mb := dcqcnHosts(t, nil)
	la, lb := ha.newMR(1<<20, rightsAll), hb.newMR(1<<20, rightsAll)
	mb.left = 200
	a.post(wr{op: prm.WQEOpRDMARead, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 1<<20)}})
	run(t, ha.e, 40*ms)
	a.scq.expect(prm.CQEReq)
	span := mb.data[len(mb.data)-1] - mb.data[0]
	if len(ma.cnps) < 3 || hb.d.c.RpCNPHandled != uint64(len(ma.cnps)) || span < 200*sim.Microsecond {
		t.Errorf("%d CNPs, the data took %v", len(ma.cnps), span)
	}
}

// TestReactionPoint: a CNP cuts the rate of its QP at once, one within the period is only counted,
// the timer raises the rate, and it never falls below the minimum. The arithmetic is tested in
// dcqcn.
func TestReactionPoint(t *testing.T) {
	ha, _, a, _, _, _ := dcqcnHosts(t, nil)
	q := ha.d.qpn(a.n)
	q.notified()
	first := q.reaction.Rate()
	if first >= 100_000_000_000 {
		t.Fatalf("first cut to %d", first)
	}
	run(t, ha.e, 3*sim.Microsecond)
	q.notified()
	if q.reaction.Rate() != first || ha.d.c.RpCNPHandled != 2 {
		t.Fatalf("a cut within the period: %d", q.reaction.Rate())
	}
	run(t, ha.e, 297*sim.Microsecond+sim.Nanosecond)
	if q.reaction.Rate() != (first+100_000_000_000+1)/2 {
		t.Fatalf("first raise to %d", q.reaction.Rate())
	}
	for range 200 {
		run(t, ha.e, 4*sim.Microsecond)
		q.notified()
	}
	if q.reaction.Rate() != ha.d.p.Congestion.RPGMinRate {
		t.Errorf("the rate fell to %d", q.reaction.Rate())
	}
}

// TestRecovery: after one cut the rate is the port's again when its distance was halved ten
// times or so, every 300 us.
func TestRecovery(t *testing.T) {
	ha, _, a, _, _, _ := dcqcnHosts(t, nil)
	q := ha.d.qpn(a.n)
	q.notified()
	run(t, ha.e, 2*ms)
	if q.reaction == nil {
		t.Error("the rate is back after 2 ms")
	}
	run(t, ha.e, 2*ms)
	if q.reaction != nil {
		t.Errorf("after 4 ms the rate is still %d bit/s", q.reaction.Rate())
	}
}

// TestCNPIgnored: a device without congestion control drops CNPs and counts them; its
// frames do not say that they may be marked.
func TestCNPIgnored(t *testing.T) {
	ha, hb, a, _, ma, mb := dcqcnHosts(t, nil)
	ha.d.p.Congestion.DCQCN = false
	lb := hb.newMR(4096, rightsAll)
	ma.left = 9
	a.push(wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, inline: []byte("x")})
	run(t, ha.e, 100*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	if len(mb.cnps) != 1 || ha.d.c.RpCNPIgnored != 1 || ha.d.qpn(a.n).reaction != nil {
		t.Errorf("%d CNPs, %d ignored", len(mb.cnps), ha.d.c.RpCNPIgnored)
	}
}
