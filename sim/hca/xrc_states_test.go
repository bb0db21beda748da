package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// TestXRCQPRefused: what a context of each kind must not say.
func TestXRCQPRefused(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	h := x.hb
	rmp := h.newSRQ(2).n
	q := &tQP{h: h.host, scq: h.cq, rcq: h.cq, uar: h.uar, rq: h.alloc(8192), db: h.alloc(8)}
	both := map[string]func(c prm.QPC){
		"PD":             func(c prm.QPC) { c.SetPD(0xfff) },
		"domain":         func(c prm.QPC) { c.SetXRCD(0xff) },
		"no domain":      func(c prm.QPC) { c.SetXRCD(0) },
		"send CQ":        func(c prm.QPC) { c.SetCQNSnd(0xfff) },
		"receive CQ":     func(c prm.QPC) { c.SetCQNRcv(0xfff) },
		"SRQ":            func(c prm.QPC) { c.SetSRQN(0x3ff) },
		"RMP":            func(c prm.QPC) { c.SetSRQN(rmp) },
		"receive queue":  func(c prm.QPC) { c.SetRQType(prm.RQTypeRegular) },
		"kind of queue":  func(c prm.QPC) { c.SetRQType(2) },
		"place of count": func(c prm.QPC) { c.SetDBRAddr(4) },
	}
	for what, edit := range both {
		for _, form := range []func(c prm.QPC){h.target(x.domain), h.initiator} {
			if _, st := h.try(q.create(func(c prm.QPC) { form(c); edit(c) })); st != prm.StatusBadParam {
				t.Errorf("%s: %v", what, st)
			}
		}
	}
	h.status(q.create(func(c prm.QPC) { h.target(x.domain)(c); c.SetLogSQSize(2) }), prm.StatusBadParam)
	h.status(q.create(func(c prm.QPC) { h.target(x.domain)(c); c.SetRQType(prm.RQTypeNone) }), prm.StatusBadParam)
	h.status(q.create(func(c prm.QPC) { h.initiator(c); c.SetUARPage(0) }), prm.StatusBadParam)
	h.cmd(q.create(func(c prm.QPC) { h.initiator(c); c.SetRQType(prm.RQTypeNone); c.SetSRQN(0x3ff) }))
}

// TestXRCReferences: what an XRC QP is made with stays while it does.
func TestXRCReferences(t *testing.T) {
	x := newXRCBench(t, testParams(), defaults())
	h, busy := x.hb, prm.StatusBadResState
	pd, own := h.newPD(), h.newXRCD()
	cq := h.newCQ(3, 64)
	spare := h.newXRCSRQ(own, pd, cq, 1)
	scq, far := h.newCQ(3, 64), h.newXRCD()
	q := &tQP{h: h.host, scq: scq, rcq: h.cq, uar: h.uar, rq: h.alloc(8192), db: h.alloc(8)}
	for _, form := range []func(c prm.QPC){h.target(far), h.initiator} {
		pd := h.newPD()
		n := prm.CreateQPOut(h.cmd(q.create(func(c prm.QPC) { form(c); c.SetPD(pd); c.SetXRCD(far); c.SetSRQN(spare.n) }))).QPN()
		rest := [][]byte{number(prm.OpDeallocPD, pd), number(prm.OpDestroyCQ, scq.n), number(prm.OpDestroyXRCSRQ, spare.n), number(prm.OpDeallocXRCD, far)}
		for _, in := range rest {
			h.status(in, busy)
		}
		if got := prm.QueryQPOut(h.cmd(number(prm.OpQueryQP, n))).QPC(); got.PD() != pd || got.XRCD() != far || got.SRQN() != spare.n || got.ST() != prm.STXRC {
			t.Errorf("context % x", []byte(got))
		}
		h.cmd(number(prm.OpDestroyQP, n))
		h.cmd(number(prm.OpDeallocPD, pd))
	}
	for _, in := range [][]byte{number(prm.OpDestroyXRCSRQ, spare.n), number(prm.OpDeallocXRCD, far), number(prm.OpDeallocXRCD, own), number(prm.OpDeallocPD, pd), number(prm.OpDestroyCQ, scq.n), number(prm.OpDestroyCQ, cq.n)} {
		h.cmd(in)
	}
}

// TestXRCStates: both kinds of QP pass all states, and work again after a reset.
func TestXRCStates(t *testing.T) {
	p := testParams()
	p.SQD = true
	x := newXRCBench(t, p, defaults())
	x.srqs[0].post(8)
	modify := func(q *tQP, op prm.Opcode, mask uint32, want prm.Status) {
		t.Helper()
		in := prm.NewIn(op, 0)
		m := prm.ModifyQPIn(in)
		m.SetQPN(q.n)
		m.SetOptParamMask(mask)
		m.QPC().SetRRE(true)
		q.h.status(in, want)
	}
	for range 2 {
		for _, q := range []*tQP{x.ini, x.tgt} {
			modify(q, prm.OpRTS2RTSQP, prm.OptParRRE, prm.StatusOK)
			modify(q, prm.OpRTS2SQDQP, 0, prm.StatusOK)
			modify(q, prm.OpSQD2SQDQP, prm.OptParRRE, prm.StatusOK)
			modify(q, prm.OpSQDRTSQP, prm.OptParRRE, prm.StatusBadParam)
			modify(q, prm.OpSQDRTSQP, 0, prm.StatusOK)
		}
		x.ini.post(x.send(0, 64))
		x.run(50 * sim.Microsecond)
		x.ini.scq.expect(prm.CQEReq)
		x.cqs[0].expect(prm.CQERespSend)
		for _, q := range []*tQP{x.ini, x.tgt} {
			q.h.cmd(number(prm.Op2ErrQP, q.n))
			q.h.cmd(number(prm.Op2RstQP, q.n))
			q.pi = 0
		}
		x.run(sim.Microsecond)
		x.event(prm.EventSRQLastWQE, x.tgt.n)
		x.ini.connect(x.tgt, defaults())
		x.tgt.connect(x.ini, defaults())
		x.ini.record()
	}
	x.run(ms)
	x.quiet()
}
