package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// status expects a command to fail with a status.
func (h *host) status(in []byte, want prm.Status) {
	h.t.Helper()
	out, got := h.try(in)
	if got != want {
		h.t.Fatalf("%v: status %v, want %v", prm.CmdIn(in).Opcode(), got, want)
	}
	if want != prm.StatusOK && (prm.CmdOut(out).Syndrome() == 0 || !bytes.Equal(out[8:], make([]byte, len(out)-8))) {
		h.t.Fatalf("%v: answer % x", prm.CmdIn(in).Opcode(), out)
	}
}

func number(op prm.Opcode, n uint32) []byte {
	in := prm.NewIn(op, 0)
	prm.DeallocPDIn(in).SetPD(n) // the same place in all of them
	return in
}

func TestPhases(t *testing.T) {
	e := sim.New(sim.Options{})
	h := &host{t: t, e: e}
	h.d = New(e, "x", nil, testParams(), Identity{})
	h.status(prm.NewIn(prm.OpAllocPD, 0), prm.StatusBadSysState)
	h.status(prm.NewIn(prm.OpInitHCA, 0), prm.StatusBadSysState)
	h.status(prm.NewIn(prm.OpEnableHCA, 0), prm.StatusOK)
	h.status(prm.NewIn(prm.OpEnableHCA, 0), prm.StatusBadSysState)
	h.status(prm.NewIn(prm.OpAllocPD, 0), prm.StatusBadSysState)
	in := prm.NewIn(prm.OpSetISSI, 0)
	prm.SetISSIIn(in).SetCurrentISSI(2)
	h.status(in, prm.StatusBadParam)
	prm.SetISSIIn(in).SetCurrentISSI(1)
	h.status(in, prm.StatusOK)
	h.status(prm.NewIn(prm.OpInitHCA, 0), prm.StatusOK)
	h.status(in, prm.StatusBadSysState)
	h.status(prm.NewIn(prm.OpAllocPD, 0), prm.StatusOK)
	h.status(prm.NewIn(prm.OpTeardownHCA, 0), prm.StatusOK)
	h.status(prm.NewIn(prm.OpDisableHCA, 0), prm.StatusOK)
}

func TestMailboxes(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	out := make([]byte, 16)
	for _, c := range []struct {
		in   []byte
		want prm.Status
	}{
		{nil, prm.StatusBadInpLen},
		{make([]byte, 16), prm.StatusBadOp},
		{number(prm.OpAllocPD, 0)[:15], prm.StatusBadInpLen},
		{prm.NewIn(prm.OpQueryCQ, 0), prm.StatusBadOutpLen},
	} {
		h.d.Command(c.in, out)
		if got := prm.CmdOut(out).Status(); got != c.want {
			t.Errorf("% x: %v, want %v", c.in, got, c.want)
		}
	}
	h.d.Command(prm.NewIn(prm.OpNOP, 0), nil)
}

// TestCapabilities checks what a driver reads of the general page, and SET.
func TestCapabilities(t *testing.T) {
	e := sim.New(sim.Options{})
	h := &host{t: t, e: e, d: New(e, "x", nil, testParams(), Identity{})}
	h.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	query := func(mode uint16) prm.HCACap {
		in := prm.NewIn(prm.OpQueryHCACap, 0)
		prm.CmdIn(in).SetOpMod(prm.CapGeneral<<1 | mode)
		return prm.HCACap(prm.QueryHCACapOut(h.cmd(in)).Capability())
	}
	c := query(prm.CapModeMax)
	if !c.RC() || c.LogMaxQP() != 18 || c.LogBFRegSize() != 9 || !c.BF() || c.MaxWQESzSQ() != 1024 || c.LogMaxMsg() != 30 || c.UARSz() != 4 || !c.CQResize() {
		t.Fatal("general page")
	}
	in := prm.NewIn(prm.OpSetHCACap, 0)
	prm.CmdIn(in).SetOpMod(prm.CapGeneral << 1)
	body := prm.HCACap(prm.SetHCACapIn(in).Capability())
	copy(body, c)
	body.SetLogMaxQP(19)
	h.status(in, prm.StatusBadParam)
	body.SetLogMaxQP(17)
	h.status(in, prm.StatusOK)
	if query(prm.CapModeCurrent).LogMaxQP() != 17 || query(prm.CapModeMax).LogMaxQP() != 18 {
		t.Fatal("SET_HCA_CAP not visible")
	}
	q := prm.NewIn(prm.OpQueryHCACap, 0)
	prm.CmdIn(q).SetOpMod(0x7f << 1)
	h.status(q, prm.StatusBadParam)
}

