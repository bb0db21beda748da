package kernel

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// TestUMRQueueIsMadeOnce: with the first region, as mlx5_ib makes it, without a PD.
func TestUMRQueueIsMadeOnce(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	if s.f.live[prm.OpCreateQP] != 0 {
		t.Error("a QP before the first region")
	}
	addr := s.buf(3*page, mem.Read|mem.Write)
	for range 3 {
		h, key, _, err := u.RegMR(Caller{}, pd, addr, 3*page, addr, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		wantErrno(t, "register", err, 0)
		w := &s.f.umr
		sge, _, ok := w.Data(0)
		if w.Ctrl.Imm() != key || w.UMR.Flags() != prm.UMRCheckFree || w.UMR.XLTOctowords() != 4 || !ok || sge.Len != 64 || sge.LKey != s.d.umr.lkey {
			t.Errorf("registration: key %#x, flags %#x, %d units, list %+v", w.Ctrl.Imm(), w.UMR.Flags(), w.UMR.XLTOctowords(), sge)
		}
		// The mask that a real driver sends to a device without atomics and relaxed ordering by
		// UMR, whatever those of this one are.
		const always = prm.MKeyMaskKey | prm.MKeyMaskFree | prm.MKeyMaskLen | prm.MKeyMaskPageSize | prm.MKeyMaskStartAddr | prm.MKeyMaskPD |
			prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW
		if w.UMR.MKeyMask()&^(prm.MKeyMaskA|prm.MKeyMaskRelaxedOrderingWrite|prm.MKeyMaskRelaxedOrderingRead) != always {
			t.Errorf("mask %#x", w.UMR.MKeyMask())
		}
		list := make(prm.MTT, 64)
		s.m.Read(mem.PA(sge.Addr), list)
		if list.Addr(0) == 0 || list.Addr(3) != 0 {
			t.Errorf("translations % x", []byte(list))
		}
		wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
		if w.UMR.Flags() != prm.UMRInline || w.UMR.MKeyMask() != prm.MKeyMaskFree|prm.MKeyMaskPD || !w.MKC.Free() || w.MKC.PD() != s.d.pdn {
			t.Errorf("revocation: flags %#x, mask %#x", w.UMR.Flags(), w.UMR.MKeyMask())
		}
	}
	if s.f.live[prm.OpCreateQP] != 1 || s.f.live[prm.OpCreateCQ] != 1 || s.f.umrs != 6 {
		t.Errorf("%d QPs, %d CQs, %d UMRs", s.f.live[prm.OpCreateQP], s.f.live[prm.OpCreateCQ], s.f.umrs)
	}
	for qpn, c := range s.f.qpcs {
		if c.State() != prm.QPStateRTS || qpn != s.d.umr.qpn {
			t.Errorf("QP %#x in state %d", qpn, c.State())
		}
	}
}

// TestMoreUMRsThanTheQueueHolds: nobody waits for those of a process that has ended.
func TestMoreUMRsThanTheQueueHolds(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	addr := s.buf(page, mem.Read|mem.Write)
	const n = 2*maxUMRs + 5
	for range n {
		_, _, _, err := u.RegMR(Caller{}, pd, addr, page, addr, 0)
		wantErrno(t, "register", err, 0)
	}
	u.Close(Caller{})
	if s.f.umrs != 2*n {
		t.Errorf("%d UMRs for %d regions", s.f.umrs, n)
	}
	for index, free := range s.f.free {
		if !free && index != s.d.umr.lkey>>8 {
			t.Errorf("key %#x is not free", index)
		}
	}
}

// TestUMRQueueOutOfResources: a region fails when the queue cannot be made, and the next may be
// made.
func TestUMRQueueOutOfResources(t *testing.T) {
	for _, op := range []prm.Opcode{prm.OpCreateCQ, prm.OpCreateQP, prm.OpRst2InitQP, prm.OpRTR2RTSQP} {
		s := newSetup(t, testParams())
		u := s.open()
		pd := s.pd(u)
		addr := s.buf(page, mem.Read|mem.Write)
		s.f.fail[op] = prm.StatusLimErr
		used := s.m.Used()
		_, _, _, err := u.RegMR(Caller{}, pd, addr, page, addr, 0)
		wantErrno(t, op.String(), err, prm.StatusLimErr.Errno())
		if s.f.live[prm.OpCreateCQ] != 0 || s.f.live[prm.OpCreateQP] != 0 || s.f.live[prm.OpCreateMKey] != 0 || s.m.Used() != used {
			t.Errorf("%v: %d CQs, %d QPs, %d keys are left, %d bytes", op, s.f.live[prm.OpCreateCQ], s.f.live[prm.OpCreateQP], s.f.live[prm.OpCreateMKey], s.m.Used()-used)
		}
		delete(s.f.fail, op)
		_, _, _, err = u.RegMR(Caller{}, pd, addr, page, addr, 0)
		wantErrno(t, "the next", err, 0)
	}
}

// TestKilledInAUMR: a thread that is killed while it waits leaves the queue to others.
func TestKilledInAUMR(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	addr := s.buf(page, mem.Read|mem.Write)
	returned := false
	p := s.e.Go("victim", func(p *sim.Proc) { // the fake device completes nothing
		_, _, _, _ = u.RegMR(Caller{P: p}, pd, addr, page, addr, 0)
		returned = true
	})
	s.e.Go("killer", func(k *sim.Proc) {
		k.Sleep(sim.Millisecond)
		if len(s.d.umr.waiting) != 1 || returned {
			t.Errorf("%d wait, returned %t", len(s.d.umr.waiting), returned)
		}
		p.Kill()
		k.Sleep(sim.Millisecond)
		if len(s.d.umr.waiting) != 0 {
			t.Errorf("%d wait after the kill", len(s.d.umr.waiting))
		}
	})
	if err := s.e.Run(sim.Never); err != nil {
		t.Fatal(err)
	}
}

// TestRemovedInAUMR: the removal of the device ends the wait.
func TestRemovedInAUMR(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	addr := s.buf(page, mem.Read|mem.Write)
	returned := false
	s.e.Go("caller", func(p *sim.Proc) {
		_, _, _, _ = u.RegMR(Caller{P: p}, pd, addr, page, addr, 0)
		returned = true
	})
	s.e.Go("remover", func(k *sim.Proc) {
		k.Sleep(sim.Millisecond)
		s.d.Remove()
	})
	if err := s.e.Run(sim.Never); err != nil {
		t.Fatal(err)
	}
	if !returned {
		t.Error("the call has not returned")
	}
}
