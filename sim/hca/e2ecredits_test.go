package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// startCount has a connection count its requests from n, as one that has carried so many.
func startCount(from, to *tQP, n uint32) {
	q := &from.h.d.qpn(from.n).requester
	q.ssn, q.lsn = n, n
	to.h.d.qpn(to.n).responder.msn = n
}

// acks keeps the syndromes and MSNs of ACKs on their way.
type acks struct {
	Wire
	seen []roce.AETH
}

func (w *acks) Send(f *roce.Frame) {
	if f.Op == roce.RCAcknowledge {
		w.seen = append(w.seen, append(roce.AETH(nil), f.AETH()...))
	}
	w.Wire.Send(f)
}

// TestCredits: ACKs announce the receives that are left, in the coding of the table, and a
// requester sends one message more than that, not two; where MSNs wrap too.
func TestCredits(t *testing.T) {
	for _, first := range []uint32{0, 0xfffffe} {
		p := testParams()
		p.Credits = true
		o := defaults()
		o.rnrTimer = 31
		ha, hb, a, b, _, ba := twoHosts(t, p, 1, o)
		w := &acks{Wire: ba}
		hb.d.SetWire(w)
		startCount(a, b, first)
		lb := hb.newMR(4096, rightsAll)
		for range 5 {
			b.recv(lb.sge(0, 64))
		}
		for range 8 {
			a.post(wr{op: prm.WQEOpSend, inline: []byte("x")})
		}
		run(t, ha.e, ms)
		for range 5 {
			a.scq.expect(prm.CQEReq)
		}
		a.scq.expectNone()
		// The first is sent alone, for nothing is known of the other end yet.
		if n := ha.d.Counters().TxRequests; n != 6 {
			t.Errorf("%d requests for 5 receives, want one more", n)
		}
		for i, h := range w.seen[:5] {
			if want := (first + uint32(i) + 1) & roce.PSNMask; h.MSN() != want || roce.Credits(h.Syndrome().Value()) != 4-i {
				t.Errorf("ACK %d: MSN %#x, %v; want MSN %#x, credits %d", i, h.MSN(), h.Syndrome(), want, 4-i)
			}
		}
		if h := w.seen[5]; h.Syndrome().Type() != roce.SyndromeTypeRNR {
			t.Errorf("the message without a receive drew %v", h.Syndrome())
		}
	}
}

// TestCreditsOfOneSide: a responder that announces nothing limits nobody, and one that announces is
// not obeyed by a requester without credits.
func TestCreditsOfOneSide(t *testing.T) {
	p := testParams()
	e := sim.New(sim.Options{MaxEvents: 1 << 26})
	ha := newHost(t, e, p, 1)
	p.Credits = true
	hb := newHost(t, e, p, 2)
	ab, ba := newWire(e, hb.d, 1, "ab"), newWire(e, ha.d, 1, "ba")
	ha.d.SetWire(ab)
	hb.d.SetWire(ba)
	a, b := ha.newQP(ha.newCQ(9, 64), ha.newCQ(9, 64)), hb.newQP(hb.newCQ(9, 64), hb.newCQ(9, 64))
	a.connect(b, defaults())
	b.connect(a, defaults())
	for _, dir := range []struct{ from, to *tQP }{{a, b}, {b, a}} {
		mr := dir.to.h.newMR(4096, rightsAll)
		for range 6 {
			dir.to.recv(mr.sge(0, 64))
		}
		for range 6 {
			dir.from.post(wr{op: prm.WQEOpSend, inline: []byte("x")})
		}
		run(t, e, ms)
		for range 6 {
			dir.from.scq.expect(prm.CQEReq)
		}
	}
}
