package hca

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/sim"
)

// TestXRCTraffic: each operation through one target, for three SRQs in turn.
func TestXRCTraffic(t *testing.T) {
	p := testParams()
	p.AtomicWrite = true
	x := newXRCBench(t, p, defaults())
	src := x.local.bytes(0, 16*xrcSlot)
	for k, i := range []int{0, 1, 2, 1, 0} {
		s, m := x.srqs[i], x.mem[i]
		s.post(14)
		to := wr{srqn: s.n, rkey: m.rkey, raddr: m.va + 15*xrcSlot}
		do := func(op prm.WQEOpcode, f func(w *wr)) {
			w := to
			w.op = op
			f(&w)
			x.ini.post(w)
		}
		w := k / 3 * 5 // receives used before
		data := func(off, n int) func(w *wr) { return func(w *wr) { w.sges = []sge{x.local.sge(off, n)} } }
		do(prm.WQEOpSend, data(0, 3000))
		do(prm.WQEOpSendImm, func(w *wr) { data(0, 4)(w); w.imm = 0x77 })
		do(prm.WQEOpSend, func(w *wr) { w.inline = []byte("inline") })
		do(prm.WQEOpRDMAWrite, data(100, 3500))
		do(prm.WQEOpRDMAWriteImm, func(w *wr) { data(200, 1500)(w); w.imm = 0x99 })
		x.run(50 * sim.Microsecond)
		for range 5 {
			x.ini.scq.expect(prm.CQEReq)
		}
		if e := x.received(i, w, prm.CQERespSend); e.ByteCnt() != 3000 {
			t.Errorf("%d bytes", e.ByteCnt())
		}
		if e := x.received(i, w+1, prm.CQERespSendImm); e.ImmInvalPKey() != 0x77 || e.ByteCnt() != 4 {
			t.Errorf("imm %#x, %d bytes", e.ImmInvalPKey(), e.ByteCnt())
		}
		x.received(i, w+2, prm.CQERespSend)
		if e := x.received(i, w+3, prm.CQERespWrImm); e.ImmInvalPKey() != 0x99 || e.ByteCnt() != 1500 {
			t.Errorf("imm %#x, %d bytes", e.ImmInvalPKey(), e.ByteCnt())
		}
		if !bytes.Equal(m.bytes(w*xrcSlot, 3000), src[:3000]) || string(m.bytes((w+2)*xrcSlot, 6)) != "inline" ||
			!bytes.Equal(m.bytes(15*xrcSlot, 1500), src[200:1700]) || !bytes.Equal(m.bytes(15*xrcSlot+1500, 2000), src[1600:3600]) {
			t.Fatalf("SRQ %d: wrong bytes", i)
		}
		do(prm.WQEOpRDMARead, data(8*xrcSlot, 3500))
		before := host64(m.bytes(15*xrcSlot, 8))
		do(prm.WQEOpAtomicFA, func(w *wr) { data(12*xrcSlot, 8)(w); w.swap = 5 })
		do(prm.WQEOpAtomicCS, func(w *wr) { data(13*xrcSlot, 8)(w); w.compare, w.swap = before+5, 17 })
		do(prm.WQEOpAtomicWrite, func(w *wr) { w.raddr += 8; w.inline = []byte("8 bytes!") })
		do(prm.WQEOpSend, func(w *wr) { w.sges = nil })
		x.run(50 * sim.Microsecond)
		for range 5 {
			x.ini.scq.expect(prm.CQEReq)
		}
		x.received(i, w+4, prm.CQERespSend)
		if a, b := host64(x.local.bytes(12*xrcSlot, 8)), host64(x.local.bytes(13*xrcSlot, 8)); a != before || b != before+5 {
			t.Errorf("atomics gave %#x and %#x, want %#x and %#x", a, b, before, before+5)
		}
		if v := host64(m.bytes(15*xrcSlot, 8)); v != 17 || string(m.bytes(15*xrcSlot+8, 8)) != "8 bytes!" || !bytes.Equal(x.local.bytes(8*xrcSlot+16, 3400), m.bytes(15*xrcSlot+16, 3400)) {
			t.Errorf("the word is %#x", v)
		}
		if x.ab.srqns[s.n] < 8 {
			t.Errorf("SRQ %d in %d requests", i, x.ab.srqns[s.n])
		}
	}
	if len(x.ab.srqns) != 3 || len(x.ba.srqns) != 0 {
		t.Errorf("SRQs %v in requests, and %v to the initiator", x.ab.srqns, x.ba.srqns)
	}
	x.judge(oracle.Options{MTU: 1024})
	x.quiet()
}

