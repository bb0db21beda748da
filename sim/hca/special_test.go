package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// gsiQKey is the Q_Key of QP1 (IB_QP1_QKEY).
const gsiQKey = 0x80010000

func gsi(c prm.QPC) { c.SetST(prm.STQP1) }

// newGSI makes QP1 as ib_mad does.
func (h *host) newGSI() *tQP {
	q := h.newQPOn(h.newCQ(7, 64), h.newCQ(7, 64), h.uar, gsi)
	q.startGSI()
	return q
}

func (q *tQP) startGSI() {
	q.h.t.Helper()
	q.modify(prm.OpRst2InitQP, func(c prm.QPC) {
		c.SetST(prm.STQP1)
		c.PrimaryPath().SetVHCAPortNum(1)
		c.SetQKey(gsiQKey)
		c.SetRLKY(true)
	})
	q.modify(prm.OpInit2RTRQP, func(c prm.QPC) {
		c.SetMTU(uint32(roce.MTU256))
		c.SetLogMsgMax(8)
	})
	q.modify(prm.OpRTR2RTSQP, func(c prm.QPC) {})
}

// toGSI is the address vector of the QP1 of a host, with the Q_Key of the sender.
func toGSI(h *host) func(a prm.AVSegment) {
	return func(a prm.AVSegment) {
		to(&tQP{h: h}, 1<<31)(a)
		a.SetDestQPN(gsiQPN)
	}
}

// TestMAD: MADs go from QP1 to QP1, whatever numbers the two have in commands.
func TestMAD(t *testing.T) {
	ha, hb, w := udHosts(t)
	hb.newUD(tQKey) // the numbers differ
	a, b := ha.newGSI(), hb.newGSI()
	if a.n == gsiQPN || a.n == b.n {
		t.Fatalf("QPs %#x and %#x", a.n, b.n)
	}
	src, dst := ha.newMR(4096, rightsAll), hb.newMR(4096, rightsAll)
	src.fill(pattern)
	b.recv(dst.sge(0, 40), dst.sge(1000, 256))
	a.post(wr{op: prm.WQEOpSend, av: toGSI(hb), sges: []sge{src.sge(0, 256)}})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	e := b.rcq.expect(prm.CQERespSend)
	if e.ByteCnt() != 296 || e.RQPN() != gsiQPN || e.QPN() != b.n || !bytes.Equal(dst.bytes(1000, 256), src.bytes(0, 256)) {
		t.Errorf("CQE % x", []byte(e))
	}
	p, err := roce.Parse(w.sent[0].B)
	if err != nil || p.BTH().DestQP() != gsiQPN || p.DETH().SrcQP() != gsiQPN || p.DETH().QKey() != gsiQKey {
		t.Errorf("%v: % x", err, w.sent[0].B)
	}
	// And back, by the number in the completion.
	a.recv(src.sge(0, 40), src.sge(1000, 256))
	b.post(wr{op: prm.WQEOpSend, av: toGSI(ha), sges: []sge{dst.sge(0, 24)}})
	run(t, ha.e, 50*sim.Microsecond)
	b.scq.expect(prm.CQEReq)
	a.rcq.expect(prm.CQERespSend)
	w.free()
}

// TestMADDrops: QP1 is known by its number only, takes its Q_Key only, and not more than a MAD.
func TestMADDrops(t *testing.T) {
	ha, hb, w := udHosts(t)
	a, b, u := ha.newGSI(), hb.newGSI(), ha.newUD(tQKey)
	src, dst := ha.newMR(4096, rightsAll), hb.newMR(4096, rightsAll)
	b.recv(dst.sge(0, 300))
	send := func(q *tQP, dest, qkey uint32) {
		t.Helper()
		q.post(wr{op: prm.WQEOpSend, av: func(v prm.AVSegment) { toGSI(hb)(v); v.SetDestQPN(dest); v.SetQKey(qkey) }, inline: []byte("mad")})
		run(t, ha.e, 50*sim.Microsecond)
		q.scq.expect(prm.CQEReq)
	}
	send(a, b.n, 1<<31)                // the number in commands
	send(a, 0, 1<<31)                  // QP0, which RoCE does not have
	send(u, gsiQPN, tQKey)             // another Q_Key
	send(u, gsiQPN, 0x7fff0000|0x1234) // and one more
	b.rcq.expectNone()
	if c := hb.d.Counters(); c.RxQKey != 2 || c.RxNoQP != 4 {
		t.Errorf("Q_Key %d, no QP %d", c.RxQKey, c.RxNoQP)
	}
	a.post(wr{op: prm.WQEOpSend, av: toGSI(hb), sges: []sge{src.sge(0, 257)}})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeLocalLength)
	b.rcq.expectNone()
	hb.cmd(number(prm.Op2RstQP, b.n))
	hb.cmd(number(prm.OpDestroyQP, b.n))
	ha.cmd(number(prm.Op2RstQP, a.n))
	a.pi = 0
	a.record()
	a.startGSI()
	send(a, gsiQPN, 1<<31) // nobody
	if c := hb.d.Counters(); c.RxNoQP != 5 {
		t.Errorf("no QP %d", c.RxNoQP)
	}
	w.free()
}

