package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// dammed is a pair of which the first SEND has drawn an RNR NAK with a wait of 0.64 ms, so that
// what is posted now is dammed. The receives of both are there by then.
func dammed(t *testing.T, p Params, o opts) (ha *host, a, b *tQP, ab *badWire) {
	t.Helper()
	o.rnrTimer = 12
	ha, hb, a, b, ab, _ := twoHosts(t, p, 1, o)
	a.post(wr{op: prm.WQEOpSend, inline: []byte("first")})
	run(t, ha.e, 20*sim.Microsecond)
	r := hb.newMR(4096, rightsAll)
	for i := range 8 {
		b.recv(r.sge(64*i, 64))
	}
	return ha, a, b, ab
}

func dammingParams() Params {
	p := testParams()
	p.RNRDamming = true
	return p
}

// Only what is taken up during the wait is dammed, and it comes with the ACK timeout: not what was
// sent before the NAK, not what is posted when the wait is over, and nothing without the hypothesis
// or without an RNR NAK.
func TestDammingEndsWithTheTimeout(t *testing.T) {
	const wait, timeout = 640 * sim.Microsecond, 4194304 * sim.Nanosecond // of codes 12 and 10
	for _, c := range []struct {
		name   string
		on     bool
		at     sim.Time // when the second is posted, after the first
		ready  bool     // the receives are there from the beginning
		dammed uint64
	}{
		{"with the first", true, 0, false, 0},
		{"during the wait", true, 20 * sim.Microsecond, false, 1},
		{"at the end of the wait", true, wait - sim.Microsecond, false, 1},
		{"after the wait", true, wait + 20*sim.Microsecond, false, 0},
		{"during the wait, off", false, 20 * sim.Microsecond, false, 0},
		{"no RNR NAK", true, 20 * sim.Microsecond, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, o := testParams(), defaults()
			p.RNRDamming, o.rnrTimer, o.timeout = c.on, 12, 10
			ha, hb, a, b, _, _ := twoHosts(t, p, 1, o)
			r := hb.newMR(4096, rightsAll)
			receives := func() { b.recv(r.sge(0, 64)); b.recv(r.sge(64, 64)) }
			if c.ready {
				receives()
			}
			a.post(wr{op: prm.WQEOpSend, inline: []byte("first")})
			second := func() { a.post(wr{op: prm.WQEOpSend, inline: []byte("other")}) }
			if c.at == 0 {
				second()
			}
			run(t, ha.e, 10*sim.Microsecond)
			if !c.ready {
				receives()
			}
			if c.at > 0 {
				run(t, ha.e, c.at-10*sim.Microsecond)
				second()
			}
			run(t, ha.e, max(wait-c.at, 0)+50*sim.Microsecond)
			a.scq.expect(prm.CQEReq)
			if n := ha.d.Counters().RequestsDammed; n != c.dammed {
				t.Fatalf("%d requests were dammed", n)
			}
			if c.dammed > 0 {
				a.scq.expectNone()
				run(t, ha.e, timeout-200*sim.Microsecond)
				a.scq.expectNone()
				run(t, ha.e, 400*sim.Microsecond)
			}
			a.scq.expect(prm.CQEReq)
			if n := ha.counter(prm.QCLocalAckTimeoutErr); uint64(n) != c.dammed {
				t.Errorf("%d timeouts", n)
			}
			if got := string(r.bytes(0, 5)) + string(r.bytes(64, 5)); got != "firstother" {
				t.Errorf("received %q", got)
			}
			b.rcq.expect(prm.CQERespSend)
			b.rcq.expect(prm.CQERespSend)
			b.rcq.expectNone()
		})
	}
}

