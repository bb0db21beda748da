package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// TestRequestsBeforeTheEndAreAcknowledged: an unsignalled request leaves it to those behind it to
// ask for an ACK. Where these fail by themselves or have no packet, the ACK comes as well: long
// before the ACK timeout, and without a retry.
func TestRequestsBeforeTheEndAreAcknowledged(t *testing.T) {
	for _, c := range []struct {
		name   string
		w      func(r *mr) wr
		syn    prm.Syndrome // 0: none
		behind bool         // requests that are never sent lie behind it
	}{
		{"lkey", func(r *mr) wr {
			return wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, sges: []sge{{r.lkey ^ 2, r.va, 4}}}
		}, prm.SyndromeLocalProt, true},
		{"second packet", func(r *mr) wr {
			return wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(0, 1024), {r.lkey ^ 2, r.va, 1024}}}
		}, prm.SyndromeLocalProt, true},
		{"opcode", func(*mr) wr { return wr{op: 0x3f} }, prm.SyndromeLocalQPOp, true},
		{"too long", func(r *mr) wr { return wr{op: prm.WQEOpSend, sges: []sge{{r.lkey, r.va, 1<<30 + 1}}} }, prm.SyndromeLocalLength, false},
		{"NOP", func(*mr) wr { return wr{op: prm.WQEOpNOP} }, 0, false},
	} {
		for _, unsignalled := range []int{1, 3} {
			t.Run(c.name, func(t *testing.T) {
				o := defaults()
				o.retry = 0
				h, a, b := pair(t, o)
				r := h.newMR(8192, rightsAll)
				var all []wr
				for range unsignalled {
					b.recv(r.sge(64, 64))
					all = append(all, wr{op: prm.WQEOpSend, sges: []sge{r.sge(0, 16)}, unsig: true})
				}
				all = append(all, c.w(r))
				if c.behind {
					all = append(all, all[0], all[0])
				}
				a.post(all...)
				run(t, h.e, 100*sim.Microsecond)
				if c.syn == 0 {
					a.scq.expect(prm.CQEReq)
				} else if e := a.scq.expectError(prm.CQEReqErr, c.syn); int(e.WQECounter()) < unsignalled {
					t.Errorf("WQE %d failed", e.WQECounter())
				}
				for range unsignalled {
					b.rcq.expect(prm.CQERespSend)
				}
				if n := h.counter(prm.QCLocalAckTimeoutErr); n != 0 {
					t.Errorf("%d timeouts", n)
				}
			})
		}
	}
}

// TestDrainOfUnsignalled: what is under way when a queue is drained is acknowledged though nobody
// has asked for it yet.
func TestDrainOfUnsignalled(t *testing.T) {
	p := testParams()
	p.SQD, p.PUPacket = true, 200*sim.Nanosecond
	o := defaults()
	o.retry = 0
	ha, hb, a, _, _, _ := twoHosts(t, p, 1, o)
	la, lb := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
	w := wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 3<<10)}, unsig: true}
	a.post(w, w, w, w)
	run(t, ha.e, 2*sim.Microsecond)
	in := modifyIn(prm.OpRTS2SQDQP, a.n)
	prm.CmdIn(in).SetOpMod(notifyDrained)
	ha.cmd(in)
	run(t, ha.e, 100*sim.Microsecond)
	if e := ha.nextEQE(ha.aeq); e == nil || e.Type() != prm.EventSQDrained || a.state() != prm.QPStateSQD {
		t.Fatalf("event % x, state %d", []byte(e), a.state())
	}
}
