package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/sim"
)

// xrcHost is a host with what a driver keeps for XRC: its own domain, CQ and SRQ, which no program
// uses.
type xrcHost struct {
	*host
	own   uint32
	cq    *tCQ
	spare *tSRQ
}

func (h *host) newXRCD() uint32 {
	return prm.AllocXRCDOut(h.cmd(prm.NewIn(prm.OpAllocXRCD, 0))).XRCD()
}
func (h *host) newPD() uint32 { return prm.AllocPDOut(h.cmd(prm.NewIn(prm.OpAllocPD, 0))).PD() }

func newXRCHost(h *host) *xrcHost {
	x := &xrcHost{host: h, own: h.newXRCD(), cq: h.newCQ(1, 64)}
	x.spare = h.newXRCSRQ(x.own, h.pd, x.cq, prm.NoUserIndex)
	return x
}

// newXRCSRQ makes an XRC SRQ of 16 WQEs of 64 bytes.
func (h *host) newXRCSRQ(xrcd, pd uint32, cq *tCQ, uidx uint32) *tSRQ {
	s := &tSRQ{h: h, db: h.alloc(8), pa: h.alloc(4096), size: 16}
	in := prm.NewIn(prm.OpCreateXRCSRQ, 8)
	m := prm.CreateXRCSRQIn(in)
	c := m.Context()
	c.SetLogSize(4)
	c.SetLogRQStride(2)
	c.SetPD(pd)
	c.SetXRCD(xrcd)
	c.SetCQN(cq.n)
	c.SetUserIndex(uidx)
	c.SetDBRAddr(uint64(s.db))
	m.PAS().Set(0, uint64(s.pa))
	s.n = prm.CreateXRCSRQOut(h.cmd(in)).SRQN()
	return s
}

// newMRIn is newMR in a PD.
func (h *host) newMRIn(pd uint32, n uint64, rights uint32) *mr {
	own := h.pd
	h.pd = pd
	defer func() { h.pd = own }()
	return h.newMR(n, rights)
}

// fillAll posts all WQEs of an SRQ but one, each with n bytes at its own place of r.
func (s *tSRQ) fillAll(r *mr, n uint32) {
	for i := range s.size {
		s.put(i, (i+1)%s.size, r, uint32(i)*n, n)
	}
}

// newTarget makes a target QP as the driver does.
func (x *xrcHost) newTarget(xrcd uint32) *tQP {
	q := &tQP{h: x.host, scq: x.cq, rcq: x.cq, psn: 0xfffffd}
	q.n = prm.CreateQPOut(x.cmd(q.create(x.target(xrcd)))).QPN()
	return q
}

func (x *xrcHost) target(xrcd uint32) func(c prm.QPC) {
	return func(c prm.QPC) {
		c.SetST(prm.STXRC)
		c.SetNoSQ(true)
		c.SetLogSQSize(0)
		c.SetLogRQSize(0)
		c.SetLogRQStride(0)
		c.SetRQType(prm.RQTypeSRQ)
		c.SetSRQN(x.spare.n)
		c.SetXRCD(xrcd)
		c.SetUARPage(0)
		c.SetDBRAddr(0)
		c.SetUserIndex(prm.NoUserIndex)
	}
}

// newInitiator makes an initiator QP as the driver does.
func (x *xrcHost) newInitiator(scq *tCQ) *tQP {
	q := x.newQPOn(scq, x.cq, x.uar, x.initiator)
	q.sq, q.xrc = q.rq, true // there is no receive queue before it
	return q
}

func (x *xrcHost) initiator(c prm.QPC) {
	c.SetST(prm.STXRC)
	c.SetRQType(prm.RQTypeSRQ)
	c.SetSRQN(x.spare.n)
	c.SetXRCD(x.own)
	c.SetLogRQSize(0)
	c.SetLogRQStride(0)
}

// xrcWire looks at the frames of a direction, keeps them as captures have them, and may edit or
// lose them.
type xrcWire struct {
	Wire
	t      testing.TB
	e      *sim.Engine
	frames *[]oracle.Frame
	edit   func(p *roce.Packet) (lose bool) // may be nil
	srqns  map[uint32]int                   // of requests
}

func (w *xrcWire) Send(f *roce.Frame) {
	lose := w.edit != nil && w.edit(&f.Packet)
	if p := &f.Packet; p.Op.Transport() != roce.XRC {
		w.t.Errorf("a packet %v", p.Info().Name)
	} else if p.Info().Kind == roce.KindRequest {
		w.srqns[p.XRCETH().SRQN()]++
	}
	f.FinishICRC()
	o := oracle.Frame{Number: len(*w.frames) + 1, Time: int64(w.e.Now() / sim.Nanosecond), Data: f.AppendWhole(nil), Length: len(f.B)}
	if lose {
		o.Fate = oracle.Lost
		f.Release()
	}
	*w.frames = append(*w.frames, o)
	if !lose {
		w.Wire.Send(f)
	}
}

// xrcBench is an initiator on one host and a target on the other with three SRQs: a and c in two
// PDs, with two CQs, b of the second PD and CQ; and one of another domain.
type xrcBench struct {
	t        testing.TB
	e        *sim.Engine
	ha, hb   *xrcHost
	domain   uint32
	ini, tgt *tQP
	srqs     [3]*tSRQ
	cqs      [3]*tCQ
	pds      [3]uint32
	mem      [3]*mr // receives and RDMA of an SRQ's PD
	far      *tSRQ  // of another domain
	local    *mr
	ofSRQs   *hostEQ // events of SRQs, and about the last WQE
	ab, ba   *xrcWire
	frames   []oracle.Frame
}