// TestXRCInvalidate: a SEND with invalidate is about keys of the SRQ's PD.
func TestXRCInvalidate(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	x.srqs[1].post(1)
	w := x.send(1, 8)
	w.op, w.imm = prm.WQEOpSendInv, x.mem[0].rkey // a region's key that cannot be invalidated
	x.ini.post(w)
	x.run(50 * sim.Microsecond)
	x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
	x.cqs[1].expectError(prm.CQERespErr, prm.SyndromeRemoteInvalReq)
}

// TestXRCViolations: what a request that names a wrong SRQ comes to. The target goes to ERR with
// its event, and another target of the domain serves on.
func TestXRCViolations(t *testing.T) {
	const first, middle = 0, 1
	for name, c := range map[string]struct {
		named func(x *xrcBench) uint32 // instead of the number of SRQ 0
		at    int                      // in the packet of this number
		open  bool                     // a receive is open then
	}{
		"unknown":                       {func(x *xrcBench) uint32 { return 0x3ff }, first, false},
		"no number":                     {func(x *xrcBench) uint32 { return 0 }, first, false},
		"an RMP":                        {func(x *xrcBench) uint32 { return x.hb.newSRQ(2).n }, first, false},
		"another domain":                {func(x *xrcBench) uint32 { return x.far.n }, first, false},
		"the driver's":                  {func(x *xrcBench) uint32 { return x.hb.spare.n }, first, false},
		"unknown within a message":      {func(x *xrcBench) uint32 { return 0x3ff }, middle, true},
		"another within a message":      {func(x *xrcBench) uint32 { return x.srqs[1].n }, middle, true},
		"another domain in the message": {func(x *xrcBench) uint32 { return x.far.n }, middle, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newXRCBench(t, testParams(), defaults())
			wrong := c.named(x)
			for _, s := range append(x.srqs[:], x.far) {
				s.post(8)
			}
			n := -1
			x.ab.edit = func(p *roce.Packet) bool {
				if n++; n == c.at {
					p.XRCETH().SetSRQN(wrong)
				}
				return false
			}
			x.ini.post(x.send(0, 3000))
			x.run(100 * sim.Microsecond)
			x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
			x.event(prm.EventWQAccessError, x.tgt.n)
			x.event(prm.EventSRQLastWQE, x.tgt.n)
			if c.open {
				x.cqs[0].expectError(prm.CQERespErr, prm.SyndromeWRFlush)
			}
			if s := x.tgt.state(); s != prm.QPStateERR {
				t.Errorf("state %d", s)
			}
			x.quiet()
			ini, tgt := x.ha.newInitiator(x.ha.newCQ(7, 64)), x.hb.newTarget(x.domain)
			ini.connect(tgt, defaults())
			tgt.connect(ini, defaults())
			ini.post(x.send(0, 100))
			x.run(50 * sim.Microsecond)
			ini.scq.expect(prm.CQEReq)
			x.cqs[0].expect(prm.CQERespSend)
			x.quiet()
		})
	}
}

// TestXRCViolationIsRequest: the other answer.
func TestXRCViolationIsRequest(t *testing.T) {
	p := testParams()
	p.XRCViolation = ViolationIsRequest
	x := newXRCBench(t, p, defaults())
	w := x.send(0, 8)
	w.srqn = x.far.n
	x.ini.post(w)
	x.run(100 * sim.Microsecond)
	x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteInvalReq)
	x.event(prm.EventWQInvalReqError, x.tgt.n)
	x.event(prm.EventSRQLastWQE, x.tgt.n)
	x.quiet()
}

