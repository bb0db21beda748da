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

// An event waits for the count or the period, whichever is first; a zero leaves it to
// the other.
func TestModeration(t *testing.T) {
	for _, x := range []struct {
		name          string
		count, period uint32
		mode          uint32
		wait          sim.Time // for the event of three entries, 40 us apart; 0: none comes
		posts         int
	}{
		{name: "none", wait: 0, posts: 1},
		{name: "count", count: 3, wait: 80 * sim.Microsecond, posts: 3},
		{name: "count not reached", count: 4, wait: -1, posts: 3},
		{name: "period", period: 50, wait: 50 * sim.Microsecond, posts: 3},
		{name: "count before period", count: 2, period: 500, wait: 40 * sim.Microsecond, posts: 3},
		{name: "period before count", count: 9, period: 60, wait: 60 * sim.Microsecond, posts: 3},
		{name: "period since the last", count: 9, period: 60, mode: prm.CQPeriodFromCQE, wait: 140 * sim.Microsecond, posts: 3},
	} {
		h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
		cq := h.newCQ(4, 64)
		a, b := h.newQP(cq, cq), h.newQP(h.newCQ(4, 64), h.newCQ(4, 64))
		a.connect(b, defaults())
		b.connect(a, defaults())
		in := prm.NewIn(prm.OpModifyCQ, 0)
		m := prm.ModifyCQIn(in)
		m.SetCQN(cq.n)
		m.SetFieldSelect(prm.CQModifyPeriod | prm.CQModifyCount | prm.CQModifyPeriodMode)
		m.CQC().SetCQMaxCount(x.count)
		m.CQC().SetCQPeriod(x.period)
		m.CQC().SetCQPeriodMode(x.mode)
		h.cmd(in)
		cq.arm(false)
		start, at := h.e.Now(), sim.Time(-1)
		for us := range 300 {
			if us%40 == 0 && us/40 < x.posts {
				a.post(wr{op: prm.WQEOpNOP})
			}
			h.e.After(sim.Microsecond, func(uint64) {}, 0) // time passes where nothing else is due
			run(t, h.e, sim.Microsecond)
			if h.nextEQE(h.ceq) != nil && at < 0 {
				at = h.e.Now() - start
			}
		}
		const path = 3 * sim.Microsecond // from the post to the event
		if x.wait < 0 && at >= 0 || x.wait >= 0 && (at < x.wait || at > x.wait+path) {
			t.Errorf("%s: event after %v, want %v", x.name, at, x.wait)
		}
	}
}

// What is told of a RESIZE: the entry at the next place of the old ring, and the device
// in the new one right behind it.
func TestResizeEntry(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq, to := h.newCQ(2, 64), h.newCQ(4, 64)
	a, b := h.newQP(cq, cq), h.newQP(h.newCQ(4, 64), h.newCQ(4, 64))
	a.connect(b, defaults())
	b.connect(a, defaults())
	post := func(n int) {
		for range n {
			a.post(wr{op: prm.WQEOpNOP})
		}
		run(t, h.e, 10*sim.Microsecond)
	}
	resize := func(q *tCQ, log uint32) prm.Status {
		in := prm.NewIn(prm.OpModifyCQ, 8)
		prm.CmdIn(in).SetOpMod(prm.ModifyCQResize)
		m := prm.ModifyCQIn(in)
		m.SetCQN(cq.n)
		m.SetFieldSelect(prm.CQResizeLogSize | prm.CQResizePageOff | prm.CQResizePageSize)
		m.CQC().SetLogCQSize(log)
		m.PAS().Set(0, uint64(q.pa))
		_, st := h.try(in)
		return st
	}
	post(2)
	if st := resize(to, 1); st != prm.StatusBadSizeOutsCQEs {
		t.Fatalf("two entries into a ring of two: %v", st)
	}
	if cq.poll() == nil {
		t.Fatal("no entry")
	}
	if st := resize(to, 4); st != prm.StatusOK {
		t.Fatal(st)
	}
	run(t, h.e, 5*sim.Microsecond)
	post(12)
	if cq.poll() == nil {
		t.Fatal("the entry before the RESIZE is gone")
	}
	if e := cq.poll(); e == nil || e.Opcode() != prm.CQEResizeCQ {
		t.Fatalf("want the RESIZE entry, got % x", []byte(e))
	}
	// Index 3 is the first in the new ring; the doorbell record stays the old CQ's.
	moved := *cq
	moved.pa, moved.size = to.pa, 16
	for i := range 12 {
		e := moved.poll()
		if e == nil || e.Opcode() != prm.CQEReq || e.WQECounter() != uint16(2+i) {
			t.Fatalf("entry %d in the new ring: % x", i, []byte(e))
		}
	}
	if e := h.nextEQE(h.aeq); e != nil {
		t.Fatalf("event % x", []byte(e))
	}
}
