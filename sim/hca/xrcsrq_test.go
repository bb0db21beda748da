package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// xrcBed is a host with a domain and a CQ for XRC SRQs.
func xrcBed(t *testing.T) (h *host, cq *tCQ, xrcd uint32) {
	h = newHost(t, sim.New(sim.Options{}), testParams(), 1)
	return h, h.newCQ(4, 64), prm.AllocXRCDOut(h.cmd(prm.NewIn(prm.OpAllocXRCD, 0))).XRCD()
}

// xrcSRQ is CREATE_XRC_SRQ of 16 WQEs of 32 bytes, which edit may change.
func (h *host) createXRCSRQ(cq *tCQ, xrcd uint32, edit func(m prm.CreateXRCSRQIn, c prm.XRCSRQC)) []byte {
	in := prm.NewIn(prm.OpCreateXRCSRQ, 8)
	m := prm.CreateXRCSRQIn(in)
	c := m.Context()
	c.SetLogSize(4)
	c.SetLogRQStride(1)
	c.SetPD(h.pd)
	c.SetXRCD(xrcd)
	c.SetCQN(cq.n)
	c.SetUserIndex(0x1234)
	c.SetDBRAddr(uint64(h.alloc(8)))
	m.PAS().Set(0, uint64(h.alloc(4096)))
	if edit != nil {
		edit(m, c)
	}
	return in
}

func TestXRCSRQ(t *testing.T) {
	h, cq, xrcd := xrcBed(t)
	in := h.createXRCSRQ(cq, xrcd, nil)
	n := prm.CreateXRCSRQOut(h.cmd(in)).SRQN()
	if rmp := h.newSRQ(4); rmp.n == n {
		t.Error("an RMP has the number of an XRC SRQ")
	}
	query := func() prm.XRCSRQC {
		q := number(prm.OpQueryXRCSRQ, n)
		return prm.QueryXRCSRQOut(h.cmd(q)).Context()
	}
	c := prm.CreateXRCSRQIn(in).Context()
	if got := query(); !bytes.Equal(got, c) {
		t.Errorf("context % x, made with % x", []byte(got), []byte(c))
	}
	bad, ok := prm.StatusBadResState, prm.StatusOK
	h.status(number(prm.OpDeallocXRCD, xrcd), bad)
	h.status(number(prm.OpDestroyCQ, cq.n), bad)
	h.status(number(prm.OpDeallocPD, h.pd), bad)
	h.status(number(prm.OpDestroyRMP, n), bad) // of another kind
	h.status(number(prm.OpQueryRMP, n), bad)
	h.status(number(prm.OpDestroyXRCSRQ, n+1), bad)
	h.status(number(prm.OpQueryXRCSRQ, 0xffffff), bad)
	h.status(number(prm.OpDestroyXRCSRQ, n), ok)
	h.status(number(prm.OpDestroyXRCSRQ, n), bad)
	h.status(number(prm.OpDestroyCQ, cq.n), ok)
	h.status(number(prm.OpDeallocXRCD, xrcd), ok)
	h.status(number(prm.OpDeallocXRCD, xrcd), bad)
	h.status(number(prm.OpDeallocXRCD, 0xffffff), bad)
}

func TestXRCSRQRefused(t *testing.T) {
	h, cq, xrcd := xrcBed(t)
	type edit = func(m prm.CreateXRCSRQIn, c prm.XRCSRQC)
	for what, f := range map[string]edit{
		"signature":     func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetWQSignature(true) },
		"continued":     func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetContSRQ(true) },
		"cyclic":        func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetBasicCyclicRcvWQE(true) },
		"record umem":   func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetDBRUmemValid(true) },
		"umem":          func(m prm.CreateXRCSRQIn, _ prm.XRCSRQC) { m.SetUmemValid(true) },
		"record place":  func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetDBRAddr(c.DBRAddr() + 4) },
		"PD":            func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetPD(h.pd + 1) },
		"domain":        func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetXRCD(xrcd + 1) },
		"domain 0":      func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetXRCD(0) },
		"CQ":            func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetCQN(cq.n + 1) },
		"size":          func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLogSize(13) },
		"stride of 16":  func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLogRQStride(0) },
		"stride of 1 K": func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLogRQStride(6) },
		"limit":         func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLWM(16) },
		"short list":    func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLogSize(8) },
		"odd page":      func(m prm.CreateXRCSRQIn, _ prm.XRCSRQC) { m.PAS().Set(0, 0x1001) },
	} {
		in := h.createXRCSRQ(cq, xrcd, f)
		if out, st := h.try(in); st != prm.StatusBadParam {
			t.Errorf("%s: %v", what, st)
		} else if prm.CreateXRCSRQOut(out).SRQN() != 0 {
			t.Errorf("%s: a number in the answer", what)
		}
	}
	for what, f := range map[string]edit{
		"largest stride":   func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLogRQStride(5); c.SetLogSize(3) },
		"one WQE":          func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLogSize(0) },
		"limit":            func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLWM(15) },
		"a page that fits": func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { c.SetLogSize(7) },
	} {
		if _, st := h.try(h.createXRCSRQ(cq, xrcd, f)); st != prm.StatusOK {
			t.Errorf("%s: %v", what, st)
		}
	}
}