// TestReferences destroys what is in use, then in the right order.
func TestReferences(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq := h.newCQ(4, 64)
	q := h.newQP(cq, cq)
	r := h.newMR(4096, rightsAll)
	bad, ok := prm.StatusBadResState, prm.StatusOK
	for _, c := range []struct {
		op   prm.Opcode
		n    uint32
		want prm.Status
	}{
		{prm.OpDeallocPD, h.pd, bad}, {prm.OpDeallocUAR, h.uar, bad}, {prm.OpDestroyEQ, h.eqn, bad}, {prm.OpDestroyCQ, cq.n, bad},
		{prm.OpDestroyQP, 0xfffff, bad}, {prm.OpDestroyQP, q.n, ok}, {prm.OpDestroyQP, q.n, bad},
		{prm.OpDestroyCQ, cq.n, ok}, {prm.OpDestroyCQ, cq.n, bad}, {prm.OpDeallocPD, h.pd, bad},
		{prm.OpDestroyMKey, r.index, ok}, {prm.OpDestroyMKey, r.index, bad}, {prm.OpDeallocPD, h.pd, ok}, {prm.OpDeallocPD, h.pd, bad},
		{prm.OpDestroyEQ, h.eqn, ok}, {prm.OpDestroyEQ, h.aeqn, ok}, {prm.OpDeallocUAR, h.uar, ok}, {prm.OpDeallocUAR, h.uar, bad},
	} {
		h.status(number(c.op, c.n), c.want)
	}
}

// TestQPNumbersAreReusedLate checks reuse: late for QPs, at once for the rest.
func TestQPNumbersAreReusedLate(t *testing.T) {
	n := numbers{next: 4, limit: 200, late: true}
	var got []uint32
	for range 100 {
		x, _ := n.alloc()
		got = append(got, x)
	}
	for _, x := range got[:70] {
		n.release(x)
	}
	for i := range 6 {
		if x, _ := n.alloc(); x != got[i] {
			t.Fatalf("reuse %d of %d", x, got[i])
		}
	}
	for range 96 {
		if x, ok := n.alloc(); !ok || x < 104 {
			t.Fatal(x, ok)
		}
	}
	m := numbers{next: 1, limit: 6}
	for range 5 {
		m.alloc()
	}
	if _, ok := m.alloc(); ok {
		t.Fatal("beyond the limit")
	}
	for _, x := range []uint32{4, 2, 5} {
		m.release(x)
	}
	for _, want := range []uint32{2, 4, 5} {
		if x, _ := m.alloc(); x != want {
			t.Fatalf("%d, want %d", x, want)
		}
	}
}