// TestMADOnInfiniBand: any P_Key of the port's table is good for QP1, and the completion says
// which.
func TestMADOnInfiniBand(t *testing.T) {
	ha, hb, w := ibHosts(t)
	a, b := ha.newGSI(), hb.newGSI()
	src, dst := ha.newMR(4096, rightsAll), hb.newMR(4096, rightsAll)
	way := func(v prm.AVSegment) {
		v.SetQKey(1 << 31)
		v.SetDestQPN(gsiQPN)
		v.SetRLID(hb.lid())
	}
	for range 3 {
		b.recv(dst.sge(0, 40), dst.sge(1000, 256))
	}
	a.post(wr{op: prm.WQEOpSend, av: way, sges: []sge{src.sge(0, 256)}})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	if e := b.rcq.expect(prm.CQERespSend); e.ImmInvalPKey() != 0xffff || e.RQPN() != gsiQPN || e.SLID() != ha.lid() {
		t.Errorf("CQE % x", []byte(e))
	}
	good := w.sent[0]
	good.FinishICRC()
	for key, taken := range map[uint16]bool{0x0005: true, 0x7fff: true, 0x8006: false} {
		f := hb.d.frames.Get(len(good.B))
		copy(f.B, good.B)
		f.LRH = true
		roce.BTH(f.B[roce.LRHSize:]).SetPKey(key)
		roce.PutICRC(f.B[len(f.B)-4:], roce.ICRCInfiniBand(f.B[:len(f.B)-4]))
		hb.d.Receive(f)
		run(t, ha.e, 20*sim.Microsecond)
		e := b.rcq.poll()
		if (e != nil) != taken || e != nil && e.ImmInvalPKey() != uint32(key) {
			t.Errorf("P_Key %#x: CQE % x", key, []byte(e))
		}
	}
	w.free()
}

// TestSpecialQPs: a port has one of each, with real transitions; RoCE has no QP0.
func TestSpecialQPs(t *testing.T) {
	_, h, _ := ibHosts(t)
	eth := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq, ecq := h.newCQ(7, 64), eth.newCQ(7, 64)
	qp0 := func(c prm.QPC) { c.SetST(prm.STQP0) }
	ethQ := eth.newQP(ecq, ecq)
	eth.status(ethQ.create(qp0), prm.StatusBadParam)
	for name, st := range map[string]func(c prm.QPC){"QP0": qp0, "QP1": gsi} {
		q := h.newQPOn(cq, cq, h.uar, st)
		h.status(q.create(st), prm.StatusBadRes)
		h.status(q.create(func(c prm.QPC) { st(c); c.SetPD(h.pd + 9) }), prm.StatusBadParam)
		if name == "QP0" {
			q.modify(prm.OpRst2InitQP, func(c prm.QPC) { c.PrimaryPath().SetVHCAPortNum(1) })
			q.modify(prm.OpInit2RTRQP, func(c prm.QPC) { c.SetMTU(uint32(roce.MTU256)); c.SetLogMsgMax(8) })
			q.modify(prm.OpRTR2RTSQP, func(c prm.QPC) {})
		} else {
			q.startGSI()
		}
		if got := q.query().ST(); got != map[string]uint32{"QP0": prm.STQP0, "QP1": prm.STQP1}[name] {
			t.Errorf("%s: service type %#x", name, got)
		}
		in := prm.NewIn(prm.OpRTS2RTSQP, 0)
		prm.ModifyQPIn(in).SetQPN(q.n)
		h.status(in, prm.StatusOK)
		prm.ModifyQPIn(in).SetOptParamMask(prm.OptParQKey)
		h.status(in, prm.StatusBadParam)
		if st := q.group(prm.OpAttachToMCG); st != prm.StatusBadParam {
			t.Errorf("%s joins a group: %v", name, st)
		}
		h.cmd(number(prm.Op2ErrQP, q.n))
		h.cmd(number(prm.Op2RstQP, q.n))
		h.cmd(number(prm.OpDestroyQP, q.n))
		again := h.newQPOn(cq, cq, h.uar, st)
		h.cmd(number(prm.OpDestroyQP, again.n))
	}
	h.cmd(number(prm.OpDestroyCQ, cq.n))
}

