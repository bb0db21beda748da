package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// What is referred to cannot go, and goes when the last reference is gone.
func TestReferences(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	c := Caller{}
	ch, err := u.CreateChannel(c)
	if err != nil {
		t.Fatal(err)
	}
	pd, other := s.pd(u), s.pd(u)
	req := s.cqReq(u, 15)
	req.Channel = ch
	cq, _, err := u.CreateCQ(c, req)
	if err != nil {
		t.Fatal(err)
	}
	qp := s.qp(u, pd, cq, verbs.QPTRC)
	mr, lkey, rkey, err := u.RegMR(c, pd, s.buf(4096, mem.Read|mem.Write), 4096, 0, verbs.AccessLocalWrite)
	if err != nil || lkey != rkey {
		t.Fatalf("keys %#x %#x, %v", lkey, rkey, err)
	}
	// Pinned: the CQ's ring and record, the QP's ring of two pages and its record, the MR.
	want := Resources{Ctx: 1, PD: 2, CQ: 1, QP: 1, MR: 1, CompChannel: 1, PinnedPages: 2 + 3 + 1}
	if got := s.d.Resources(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}

	wantErrno(t, "PD with QP and MR", u.DeallocPD(c, pd), syscall.EBUSY)
	_, _, err = u.DestroyCQ(c, cq)
	wantErrno(t, "CQ with QP", err, syscall.EBUSY)
	wantErrno(t, "channel with CQ", u.DestroyChannel(c, ch), syscall.EBUSY)
	wantErrno(t, "free PD", u.DeallocPD(c, other), 0)
	wantErrno(t, "PD that is gone", u.DeallocPD(c, other), syscall.ENOENT)
	wantErrno(t, "a CQ is no PD", u.DeallocPD(c, cq), syscall.EINVAL)
	wantErrno(t, "no handle", u.DeallocPD(c, 0), syscall.EINVAL)
	wantErrno(t, "no such handle", u.DeregMR(c, 999), syscall.ENOENT)

	_, err = u.DestroyQP(c, qp)
	wantErrno(t, "QP", err, 0)
	wantErrno(t, "PD with MR", u.DeallocPD(c, pd), syscall.EBUSY)
	wantErrno(t, "MR", u.DeregMR(c, mr), 0)
	wantErrno(t, "PD", u.DeallocPD(c, pd), 0)
	_, _, err = u.DestroyCQ(c, cq)
	wantErrno(t, "CQ", err, 0)
	wantErrno(t, "channel", u.DestroyChannel(c, ch), 0)
	wantErrno(t, "channel twice", u.DestroyChannel(c, ch), syscall.EBADF)
	if got, want := s.d.Resources(), (Resources{Ctx: 1}); got != want {
		t.Errorf("left over: %+v", got)
	}
}

// Closing a context with everything on it gives everything back, to the kernel, the
// device and the memory, in both generations.
func TestCloseGivesAllBack(t *testing.T) {
	for _, gen := range []Generation{Dynamic, Static} {
		p := testParams()
		p.Generation, p.MKeyCache = gen, NoKeyAgain
		s := newSetup(t, p)
		before := map[prm.Opcode]int{}
		for op, n := range s.f.live {
			before[op] = n
		}
		u := s.open()
		pd := s.pd(u) // made first, so busy in the first pass of the cleanup
		for range 3 {
			cq := s.cq(u)
			for range 2 {
				r := s.qpReq(pd, cq, verbs.QPTRC)
				if gen == Static {
					r.BFRegMode = BFRegKernel
				}
				if _, _, err := u.CreateQP(Caller{}, r); err != nil {
					t.Fatal(err)
				}
			}
		}
		if gen == Dynamic {
			if _, err := u.AllocUAR(Caller{}, UARTypeBF); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := u.CreateChannel(Caller{}); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := u.RegMR(Caller{}, pd, s.buf(1<<20, mem.Read), 1<<20, 0, 0); err != nil {
			t.Fatal(err)
		}
		u.Close(Caller{})
		u.Close(Caller{}) // a second close finds nothing
		if got := s.d.Resources(); got != (Resources{}) {
			t.Errorf("generation %d: left over: %+v", gen, got)
		}
		for op, n := range s.f.live {
			if n != before[op] {
				t.Errorf("generation %d: %v: %d objects, before %d", gen, op, n, before[op])
			}
		}
		if s.proc.Space.Pinned != 0 {
			t.Errorf("generation %d: %d pages are pinned", gen, s.proc.Space.Pinned)
		}
		_, _, err := u.AllocPD(Caller{})
		wantErrno(t, "closed context", err, syscall.EBADF)
	}
}

// A refused command leaves nothing behind.
func TestFailedCreationLeavesNothing(t *testing.T) {
	for _, gen := range []Generation{Dynamic, Static} {
		p := testParams()
		p.Generation = gen
		s := newSetup(t, p)
		u := s.open()
		pd, cq := s.pd(u), s.cq(u)
		before, pinned := s.d.Resources(), s.proc.Space.Pinned
		qreq := s.qpReq(pd, cq, verbs.QPTRC)
		if gen == Static {
			qreq.BFRegMode = BFRegKernel
		}
		creq, addr := s.cqReq(u, 7), s.buf(8192, mem.Read)
		for op, status := range map[prm.Opcode]prm.Status{
			prm.OpCreateCQ: prm.StatusLimErr, prm.OpCreateQP: prm.StatusLimErr, prm.OpCreateMKey: prm.StatusLimErr,
		} {
			s.f.fail[op] = status
		}
		_, _, err := u.CreateCQ(Caller{}, creq)
		wantErrno(t, "CQ", err, syscall.ENOMEM)
		_, _, err = u.CreateQP(Caller{}, qreq)
		wantErrno(t, "QP", err, syscall.ENOMEM)
		_, _, _, err = u.RegMR(Caller{}, pd, addr, 8192, 0, 0)
		wantErrno(t, "MR", err, syscall.ENOMEM)
		if got := s.d.Resources(); got != before || s.proc.Space.Pinned != pinned {
			t.Errorf("%+v, before %+v; %d pinned, before %d", got, before, s.proc.Space.Pinned, pinned)
		}
		if gen == Static && u.bfregs.Users(u.bfregs.FirstHigh()) != 0 {
			t.Error("the bfreg of a QP that was not made is in use")
		}
		wantErrno(t, "PD without references", u.DeallocPD(Caller{}, pd), 0)
	}
}

// A thread that is killed inside a call leaves a context that can be cleaned up.
func TestKilledInsideCall(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	s.f.took = sim.Millisecond
	victim := s.e.Go("victim", func(p *sim.Proc) {
		for {
			_, _, _ = u.AllocPD(Caller{P: p})
		}
	})
	s.e.Go("killer", func(p *sim.Proc) {
		p.Sleep(1500 * sim.Microsecond)
		victim.Kill()
		u.Close(Caller{P: p})
	})
	if err := s.e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	if got := s.d.Resources(); got != (Resources{}) || s.f.live[prm.OpAllocPD] != 1 {
		t.Errorf("left over: %+v, %d PDs in the device", got, s.f.live[prm.OpAllocPD])
	}
}
