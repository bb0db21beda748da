package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

const tQKey = 0x1234

// start brings a UD QP to RTS.
func (q *tQP) start(qkey uint32) {
	q.h.t.Helper()
	q.modify(prm.OpRst2InitQP, func(c prm.QPC) {
		c.PrimaryPath().SetVHCAPortNum(1)
		c.SetQKey(qkey)
		c.SetCounterSetID(q.h.qset)
	})
	q.modify(prm.OpInit2RTRQP, func(c prm.QPC) {
		c.SetMTU(uint32(roce.MTU4096))
		c.SetLogMsgMax(12)
	})
	q.modify(prm.OpRTR2RTSQP, func(c prm.QPC) { c.SetNextSendPSN(q.psn) })
}

func (h *host) newUD(qkey uint32) *tQP {
	q := h.newQPOn(h.newCQ(7, 64), h.newCQ(7, 64), h.uar, ud)
	q.start(qkey)
	return q
}

// to is the address vector of a QP.
func to(p *tQP, qkey uint32) func(a prm.AVSegment) {
	return func(a prm.AVSegment) {
		a.SetQKey(qkey)
		a.SetDestQPN(p.n)
		a.SetRLID(0xc123)
		a.SetTClass(0x88)
		a.SetHopLimit(33)
		copy(a.RGID(), p.h.gid[:])
		copy(a.RMAC(), p.h.id.MAC[:])
	}
}

var tGroup = roce.GIDFromIPv4([4]byte{239, 1, 2, 3})

func toGroup(qkey uint32) func(a prm.AVSegment) {
	return func(a prm.AVSegment) {
		a.SetQKey(qkey)
		a.SetDestQPN(multicastQPN)
		copy(a.RGID(), tGroup[:])
		m := tGroup.MulticastMAC()
		copy(a.RMAC(), m[:])
	}
}

func (q *tQP) group(op prm.Opcode) prm.Status {
	in := prm.NewIn(op, 0)
	m := prm.AttachToMCGIn(in)
	m.SetQPN(q.n)
	copy(m.MulticastGID(), tGroup[:])
	_, st := q.h.try(in)
	return st
}

func udHosts(t *testing.T) (ha, hb *host, w *seize) {
	e := sim.New(sim.Options{MaxEvents: 1 << 22})
	ha, hb = newHost(t, e, testParams(), 1), newHost(t, e, testParams(), 2)
	w = &seize{to: hb.d}
	ha.d.SetWire(w)
	hb.d.SetWire(&seize{to: ha.d})
	return
}

func TestDatagram(t *testing.T) {
	ha, hb, w := udHosts(t)
	a, b := ha.newUD(tQKey), hb.newUD(tQKey)
	src, dst := ha.newMR(8192, rightsAll), hb.newMR(8192, rightsAll)
	src.fill(pattern)
	b.recv(dst.sge(0, 30), dst.sge(1000, 300))
	b.recv(dst.sge(2000, 40))
	a.post(wr{op: prm.WQEOpSendImm, imm: 9, se: true, av: to(b, tQKey), sges: []sge{src.sge(0, 50)}},
		wr{op: prm.WQEOpSend, av: to(b, tQKey)})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.scq.expect(prm.CQEReq)
	e := b.rcq.expect(prm.CQERespSendImm)
	if e.ByteCnt() != 90 || e.ImmInvalPKey() != 9 || e.RQPN() != a.n || e.GRH() == 0 || !e.SE() {
		t.Fatalf("CQE % x", []byte(e))
	}
	if e := b.rcq.expect(prm.CQERespSend); e.ByteCnt() != 40 || e.GRH() == 0 {
		t.Fatalf("CQE % x", []byte(e))
	}
	got := append(dst.bytes(0, 30), dst.bytes(1000, 60)...)
	p, err := roce.Parse(w.sent[0].B)
	if err != nil || p.Op != roce.UDSendOnlyImm {
		t.Fatalf("%v, %v", p.Op, err)
	}
	if !bytes.Equal(got[20:40], p.IPv4()) || !bytes.Equal(got[40:], src.bytes(0, 50)) {
		t.Fatalf("received % x", got)
	}
	if p.UDP().SrcPort() != 0xc123 || p.IPv4().TOS() != 0x88 || p.IPv4().TTL() != 33 || p.DETH().QKey() != tQKey || p.DETH().SrcQP() != a.n ||
		p.BTH().PSN() != 0xfffffe || p.BTH().AckReq() {
		t.Errorf("headers % x", p.B)
	}
	w.free()
	if n := ha.d.frames.Live; n != 0 {
		t.Errorf("%d frames leaked", n)
	}
}