// A third request shows the hole: its NAK brings the dammed one, long before the timeout. One that
// is posted during the wait is dammed too.
func TestDammingEndsWithAThirdRequest(t *testing.T) {
	for _, selective := range []bool{false, true} {
		p, o := dammingParams(), defaults()
		p.SelectiveRepeat = selective
		ha, a, b, _ := dammed(t, p, o)
		a.post(wr{op: prm.WQEOpSend, inline: []byte("2nd")})
		a.post(wr{op: prm.WQEOpSend, inline: []byte("3rd")})
		run(t, ha.e, 700*sim.Microsecond)
		a.scq.expect(prm.CQEReq)
		a.scq.expectNone()
		a.post(wr{op: prm.WQEOpSend, inline: []byte("4th")})
		run(t, ha.e, 100*sim.Microsecond)
		for range 3 {
			a.scq.expect(prm.CQEReq)
		}
		if n, timeouts, naks := ha.d.Counters().RequestsDammed, ha.counter(prm.QCLocalAckTimeoutErr), ha.counter(prm.QCPacketSeqErr); n != 2 || timeouts != 0 || naks == 0 {
			t.Errorf("selective repeat %v: %d dammed, %d timeouts, %d sequence NAKs", selective, n, timeouts, naks)
		}
		for range 4 {
			b.rcq.expect(prm.CQERespSend)
		}
	}
}