// TestXRCKeys: keys are of the PD of the SRQ that the request names, whatever it does; nothing is
// read or written otherwise.
func TestXRCKeys(t *testing.T) {
	for _, op := range []prm.WQEOpcode{prm.WQEOpRDMAWrite, prm.WQEOpRDMARead, prm.WQEOpAtomicFA} {
		for _, pd := range []string{"the first SRQ's", "the target's own"} {
			t.Run(fmt.Sprintf("%#x, %s", op, pd), func(t *testing.T) {
				x := newXRCBench(t, testParams(), defaults())
				far := x.mem[0]
				if pd == "the target's own" {
					far = x.hb.newMR(4096, rightsAll)
				}
				far.fill(pattern)
				x.ini.post(wr{op: op, srqn: x.srqs[0].n, rkey: x.mem[0].rkey, raddr: x.mem[0].va, sges: []sge{x.local.sge(64, 8)}})
				x.ini.post(wr{op: op, srqn: x.srqs[1].n, rkey: far.rkey, raddr: far.va + 8, sges: []sge{x.local.sge(72, 8)}})
				x.run(100 * sim.Microsecond)
				x.ini.scq.expect(prm.CQEReq)
				x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
				x.event(prm.EventWQAccessError, x.tgt.n)
				x.event(prm.EventSRQLastWQE, x.tgt.n)
				for i, b := range far.bytes(8, 8) {
					if b != pattern(8+i) {
						t.Fatal("written")
					}
				}
				x.quiet()
			})
		}
	}
	x := newXRCBench(t, testParams(), defaults())
	x.srqs[1].put(0, 1, x.mem[0], 0, xrcSlot) // a receive with a key of another PD
	x.srqs[1].post(1)
	x.ini.post(x.send(1, 100))
	x.run(100 * sim.Microsecond)
	x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteOp)
	x.cqs[1].expectError(prm.CQERespErr, prm.SyndromeLocalProt)
	x.event(prm.EventSRQLastWQE, x.tgt.n)
	x.quiet()
}

// TestXRCEmptySRQ: an SRQ without receives answers RNR with the target's timer, others do not.
func TestXRCEmptySRQ(t *testing.T) {
	o := defaults()
	o.rnrTimer = 12 // 0.64 ms
	x := newXRCBench(t, testParams(), o)
	x.srqs[1].post(4)
	x.ini.post(x.send(0, 100), x.send(1, 100))
	x.run(300 * sim.Microsecond)
	x.ini.scq.expectNone()
	x.srqs[0].post(1)
	x.run(100 * sim.Microsecond)
	x.ini.scq.expectNone()
	x.run(500 * sim.Microsecond)
	x.ini.scq.expect(prm.CQEReq)
	x.ini.scq.expect(prm.CQEReq)
	x.received(0, 0, prm.CQERespSend)
	x.received(1, 0, prm.CQERespSend)
	if n := x.hb.d.Counters().RnrNaksSent; n != 1 {
		t.Errorf("%d RNR NAKs", n)
	}
	timer := 12
	x.judge(oracle.Options{MTU: 1024, RNRTimer: &timer})
	x.quiet()

	o.rnr = 2
	x = newXRCBench(t, testParams(), o)
	x.ini.post(x.send(0, 100))
	x.run(10 * ms)
	x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRNRRetryExc)
	if n := x.hb.d.Counters().RnrNaksSent; n != 3 || x.tgt.state() != prm.QPStateRTS {
		t.Errorf("%d RNR NAKs, target in state %d", n, x.tgt.state())
	}
}

// TestXRCFailedSRQ: an SRQ in error has no receives.
func TestXRCFailedSRQ(t *testing.T) {
	o := defaults()
	o.rnr = 1
	x := newXRCBench(t, testParams(), o)
	x.srqs[0].put(0, 0xffff, x.mem[0], 0, xrcSlot)
	x.srqs[0].post(2)
	x.ini.post(x.send(0, 100), x.send(0, 100))
	x.run(ms)
	x.ini.scq.expect(prm.CQEReq)
	x.received(0, 0, prm.CQERespSend)
	x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRNRRetryExc)
	x.event(prm.EventSRQCatasError, x.srqs[0].n)
	if c := prm.QueryXRCSRQOut(x.hb.cmd(number(prm.OpQueryXRCSRQ, x.srqs[0].n))).Context(); c.State() != prm.XRCSRQError {
		t.Errorf("state %d", c.State())
	}
	x.quiet()
}

