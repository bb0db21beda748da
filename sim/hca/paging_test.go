package hca

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"pgregory.net/rapid"
)

// chooseScheme has the driver take the memory scheme, or that of queues.
func (p *pager) chooseScheme(memory bool) {
	p.memory = memory
	prm.ODPCap(p.d.fw.caps[prm.CapODP].cur[:]).SetMemPageFault(memory)
	p.d.faults.ChooseMemoryScheme(memory)
}

// TestPagedTraffic posts a random mix of operations between two hosts whose memory comes and goes
// under it, over a wire that loses packets: every operation completes once, in order, with the
// right data, and no DMA reaches a page that was taken away.
func TestPagedTraffic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := defaults()
		o.timeout = 8
		o.mtu = roce.MTU(rapid.IntRange(1, 5).Draw(rt, "mtu"))
		p := pagedParams()
		p.SelectiveRepeat, p.RepeatScheme = rapid.Bool().Draw(rt, "selective"), RepeatScheme(rapid.IntRange(0, 2).Draw(rt, "scheme"))
		p.RNRDamming = rapid.Bool().Draw(rt, "damming")
		p.ODP.AskAgain = rapid.SampledFrom([]sim.Time{0, 3 * sim.Microsecond, 30 * sim.Microsecond}).Draw(rt, "ask again")
		p.ODP.Learn = rapid.SampledFrom([]sim.Time{0, 15 * sim.Microsecond}).Draw(rt, "learn")
		ha, hb, a, b, ab, ba := twoHosts(t, p, rapid.Uint64().Draw(rt, "seed"), o)
		ab.loss = rapid.SampledFrom([]int{0, 0, 50}).Draw(rt, "loss")
		ba.loss = ab.loss
		const slotPages, slot = 3, 3 * 4096
		n := rapid.IntRange(1, 10).Draw(rt, "n")
		pa, pb := newPager(t, ha, n*slotPages, a), newPager(t, hb, n*slotPages+1, b)
		memory := rapid.Bool().Draw(rt, "memory scheme")
		pa.chooseScheme(memory)
		pb.chooseScheme(memory)
		pa.fill(pattern)
		pb.fill(func(i int) byte { return ^pattern(i) })
		const counter = 0 // offset of the counter in the last page
		clear(pb.pages[n*slotPages][:8])
		srcA, srcB := pa.bytes(0, n*slot), pb.bytes(0, n*slot)
		la, lb := pa.region, pb.region
		type want struct {
			op  prm.WQEOpcode
			len int
		}
		posted := make([]want, n)
		for i := range posted {
			op := rapid.SampledFrom([]prm.WQEOpcode{prm.WQEOpRDMAWrite, prm.WQEOpSend, prm.WQEOpRDMARead, prm.WQEOpAtomicFA, prm.WQEOpRDMAWriteImm}).Draw(rt, "op")
			size := rapid.IntRange(0, slot).Draw(rt, "size")
			w := wr{op: op, rkey: lb.rkey, raddr: lb.va + uint64(i*slot)}
			switch {
			case size > 1 && rapid.Bool().Draw(rt, "two pieces"):
				w.sges = []sge{la.sge(i*slot, size/2), la.sge(i*slot+size/2, size-size/2)}
			case size > 0:
				w.sges = []sge{la.sge(i*slot, size)}
			}
			switch op {
			case prm.WQEOpSend:
				b.recv(lb.sge(i*slot, slot/3), lb.sge(i*slot+slot/3, slot-slot/3))
			case prm.WQEOpRDMAWriteImm:
				b.recv()
			case prm.WQEOpAtomicFA:
				w.raddr, w.swap, w.sges = lb.va+uint64(n*slot)+counter, uint64(i)+1, []sge{la.sge(i*slot, 8)}
			}
			a.post(w)
			posted[i] = want{op, size}
		}
		moves := rapid.IntRange(0, 200).Draw(rt, "moves")
		for k := range 4000 {
			run(t, ha.e, sim.Time(rapid.SampledFrom([]int{200, 1000, 7000, 40000}).Draw(rt, "step"))*sim.Nanosecond)
			if k < moves {
				x := [2]*pager{pa, pb}[rapid.IntRange(0, 1).Draw(rt, "host")]
				page := rapid.IntRange(0, len(x.frames)-1).Draw(rt, "page")
				if rapid.Bool().Draw(rt, "out") {
					x.out(page)
				} else {
					x.in(page)
				}
			}
			again := never
			if k < moves {
				again = func() bool { return rapid.IntRange(0, 3).Draw(rt, "again") == 0 }
			}
			pa.serve(again)
			pb.serve(again)
			if k >= moves && k > 20 && a.scq.ready(n) {
				break
			}
		}
		for range 20 { // what was acknowledged lands, and what was sent again may meet absent pages too
			run(t, ha.e, 100*sim.Microsecond)
			pa.serve(never)
			pb.serve(never)
		}
		for i, w := range posted {
			e := a.scq.poll()
			if e == nil {
				rt.Fatalf("WQE %d of %#x has no CQE", i, w.op)
			}
			if e.Opcode() != prm.CQEReq || e.SOp() != w.op {
				rt.Fatalf("WQE %d of %#x: syndrome %v, CQE % x", i, w.op, e.Syndrome(), []byte(e))
			}
		}
		a.scq.expectNone()
		sum := uint64(0)
		for i, w := range posted {
			wantMine, wantTheirs := srcA[i*slot:(i+1)*slot], srcB[i*slot:(i+1)*slot]
			sum = carryOut(w.op, wantMine, wantTheirs, w.len, sum, uint64(i)+1)
			if !bytes.Equal(pa.bytes(i*slot, slot), wantMine) || !bytes.Equal(pb.bytes(i*slot, slot), wantTheirs) {
				rt.Fatalf("WQE %d of %#x, %d bytes: memory differs", i, w.op, w.len)
			}
			if w.op == prm.WQEOpSend || w.op == prm.WQEOpRDMAWriteImm {
				if e := b.rcq.poll(); e == nil || e.ByteCnt() != uint32(w.len) {
					rt.Fatalf("WQE %d of %#x: receive CQE % x", i, w.op, []byte(e))
				}
			}
		}
		if g := host64(pb.bytes(n*slot+counter, 8)); g != sum {
			rt.Fatalf("atomics added %d, want %d", g, sum)
		}
		if out := ha.d.faults.Out() + hb.d.faults.Out(); out != 0 {
			rt.Fatalf("%d faults are still out", out)
		}
		if live := ha.d.frames.Live + hb.d.frames.Live; live != 0 {
			rt.Fatalf("%d frames leaked", live)
		}
	})
}