func TestDatagramDrops(t *testing.T) {
	ha, hb, w := udHosts(t)
	a, b := ha.newUD(0x8000_0001), hb.newUD(tQKey)
	src, dst := ha.newMR(8192, rightsAll), hb.newMR(8192, rightsAll)
	a.post(wr{op: prm.WQEOpSend, av: to(b, tQKey), inline: []byte("no receive")})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	b.recv(dst.sge(0, 100))
	a.post(wr{op: prm.WQEOpSend, av: to(b, tQKey+1), inline: []byte("wrong key")},
		wr{op: prm.WQEOpSend, av: to(b, 0x8000_0000), inline: []byte("own key, wrong")},
		wr{op: prm.WQEOpSend, av: func(v prm.AVSegment) { to(b, tQKey)(v); v.SetDestQPN(b.n + 7) }, inline: []byte("nobody")},
		wr{op: prm.WQEOpSend, av: func(v prm.AVSegment) { to(b, tQKey)(v); copy(v.RGID()[12:], []byte{10, 0, 0, 9}) }, inline: []byte("not its address")})
	run(t, ha.e, 50*sim.Microsecond)
	for range 4 {
		a.scq.expect(prm.CQEReq)
	}
	b.rcq.expectNone()
	if c := hb.d.Counters(); c.RxQKey != 2 || c.RxAddress != 1 || len(w.sent) != 5 {
		t.Errorf("Q_Key %d, address %d, %d frames", c.RxQKey, c.RxAddress, len(w.sent))
	}
	key := roce.DETH(w.sent[2].DETH()).QKey()
	if key != 0x8000_0001 {
		t.Errorf("Q_Key %#x for the QP's own", key)
	}
	// The receive is still there: too short for this one.
	a.post(wr{op: prm.WQEOpSend, av: to(b, tQKey), sges: []sge{src.sge(0, 61)}})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	b.rcq.expectError(prm.CQERespErr, prm.SyndromeLocalLength)
	w.free()
}

func TestDatagramLocalErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		w    func(b *tQP, r *mr) wr
		want prm.Syndrome
	}{
		"too long": {func(b *tQP, r *mr) wr {
			return wr{op: prm.WQEOpSend, av: to(b, tQKey), sges: []sge{r.sge(0, 4097)}}
		}, prm.SyndromeLocalLength},
		"write": {func(b *tQP, r *mr) wr {
			return wr{op: prm.WQEOpRDMAWrite, av: to(b, tQKey), rkey: r.rkey, raddr: r.va, sges: []sge{r.sge(0, 8)}}
		}, prm.SyndromeLocalQPOp},
		"short vector": {func(b *tQP, r *mr) wr {
			return wr{op: prm.WQEOpSend, av: func(a prm.AVSegment) { to(b, tQKey)(a); a.SetExtended(false) }}
		}, prm.SyndromeLocalQPOp},
		"empty address slot": {func(b *tQP, r *mr) wr {
			return wr{op: prm.WQEOpSend, av: func(a prm.AVSegment) { to(b, tQKey)(a); a.SetSGIDIndex(5) }}
		}, prm.SyndromeLocalQPOp},
		"key": {func(b *tQP, r *mr) wr {
			return wr{op: prm.WQEOpSend, av: to(b, tQKey), sges: []sge{{r.lkey ^ 3, r.va, 8}}}
		}, prm.SyndromeLocalProt},
	} {
		ha, hb, w := udHosts(t)
		a, b := ha.newUD(tQKey), hb.newUD(tQKey)
		a.post(tc.w(b, ha.newMR(8192, rightsAll)))
		run(t, ha.e, 50*sim.Microsecond)
		e := a.scq.poll()
		if e == nil || e.Opcode() != prm.CQEReqErr || e.Syndrome() != tc.want || len(w.sent) != 0 || a.state() != prm.QPStateSQER {
			t.Errorf("%s: CQE % x, %d frames, state %d", name, []byte(e), len(w.sent), a.state())
		}
	}
}

func TestMulticast(t *testing.T) {
	ha, hb, w := udHosts(t)
	a, near, out := ha.newUD(tQKey), ha.newUD(tQKey), ha.newUD(tQKey)
	far, other := hb.newUD(tQKey), hb.newUD(tQKey+1)
	ma, mb := ha.newMR(4096, rightsAll), hb.newMR(4096, rightsAll)
	for _, q := range []*tQP{a, near, out, far, other} {
		r := ma
		if q.h == hb {
			r = mb
		}
		q.recv(r.sge(0, 100))
		q.recv(r.sge(0, 100))
	}
	for _, q := range []*tQP{a, near, far, other} {
		if st := q.group(prm.OpAttachToMCG); st != prm.StatusOK {
			t.Fatalf("attach: %v", st)
		}
	}
	if st := near.group(prm.OpAttachToMCG); st == prm.StatusOK {
		t.Error("attached twice")
	}
	if st := out.group(prm.OpDetachFromMCG); st == prm.StatusOK {
		t.Error("a stranger was detached")
	}
	a.post(wr{op: prm.WQEOpSend, av: toGroup(tQKey), inline: []byte("to all")})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	for _, q := range []*tQP{a, near, far} {
		if e := q.rcq.expect(prm.CQERespSend); e.ByteCnt() != 46 || e.RQPN() != a.n {
			t.Errorf("CQE % x", []byte(e))
		}
		q.rcq.expectNone()
	}
	out.rcq.expectNone()
	other.rcq.expectNone() // its Q_Key is another
	if len(w.sent) != 1 || w.sent[0].BTH().DestQP() != multicastQPN || !roce.Ethernet(w.sent[0].B).ToGroup() {
		t.Errorf("%d frames", len(w.sent))
	}
	if _, st := ha.try(destroy(near.n)); st == prm.StatusOK {
		t.Error("a member was destroyed")
	}
	near.group(prm.OpDetachFromMCG)
	a.post(wr{op: prm.WQEOpSend, av: toGroup(tQKey), inline: []byte("to all")})
	run(t, ha.e, 50*sim.Microsecond)
	near.rcq.expectNone()
	a.rcq.expect(prm.CQERespSend)
	w.free()
	if n := ha.d.frames.Live; n != 0 {
		t.Errorf("%d frames leaked", n)
	}
}