// regUMR is how mlx5_ib makes its queue for UMRs.
func regUMR(c prm.QPC) {
	c.SetST(prm.STRegUMR)
	c.SetPD(0)
	c.SetRQType(prm.RQTypeNone)
	c.SetLogRQSize(0)
	c.SetLogRQStride(0)
	c.SetLatencySensitive(true)
	c.SetRLKY(true)
	c.SetFRE(true)
}

// startUMR brings such a queue to RTS, with its PD.
func (q *tQP) startUMR() {
	q.h.t.Helper()
	q.modify(prm.OpRst2InitQP, func(c prm.QPC) { c.PrimaryPath().SetVHCAPortNum(1); c.SetPD(q.h.pd) })
	q.modify(prm.OpInit2RTRQP, func(c prm.QPC) { c.SetMTU(uint32(roce.MTU4096)); c.SetLogMsgMax(12); c.SetPD(q.h.pd) })
	q.modify(prm.OpRTR2RTSQP, func(c prm.QPC) { c.SetPD(q.h.pd) })
}

// newUMRQueue makes such a queue in state RST.
func (h *host) newUMRQueue(cq *tCQ) *tQP {
	q := h.newQPOn(cq, cq, h.uar, regUMR)
	q.sq = q.rq // the ring begins with it
	return q
}

// TestUMRQueue: the queue has no PD at first, takes NOPs, and sends nothing.
func TestUMRQueue(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq := h.newCQ(7, 64)
	q := h.newUMRQueue(cq)
	for what, f := range map[string]func(c prm.QPC){
		"a receive queue": func(c prm.QPC) { regUMR(c); c.SetRQType(prm.RQTypeRegular) },
		"no send queue":   func(c prm.QPC) { regUMR(c); c.SetNoSQ(true); c.SetLogSQSize(0) },
		"a bad PD":        func(c prm.QPC) { regUMR(c); c.SetPD(h.pd + 7) },
	} {
		if _, st := h.try(q.create(f)); st != prm.StatusBadParam {
			t.Errorf("%s: %v", what, st)
		}
	}
	in := prm.NewIn(prm.OpRst2InitQP, 0)
	prm.ModifyQPIn(in).SetQPN(q.n)
	h.status(in, prm.StatusBadParam) // still no PD
	q.startUMR()
	if c := q.query(); c.ST() != prm.STRegUMR || c.PD() != h.pd || c.State() != prm.QPStateRTS {
		t.Errorf("type %#x, PD %d, state %d", c.ST(), c.PD(), c.State())
	}
	h.status(number(prm.OpDeallocPD, h.pd), prm.StatusBadResState)
	q.post(wr{op: prm.WQEOpNOP})
	run(t, h.e, 20*sim.Microsecond)
	cq.expect(prm.CQEReq)
	q.post(wr{op: prm.WQEOpSend, inline: []byte("x")})
	run(t, h.e, 20*sim.Microsecond)
	cq.expectError(prm.CQEReqErr, prm.SyndromeLocalQPOp)
	if q.state() != prm.QPStateERR || h.d.Counters().TxPackets != 0 {
		t.Errorf("state %d, %d packets", q.state(), h.d.Counters().TxPackets)
	}
	// The driver posts a barrier, waits for its flush, and starts anew.
	q.post(wr{op: prm.WQEOpNOP})
	run(t, h.e, 20*sim.Microsecond)
	cq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	h.cmd(number(prm.Op2RstQP, q.n))
	q.pi = 0
	q.record()
	q.startUMR()
	q.post(wr{op: prm.WQEOpNOP})
	run(t, h.e, 20*sim.Microsecond)
	cq.expect(prm.CQEReq)
	h.d.rebuildPaths()
	h.cmd(number(prm.OpDestroyQP, q.n))
	h.cmd(number(prm.OpDeallocPD, h.pd))
}
