package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
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

func pattern(i int) byte { return byte(i*7 + i>>8) }

// TestSegmentation sends messages around the multiples of every MTU, by WRITE, SEND
// and READ, and compares memory.
func TestSegmentation(t *testing.T) {
	for _, mtu := range []roce.MTU{roce.MTU256, roce.MTU1024, roce.MTU4096} {
		o := defaults()
		o.mtu = mtu
		h, a, b := pair(t, o)
		src, dst := h.newMR(64<<10, rightsAll), h.newMR(64<<10, rightsAll)
		src.fill(pattern)
		m := mtu.Bytes()
		for _, n := range []int{1, m - 1, m, m + 1, 2 * m, 3*m + 5, 40000} {
			for _, op := range []prm.WQEOpcode{prm.WQEOpRDMAWrite, prm.WQEOpSend, prm.WQEOpRDMARead} {
				dst.fill(func(int) byte { return 0xee })
				w := wr{op: op, rkey: dst.rkey, raddr: dst.va + 3, sges: []sge{src.sge(11, n)}}
				if n > 2 {
					w.sges = []sge{src.sge(11, n/2), src.sge(11+n/2, n-n/2)}
				}
				switch op {
				case prm.WQEOpSend:
					b.recv(dst.sge(3, n))
				case prm.WQEOpRDMARead:
					w.rkey, w.raddr = src.rkey, src.va+11
					w.sges = []sge{dst.sge(3, (n+1)/2), dst.sge(3+(n+1)/2, n-(n+1)/2)}
					if n == 1 {
						w.sges = w.sges[:1]
					}
				}
				a.post(w)
				run(t, h.e, 100*sim.Microsecond)
				e := a.scq.expect(prm.CQEReq)
				if op == prm.WQEOpSend {
					if got := b.rcq.expect(prm.CQERespSend).ByteCnt(); got != uint32(n) {
						t.Fatalf("SEND of %d: byte count %d", n, got)
					}
				}
				inCQE := op != prm.WQEOpRDMAWrite && n <= 0
				if op == prm.WQEOpRDMARead && e.ByteCnt() != uint32(n) {
					t.Fatalf("READ of %d: byte count %d", n, e.ByteCnt())
				}
				if inCQE {
					continue
				}
				if !bytes.Equal(dst.bytes(3, n), src.bytes(11, n)) {
					t.Fatalf("MTU %d op %#x n %d: data differs", m, op, n)
				}
				if g := dst.bytes(0, n+4); g[2] != 0xee || g[n+3] != 0xee {
					t.Fatalf("MTU %d op %#x n %d: wrote outside", m, op, n)
				}
			}
		}
		if c := h.d.Counters(); c.RxNoQP != 0 || c.NaksSent != 0 {
			t.Fatalf("%+v", c)
		}
	}
}

func TestAtomics(t *testing.T) {
	h, a, _ := pair(t, defaults())
	r := h.newMR(4096, rightsAll)
	var v [8]byte
	putHost64(v[:], 100)
	h.m.Write(r.pa+64, v[:])
	post := func(w wr) { w.raddr, w.rkey, w.sges = r.va+64, r.rkey, []sge{r.sge(8, 8)}; a.post(w) }
	check := func(old, now uint64) {
		t.Helper()
		run(t, h.e, 10*sim.Microsecond)
		if e := a.scq.expect(prm.CQEReq); e.ByteCnt() != 8 {
			t.Fatalf("byte count %d", e.ByteCnt())
		}
		if g := host64(r.bytes(8, 8)); g != old {
			t.Fatalf("returned %d, want %d", g, old)
		}
		if g := host64(r.bytes(64, 8)); g != now {
			t.Fatalf("memory %d, want %d", g, now)
		}
	}
	post(wr{op: prm.WQEOpAtomicFA, swap: 5})
	check(100, 105)
	post(wr{op: prm.WQEOpAtomicCS, swap: 7, compare: 1})
	check(105, 105)
	post(wr{op: prm.WQEOpAtomicCS, swap: 7, compare: 105})
	check(105, 7)
	// Several at once are serial on one address.
	for range 10 {
		post(wr{op: prm.WQEOpAtomicFA, swap: 1, unsig: true})
	}
	post(wr{op: prm.WQEOpAtomicFA, swap: 1})
	run(t, h.e, 20*sim.Microsecond)
	check(17, 18)
}

