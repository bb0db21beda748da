package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// modifyIn is the mailbox of a transition without attributes.
func modifyIn(op prm.Opcode, qpn uint32) []byte {
	in := prm.NewIn(op, 0)
	prm.ModifyQPIn(in).SetQPN(qpn)
	return in
}

// TestDrainRefused: a device without the commands does not know them.
func TestDrainRefused(t *testing.T) {
	h, a, _ := pair(t, defaults())
	for _, op := range []prm.Opcode{prm.OpRTS2SQDQP, prm.OpSQD2SQDQP} {
		h.status(modifyIn(op, a.n), prm.StatusBadOp)
	}
}

// TestDrain: the message that is being sent is finished, also when a packet of it is lost,
// the ones behind it wait, and the event comes once, at the end.
func TestDrain(t *testing.T) {
	p := testParams()
	p.SQD, p.PUPacket = true, 200*sim.Nanosecond
	o := defaults()
	o.timeout = 5
	ha, hb, a, _, ab, _ := twoHosts(t, p, 1, o)
	la, lb := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
	ha.d.SetWire(&lossy{w: ab, lose: map[uint32]int{(a.psn + 5) & 0xffffff: 1}})
	w := wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 32<<10)}}
	a.post(w, w)
	run(t, ha.e, 2*sim.Microsecond)
	in := modifyIn(prm.OpRTS2SQDQP, a.n)
	prm.CmdIn(in).SetOpMod(notifyDrained)
	ha.cmd(in)
	if a.state() != prm.QPStateSQDraining {
		t.Fatalf("state %d", a.state())
	}
	ha.status(modifyIn(prm.OpSQD2SQDQP, a.n), prm.StatusBadQPState)
	run(t, ha.e, ms)
	a.scq.expect(prm.CQEReq)
	a.scq.expectNone()
	if e := ha.nextEQE(ha.aeq); e == nil || e.Type() != prm.EventSQDrained || a.state() != prm.QPStateSQD {
		t.Fatalf("event % x, state %d", []byte(e), a.state())
	}
	ha.cmd(modifyIn(prm.OpSQD2SQDQP, a.n))
	ha.cmd(modifyIn(prm.OpSQDRTSQP, a.n))
	run(t, ha.e, ms)
	a.scq.expect(prm.CQEReq)
	if e := ha.nextEQE(ha.aeq); e != nil {
		t.Errorf("a second event % x", []byte(e))
	}
}