// TestXRCLimit: receives of any target count for the limit of the SRQ.
func TestXRCLimit(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	x.srqs[0].post(4)
	in := prm.NewIn(prm.OpArmXRCSRQ, 0)
	prm.CmdIn(in).SetOpMod(prm.ArmXRCSRQMod)
	prm.ArmXRCSRQIn(in).SetSRQN(x.srqs[0].n)
	prm.ArmXRCSRQIn(in).SetLWM(3)
	x.hb.cmd(in)
	x.ini.post(x.send(0, 8))
	x.run(50 * sim.Microsecond)
	if e := x.hb.nextEQE(x.ofSRQs); e != nil {
		t.Errorf("event %#x", e.Type())
	}
	x.ini.post(x.send(0, 8))
	x.run(50 * sim.Microsecond)
	x.event(prm.EventSRQRQLimit, x.srqs[0].n)
}

// TestXRCLoss loses each kind of packet once: what is sent again names the SRQ as before.
func TestXRCLoss(t *testing.T) {
	for _, selective := range []bool{false, true} {
		for op, reply := range map[prm.WQEOpcode]bool{prm.WQEOpSend: false, prm.WQEOpRDMAWrite: false, prm.WQEOpRDMAWriteImm: false, prm.WQEOpRDMARead: true, prm.WQEOpAtomicFA: true} {
			for _, back := range []bool{false, true} {
				for at := range 4 {
					if op == prm.WQEOpAtomicFA && at > 0 || back && !reply && at > 0 || !back && reply && at > 0 {
						continue
					}
					p := testParams()
					p.SelectiveRepeat = selective
					o := defaults()
					o.timeout = 5
					t.Run(fmt.Sprintf("%t %#x %t %d", selective, op, back, at), func(t *testing.T) { loseOne(newXRCBench(t, p, o), op, back, at) })
				}
			}
		}
	}
}

func loseOne(x *xrcBench, op prm.WQEOpcode, back bool, at int) {
	w, n := x.ab, -1
	if back {
		w = x.ba
	}
	lost := 0
	w.edit = func(p *roce.Packet) bool {
		if n++; n == at {
			lost++
			return true
		}
		return false
	}
	for _, s := range x.srqs[:2] {
		s.post(8)
	}
	size := 3500
	if op == prm.WQEOpAtomicFA {
		size = 8
	}
	for i := range 2 {
		m := x.mem[i]
		x.ini.post(wr{op: op, srqn: x.srqs[i].n, rkey: m.rkey, raddr: m.va + 9*xrcSlot, swap: 3, sges: []sge{x.local.sge(i*xrcSlot, size)}})
	}
	x.run(2 * ms)
	for i := range 2 {
		x.ini.scq.expect(prm.CQEReq)
		switch op {
		case prm.WQEOpSend:
			x.received(i, 0, prm.CQERespSend)
		case prm.WQEOpRDMAWriteImm:
			x.received(i, 0, prm.CQERespWrImm)
		case prm.WQEOpAtomicFA:
			if v := host64(x.mem[i].bytes(9*xrcSlot, 8)); v != 3 {
				x.t.Errorf("the word is %d", v)
			}
		}
	}
	if len(x.ab.srqns) != 2 || lost != 1 || x.ab.srqns[x.srqs[0].n] == 0 || x.ab.srqns[x.srqs[1].n] == 0 {
		x.t.Errorf("SRQs %v in requests, %d packets lost", x.ab.srqns, lost)
	}
	sender := oracle.GoBackN
	if x.ha.d.p.SelectiveRepeat {
		sender = oracle.SelectiveRepeat
	}
	x.judge(oracle.Options{MTU: 1024, Sender: sender})
	x.quiet()
}