const xrcSlot = 4096

func newXRCBench(t testing.TB, p Params, o opts) *xrcBench {
	e := sim.New(sim.Options{MaxEvents: 1 << 24})
	x := &xrcBench{t: t, e: e, ha: newXRCHost(newHost(t, e, p, 1)), hb: newXRCHost(newHost(t, e, p, 2))}
	ab, ba := newWire(e, x.hb.d, 1, "ab"), newWire(e, x.ha.d, 1, "ba")
	x.ab = &xrcWire{Wire: ab, t: t, e: e, frames: &x.frames, srqns: map[uint32]int{}}
	x.ba = &xrcWire{Wire: ba, t: t, e: e, frames: &x.frames, srqns: map[uint32]int{}}
	x.ha.d.SetWire(x.ab)
	x.hb.d.SetWire(x.ba)
	x.ofSRQs, _ = x.hb.newEQ(2, 1<<prm.EventSRQRQLimit|1<<prm.EventSRQLastWQE|1<<prm.EventSRQCatasError)
	x.domain = x.hb.newXRCD()
	first, second := x.hb.newCQ(7, 64), x.hb.newCQ(7, 128)
	x.cqs, x.pds = [3]*tCQ{first, second, second}, [3]uint32{x.hb.newPD(), x.hb.newPD(), 0}
	x.pds[2] = x.pds[1]
	for i := range x.srqs {
		x.srqs[i] = x.hb.newXRCSRQ(x.domain, x.pds[i], x.cqs[i], 0x100+uint32(i))
		x.mem[i] = x.hb.newMRIn(x.pds[i], 16*xrcSlot, rightsAll)
		x.srqs[i].fillAll(x.mem[i], xrcSlot)
	}
	x.far = x.hb.newXRCSRQ(x.hb.newXRCD(), x.pds[0], first, 0x200)
	x.far.fillAll(x.mem[0], xrcSlot)
	x.local = x.ha.newMR(16*xrcSlot, rightsAll)
	x.local.fill(pattern)
	x.ini, x.tgt = x.ha.newInitiator(x.ha.newCQ(7, 64)), x.hb.newTarget(x.domain)
	x.ini.connect(x.tgt, o)
	x.tgt.connect(x.ini, o)
	return x
}

func (x *xrcBench) run(d sim.Time) {
	x.t.Helper()
	run(x.t, x.e, d)
}

// send is a SEND of n bytes to SRQ i.
func (x *xrcBench) send(i, n int) wr {
	return wr{op: prm.WQEOpSend, srqn: x.srqs[i].n, sges: []sge{x.local.sge(0, n)}}
}

// received expects a receive of SRQ i, of its WQE w.
func (x *xrcBench) received(i, w int, op prm.CQEOpcode) prm.CQE64 {
	x.t.Helper()
	e := x.cqs[i].expect(op)
	if int(e.WQECounter()) != w || e.SRQNUIdx() != 0x100+uint32(i) || e.QPN() != x.tgt.n || e.RQPN() != x.ini.n {
		x.t.Fatalf("WQE %d of %#x, QP %#x from %#x; want WQE %d of SRQ %d, QP %#x from %#x", e.WQECounter(), e.SRQNUIdx(), e.QPN(), e.RQPN(), w, i, x.tgt.n, x.ini.n)
	}
	return e
}

// judge has the oracle judge all frames. known are the rules that the test breaks.
func (x *xrcBench) judge(o oracle.Options, known ...string) {
	x.t.Helper()
	o.Complete, o.Delivered, o.SRQ = true, true, true
	res := oracle.Judge(oracle.Capture{Frames: x.frames}, o)
	if !res.Whole || res.RDMA != len(x.frames) || res.RDMA == 0 {
		x.t.Errorf("judged %d of %d frames: %v", res.RDMA, len(x.frames), res.Broken)
	}
verdicts:
	for _, v := range res.Verdicts {
		for _, k := range known {
			if v.Rule == k {
				continue verdicts
			}
		}
		if v.Kind == oracle.Violation {
			x.t.Errorf("%+v", v)
		}
	}
}

// quiet expects no more completions, no event of the target's host, and no frame that is kept.
func (x *xrcBench) quiet() {
	x.t.Helper()
	x.ini.scq.expectNone()
	for _, q := range x.cqs {
		q.expectNone()
	}
	x.hb.cq.expectNone()
	for _, q := range []*hostEQ{x.hb.aeq, x.ofSRQs} {
		if e := x.hb.nextEQE(q); e != nil {
			x.t.Errorf("event %#x of %#x", e.Type(), e.QPSRQN())
		}
	}
	if live := x.ha.d.frames.Live + x.hb.d.frames.Live; live != 0 {
		x.t.Errorf("%d frames leaked", live)
	}
}

// event expects an event of the target's host.
func (x *xrcBench) event(t prm.EventType, n uint32) {
	x.t.Helper()
	q := x.ofSRQs
	if t != prm.EventSRQRQLimit && t != prm.EventSRQLastWQE && t != prm.EventSRQCatasError {
		q = x.hb.aeq
	}
	if e := x.hb.nextEQE(q); e == nil || e.Type() != t || e.QPSRQN() != n {
		x.t.Fatalf("event % x, want %#x of %#x", []byte(e), t, n)
	}
}
