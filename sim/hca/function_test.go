package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// TestResetInFlight resets the function at every step of a mix of messages: nothing of them is
// left, and what a driver does afterwards works.
func TestResetInFlight(t *testing.T) {
	for step := sim.Time(0); step < 3000*sim.Nanosecond; step += 40 * sim.Nanosecond {
		h, a, b := pair(t, defaults())
		r := h.newMR(64<<10, rightsAll)
		b.recv(r.sge(0, 64))
		a.post(wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(8192, 8192)}},
			wr{op: prm.WQEOpRDMARead, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(8192, 8192)}},
			wr{op: prm.WQEOpAtomicFA, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(8192, 8)}},
			wr{op: prm.WQEOpSend, inline: []byte("x")})
		run(t, h.e, step)
		h.d.Reset()
		h.l.Drain()
		before := r.bytes(0, int(r.n))
		run(t, h.e, 10*sim.Second)
		if n := h.d.frames.Live; n != 0 || h.d.txBytes != 0 || h.idlePUs() != h.d.p.PUs || h.d.stalled.Len() != 0 {
			t.Fatalf("step %v: %d frames, engine state %d %d", step, n, h.d.txBytes, h.idlePUs())
		}
		if string(r.bytes(0, int(r.n))) != string(before) {
			t.Fatalf("step %v: memory changes after a reset", step)
		}
		if _, st := h.try(prm.NewIn(prm.OpAllocPD, 0)); st != prm.StatusBadSysState {
			t.Fatalf("step %v: ALLOC_PD before ENABLE_HCA: %v", step, st)
		}
		h.cmd(prm.NewIn(prm.OpEnableHCA, 0))
		h.cmd(prm.NewIn(prm.OpInitHCA, 0))
		h.cmd(prm.NewIn(prm.OpTeardownHCA, 0))
	}
}

// TestCommandEvents: completions of commands go to the EQ that asks for them, and to no other.
func TestCommandEvents(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	if h.d.WantsCommandEvents() {
		t.Error("without an EQ for them")
	}
	q, n := h.newEQ(2, 1<<prm.EventCmd)
	if !h.d.WantsCommandEvents() {
		t.Error("the EQ is not found")
	}
	h.d.CommandsDone(1<<31 | 1)
	run(t, h.e, sim.Millisecond)
	e := h.nextEQE(q)
	if e == nil || e.Type() != prm.EventCmd || e.CmdVector() != 1<<31|1 || h.ints[2] != 1 || h.nextEQE(h.aeq) != nil {
		t.Errorf("%x, interrupts %v", e, h.ints)
	}
	in := prm.NewIn(prm.OpDestroyEQ, 0)
	prm.DestroyEQIn(in).SetEQNumber(n)
	h.cmd(in)
	if h.d.WantsCommandEvents() {
		t.Error("the EQ is gone")
	}
}

// idlePUs counts the processing units without work.
func (h *host) idlePUs() (n int) {
	for i := range h.d.sendEngine.groups {
		n += h.d.sendEngine.groups[i].idle
	}
	return n
}