// TestXRCDuplicateAfterDestroy: a SEND whose ACK was lost is answered again without its SRQ.
func TestXRCDuplicateAfterDestroy(t *testing.T) {
	o := defaults()
	o.timeout = 8 // 1 ms
	x := newXRCBench(t, testParams(), o)
	x.srqs[0].post(4)
	acks := 0
	x.ba.edit = func(*roce.Packet) bool { acks++; return acks == 1 }
	x.ini.post(x.send(0, 100))
	x.run(100 * sim.Microsecond)
	x.received(0, 0, prm.CQERespSend)
	x.ini.scq.expectNone()
	x.hb.cmd(number(prm.OpDestroyXRCSRQ, x.srqs[0].n))
	x.run(5 * ms)
	x.ini.scq.expect(prm.CQEReq)
	x.ini.post(x.send(0, 100)) // a new one finds it unknown
	x.run(100 * sim.Microsecond)
	x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
	x.event(prm.EventWQAccessError, x.tgt.n)
	x.event(prm.EventSRQLastWQE, x.tgt.n)
	x.quiet()
}

// TestXRCReadAgain: a READ whose response was lost is asked for again behind a message for an SRQ
// of another PD, and read in its own PD. Once its SRQ is gone it is not answered any more.
func TestXRCReadAgain(t *testing.T) {
	for _, gone := range []bool{false, true} {
		o := defaults()
		o.timeout = 8 // 1 ms
		o.retry = 1
		x := newXRCBench(t, testParams(), o)
		x.mem[0].fill(pattern)
		n := 0
		x.ba.edit = func(*roce.Packet) bool { n++; return n <= 2 }
		x.ini.post(wr{op: prm.WQEOpRDMARead, srqn: x.srqs[0].n, rkey: x.mem[0].rkey, raddr: x.mem[0].va + 64, sges: []sge{x.local.sge(0, 64)}})
		x.ini.post(wr{op: prm.WQEOpRDMAWrite, srqn: x.srqs[1].n, rkey: x.mem[1].rkey, raddr: x.mem[1].va, sges: []sge{x.local.sge(128, 64)}})
		x.run(100 * sim.Microsecond)
		x.ini.scq.expectNone()
		if gone {
			x.hb.cmd(number(prm.OpDestroyXRCSRQ, x.srqs[0].n))
		}
		x.run(20 * ms)
		if gone {
			x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
			x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
			continue
		}
		x.ini.scq.expect(prm.CQEReq)
		x.ini.scq.expect(prm.CQEReq)
		if !bytes.Equal(x.local.bytes(0, 64), x.mem[0].bytes(64, 64)) {
			t.Error("wrong bytes")
		}
		x.quiet()
	}
}

// TestXRCWaitersInOrder: targets that wait for one SRQ get its WQEs in the order of arrival.
func TestXRCWaitersInOrder(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	const n = 4
	inis, tgts := [n]*tQP{}, [n]*tQP{}
	for i := range n {
		inis[i], tgts[i] = x.ha.newInitiator(x.ha.newCQ(7, 64)), x.hb.newTarget(x.domain)
		inis[i].connect(tgts[i], defaults())
		tgts[i].connect(inis[i], defaults())
	}
	x.srqs[0].post(n)
	for _, i := range inis { // before the record is read for the first time: all wait
		i.post(x.send(0, 64))
	}
	x.run(5 * ms)
	for i := range n {
		if e := x.cqs[0].expect(prm.CQERespSend); e.QPN() != tgts[i].n || int(e.WQECounter()) != i {
			t.Errorf("WQE %d by QP %#x, want WQE %d by %#x", e.WQECounter(), e.QPN(), i, tgts[i].n)
		}
		inis[i].scq.expect(prm.CQEReq)
	}
	x.quiet()
}

// TestXRCDestroyUnderWay: an SRQ goes while a target waits for its WQE, or is filling one; the
// number is used again at once.
func TestXRCDestroyUnderWay(t *testing.T) {
	for _, c := range []string{"waiting", "filling"} {
		t.Run(c, func(t *testing.T) {
			o := defaults()
			o.timeout = 8 // 1 ms
			x := newXRCBench(t, testParams(), o)
			s, w := x.srqs[0], x.send(0, 3500)
			stop := false
			if c == "filling" {
				s.post(2)
				x.ab.edit = func(p *roce.Packet) bool { stop = p.Info().First; return !p.Info().First && len(x.frames) < 4 }
			}
			x.ini.post(w)
			for !stop && x.hb.d.Counters().RecvRecordReads == 0 {
				x.run(50 * sim.Nanosecond)
			}
			if c == "filling" {
				x.run(3 * sim.Microsecond)
			} else if q := x.hb.d.srqs.at(s.n); len(q.waiters) != 1 {
				t.Fatalf("%d targets wait", len(q.waiters))
			}
			x.hb.cmd(number(prm.OpDestroyXRCSRQ, s.n))
			again := x.hb.newXRCSRQ(x.domain, x.pds[0], x.cqs[0], 0x555)
			if c == "filling" && again.n != s.n {
				t.Fatalf("number %#x, want %#x again", again.n, s.n)
			}
			x.run(5 * ms)
			x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
			x.event(prm.EventWQAccessError, x.tgt.n)
			x.event(prm.EventSRQLastWQE, x.tgt.n)
			x.quiet()
		})
	}
}

