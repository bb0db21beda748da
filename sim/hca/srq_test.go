package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// tSRQ is an SRQ of the driver: WQEs of 64 bytes.
type tSRQ struct {
	h    *host
	n    uint32
	pa   mem.PA
	db   mem.PA
	size int
}

func (h *host) newSRQ(log int) *tSRQ {
	s := &tSRQ{h: h, db: h.alloc(8), size: 1 << log}
	s.pa = h.alloc(uint64(64 << log))
	pages := (64<<log + 4095) / 4096
	in := prm.NewIn(prm.OpCreateRMP, 8*pages)
	m := prm.CreateRMPIn(in)
	m.RMPC().SetState(prm.RMPStateReady)
	w := m.RMPC().WQ()
	w.SetPD(h.pd)
	w.SetLogWQSz(uint32(log))
	w.SetLogWQStride(6)
	w.SetDBRAddr(uint64(s.db))
	for i := range pages {
		m.PAS().Set(i, uint64(s.pa)+uint64(i)*4096)
	}
	s.n = prm.CreateRMPOut(h.cmd(in)).RMPN()
	return s
}

// put writes WQE i: the next one in the list, and n bytes at off of r.
func (s *tSRQ) put(i, next int, r *mr, off, n uint32) {
	b := make([]byte, 64)
	prm.SRQNextSegment(b).SetNextWQEIndex(uint16(next))
	prm.DataSegment(b[16:]).Set(n, r.lkey, r.va+uint64(off))
	prm.DataSegment(b[32:]).Set(0, prm.InvalidLKey, 0)
	s.h.m.Write(s.pa+mem.PA(64*i), b)
}

func (s *tSRQ) post(count uint16) {
	var b [8]byte
	prm.SRQDBRec(b[:]).SetCount(count)
	s.h.m.Write(s.db, b[:])
}

func (s *tSRQ) arm(limit uint32) prm.Status {
	in := prm.NewIn(prm.OpModifyRMP, 0)
	m := prm.ModifyRMPIn(in)
	m.SetRMPN(s.n)
	m.SetRMPState(prm.RMPStateReady)
	m.SetSelectLWM(true)
	m.RMPC().SetState(prm.RMPStateReady)
	m.RMPC().WQ().SetLWM(limit)
	_, st := s.h.try(in)
	return st
}

func (s *tSRQ) on(c prm.QPC) {
	c.SetRQType(prm.RQTypeSRQ)
	c.SetSRQN(s.n)
	c.SetLogRQSize(0)
	c.SetLogRQStride(0)
}

// srqPair is a pair of which b takes receives from an SRQ of 2^log.
func srqPair(t testing.TB, log int, budget uint64) (*host, *tQP, *tQP, *tSRQ) {
	h := newHost(t, sim.New(sim.Options{MaxEvents: budget}), testParams(), 1)
	h.aeq, h.aeqn = h.newEQ(2, 1<<prm.EventSRQRQLimit|1<<prm.EventSRQLastWQE|1<<prm.EventSRQCatasError)
	s := h.newSRQ(log)
	a, b := h.newQP(h.newCQ(7, 64), h.newCQ(7, 64)), h.newQPOn(h.newCQ(7, 64), h.newCQ(7, 64), h.uar, s.on)
	a.connect(b, defaults())
	b.connect(a, defaults())
	return h, a, b, s
}

// sendN posts SENDs of 256 bytes.
func (q *tQP) sendN(r *mr, n int) {
	for range n {
		q.post(wr{op: prm.WQEOpSend, sges: []sge{r.sge(0, 256)}})
	}
}

// The device follows the list, wherever it leads, and names in completions the WQE
// that it took.
func TestSRQFollowsTheList(t *testing.T) {
	h, a, b, s := srqPair(t, 4, 1<<20)
	src, dst := h.newMR(4096, rightsAll), h.newMR(16*256, rightsAll)
	src.fill(func(i int) byte { return byte(i * 7) })
	list := []int{0, 1, 2, 9, 8, 15, 3, 4, 5, 6, 10, 11, 12, 13, 14, 7}
	for k, i := range list {
		s.put(i, list[(k+1)%16], dst, uint32(256*i), 256)
	}
	s.post(6)
	a.sendN(src, 8)
	run(t, h.e, 20*sim.Microsecond)
	for _, i := range list[:6] {
		if e := b.rcq.expect(prm.CQERespSend); int(e.WQECounter()) != i || e.SRQNUIdx() != 0xabc {
			t.Fatalf("completion of WQE %d, user index %#x, want WQE %d", e.WQECounter(), e.SRQNUIdx(), i)
		}
	}
	b.rcq.expectNone() // the others see RNR
	s.post(14)
	run(t, h.e, sim.Millisecond)
	for _, i := range list[6:8] {
		if e := b.rcq.expect(prm.CQERespSend); int(e.WQECounter()) != i {
			t.Fatalf("completion of WQE %d, want %d", e.WQECounter(), i)
		}
		if got := dst.bytes(256*i, 256); string(got) != string(src.bytes(0, 256)) {
			t.Fatalf("WQE %d: wrong bytes", i)
		}
	}
}

