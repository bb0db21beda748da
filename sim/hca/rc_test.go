package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

const ms = sim.Millisecond

func TestInlineBlueFlameWrite(t *testing.T) {
	h, a, b := pair(t, defaults())
	r := h.newMR(4096, rightsAll)
	run(t, h.e, sim.Microsecond)
	start := h.e.Events()
	a.push(wr{op: prm.WQEOpRDMAWrite, raddr: r.va + 5, rkey: r.rkey, inline: []byte("hi")})
	run(t, h.e, 2*sim.Microsecond)
	if got := r.bytes(4, 4); string(got) != "\x00hi\x00" {
		t.Fatalf("memory %q", got)
	}
	e := a.scq.expect(prm.CQEReq)
	if e.QPN() != a.n || e.WQECounter() != 0 || e.SOp() != prm.WQEOpRDMAWrite || e.SRQNUIdx() != 0xabc {
		t.Fatalf("CQE % x", []byte(e))
	}
	a.scq.expectNone()
	b.rcq.expectNone()
	if c := h.d.Counters(); c.WQEsPushed != 1 || c.WQEFetches != 0 {
		t.Fatalf("pushed %d, fetched %d", c.WQEsPushed, c.WQEFetches)
	}
	if n := h.e.Events() - start; n > 6 {
		t.Errorf("%d events for one write", n)
	}
}

func TestDoorbellSend(t *testing.T) {
	h, a, b := pair(t, defaults())
	r := h.newMR(8192, rightsAll)
	r.fill(func(i int) byte { return byte(i) })
	b.recv(r.sge(5000, 100), r.sge(6000, 100))
	a.post(wr{op: prm.WQEOpSendImm, imm: 0xdeadbeef, se: true, sges: []sge{r.sge(0, 70), r.sge(100, 80)}})
	run(t, h.e, 10*sim.Microsecond)
	e := b.rcq.expect(prm.CQERespSendImm)
	if e.ByteCnt() != 150 || e.ImmInvalPKey() != 0xdeadbeef || !e.SE() || e.RQPN() != a.n || e.WQECounter() != 0 {
		t.Fatalf("CQE % x", []byte(e))
	}
	a.scq.expect(prm.CQEReq)
	want := append(append([]byte{}, r.bytes(0, 70)...), r.bytes(100, 80)...)
	got := append(append([]byte{}, r.bytes(5000, 100)...), r.bytes(6000, 50)...)
	if !bytes.Equal(got, want) {
		t.Fatal("data differs")
	}
}