// ready says whether the CQ holds n completions or an error.
func (q *tCQ) ready(n int) bool {
	ci := q.ci
	defer func() { q.ci = ci }()
	for range n {
		e := q.poll()
		if e == nil {
			return false
		}
		if e.Opcode() == prm.CQEReqErr {
			return true
		}
	}
	return true
}

// TestPagesThatCannotCome has the driver answer each kind of fault with an error: the status at
// both ends, and nothing is left out.
func TestPagesThatCannotCome(t *testing.T) {
	for _, c := range []struct {
		name      string
		op        prm.WQEOpcode
		farAbsent bool // the peer's memory is what is missing, otherwise one's own
		requester prm.Syndrome
		receiver  prm.Syndrome
	}{
		{"data of a WRITE", prm.WQEOpRDMAWrite, false, prm.SyndromeLocalProt, 0},
		{"data of a SEND", prm.WQEOpSend, false, prm.SyndromeLocalProt, 0},
		{"landing of a READ", prm.WQEOpRDMARead, false, prm.SyndromeLocalProt, 0},
		{"landing of an atomic", prm.WQEOpAtomicFA, false, prm.SyndromeLocalProt, 0},
		{"target of a WRITE", prm.WQEOpRDMAWrite, true, prm.SyndromeRemoteAccess, 0},
		{"receive buffer", prm.WQEOpSend, true, prm.SyndromeRemoteOp, prm.SyndromeLocalProt},
		{"source of a READ", prm.WQEOpRDMARead, true, prm.SyndromeRemoteAccess, 0},
		{"target of an atomic", prm.WQEOpAtomicFA, true, prm.SyndromeRemoteAccess, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ha, hb, a, b, _, _ := twoHosts(t, pagedParams(), 1, defaults())
			pa, pb := newPager(t, ha, 2, a), newPager(t, hb, 2, b)
			broken, whole := pa, pb
			if c.farAbsent {
				broken, whole = pb, pa
			}
			broken.refuse = func(int) bool { return true }
			whole.in(0)
			if c.op == prm.WQEOpSend {
				b.recv(pb.region.sge(0, 64))
			}
			a.post(wr{op: c.op, rkey: pb.region.rkey, raddr: pb.region.va, sges: []sge{pa.region.sge(0, 8)}})
			for range 20 {
				run(t, ha.e, 20*sim.Microsecond)
				pa.serve(never)
				pb.serve(never)
			}
			a.scq.expectError(prm.CQEReqErr, c.requester)
			if c.receiver != 0 {
				b.rcq.expectError(prm.CQERespErr, c.receiver)
			}
			if broken.faults != 1 || whole.faults != 0 || broken.d.faults.Failed != 1 {
				t.Errorf("%d and %d faults, %d failed", broken.faults, whole.faults, broken.d.faults.Failed)
			}
			if a.state() != prm.QPStateERR || ha.d.faults.Out()+hb.d.faults.Out() != 0 {
				t.Errorf("state %d, faults out", a.state())
			}
		})
	}
}

