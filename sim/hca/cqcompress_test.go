package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// zipRig is a CQ of 32 compressed entries in aggressive mode, and a QP that completes on it.
type zipRig struct {
	*host
	cq *tCQ
	a  *tQP
}

func newZipRig(t *testing.T, cqe int) *zipRig {
	p := testParams()
	p.CQECompAggressive, p.CQECompTimeout = true, 10*sim.Microsecond
	h := newHost(t, sim.New(sim.Options{}), p, 1)
	x := &zipRig{host: h, cq: h.newCQOf(5, cqe, func(c prm.CQC) {
		c.SetCQECompEn(true)
		c.SetMiniCQEResFormat(prm.MiniCQECsum)
	})}
	x.a = h.newQP(x.cq, x.cq)
	b := h.newQP(h.newCQ(4, 64), h.newCQ(4, 64))
	x.a.connect(b, defaults())
	b.connect(x.a, defaults())
	return x
}

// complete completes n requests and lets the time pass.
func (x *zipRig) complete(n int, d sim.Time) {
	for range n {
		x.a.post(wr{op: prm.WQEOpNOP})
	}
	x.e.After(d, func(uint64) {}, 0)
	run(x.t.(*testing.T), x.e, d)
}

// entry is entry i of the ring.
func (x *zipRig) entry(i uint32) prm.CQE64 {
	b := make([]byte, 64)
	x.m.Read(x.cq.pa+mem.PA(i%32*uint32(x.cq.cqe)+uint32(x.cq.cqe)-64), b)
	return b
}

func TestSession(t *testing.T) {
	for _, size := range []int{64, 128} {
		x := newZipRig(t, size)
		x.complete(19, 8*sim.Microsecond)
		if e := x.entry(0); e.Opcode() != prm.CQEInvalid {
			t.Fatalf("written before the session ends: % x", e)
		}
		before := x.l.Counters().DMAWriteBytes
		x.complete(0, 5*sim.Microsecond)
		e := x.entry(0)
		if !e.Ready(0, 32) || e.Opcode() != prm.CQEReq || e.Format() != prm.CQEFormatCompressed || e.ByteCnt() != 19 {
			t.Fatalf("%d: the title is % x", size, e)
		}
		for i := range uint32(19) {
			m := prm.MiniCQE(x.entry(prm.MiniCQEPlace(i))[i%8*8:])
			if m.WQECounter() != uint16(i) || m.SOp() != prm.WQEOpNOP {
				t.Errorf("%d: mini CQE %d is % x", size, i, m[:8])
			}
		}
		if got := x.l.Counters().DMAWriteBytes - before; got != 4*64 {
			t.Errorf("%d: %d bytes were written for 19 completions", size, got)
		}
		if c := x.d.Counters(); c.CQESessions != 1 || c.MiniCQEs != 19 || c.CQEs != 19 || c.CQEBytesSaved != uint64(19*size-256) {
			t.Errorf("%d: counters %+v", size, *c)
		}
		if got := prm.QueryCQOut(x.cmd(query(prm.OpQueryCQ, x.cq.n))).CQC().ProducerCounter(); got != 19 {
			t.Errorf("%d: producer index %d", size, got)
		}
	}
}

func query(op prm.Opcode, cqn uint32) []byte {
	in := prm.NewIn(op, 0)
	prm.QueryCQIn(in).SetCQN(cqn)
	return in
}

// What ends a session early, and that one completion alone is an ordinary entry.
func TestSessionEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(x *zipRig)
		want uint32 // completions in the entry at index 0; 1: an ordinary one
	}{
		{"timer alone", func(x *zipRig) { x.complete(1, 12*sim.Microsecond) }, 1},
		{"arm", func(x *zipRig) { x.complete(3, 3*sim.Microsecond); x.cq.arm(false) }, 3},
		{"an armed CQ has none", func(x *zipRig) { x.cq.arm(false); x.complete(1, 2*sim.Microsecond) }, 1},
		{"query does not", func(x *zipRig) { x.complete(3, 3*sim.Microsecond); x.cmd(query(prm.OpQueryCQ, x.cq.n)) }, 0},
		{"ring full", func(x *zipRig) { x.complete(32, 6*sim.Microsecond) }, 32},
		{"reset of the QP", func(x *zipRig) {
			x.complete(2, 3*sim.Microsecond)
			x.a.modify2(prm.Op2RstQP)
		}, 2},
		{"another title", func(x *zipRig) {
			x.complete(4, 2*sim.Microsecond)
			x.a.post(wr{op: prm.WQEOpcode(0x3f)}) // an error
		}, 4},
	} {
		x := newZipRig(t, 64)
		c.do(x)
		x.complete(0, sim.Microsecond)
		got := uint32(0)
		if e := x.entry(0); e.Ready(0, 32) {
			if got = 1; e.Format() == prm.CQEFormatCompressed {
				got = e.ByteCnt()
			}
		}
		if got != c.want {
			t.Errorf("%s: %d completions at the first entry, want %d", c.name, got, c.want)
		}
	}
}

// Without a busy bus nothing is held back unless the device is told to.
func TestBalancedSession(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq := h.newCQOf(5, 64, func(c prm.CQC) { c.SetCQECompEn(true) })
	a, b := h.newQP(cq, cq), h.newQP(h.newCQ(4, 64), h.newCQ(4, 64))
	a.connect(b, defaults())
	b.connect(a, defaults())
	for range 8 {
		a.post(wr{op: prm.WQEOpNOP})
	}
	run(t, h.e, 5*sim.Microsecond)
	for i := range 8 {
		if e := cq.poll(); e == nil || e.Format() != prm.CQEFormatPlain {
			t.Fatalf("entry %d: % x", i, []byte(e))
		}
	}
	if n := h.d.Counters().CQESessions; n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// A form of entries that the device does not have is refused.
func TestCompressionRefused(t *testing.T) {
	for name, edit := range map[string]func(p *Params, c prm.CQC){
		"no compression": func(p *Params, _ prm.CQC) { p.CQECompMax = 0 },
		"format 2":       func(_ *Params, c prm.CQC) { c.SetMiniCQEResFormat(2) },
		"layout":         func(_ *Params, c prm.CQC) { c.SetCQECompressionLayout(1) },
	} {
		p := testParams()
		h := newHost(t, sim.New(sim.Options{}), p, 1)
		pa := h.alloc(4096)
		in := prm.NewIn(prm.OpCreateCQ, 8)
		m := prm.CreateCQIn(in)
		c := m.CQC()
		c.SetLogCQSize(5)
		c.SetUARPage(h.uar)
		c.SetEQN(h.eqn)
		c.SetDBRAddr(uint64(h.alloc(8)))
		c.SetCQECompEn(true)
		m.PAS().Set(0, uint64(pa))
		edit(&h.d.p, c)
		if _, st := h.try(in); st != prm.StatusBadParam {
			t.Errorf("%s: %v", name, st)
		}
	}
}