// TestTransitions walks the state table, with what is refused on the way.
func TestTransitions(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	cq := h.newCQ(4, 64)
	a := h.newQP(cq, cq)
	mod := func(op prm.Opcode, want prm.Status, f func(m prm.ModifyQPIn, c prm.QPC)) {
		t.Helper()
		in := prm.NewIn(op, 0)
		m := prm.ModifyQPIn(in)
		m.SetQPN(a.n)
		if f != nil {
			f(m, m.QPC())
		}
		before := a.query()
		h.status(in, want)
		if want != prm.StatusOK && !bytes.Equal(before, a.query()) {
			t.Fatalf("%v failed and changed something", op)
		}
	}
	ok, state := prm.StatusOK, prm.StatusBadQPState
	for _, op := range []prm.Opcode{prm.OpInit2InitQP, prm.OpInit2RTRQP, prm.OpRTR2RTSQP, prm.OpRTS2RTSQP, prm.OpSQDRTSQP, prm.OpSQErr2RTSQP} {
		mod(op, state, nil)
	}
	mod(prm.Op2ErrQP, state, nil)
	mod(prm.OpRst2InitQP, prm.StatusIX, func(_ prm.ModifyQPIn, c prm.QPC) { c.PrimaryPath().SetPKeyIndex(1) })
	mod(prm.OpRst2InitQP, ok, func(_ prm.ModifyQPIn, c prm.QPC) { c.SetRWE(true) })
	mod(prm.OpInit2InitQP, ok, func(m prm.ModifyQPIn, c prm.QPC) { m.SetOptParamMask(prm.OptParRRE); c.SetRRE(true) })
	if c := a.query(); !c.RRE() || !c.RWE() || c.State() != prm.QPStateINIT {
		t.Fatal("optional field, or one without its bit")
	}
	mod(prm.OpInit2InitQP, prm.StatusBadParam, func(m prm.ModifyQPIn, _ prm.QPC) { m.SetOptParamMask(prm.OptParRetryCount) })
	rtr := func(f func(c prm.QPC)) func(m prm.ModifyQPIn, c prm.QPC) {
		return func(_ prm.ModifyQPIn, c prm.QPC) {
			copy(c.PrimaryPath().RGID(), h.gid[:])
			c.SetMTU(uint32(roce.MTU1024))
			c.SetNextRcvPSN(77)
			c.SetRemoteQPN(a.n)
			if f != nil {
				f(c)
			}
		}
	}
	mod(prm.OpInit2RTRQP, prm.StatusBadParam, rtr(func(c prm.QPC) { c.SetMTU(6) }))
	mod(prm.OpInit2RTRQP, prm.StatusBadParam, rtr(func(c prm.QPC) { c.SetLogRRAMax(7) }))
	mod(prm.OpInit2RTRQP, prm.StatusBadParam, rtr(func(c prm.QPC) { c.PrimaryPath().SetSrcAddrIndex(3) }))
	mod(prm.OpInit2RTRQP, prm.StatusIX, rtr(func(c prm.QPC) { c.PrimaryPath().SetSrcAddrIndex(200) }))
	mod(prm.OpInit2RTRQP, ok, rtr(nil))
	mod(prm.OpInit2RTRQP, state, rtr(nil))
	mod(prm.OpRTR2RTSQP, ok, func(_ prm.ModifyQPIn, c prm.QPC) { c.SetNextSendPSN(99); c.SetRetryCount(3) })
	if c := a.query(); c.NextSendPSN() != 99 || c.NextRcvPSN() != 77 || c.RetryCount() != 3 || c.MTU() != uint32(roce.MTU1024) {
		t.Fatal("query after RTS")
	}
	mod(prm.OpRTS2RTSQP, ok, func(m prm.ModifyQPIn, c prm.QPC) { m.SetOptParamMask(prm.OptParRWE) })
	if a.query().RWE() {
		t.Fatal("RWE still set")
	}
	// To itself, and the live PSNs.
	a.post(wr{op: prm.WQEOpRDMARead, raddr: 1, rkey: 1})
	run(t, h.e, 20*sim.Microsecond)
	if c := a.query(); c.NextSendPSN() != 100 || c.NextRcvPSN() != 77 {
		t.Fatalf("PSNs %d %d: the peer expects 77, so nothing was executed", c.NextSendPSN(), c.NextRcvPSN())
	}
	mod(prm.Op2ErrQP, ok, nil)
	mod(prm.Op2ErrQP, ok, nil)
	run(t, h.e, 20*sim.Microsecond)
	cq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	mod(prm.OpRst2InitQP, state, nil)
	mod(prm.Op2RstQP, ok, nil)
	mod(prm.OpRst2InitQP, ok, nil)
	mod(prm.Op2RstQP, ok, nil)
	mod(prm.OpRst2InitQP, ok, nil)
}

func TestAddressTable(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	in := prm.NewIn(prm.OpSetRoCEAddress, 0)
	m := prm.SetRoCEAddressIn(in)
	m.SetRoCEAddressIndex(16)
	h.status(in, prm.StatusIX)
	m.SetRoCEAddressIndex(3)
	m.Addr().SetRoCEVersion(7)
	h.status(in, prm.StatusBadParam)
	m.Addr().SetRoCEVersion(prm.RoCEVersion2)
	m.Addr().SourceL3()[15] = 9
	h.status(in, prm.StatusOK)
	q := prm.NewIn(prm.OpQueryRoCEAddress, 0)
	prm.QueryRoCEAddressIn(q).SetRoCEAddressIndex(3)
	if !bytes.Equal(prm.QueryRoCEAddressOut(h.cmd(q)).Addr(), m.Addr()) {
		t.Fatal("the address is not what was set")
	}
}