// TestFaultsOfQueuesThatAreGone resets a queue while its fault is out: the driver's answer finds
// nothing, a second answer finds nothing either, and the queue works in its next life.
func TestFaultsOfQueuesThatAreGone(t *testing.T) {
	ha, hb, a, b, _, _ := twoHosts(t, pagedParams(), 1, defaults())
	pa, pb := newPager(t, ha, 2, a), newPager(t, hb, 2, b)
	post := func() {
		a.post(wr{op: prm.WQEOpRDMAWrite, rkey: pb.region.rkey, raddr: pb.region.va, sges: []sge{pa.region.sge(0, 8)}})
	}
	post()
	run(t, ha.e, 40*sim.Microsecond)
	e := pa.nextEQE(pa.eq)
	for _, q := range []*tQP{a, b} {
		in := prm.NewIn(prm.Op2RstQP, 0)
		prm.Cmd2RstQPIn(in).SetQPN(q.n)
		q.h.cmd(in)
	}
	if ha.d.faults.Out() != 0 {
		t.Error("the fault is still out")
	}
	in := prm.NewIn(prm.OpPageFaultResume, 0)
	pa.page(e, in)
	ha.cmd(in)
	ha.cmd(in)
	run(t, ha.e, 40*sim.Microsecond)
	if c := ha.d.faults.Counters; c.Stale != 2 || c.Resumed != 0 || c.LocalTriggered != 1 {
		t.Errorf("%+v", c)
	}
}

// TestAbsentPagesWithoutPaging are bad accesses: of an operation that the device does not page, and
// while no event queue takes page faults.
func TestAbsentPagesWithoutPaging(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(p *Params)
		eq   bool
	}{
		{"no event queue", func(*Params) {}, false},
		{"operation that is not paged", func(p *Params) { p.ODP.RC &^= prm.ODPWrite }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pagedParams()
			c.edit(&p)
			ha, hb, a, b, _, _ := twoHosts(t, p, 1, defaults())
			pa, pb := newPager(t, ha, 2, a), newPager(t, hb, 2, b)
			if !c.eq {
				in := prm.NewIn(prm.OpDestroyEQ, 0)
				prm.DestroyEQIn(in).SetEQNumber(uint32(pa.eqn))
				ha.cmd(in)
			}
			a.post(wr{op: prm.WQEOpRDMAWrite, rkey: pb.region.rkey, raddr: pb.region.va, sges: []sge{pa.region.sge(0, 8)}})
			run(t, ha.e, 100*sim.Microsecond)
			a.scq.expectError(prm.CQEReqErr, prm.SyndromeLocalProt)
		})
	}
}

// TestPageTakenFromAnAtomic takes the page of a counter away at each instant of an atomic: it adds
// once, and nothing reaches the page that was taken.
func TestPageTakenFromAnAtomic(t *testing.T) {
	for at := 300 * sim.Nanosecond; at < 3*sim.Microsecond; at += 10 * sim.Nanosecond {
		ha, hb, a, b, _, _ := twoHosts(t, pagedParams(), 1, defaults())
		pa, pb := newPager(t, ha, 2, a), newPager(t, hb, 2, b)
		pa.in(0)
		pb.in(0)
		a.post(wr{op: prm.WQEOpAtomicFA, rkey: pb.region.rkey, raddr: pb.region.va, sges: []sge{pa.region.sge(0, 8)}, swap: 1})
		run(t, ha.e, at)
		pb.out(0)
		for range 20 {
			run(t, ha.e, 20*sim.Microsecond)
			pb.serve(never)
		}
		a.scq.expect(prm.CQEReq)
		if got := host64(pb.bytes(0, 8)); got != 1 {
			t.Fatalf("taken at %v: the counter is %d", at, got)
		}
	}
}

