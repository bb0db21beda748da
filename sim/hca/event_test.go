package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// A second arm before the event widens what the CQ waits for and never narrows it.
func TestArmTwice(t *testing.T) {
	for _, x := range []struct {
		name string
		arms []bool // solicited only
		want int    // events of an unsolicited entry
	}{
		{"solicited", []bool{true, true}, 0},
		{"widened", []bool{true, false}, 1},
		{"not narrowed", []bool{false, true}, 1},
		{"not narrowed after widening", []bool{true, false, true}, 1},
	} {
		h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
		cq := h.newCQ(4, 64)
		a, b := h.newQP(cq, cq), h.newQP(h.newCQ(4, 64), h.newCQ(4, 64))
		a.connect(b, defaults())
		b.connect(a, defaults())
		for _, s := range x.arms {
			cq.arm(s)
		}
		a.post(wr{op: prm.WQEOpNOP})
		run(t, h.e, 5*sim.Microsecond)
		n := 0
		for h.nextEQE(h.ceq) != nil {
			n++
		}
		if n != x.want {
			t.Errorf("%s: %d events, want %d", x.name, n, x.want)
		}
	}
}

func TestLinkChanged(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	eq, eqn := h.newEQ(1, 1<<prm.EventPortChange)
	h.armEQ(eq, eqn)
	for _, up := range []bool{false, true} {
		h.d.LinkChanged(up)
		run(t, h.e, 5*sim.Microsecond)
		sub, state := uint8(prm.PortChangeDown), uint32(0)
		if up {
			sub, state = prm.PortChangeActive, prm.VportStateUp
		}
		e := h.nextEQE(eq)
		if e == nil || e.Type() != prm.EventPortChange || e.SubType() != sub || e.Port() != 1 {
			t.Fatalf("up %t: event % x", up, e)
		}
		if got := prm.QueryVportStateOut(h.cmd(prm.NewIn(prm.OpQueryVportState, 0))).State(); got != state {
			t.Errorf("up %t: vport state %d, want %d", up, got, state)
		}
	}
}