func destroy(qpn uint32) []byte {
	in := prm.NewIn(prm.OpDestroyQP, 0)
	prm.DestroyQPIn(in).SetQPN(qpn)
	return in
}

// TestManyPaths sends to more destinations than headers are kept for, with changes of
// the address table between.
func TestManyPaths(t *testing.T) {
	ha, hb, w := udHosts(t)
	a := ha.newUD(tQKey)
	var bs []*tQP
	for range 3 {
		bs = append(bs, hb.newUD(tQKey))
	}
	for i := range 200 {
		b := bs[i%3]
		a.post(wr{op: prm.WQEOpSend, unsig: i%8 != 7, av: func(v prm.AVSegment) { to(b, tQKey)(v); v.SetRLID(uint16(0xc000 + i%90)) }, inline: []byte{byte(i)}})
		run(t, ha.e, sim.Microsecond)
	}
	run(t, ha.e, 50*sim.Microsecond)
	for i, f := range w.sent {
		p, err := roce.Parse(f.B)
		if err != nil || int(p.UDP().SrcPort()) != 0xc000+i%90 || p.BTH().DestQP() != bs[i%3].n || p.Payload()[0] != byte(i) {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	if len(w.sent) != 200 {
		t.Fatalf("%d frames", len(w.sent))
	}
	w.free()
}

// A group takes as many queue pairs as the device says (max_qp_mcg), and one more after one has
// left.
func TestGroupIsFull(t *testing.T) {
	h, _, _ := udHosts(t)
	var last *tQP
	for i := range h.d.p.MaxQPMCG {
		if last = h.newUD(tQKey); last.group(prm.OpAttachToMCG) != prm.StatusOK {
			t.Fatalf("queue pair %d of %d is refused", i+1, h.d.p.MaxQPMCG)
		}
	}
	more := h.newUD(tQKey)
	if st := more.group(prm.OpAttachToMCG); st != prm.StatusLimErr {
		t.Errorf("one queue pair more: %v, want %v", st, prm.StatusLimErr)
	}
	if st := last.group(prm.OpDetachFromMCG); st != prm.StatusOK {
		t.Fatal(st)
	}
	if st := more.group(prm.OpAttachToMCG); st != prm.StatusOK {
		t.Errorf("after one has left: %v", st)
	}
}

// A queue pair made so (block_lb_mc) does not get what it sends to its own group; other members of
// its port do.
func TestOwnMulticastIsBlocked(t *testing.T) {
	ha, hb, w := udHosts(t)
	blocks := func(c prm.QPC) { ud(c); c.SetBlockLBMC(true) }
	a, near, far := ha.newQPOn(ha.newCQ(7, 64), ha.newCQ(7, 64), ha.uar, blocks), ha.newUD(tQKey), hb.newQPOn(hb.newCQ(7, 64), hb.newCQ(7, 64), hb.uar, blocks)
	a.start(tQKey)
	far.start(tQKey)
	for _, q := range []*tQP{a, near, far} {
		q.recv(q.h.newMR(4096, rightsAll).sge(0, 100))
		if st := q.group(prm.OpAttachToMCG); st != prm.StatusOK {
			t.Fatalf("attach: %v", st)
		}
	}
	a.post(wr{op: prm.WQEOpSend, av: toGroup(tQKey), inline: []byte("to others")})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.rcq.expectNone()
	near.rcq.expect(prm.CQERespSend)
	far.rcq.expect(prm.CQERespSend)
	near.post(wr{op: prm.WQEOpSend, av: toGroup(tQKey), inline: []byte("of another")})
	run(t, ha.e, 50*sim.Microsecond)
	if e := a.rcq.expect(prm.CQERespSend); e.RQPN() != near.n {
		t.Errorf("CQE % x", []byte(e))
	}
	w.free()
}