func TestScatterToCQE(t *testing.T) {
	for _, cqe := range []int{64, 128} {
		h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
		limit := 32
		edit := func(c prm.QPC) { c.SetCSReq(prm.CSReqUpTo32B); c.SetCSRes(prm.CSResUpTo32B) }
		if cqe == 128 {
			limit = 64
			edit = func(c prm.QPC) { c.SetCSReq(prm.CSReqUpTo64B); c.SetCSRes(prm.CSResUpTo64B) }
		}
		a := h.newQPOn(h.newCQ(7, cqe), h.newCQ(7, cqe), h.uar, edit)
		b := h.newQPOn(h.newCQ(7, cqe), h.newCQ(7, cqe), h.uar, edit)
		o := defaults()
		a.connect(b, o)
		b.connect(a, o)
		r := h.newMR(4096, rightsAll)
		r.fill(pattern)
		for _, n := range []int{1, 32, 33, 64, 65} {
			b.recv(r.sge(2048, 128))
			a.post(wr{op: prm.WQEOpSend, sges: []sge{r.sge(0, n)}})
			run(t, h.e, 10*sim.Microsecond)
			a.scq.expect(prm.CQEReq)
			e := b.rcq.expect(prm.CQERespSend)
			want := uint8(prm.CQEFormatPlain)
			switch {
			case n <= 32:
				want = prm.CQEFormatInline32
				if !bytes.Equal(e.InlineData()[:n], r.bytes(0, n)) {
					t.Fatal("data in the CQE differs")
				}
			case n <= limit:
				want = prm.CQEFormatInline64
			}
			if e.Format() != want {
				t.Fatalf("CQE of %d, %d bytes: format %d, want %d", cqe, n, e.Format(), want)
			}
			a.post(wr{op: prm.WQEOpRDMARead, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(1024, n)}})
			run(t, h.e, 10*sim.Microsecond)
			if e := a.scq.expect(prm.CQEReq); e.Format() != want || e.ByteCnt() != uint32(n) {
				t.Fatalf("READ of %d: format %d", n, e.Format())
			}
		}
	}
}

func TestRNR(t *testing.T) {
	h, a, b := pair(t, defaults())
	r := h.newMR(4096, rightsAll)
	a.post(wr{op: prm.WQEOpSend, inline: []byte("abc")})
	run(t, h.e, 35*sim.Microsecond) // three waits of 10 us
	a.scq.expectNone()
	b.recv(r.sge(0, 64))
	run(t, h.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	b.rcq.expect(prm.CQERespSend)
	if n := h.counter(prm.QCRNRNAKRetryErr); n < 3 || n > 4 {
		t.Fatalf("%d RNR NAKs", n)
	}
	if h.counter(prm.QCOutOfBuffer) != h.counter(prm.QCRNRNAKRetryErr) {
		t.Fatal("out_of_buffer and rnr_nak_retry_err differ")
	}
}

func (h *host) counter(c prm.QCounter) uint32 {
	in := prm.NewIn(prm.OpQueryQCounter, 0)
	prm.QueryQCounterIn(in).SetCounterSetID(h.qset)
	return prm.QueryQCounterOut(h.cmd(in)).Get(c)
}

func TestRNRExhausted(t *testing.T) {
	o := defaults()
	o.rnr = 2
	h, a, b := pair(t, o)
	a.post(wr{op: prm.WQEOpSend, inline: []byte("abc")}, wr{op: prm.WQEOpNOP, unsig: true}, wr{op: prm.WQEOpSend, inline: []byte("d"), unsig: true})
	run(t, h.e, 100*sim.Microsecond)
	if e := a.scq.expectError(prm.CQEReqErr, prm.SyndromeRNRRetryExc); e.WQECounter() != 0 {
		t.Fatal("wrong WQE")
	}
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	a.scq.expectNone()
	_ = b
	if a.state() != prm.QPStateERR || b.state() != prm.QPStateRTS {
		t.Fatalf("states %d %d", a.state(), b.state())
	}
}

func (q *tQP) query() prm.QPC {
	in := prm.NewIn(prm.OpQueryQP, 0)
	prm.QueryQPIn(in).SetQPN(q.n)
	return prm.QueryQPOut(q.h.cmd(in)).QPC()
}

func (q *tQP) state() uint32 { return q.query().State() }

func TestTornBlueFlame(t *testing.T) {
	h, a, _ := pair(t, defaults())
	r := h.newMR(4096, rightsAll)
	w := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: bytes.Repeat([]byte("z"), 100)}
	mm := func(off uint64, b []byte) { h.d.MMIOWrite(off, b) }
	send := map[string]func(off uint64, b []byte){
		"whole": func(off uint64, b []byte) { mm(off, b[:64]); mm(off+64, b[64:128]); mm(off+128, b[128:192]) },
		"small pieces": func(off uint64, b []byte) {
			mm(off, b[:32])
			mm(off+32, b[32:64])
			mm(off+64, b[64:128])
			mm(off+128, b[128:192])
		},
		"out of order": func(off uint64, b []byte) { mm(off, b[:64]); mm(off+128, b[128:192]); mm(off+64, b[64:128]) },
		"rest missing": func(off uint64, b []byte) { mm(off, b[:64]) },
	}
	for _, name := range []string{"whole", "small pieces", "out of order", "rest missing"} {
		b := append([]byte{}, a.put(w)...)
		b = append(b, make([]byte, 192-len(b))...)
		before := *h.d.UAR(h.uar)
		send[name](a.reg(), b)
		run(t, h.e, 20*sim.Microsecond)
		a.scq.expect(prm.CQEReq)
		a.scq.expectNone()
		after := h.d.UAR(h.uar)
		torn, whole := after.Torn-before.Torn, after.BlueFlame-before.BlueFlame
		if name == "whole" && (torn != 0 || whole != 1) || name != "whole" && (torn != 1 || whole != 0) {
			t.Fatalf("%s: torn %d whole %d", name, torn, whole)
		}
	}
	// Only the first was executed from the register.
	if n := h.d.Counters().WQEsPushed; n != 1 {
		t.Fatalf("pushed %d", n)
	}
}