// TestTap: a tap sees whole frames with their ICRC and changes nothing.
func TestTap(t *testing.T) {
	trace := func(tap bool) (times []sim.Time, events uint64) {
		h, a, b := pair(t, defaults())
		r := h.newMR(8192, rightsAll)
		n := 0
		if tap {
			last := sim.Time(0)
			h.d.SetTap(func(at sim.Time, f *roce.Frame) {
				p, err := roce.Parse(f.B)
				if err != nil || !p.ICRCOK() || at < last || at != h.e.Now() {
					t.Fatalf("frame %d: %v", n, err)
				}
				last = at
				n++
			})
		}
		b.recv(r.sge(0, 4096))
		a.post(wr{op: prm.WQEOpSend, sges: []sge{r.sge(4096, 3000)}}, wr{op: prm.WQEOpRDMARead, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(0, 2000)}})
		for a.scq.ci < 2 {
			run(t, h.e, 10*sim.Nanosecond)
			if a.scq.poll() != nil {
				times = append(times, h.e.Now())
			}
		}
		if tap && n != 3+1+1+2 {
			t.Fatalf("the tap saw %d frames", n)
		}
		return times, h.e.Events()
	}
	t1, e1 := trace(false)
	t2, e2 := trace(true)
	if e1 != e2 || t1[0] != t2[0] || t1[1] != t2[1] {
		t.Fatalf("%v %d and %v %d", t1, e1, t2, e2)
	}
}

// TestCorruptFrame: a frame that was changed on its way is dropped, and sent again.
func TestCorruptFrame(t *testing.T) {
	o := defaults()
	o.timeout = 3
	ha, hb, a, _, ab, _ := twoHosts(t, testParams(), 1, o)
	r := hb.newMR(4096, rightsAll)
	ab.spoil = 1
	a.push(wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("abcd")})
	run(t, ha.e, ms)
	a.scq.expect(prm.CQEReq)
	if got := r.bytes(0, 4); string(got) != "abcd" || hb.d.Counters().RxDropped[roce.DropICRC] != 1 {
		t.Fatalf("memory %q, %d dropped", got, hb.d.Counters().RxDropped[roce.DropICRC])
	}
}

// TestConflicts pushes through two registers of one page at the same instant.
func TestConflicts(t *testing.T) {
	done := func(edit func(p *Params)) (sim.Time, *Counters) {
		p := testParams()
		edit(&p)
		h := newHost(t, sim.New(sim.Options{}), p, 1)
		cq := h.newCQ(7, 64)
		a, b := h.newQP(cq, cq), h.newQP(cq, cq)
		a.connect(b, defaults())
		b.connect(a, defaults())
		b.half = 512
		run(t, h.e, 5*sim.Microsecond)
		start := h.e.Now()
		a.push(wr{op: prm.WQEOpNOP})
		b.push(wr{op: prm.WQEOpNOP})
		for cq.ci < 2 {
			run(t, h.e, sim.Nanosecond)
			cq.poll()
		}
		return h.e.Now() - start, h.d.Counters()
	}
	none, c := done(func(p *Params) {})
	if c.WQEsPushed != 2 {
		t.Fatal("not pushed")
	}
	ser, c := done(func(p *Params) { p.UAR.BFConflict = 1; p.UAR.BFConflictCost = 30 * sim.Nanosecond })
	if c.WQEsPushed != 2 || ser <= none+30*sim.Nanosecond || ser > none+40*sim.Nanosecond {
		t.Fatalf("serialize takes %v, none %v", ser, none)
	}
	re, c := done(func(p *Params) { p.UAR.BFConflict = 2 })
	if c.WQEsPushed != 1 || c.WQEFetches != 1 || re < none+300*sim.Nanosecond {
		t.Fatalf("refetch takes %v, none %v", re, none)
	}
}
