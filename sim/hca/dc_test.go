package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// tDCT is a target of the driver, with an SRQ and a CQ of its own.
type tDCT struct {
	h   *host
	n   uint32
	key uint64
	srq *tSRQ
	cq  *tCQ
	mem *mr
}

const dcSlot = 4096

func (h *host) newDCT(key uint64, uidx uint32) *tDCT {
	t := &tDCT{h: h, key: key, srq: h.newSRQ(4), cq: h.newCQ(7, 64), mem: h.newMR(16*dcSlot, rightsAll)}
	in := prm.NewIn(prm.OpCreateDCT, 0)
	c := prm.CreateDCTIn(in).Context()
	c.SetPD(h.pd)
	c.SetSRQN(t.srq.n)
	c.SetCQN(t.cq.n)
	c.SetAccessKey(key)
	c.SetUserIndex(uidx)
	c.SetRRE(true)
	c.SetRWE(true)
	c.SetRAE(true)
	c.SetMinRNRNAK(1)
	c.SetMTU(uint32(roce.MTU1024))
	c.SetPort(1)
	c.SetCounterSetID(h.qset)
	t.n = prm.CreateDCTOut(h.cmd(in)).DCTN()
	for i := range t.srq.size {
		t.srq.put(i, (i+1)%t.srq.size, t.mem, uint32(i)*dcSlot, dcSlot)
	}
	return t
}

func (t *tDCT) query() prm.DCTC {
	in := prm.NewIn(prm.OpQueryDCT, 0)
	prm.QueryDCTIn(in).SetDCTN(t.n)
	return prm.QueryDCTOut(t.h.cmd(in)).Context()
}

func (t *tDCT) destroy() prm.Status {
	in := prm.NewIn(prm.OpDestroyDCT, 0)
	prm.DestroyDCTIn(in).SetDCTN(t.n)
	_, st := t.h.try(in)
	return st
}

// newDCI makes an initiator as the driver does.
func (h *host) newDCI(o opts) *tQP { return h.newDCIOf(o, 0) }

// newDCIOf is newDCI with streams of which 2^log may be in error.
func (h *host) newDCIOf(o opts, log uint32) *tQP {
	q := h.newQPOn(h.newCQ(7, 64), h.newCQ(1, 64), h.uar, func(c prm.QPC) {
		c.SetLogNumDCIStreamChannels(log)
		c.SetLogNumDCIErroredStreams(log)
		c.SetST(prm.STDCI)
		c.SetRQType(prm.RQTypeNone)
		c.SetLogRQSize(0)
		c.SetLogRQStride(0)
	})
	q.sq = q.rq
	q.startDCI(o)
	return q
}

// startDCI takes a DCI to RTS.
func (q *tQP) startDCI(o opts) {
	q.modify(prm.OpRst2InitQP, func(c prm.QPC) { c.PrimaryPath().SetVHCAPortNum(1) })
	q.modify(prm.OpInit2RTRQP, func(c prm.QPC) {
		c.SetMTU(uint32(o.mtu))
		c.SetLogMsgMax(30)
	})
	q.modify(prm.OpRTR2RTSQP, func(c prm.QPC) {
		c.SetNextSendPSN(q.psn)
		c.PrimaryPath().SetAckTimeout(o.timeout)
		c.SetRetryCount(o.retry)
		c.SetRNRRetry(o.rnr)
		c.SetLogSRAMax(o.logReads)
	})
}

// dc is the address vector of a target.
func (t *tDCT) av(key uint64) func(a prm.AVSegment) {
	return func(a prm.AVSegment) {
		prm.SetDCKey(a, key)
		a.SetDestQPN(t.n)
		a.SetRLID(0xc123)
		a.SetHopLimit(64)
		copy(a.RGID(), t.h.gid[:])
		copy(a.RMAC(), t.h.id.MAC[:])
	}
}

type dcBench struct {
	e      *sim.Engine
	ha, hb *host
	ab, ba *badWire
	local  *mr
	ts     [3]*tDCT
}

func newDCBench(t *testing.T) *dcBench { return newDCBenchOf(t, testParams()) }

func newDCBenchOf(t *testing.T, p Params) *dcBench {
	e := sim.New(sim.Options{MaxEvents: 1 << 24})
	b := &dcBench{e: e, ha: newHost(t, e, p, 1), hb: newHost(t, e, p, 2)}
	b.ab, b.ba = newWire(e, b.hb.d, 1, "ab"), newWire(e, b.ha.d, 1, "ba")
	b.ha.d.SetWire(b.ab)
	b.hb.d.SetWire(b.ba)
	b.local = b.ha.newMR(16*dcSlot, rightsAll)
	b.local.fill(pattern)
	for i := range b.ts {
		b.ts[i] = b.hb.newDCT(0x1122334455667788+uint64(i), 0x300+uint32(i))
	}
	return b
}