// TestXRCSRQNumbers: there are as many SRQs as RMPs and XRC SRQs together may be.
func TestXRCSRQNumbers(t *testing.T) {
	p := testParams()
	p.LogMaxSRQ = 2
	h := newHost(t, sim.New(sim.Options{}), p, 1)
	cq, xrcd := h.newCQ(4, 64), prm.AllocXRCDOut(h.cmd(prm.NewIn(prm.OpAllocXRCD, 0))).XRCD()
	first := prm.CreateXRCSRQOut(h.cmd(h.createXRCSRQ(cq, xrcd, nil))).SRQN()
	h.newSRQ(4)
	h.cmd(h.createXRCSRQ(cq, xrcd, nil))
	h.status(h.createXRCSRQ(cq, xrcd, nil), prm.StatusLimErr)
	h.cmd(number(prm.OpDestroyXRCSRQ, first))
	if n := h.newSRQ(4).n; n != first {
		t.Errorf("the RMP has number %d, %d is free", n, first)
	}
}

// TestXRCSRQIsForXRC: an RC QP takes from no XRC SRQ.
func TestXRCSRQIsForXRC(t *testing.T) {
	h, cq, xrcd := xrcBed(t)
	n := prm.CreateXRCSRQOut(h.cmd(h.createXRCSRQ(cq, xrcd, nil))).SRQN()
	q := h.newQP(cq, cq)
	in := q.create(func(c prm.QPC) { c.SetRQType(prm.RQTypeSRQ); c.SetSRQN(n); c.SetLogRQSize(0) })
	h.status(in, prm.StatusBadParam)
}

func TestArmXRCSRQ(t *testing.T) {
	h, cq, xrcd := xrcBed(t)
	h.aeq, h.aeqn = h.newEQ(2, 1<<prm.EventSRQRQLimit|1<<prm.EventSRQCatasError)
	var db mem.PA
	n := prm.CreateXRCSRQOut(h.cmd(h.createXRCSRQ(cq, xrcd, func(_ prm.CreateXRCSRQIn, c prm.XRCSRQC) { db = mem.PA(c.DBRAddr()) }))).SRQN()
	arm := func(mod uint16, n, limit uint32, want prm.Status) {
		t.Helper()
		in := prm.NewIn(prm.OpArmXRCSRQ, 0)
		prm.CmdIn(in).SetOpMod(mod)
		prm.ArmXRCSRQIn(in).SetSRQN(n)
		prm.ArmXRCSRQIn(in).SetLWM(limit)
		h.status(in, want)
		run(t, h.e, 5*sim.Microsecond)
	}
	event := func(want bool) {
		t.Helper()
		e := h.nextEQE(h.aeq)
		if (e != nil) != want || want && (e.Type() != prm.EventSRQRQLimit || e.QPSRQN() != n) {
			t.Errorf("event % x, want one: %t", []byte(e), want)
		}
	}
	var rec [8]byte
	prm.SRQDBRec(rec[:]).SetCount(10)
	h.m.Write(db, rec[:])
	arm(prm.ArmXRCSRQMod, n, 10, prm.StatusOK)
	event(false)
	arm(prm.ArmXRCSRQMod, n, 11, prm.StatusOK)
	event(true)
	if c := prm.QueryXRCSRQOut(h.cmd(number(prm.OpQueryXRCSRQ, n))).Context(); c.LWM() != 0 || c.WQECnt() != 10 || c.State() != prm.XRCSRQGood {
		t.Errorf("limit %d, %d WQEs, state %d", c.LWM(), c.WQECnt(), c.State())
	}
	arm(prm.ArmXRCSRQMod, n, 16, prm.StatusBadParam)
	arm(prm.ArmXRCSRQMod, n, 15, prm.StatusOK)
	event(true)
	arm(0, n, 1, prm.StatusBadOp)
	arm(2, n, 1, prm.StatusBadOp)
	arm(prm.ArmXRCSRQMod, n+1, 1, prm.StatusBadResState)
	arm(prm.ArmXRCSRQMod, h.newSRQ(4).n, 1, prm.StatusBadResState)
}