func TestSRQLimitAndLastWQE(t *testing.T) {
	h, a, b, s := srqPair(t, 4, 1<<20)
	r := h.newMR(4096, rightsAll)
	for i := range 16 {
		s.put(i, (i+1)%16, r, 0, 256)
	}
	s.post(8)
	if st := s.arm(16); st != prm.StatusBadParam {
		t.Fatalf("a limit above the ring: status %v", st)
	}
	if st := s.arm(6); st != prm.StatusOK {
		t.Fatal(st)
	}
	a.sendN(r, 2)
	run(t, h.e, sim.Millisecond)
	if e := h.nextEQE(h.aeq); e != nil {
		t.Fatalf("event %v with 6 WQEs and a limit of 6", e.Type())
	}
	s.post(9) // one more: the device must look before it says that 5 are left
	a.sendN(r, 1)
	run(t, h.e, sim.Millisecond)
	if e := h.nextEQE(h.aeq); e != nil {
		t.Fatalf("event %v though 6 WQEs are there", e.Type())
	}
	a.sendN(r, 2)
	run(t, h.e, sim.Millisecond)
	if e := h.nextEQE(h.aeq); e == nil || e.Type() != prm.EventSRQRQLimit || e.QPSRQN() != s.n {
		t.Fatalf("want one limit event of SRQ %#x, got %v", s.n, e)
	}
	if e := h.nextEQE(h.aeq); e != nil {
		t.Fatalf("a second event: %v", e.Type())
	}
	s.arm(8) // already below: reported at once
	run(t, h.e, sim.Millisecond)
	if e := h.nextEQE(h.aeq); e == nil || e.Type() != prm.EventSRQRQLimit {
		t.Fatalf("no event for a limit above what is posted")
	}
	in := prm.NewIn(prm.OpDestroyRMP, 0)
	prm.DestroyRMPIn(in).SetRMPN(s.n)
	if _, st := h.try(in); st != prm.StatusBadResState {
		t.Fatalf("destroy with a QP: %v", st)
	}
	to := prm.NewIn(prm.Op2ErrQP, 0)
	prm.Cmd2ErrQPIn(to).SetQPN(b.n)
	h.cmd(to)
	run(t, h.e, sim.Millisecond)
	if e := h.nextEQE(h.aeq); e == nil || e.Type() != prm.EventSRQLastWQE || e.QPSRQN() != b.n {
		t.Fatalf("want LAST_WQE of QP %#x, got %v", b.n, e)
	}
	for range 5 {
		b.rcq.expect(prm.CQERespSend)
	}
	b.rcq.expectNone()
}

// FuzzSRQ runs arbitrary bytes as the ring and the record of an SRQ.
func FuzzSRQ(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1}, uint16(3), uint16(7))
	f.Add([]byte{0, 0, 0xff, 0xff}, uint16(16), uint16(0))
	f.Fuzz(func(t *testing.T, body []byte, posted, limit uint16) {
		h, a, b, s := srqPair(t, 4, fuzzEvents)
		r := h.newMR(4096, rightsAll)
		ring := make([]byte, 16*64)
		for i := range ring {
			if len(body) > 0 {
				ring[i] = body[i%len(body)]
			}
		}
		h.m.Write(s.pa, ring)
		s.post(posted)
		s.arm(uint32(limit))
		a.sendN(r, 20)
		if err := h.e.Run(h.e.Now() + 10*sim.Millisecond); err != nil {
			t.Fatal(err)
		}
		to := prm.NewIn(prm.Op2ErrQP, 0)
		prm.Cmd2ErrQPIn(to).SetQPN(b.n)
		h.cmd(to)
		prm.Cmd2ErrQPIn(to).SetQPN(a.n)
		h.cmd(to)
		settle(t, h.e)
	})
}