// TestPushedBytesAreExecuted is the driver's write-combining self-test: what counts
// is the copy in the register.
func TestPushedBytesAreExecuted(t *testing.T) {
	h, a, _ := pair(t, defaults())
	b := a.put(wr{op: prm.WQEOpNOP, unsig: true})
	p := make([]byte, 64)
	copy(p, b)
	prm.CtrlSegment(p).SetFMCESE(prm.CtrlCQUpdate)
	h.d.MMIOWrite(a.reg(), p)
	run(t, h.e, 5*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
}

func TestForeignDoorbell(t *testing.T) {
	h, a, _ := pair(t, defaults())
	b := a.put(wr{op: prm.WQEOpNOP})
	h.d.MMIOWrite(uint64(h.uar+1)*4096+0x800, b[:8])
	run(t, h.e, 5*sim.Microsecond)
	a.scq.expectNone()
	if h.d.Counters().DoorbellsForeign != 1 {
		t.Fatal("not counted")
	}
	// A late doorbell for an older WQE does no harm.
	a.post(wr{op: prm.WQEOpNOP})
	h.d.MMIOWrite(a.reg(), b[:8])
	run(t, h.e, 5*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.scq.expect(prm.CQEReq)
	a.scq.expectNone()
}

func TestWriteImm(t *testing.T) {
	h, a, b := pair(t, defaults())
	r := h.newMR(8192, rightsAll)
	b.recv()
	b.recv()
	a.post(wr{op: prm.WQEOpRDMAWriteImm, imm: 77, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(4096, 3000)}})
	a.post(wr{op: prm.WQEOpRDMAWriteImm, imm: 78})
	run(t, h.e, 20*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.scq.expect(prm.CQEReq)
	if e := b.rcq.expect(prm.CQERespWrImm); e.ByteCnt() != 3000 || e.ImmInvalPKey() != 77 {
		t.Fatalf("CQE % x", []byte(e))
	}
	if e := b.rcq.expect(prm.CQERespWrImm); e.ByteCnt() != 0 || e.ImmInvalPKey() != 78 || e.WQECounter() != 1 {
		t.Fatalf("CQE % x", []byte(e))
	}
}

func TestCQArmAndOverrun(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq := h.newCQ(2, 64)
	a, b := h.newQP(cq, cq), h.newQP(h.newCQ(7, 64), h.newCQ(7, 64))
	a.connect(b, defaults())
	b.connect(a, defaults())
	nop := wr{op: prm.WQEOpNOP}
	events := func() (n int) {
		for e := h.nextEQE(h.ceq); e != nil; e = h.nextEQE(h.ceq) {
			if e.Type() != prm.EventComp || e.CompCQN() != cq.n {
				t.Fatalf("event % x", e)
			}
			n++
		}
		h.armEQ(h.ceq, h.eqn)
		return n
	}
	a.post(nop)
	run(t, h.e, 5*sim.Microsecond)
	cq.arm(false) // the CQE is already there, and not consumed
	run(t, h.e, 5*sim.Microsecond)
	if n := events(); n != 1 || h.ints[0] != 1 {
		t.Fatalf("%d events, %d interrupts", n, h.ints[0])
	}
	cq.poll()
	cq.arm(false) // stale: the number was not raised
	a.post(nop)
	run(t, h.e, 5*sim.Microsecond)
	if n := events(); n != 0 {
		t.Fatalf("%d events for a stale arm", n)
	}
	cq.poll()
	cq.sn++
	cq.arm(true) // solicited only
	a.post(nop)
	run(t, h.e, 5*sim.Microsecond)
	if n := events(); n != 0 {
		t.Fatal("an unsolicited CQE fired")
	}
	cq.poll()
	a.post(nop, nop, nop, nop)
	run(t, h.e, 5*sim.Microsecond)
	if h.nextEQE(h.aeq) != nil {
		t.Fatal("overrun too early")
	}
	a.post(nop)
	run(t, h.e, 5*sim.Microsecond)
	e := h.nextEQE(h.aeq)
	if e == nil || e.Type() != prm.EventCQError || e.CQErrCQN() != cq.n || e.CQErrSyndrome() != prm.CQErrOverrun {
		t.Fatalf("event % x", e)
	}
	if a.state() != prm.QPStateERR {
		t.Fatal("the QP survived")
	}
}

func TestDestroyInFlight(t *testing.T) {
	for step := sim.Time(0); step < 2500*sim.Nanosecond; step += 30 * sim.Nanosecond {
		h, a, b := pair(t, defaults())
		r := h.newMR(64<<10, rightsAll)
		b.recv(r.sge(0, 64))
		a.post(wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(8192, 8192)}},
			wr{op: prm.WQEOpRDMARead, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(8192, 8192)}},
			wr{op: prm.WQEOpAtomicFA, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(8192, 8)}},
			wr{op: prm.WQEOpSend, inline: []byte("x")})
		run(t, h.e, step)
		q := a
		if step/30/sim.Nanosecond%2 == 0 {
			q = b
		}
		q.modify2(prm.Op2RstQP)
		q.modify2(prm.OpDestroyQP)
		in := prm.NewIn(prm.OpDestroyMKey, 0)
		prm.DestroyMKeyIn(in).SetMKeyIndex(r.index)
		h.cmd(in)
		run(t, h.e, 10*sim.Second)
		if n := h.d.frames.Live; n != 0 {
			t.Fatalf("step %v: %d frames leaked", step, n)
		}
		if h.d.txBytes != 0 || h.idlePUs() != h.d.p.PUs || h.d.stalled.Len() != 0 {
			t.Fatalf("step %v: engine state %d %d", step, h.d.txBytes, h.idlePUs())
		}
	}
}