// TestAnswersComeAfterTheResume brings the absent page in as soon as the peer's request has met it:
// until the driver has answered the fault, the request is carried out no time it comes again, and
// others of its side neither.
func TestAnswersComeAfterTheResume(t *testing.T) {
	for _, op := range []prm.WQEOpcode{prm.WQEOpRDMAWrite, prm.WQEOpSend, prm.WQEOpRDMARead, prm.WQEOpAtomicFA} {
		for _, selective := range []bool{false, true} {
			t.Run(fmt.Sprintf("%#x, selective repeat %v", op, selective), func(t *testing.T) {
				p := pagedParams()
				p.SelectiveRepeat = selective
				ha, hb, a, b, _, _ := twoHosts(t, p, 1, defaults())
				pa, pb := newPager(t, ha, 1, a), newPager(t, hb, 2, b)
				pa.in(0)
				pb.in(1)
				if op == prm.WQEOpSend {
					b.recv(pb.region.sge(0, 8))
					b.recv(pb.region.sge(4096, 8))
				}
				for page := range uint64(2) {
					a.post(wr{op: op, rkey: pb.region.rkey, raddr: pb.region.va + 4096*page, sges: []sge{pa.region.sge(0, 8)}, swap: 1})
				}
				run(t, ha.e, 5*sim.Microsecond)
				pb.in(0)
				was := pb.bytes(0, 8192)
				run(t, ha.e, 200*sim.Microsecond) // the event has been written, and the RNR timer has ended many times
				early := !a.scq.empty() || !b.rcq.empty() || !bytes.Equal(pb.bytes(0, 8192), was)
				if early || hb.d.c.RnrNaksSent < 5 || hb.d.faults.Out() != 1 || a.state() != prm.QPStateRTS {
					t.Errorf("before the answer: carried out: %v, %d RNR NAKs, %d faults are out, state %d", early, hb.d.c.RnrNaksSent, hb.d.faults.Out(), a.state())
				}
				pb.serve(never)
				run(t, ha.e, 100*sim.Microsecond)
				for range 2 {
					a.scq.expect(prm.CQEReq)
					if op == prm.WQEOpSend {
						b.rcq.expect(prm.CQERespSend)
					}
				}
				if pb.faults != 1 {
					t.Errorf("%d faults", pb.faults)
				}
			})
		}
	}
}

// empty says whether there is no completion.
func (q *tCQ) empty() bool {
	ci := q.ci
	defer func() { q.ci = ci }()
	return q.poll() == nil
}

// TestNothingPassesAnAbsentRead posts a WRITE behind a READ whose page is absent at its target:
// before the driver has answered nothing of it is there, and what the peer is told is that the READ
// comes again.
func TestNothingPassesAnAbsentRead(t *testing.T) {
	for _, selective := range []bool{false, true} {
		p := pagedParams()
		p.SelectiveRepeat = selective
		ha, hb, a, b, _, _ := twoHosts(t, p, 1, defaults())
		pa, pb := newPager(t, ha, 1, a), newPager(t, hb, 2, b)
		pa.in(0)
		pb.in(1)
		pa.m.Write(pa.frames[0], []byte("written"))
		r := pb.region
		a.post(wr{op: prm.WQEOpRDMARead, rkey: r.rkey, raddr: r.va, sges: []sge{pa.region.sge(64, 8)}},
			wr{op: prm.WQEOpRDMAWrite, rkey: r.rkey, raddr: r.va + 4096, sges: []sge{pa.region.sge(0, 7)}})
		run(t, ha.e, 100*sim.Microsecond)
		if got := pb.bytes(4096, 7); string(got) == "written" || hb.d.c.RnrNaksSent == 0 || hb.d.c.AcksSent != 0 {
			t.Errorf("selective repeat %v: the WRITE has written %q; %d RNR NAKs, %d ACKs", selective, got, hb.d.c.RnrNaksSent, hb.d.c.AcksSent)
		}
		pb.serve(never)
		run(t, ha.e, 200*sim.Microsecond)
		a.scq.expect(prm.CQEReq)
		a.scq.expect(prm.CQEReq)
		if got := pb.bytes(4096, 7); string(got) != "written" {
			t.Errorf("selective repeat %v: the WRITE has written %q", selective, got)
		}
	}
}