// A DCI reaches several targets in turn with every operation; each receives from its SRQ and
// reports to its CQ.
func TestDCIReachesItsTargets(t *testing.T) {
	b := newDCBench(t)
	q := b.ha.newDCI(defaults())
	for _, d := range b.ts {
		d.srq.post(15)
	}
	for i, d := range []*tDCT{b.ts[0], b.ts[1], b.ts[1], b.ts[2], b.ts[0]} {
		q.post(wr{op: prm.WQEOpSendImm, imm: uint32(i), av: d.av(d.key), sges: []sge{b.local.sge(i*dcSlot, 3000)}})
	}
	run(t, b.e, sim.Millisecond)
	for range 5 {
		q.scq.expect(prm.CQEReq)
	}
	for i, want := range [][]uint32{{0, 4}, {1, 2}, {3}} {
		d := b.ts[i]
		for k, imm := range want {
			e := d.cq.expect(prm.CQERespSendImm)
			if e.QPN() != d.n || e.RQPN() != q.n || e.SRQNUIdx() != 0x300+uint32(i) || e.ImmInvalPKey() != imm || e.ByteCnt() != 3000 || int(e.WQECounter()) != k {
				t.Errorf("target %d: QP %#x of %#x, index %#x, immediate %d, %d B in WQE %d", i, e.QPN(), e.RQPN(), e.SRQNUIdx(), e.ImmInvalPKey(), e.ByteCnt(), e.WQECounter())
			}
			if !bytes.Equal(d.mem.bytes(k*dcSlot, 3000), b.local.bytes(int(imm)*dcSlot, 3000)) {
				t.Errorf("target %d: receive %d differs", i, k)
			}
		}
		d.cq.expectNone()
	}
	d := b.ts[2]
	d.mem.fill(func(i int) byte { return byte(3 * i) })
	q.post(wr{op: prm.WQEOpRDMAWrite, av: d.av(d.key), raddr: d.mem.va, rkey: d.mem.rkey, sges: []sge{b.local.sge(5, 2500)}},
		wr{op: prm.WQEOpRDMARead, av: d.av(d.key), raddr: d.mem.va + 3*dcSlot, rkey: d.mem.rkey, sges: []sge{b.local.sge(8*dcSlot, 2222)}},
		wr{op: prm.WQEOpAtomicFA, av: d.av(d.key), raddr: d.mem.va + 8*dcSlot, rkey: d.mem.rkey, swap: 5, sges: []sge{b.local.sge(9*dcSlot, 8)}},
		wr{op: prm.WQEOpNOP})
	run(t, b.e, sim.Millisecond)
	for range 4 {
		q.scq.expect(prm.CQEReq)
	}
	if !bytes.Equal(d.mem.bytes(0, 2500), b.local.bytes(5, 2500)) || !bytes.Equal(d.mem.bytes(3*dcSlot, 2222), b.local.bytes(8*dcSlot, 2222)) {
		t.Error("WRITE or READ differs")
	}
	if e := b.hb.nextEQE(b.hb.aeq); e != nil {
		t.Errorf("an event %#x of the target", e.Type())
	}
}

// Another access key ends the request, and the initiator, with an error; the target counts it and
// serves others.
func TestDCAccessKey(t *testing.T) {
	b := newDCBench(t)
	d := b.ts[0]
	d.srq.post(8)
	q, good := b.ha.newDCI(defaults()), b.ha.newDCI(defaults())
	q.post(wr{op: prm.WQEOpSend, av: d.av(d.key + 1), sges: []sge{b.local.sge(0, 100)}}, wr{op: prm.WQEOpSend, av: d.av(d.key)})
	good.post(wr{op: prm.WQEOpSend, av: d.av(d.key), sges: []sge{b.local.sge(0, 99)}})
	run(t, b.e, sim.Millisecond)
	q.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteInvalReq)
	q.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	good.scq.expect(prm.CQEReq)
	if e := d.cq.expect(prm.CQERespSend); e.ByteCnt() != 99 {
		t.Errorf("%d bytes", e.ByteCnt())
	}
	d.cq.expectNone()
	if n := d.query().KeyViolations(); n != 1 {
		t.Errorf("%d violations are counted", n)
	}
	// An access error is that of the connection alone, too.
	good.post(wr{op: prm.WQEOpRDMAWrite, av: d.av(d.key), raddr: d.mem.va, rkey: d.mem.rkey ^ 1, sges: []sge{b.local.sge(0, 8)}})
	run(t, b.e, sim.Millisecond)
	good.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
	third := b.ha.newDCI(defaults())
	third.post(wr{op: prm.WQEOpSend, av: d.av(d.key), sges: []sge{b.local.sge(0, 98)}})
	run(t, b.e, sim.Millisecond)
	third.scq.expect(prm.CQEReq)
	d.cq.expect(prm.CQERespSend)
}