// TestFetchPerDoorbell rings three times while a fetch is under way: one fetch takes the
// three WQEs, with a read for each doorbell where the device makes them.
func TestFetchPerDoorbell(t *testing.T) {
	for _, each := range []bool{false, true} {
		p := testParams()
		p.FetchPerDoorbell = each
		h := newHost(t, sim.New(sim.Options{}), p, 1)
		cq := h.newCQ(7, 64)
		a, b := h.newQP(cq, cq), h.newQP(cq, cq)
		a.connect(b, defaults())
		b.connect(a, defaults())
		run(t, h.e, 5*sim.Microsecond)
		before := h.l.Counters().DMAReads
		for range 4 {
			a.post(wr{op: prm.WQEOpNOP})
		}
		run(t, h.e, 5*sim.Microsecond)
		for range 4 {
			cq.expect(prm.CQEReq)
		}
		fetches, reads := h.d.Counters().WQEFetches, h.l.Counters().DMAReads-before
		if want := map[bool]uint64{false: 2, true: 4}[each]; fetches != 2 || reads != want {
			t.Errorf("a read for each doorbell %v: %d fetches, %d reads, want %d", each, fetches, reads, want)
		}
	}
}

// TestVLANAdmission: a packet on another VLAN than the queue's address is on is not the peer's.
func TestVLANAdmission(t *testing.T) {
	ha, hb, a, b, ab, _ := twoHosts(t, testParams(), 1, defaults())
	lb := hb.newMR(64, rightsAll)
	ha.d.SetWire(&retag{Wire: ab, tci: 100})
	a.post(wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, inline: []byte("x")})
	run(t, ha.e, ms)
	a.scq.expectNone()
	if n := hb.d.Counters().RxAddress; n != 1 {
		t.Fatalf("%d packets were not admitted, want 1", n)
	}
	q := hb.d.qpn(b.n)
	q.vlan = 100
	run(t, ha.e, 100*ms)
	a.scq.expect(prm.CQEReq)
}

// retag puts every frame on a VLAN.
type retag struct {
	Wire
	tci uint16
}

func (r *retag) Send(f *roce.Frame) {
	b := f.B
	f.B = append(append(append([]byte(nil), b[:12]...), 0x81, 0, byte(r.tci>>8), byte(r.tci)), b[12:]...)
	r.Wire.Send(f)
}