// TestReadsAreHeldForLaterPages has a READ whose second page is absent, and a WRITE behind it: the
// responses wait for the page, whatever was executed meanwhile, and the peer is not told to try
// again, for it may not do so with the WRITE.
func TestReadsAreHeldForLaterPages(t *testing.T) {
	for _, c := range []struct {
		name                   string
		pageLost, writeRefused bool
	}{{name: "it comes"}, {name: "it cannot be had", pageLost: true}, {name: "the WRITE fails meanwhile", writeRefused: true}} {
		t.Run(c.name, func(t *testing.T) {
			ha, hb, a, b, _, _ := twoHosts(t, pagedParams(), 1, defaults())
			pa, pb := newPager(t, ha, 2, a), newPager(t, hb, 3, b)
			pa.in(0)
			pa.in(1)
			pb.fill(pattern)
			pb.in(0)
			pb.in(2)
			r := pb.region
			w := wr{op: prm.WQEOpRDMAWrite, rkey: r.rkey, raddr: r.va + 8192, sges: []sge{pa.region.sge(0, 8)}}
			if c.writeRefused {
				w.rkey ^= 0xff00
			}
			a.post(wr{op: prm.WQEOpRDMARead, rkey: r.rkey, raddr: r.va, sges: []sge{pa.region.sge(0, 8192)}}, w)
			run(t, ha.e, 100*sim.Microsecond)
			if !a.scq.empty() || hb.d.faults.Out() != 1 || hb.d.c.RnrNaksSent != 0 || hb.d.c.AcksSent != 0 {
				t.Errorf("before the answer: %d faults, %d RNR NAKs, %d ACKs", hb.d.faults.Out(), hb.d.c.RnrNaksSent, hb.d.c.AcksSent)
			}
			pb.refuse = func(int) bool { return c.pageLost }
			pb.serve(never)
			run(t, ha.e, 200*sim.Microsecond)
			switch {
			case c.pageLost:
				a.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
				a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
				return
			case c.writeRefused:
				a.scq.expect(prm.CQEReq)
				a.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
			default:
				a.scq.expect(prm.CQEReq)
				a.scq.expect(prm.CQEReq)
			}
			for i, got := range pa.bytes(0, 8192) {
				if got != pattern(i) {
					t.Fatalf("byte %d is %#x", i, got)
				}
			}
			if hb.d.c.RnrNaksSent != 0 || pb.faults != 1 || hb.d.faults.Out() != 0 {
				t.Errorf("%d RNR NAKs, %d faults, %d are out", hb.d.c.RnrNaksSent, pb.faults, hb.d.faults.Out())
			}
		})
	}
}

// TestHeldReadAndFaultOfALaterOne has a READ whose responses meet a page that has gone away while a
// later READ waits for its own page: what the driver answers for the later one is not said of the
// first.
func TestHeldReadAndFaultOfALaterOne(t *testing.T) {
	const long, lost = 64, 63 // pages of the first READ, and the one that goes away
	for _, refused := range []bool{false, true} {
		ha, hb, a, b, _, _ := twoHosts(t, pagedParams(), 1, defaults())
		pa, pb := newPager(t, ha, long+1, a), newPager(t, hb, long+1, b)
		pb.fill(pattern)
		for i := range long {
			pb.in(i)
		}
		for i := range long + 1 {
			pa.in(i)
		}
		r := pb.region
		a.post(wr{op: prm.WQEOpRDMARead, rkey: r.rkey, raddr: r.va, sges: []sge{pa.region.sge(0, long*4096)}},
			wr{op: prm.WQEOpRDMARead, rkey: r.rkey, raddr: r.va + long*4096, sges: []sge{pa.region.sge(long*4096, 8)}})
		for hb.d.faults.Out() == 0 {
			run(t, ha.e, sim.Microsecond/4)
		}
		pb.out(lost)
		run(t, ha.e, 50*sim.Microsecond)
		if !a.scq.empty() || hb.d.faults.Out() != 1 {
			t.Fatalf("refused %v: before an answer %d faults are out, completed %v", refused, hb.d.faults.Out(), !a.scq.empty())
		}
		pb.refuse = func(page int) bool { return refused && page == long }
		for range 4 {
			pb.serve(never)
			run(t, ha.e, 200*sim.Microsecond)
		}
		a.scq.expect(prm.CQEReq)
		if refused {
			a.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
		} else {
			a.scq.expect(prm.CQEReq)
		}
		for i, got := range pa.bytes(0, long*4096) {
			if got != pattern(i) {
				t.Fatalf("refused %v: byte %d is %#x", refused, i, got)
			}
		}
		if pb.faults != 2 || hb.d.faults.Out() != 0 {
			t.Errorf("refused %v: %d faults, %d are out", refused, pb.faults, hb.d.faults.Out())
		}
	}
}