// TestXRCFlush: a target that goes to ERR gives back the receive that a message was filling, by the
// CQ of its SRQ, and no other.
func TestXRCFlush(t *testing.T) {
	for _, c := range []struct {
		op   prm.Opcode
		want bool
	}{{prm.Op2ErrQP, true}, {prm.Op2RstQP, false}, {prm.OpDestroyQP, false}} {
		x := newXRCBench(t, testParams(), defaults())
		x.srqs[1].post(4)
		x.ab.edit = func(p *roce.Packet) bool { return !p.Info().First }
		x.ini.post(x.send(1, 3500))
		x.run(5 * sim.Microsecond)
		x.hb.cmd(number(c.op, x.tgt.n))
		x.run(100 * sim.Microsecond)
		if c.want {
			if e := x.cqs[1].expectError(prm.CQERespErr, prm.SyndromeWRFlush); e.WQECounter() != 0 || e.SRQNUIdx() != 0x101 || e.QPN() != x.tgt.n {
				t.Errorf("WQE %d of %#x, QP %#x", e.WQECounter(), e.SRQNUIdx(), e.QPN())
			}
			x.event(prm.EventSRQLastWQE, x.tgt.n)
		}
		for _, q := range x.cqs {
			q.expectNone()
		}
		x.hb.cq.expectNone()
		x.srqs[1].post(5)
		ini, tgt := x.ha.newInitiator(x.ha.newCQ(7, 64)), x.hb.newTarget(x.domain)
		x.ab.edit = nil
		ini.connect(tgt, defaults())
		tgt.connect(ini, defaults())
		ini.post(x.send(1, 64))
		x.run(100 * sim.Microsecond)
		if e := x.cqs[1].expect(prm.CQERespSend); e.WQECounter() != 1 {
			t.Errorf("WQE %d behind the one that was open", e.WQECounter())
		}
	}
}

// TestXRCInitiatorFlush: an initiator in ERR completes what is posted, also what is posted later.
func TestXRCInitiatorFlush(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	x.ini.post(x.send(0, 64), x.send(0, 64))
	x.run(20 * sim.Microsecond)
	x.ha.cmd(number(prm.Op2ErrQP, x.ini.n))
	x.ini.post(x.send(1, 64))
	x.run(ms)
	for range 3 {
		x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	}
	x.ini.scq.expectNone()
	if e := x.ha.nextEQE(x.ha.aeq); e != nil {
		t.Errorf("event %#x", e.Type())
	}
}

// TestXRCRoles: an initiator takes no requests, and a target no responses.
func TestXRCRoles(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	before := x.ha.d.Counters().RxNoQP
	q := x.hb.d.qpn(x.tgt.n)
	f := q.tmpl.New(&x.hb.d.frames, roce.XRC.Opcode(roce.OpSendOnly), x.tgt.psn, 0, roce.AckReq)
	f.XRCETH().SetSRQN(x.ha.spare.n)
	x.ba.Wire.Send(f)
	q = x.ha.d.qpn(x.ini.n)
	x.ab.Wire.Send(q.tmpl.New(&x.ha.d.frames, roce.XRC.Opcode(roce.OpAcknowledge), x.tgt.psn, 0, 0))
	x.run(ms)
	if n := x.ha.d.Counters().RxNoQP - before; n != 1 || x.hb.d.Counters().RxNoQP != 1 || x.hb.d.Counters().RxGhosts != 0 {
		t.Errorf("%d and %d packets dropped", n, x.hb.d.Counters().RxNoQP)
	}
	x.quiet()
}