// Another RNR NAK does not bring the dammed request: it only dams more.
func TestDammingOutlivesRNRNAKs(t *testing.T) {
	p, o := dammingParams(), defaults()
	o.rnrTimer, o.timeout = 12, 10
	ha, hb, a, b, ab, _ := twoHosts(t, p, 1, o)
	a.post(wr{op: prm.WQEOpSend, inline: []byte("first")})
	for range 3 {
		run(t, ha.e, 20*sim.Microsecond)
		a.post(wr{op: prm.WQEOpSend, inline: []byte("later")})
		run(t, ha.e, 640*sim.Microsecond)
	}
	run(t, ha.e, 20*sim.Microsecond)
	if n := ha.d.Counters().RequestsDammed; n != 3 || ab.n != 4 {
		t.Fatalf("%d requests were dammed, %d packets sent", n, ab.n)
	}
	r := hb.newMR(4096, rightsAll)
	for i := range 4 {
		b.recv(r.sge(64*i, 64))
	}
	run(t, ha.e, 700*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.scq.expectNone()
	run(t, ha.e, 5*sim.Millisecond)
	for range 3 {
		a.scq.expect(prm.CQEReq)
	}
	if n := ha.counter(prm.QCLocalAckTimeoutErr); n != 1 {
		t.Errorf("%d timeouts", n)
	}
}

// Every kind of request can be dammed, also one of several packets and one that needs no packet;
// each is carried out once.
func TestDammingOfEachOperation(t *testing.T) {
	o := defaults()
	o.timeout = 10
	ha, a, b, ab := dammed(t, dammingParams(), o)
	hb := b.h
	near, far := ha.newMR(8192, rightsAll), hb.newMR(8192, rightsAll)
	near.fill(pattern)
	far.fill(func(i int) byte { return ^pattern(i) })
	sent := ab.n
	a.post(
		wr{op: prm.WQEOpRDMAWrite, rkey: far.rkey, raddr: far.va, sges: []sge{near.sge(0, 3000)}},
		wr{op: prm.WQEOpNOP},
		wr{op: prm.WQEOpRDMARead, rkey: far.rkey, raddr: far.va + 4096, sges: []sge{near.sge(4096, 2500)}},
		wr{op: prm.WQEOpAtomicFA, rkey: far.rkey, raddr: far.va + 8184, swap: 5, sges: []sge{near.sge(8184, 8)}},
		wr{op: prm.WQEOpRDMAWriteImm, rkey: far.rkey, raddr: far.va + 4000, inline: []byte("imm")},
	)
	before := host64(far.bytes(8184, 8))
	run(t, ha.e, 100*sim.Microsecond)
	if n := ha.d.Counters().RequestsDammed; n != 4 || ab.n != sent {
		t.Fatalf("%d requests were dammed, and %d packets sent meanwhile", n, ab.n-sent)
	}
	run(t, ha.e, 10*sim.Millisecond)
	for i := range 6 {
		if e := a.scq.poll(); e == nil || e.Opcode() != prm.CQEReq {
			t.Fatalf("completion %d is % x", i, []byte(e))
		}
	}
	for i, got := range far.bytes(0, 3000) {
		if got != pattern(i) {
			t.Fatalf("byte %d of the WRITE differs", i)
		}
	}
	for i, got := range near.bytes(4096, 2500) {
		if got != ^pattern(4096+i) {
			t.Fatalf("byte %d of the READ differs", i)
		}
	}
	if got := host64(far.bytes(8184, 8)); got != before+5 {
		t.Errorf("the counter is %d, want %d", got, before+5)
	}
	if got := string(far.bytes(4000, 3)); got != "imm" {
		t.Errorf("written %q", got)
	}
}

// A message is dammed as long as its PSNs fit into the window. One that does not fit is sent after
// the wait.
func TestDammingKeepsTheWindowOfPSNs(t *testing.T) {
	for room, want := range map[int32]bool{-1: false, 0: true, 1: true} {
		h, a, _ := pair(t, defaults())
		q := &h.d.qpn(a.n).requester
		q.u.p.RNRDamming = true
		m := q.newMsg()
		m.n, m.nbb = 1<<22, 1
		m.first = roce.AddPSN(q.una, roce.MaxOutstandingPSN-int32(m.n)-room)
		q.waiting, q.dams, q.open = true, true, true
		if got := q.dam(m); got != want || !want && q.runnable() || m.dammed != want || q.u.c.RequestsDammed != map[bool]uint64{true: 1}[want] {
			t.Errorf("%d PSNs of room: dammed is %v", room, got)
		}
	}
}

// What ends a wait early ends the damming: a queue that has failed dams nothing, and one that was
// reset sends what it is given.
func TestDammingEndsWithTheQueue(t *testing.T) {
	ha, a, b, _ := dammed(t, dammingParams(), defaults())
	a.modify2(prm.Op2ErrQP)
	a.post(wr{op: prm.WQEOpSend, inline: []byte("flushed")})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	if n := ha.d.Counters().RequestsDammed; n != 0 {
		t.Fatalf("%d requests were dammed", n)
	}
	a.modify2(prm.Op2RstQP)
	b.modify2(prm.Op2RstQP)
	a.pi, a.rqPI, b.pi, b.rqPI = 0, 0, 0, 0
	a.connect(b, defaults())
	b.connect(a, defaults())
	r := b.h.newMR(4096, rightsAll)
	b.recv(r.sge(0, 64))
	a.post(wr{op: prm.WQEOpSend, inline: []byte("again")})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
}

// Two READs of a page that the peer's device lacks: the second, posted while the first waits, comes
// with the ACK timeout. When the page is there before, nothing is dammed.
func TestDammingOfColdReads(t *testing.T) {
	for _, prefetched := range []bool{false, true} {
		p, o := pagedParams(), defaults()
		p.RNRDamming, o.rnrTimer, o.timeout = true, 12, 10
		ha, hb, a, b, _, _ := twoHosts(t, p, 1, o)
		pb, near := newPager(t, hb, 1, b), ha.newMR(4096, rightsAll)
		pb.fill(pattern)
		if prefetched {
			pb.in(0)
		}
		read := func(off int) {
			a.post(wr{op: prm.WQEOpRDMARead, rkey: pb.region.rkey, raddr: pb.region.va + uint64(off), sges: []sge{near.sge(off, 64)}})
		}
		read(0)
		run(t, ha.e, 50*sim.Microsecond)
		read(64)
		pb.serve(never)
		run(t, ha.e, 700*sim.Microsecond)
		a.scq.expect(prm.CQEReq)
		if !prefetched {
			a.scq.expectNone()
			run(t, ha.e, 5*sim.Millisecond)
		}
		a.scq.expect(prm.CQEReq)
		want := uint64(1)
		if prefetched {
			want = 0
		}
		if n, timeouts := ha.d.Counters().RequestsDammed, ha.counter(prm.QCLocalAckTimeoutErr); n != want || uint64(timeouts) != want || pb.faults != int(want) {
			t.Errorf("prefetched %v: %d dammed, %d timeouts, %d faults", prefetched, n, timeouts, pb.faults)
		}
		for i, got := range near.bytes(0, 128) {
			if got != pattern(i) {
				t.Fatalf("byte %d differs", i)
			}
		}
	}
}