// On a wire that loses, repeats and reorders, each request is carried out once, at the target that
// it names.
func TestDCOnABadWire(t *testing.T) {
	b := newDCBench(t)
	o := defaults()
	o.timeout = 8
	qs := []*tQP{b.ha.newDCI(o), b.ha.newDCI(o)}
	b.ab.loss, b.ba.loss = 9, 9
	b.ab.delay, b.ab.dup, b.ba.delay = 4, 6, 4
	r, want := sim.NewRand(7, "dc"), [3]int{}
	for round := range 40 {
		for _, q := range qs {
			for range 4 {
				i := r.Intn(3)
				want[i]++
				q.post(wr{op: prm.WQEOpAtomicFA, av: b.ts[i].av(b.ts[i].key), raddr: b.ts[i].mem.va, rkey: b.ts[i].mem.rkey, swap: 1, sges: []sge{b.local.sge(0, 8)}})
			}
		}
		run(t, b.e, 100*sim.Millisecond)
		for _, q := range qs {
			for range 4 {
				if e := q.scq.expect(prm.CQEReq); e == nil {
					t.Fatalf("round %d", round)
				}
			}
		}
	}
	for i, d := range b.ts {
		if v := host64(d.mem.bytes(0, 8)); v != uint64(want[i]) {
			t.Errorf("target %d: %d additions of %d", i, v, want[i])
		}
		if n := len(b.hb.d.dct(d.n).all); n > 2 {
			t.Errorf("target %d has %d responder contexts for 2 initiators", i, n)
		}
	}
}

// A target is drained before it is destroyed; what it holds can go then. What is outstanding to it
// ends with retries.
func TestDCTDrains(t *testing.T) {
	b := newDCBench(t)
	d := b.ts[0]
	eq, _ := b.hb.newEQ(2, 1<<prm.EventDCTDrained)
	o := defaults()
	o.timeout, o.retry = 1, 1
	q := b.ha.newDCI(o)
	d.srq.post(1)
	q.post(wr{op: prm.WQEOpSend, av: d.av(d.key)})
	run(t, b.e, sim.Millisecond)
	q.scq.expect(prm.CQEReq)
	if st := d.destroy(); st != prm.StatusBadResState {
		t.Errorf("a target with connections is destroyed: %v", st)
	}
	in := prm.NewIn(prm.OpDrainDCT, 0)
	prm.DrainDCTIn(in).SetDCTN(d.n)
	b.hb.cmd(in)
	run(t, b.e, sim.Millisecond)
	if e := b.hb.nextEQE(eq); e == nil || e.Type() != prm.EventDCTDrained || e.QPSRQN() != d.n || d.query().State() != prm.DCTDrained {
		t.Errorf("no event, or state %d", d.query().State())
	}
	q.post(wr{op: prm.WQEOpSend, av: d.av(d.key)})
	run(t, b.e, sim.Second)
	q.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
	if st := d.destroy(); st != prm.StatusOK {
		t.Errorf("a drained target: %v", st)
	}
	if st := d.destroy(); st != prm.StatusBadResState {
		t.Errorf("a target that is gone: %v", st)
	}
}

// A packet that names a responder context, and one of the transport for another queue, leave
// nothing.
func TestDCRsHaveNoNumberForOthers(t *testing.T) {
	b := newDCBench(t)
	d := b.ts[0]
	d.srq.post(8)
	q := b.ha.newDCI(defaults())
	q.post(wr{op: prm.WQEOpSend, av: d.av(d.key)})
	run(t, b.e, sim.Millisecond)
	q.scq.expect(prm.CQEReq)
	d.cq.expect(prm.CQERespSend)
	dcr := b.hb.d.dct(d.n).all[0].num
	in := prm.NewIn(prm.OpQueryQP, 0)
	prm.QueryQPIn(in).SetQPN(dcr)
	if _, st := b.hb.try(in); st != prm.StatusBadResState {
		t.Errorf("a responder context can be queried: %v", st)
	}
	o := defaults()
	o.timeout, o.retry = 1, 0
	for _, n := range []uint32{dcr, b.hb.newQP(b.hb.newCQ(1, 64), b.hb.newCQ(1, 64)).n, 0x1234} {
		other := b.ha.newDCI(o)
		other.post(wr{op: prm.WQEOpSend, av: func(a prm.AVSegment) { d.av(d.key)(a); a.SetDestQPN(n) }})
		run(t, b.e, sim.Second)
		other.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
	}
	d.cq.expectNone()
}

// Turning from target to target allocates nothing, once each has been reached.
func TestTurningAllocatesNothing(t *testing.T) {
	b := newDCBench(t)
	q := b.ha.newDCI(defaults())
	var ws []wr
	for i := range 6 {
		d := b.ts[i%3]
		ws = append(ws, wr{op: prm.WQEOpRDMAWrite, av: d.av(d.key), raddr: d.mem.va, rkey: d.mem.rkey, sges: []sge{b.local.sge(0, 64)}, unsig: i < 5})
	}
	var posted int
	round := func() {
		q.h.d.MMIOWrite(q.reg(), q.put(ws...)[:8])
		posted++
		run(t, b.e, 100*sim.Microsecond)
		q.scq.expect(prm.CQEReq)
	}
	for range 40 {
		round()
	}
	driver := testing.AllocsPerRun(20, func() { q.put(ws...); q.pi -= 12; q.record() })
	if n := testing.AllocsPerRun(20, round); n > driver+8 {
		t.Errorf("%.0f allocations for 6 turns, %.0f of them the driver's", n, driver)
	}
}