// TestXRCMalformedWQEs: a WQE without the XRC segment, or with less than one, fails by itself.
func TestXRCMalformedWQEs(t *testing.T) {
	for ds, op := range map[int]prm.WQEOpcode{1: prm.WQEOpSend, 2: prm.WQEOpRDMAWrite, 3: prm.WQEOpAtomicFA} {
		x := newXRCBench(t, testParams(), defaults())
		b := x.ini.put(wr{op: op, srqn: x.srqs[0].n, rkey: x.mem[0].rkey, raddr: x.mem[0].va, sges: []sge{x.local.sge(0, 8)}})
		prm.CtrlSegment(b).Set(op, 0, 0, x.ini.n, ds, prm.CtrlCQUpdate, 0)
		x.ha.m.Write(x.ini.sq, b[:16])
		x.ha.d.MMIOWrite(x.ini.reg(), b[:8])
		x.run(50 * sim.Microsecond)
		x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeLocalQPOp)
		if len(x.frames) != 0 {
			t.Errorf("%d frames", len(x.frames))
		}
	}
}

// TestXRCScatterToCQE: whether the data of a receive comes in its CQE is the target's setting, and
// how much, the SRQ's CQ.
func TestXRCScatterToCQE(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	tgt := &tQP{h: x.hb.host, scq: x.hb.cq, rcq: x.hb.cq, psn: 5}
	tgt.n = prm.CreateQPOut(x.hb.cmd(tgt.create(func(c prm.QPC) { x.hb.target(x.domain)(c); c.SetCSRes(prm.CSResUpTo64B) }))).QPN()
	x.tgt, x.ini = tgt, x.ha.newInitiator(x.ha.newCQ(7, 64))
	x.ini.connect(x.tgt, defaults())
	x.tgt.connect(x.ini, defaults())
	x.srqs[0].post(4)
	x.srqs[1].post(4)
	x.ini.post(x.send(0, 40), x.send(1, 40), x.send(0, 20))
	x.run(50 * sim.Microsecond)
	if e := x.received(0, 0, prm.CQERespSend); e.Format() != prm.CQEFormatPlain || !bytes.Equal(x.mem[0].bytes(0, 40), x.local.bytes(0, 40)) {
		t.Errorf("40 bytes to a CQ of 64-byte entries: format %d", e.Format())
	}
	if e := x.received(1, 0, prm.CQERespSend); e.Format() != prm.CQEFormatInline64 || !bytes.Equal(x.mem[1].bytes(0, 40), make([]byte, 40)) {
		t.Errorf("40 bytes to a CQ of 128-byte entries: format %d", e.Format())
	}
	// The data takes the place of the source QP.
	if e := x.cqs[0].expect(prm.CQERespSend); e.Format() != prm.CQEFormatInline32 || !bytes.Equal(e.InlineData()[:20], x.local.bytes(0, 20)) {
		t.Errorf("20 bytes: format %d", e.Format())
	}
}

// TestXRCOverrun: a target whose completion finds no room in the CQ of an SRQ goes to ERR; one that
// uses another CQ does not.
func TestXRCOverrun(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	small := x.hb.newCQ(2, 64)
	s := x.hb.newXRCSRQ(x.domain, x.pds[0], small, 7)
	s.fillAll(x.mem[0], xrcSlot)
	s.post(12)
	x.srqs[1].post(12)
	ini, tgt := x.ha.newInitiator(x.ha.newCQ(7, 64)), x.hb.newTarget(x.domain)
	ini.connect(tgt, defaults())
	tgt.connect(ini, defaults())
	ini.post(x.send(1, 8))
	for range 10 {
		w := x.send(0, 8)
		w.srqn = s.n
		x.ini.post(w)
	}
	x.run(100 * sim.Microsecond)
	if a, b := x.tgt.state(), tgt.state(); a != prm.QPStateERR || b != prm.QPStateRTS {
		t.Errorf("states %d and %d", a, b)
	}
	x.event(prm.EventCQError, 0)
	x.hb.cmd(number(prm.OpDestroyXRCSRQ, s.n))
	x.hb.cmd(number(prm.OpDestroyCQ, small.n))
	x.hb.cmd(number(prm.OpDestroyQP, x.tgt.n))
}
