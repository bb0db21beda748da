package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// raise writes an entry into event queue i as a device does, and interrupts.
func (s *setup) raise(i int, pi uint32, fill func(prm.EQE)) {
	e := make([]byte, prm.EQESize)
	n := uint32(1) << s.f.eqLogs[i]
	fill(e)
	prm.EQE(e).SetOwner(prm.EQEOwner(pi, n))
	s.m.Write(mem.PA(s.f.eqPAs[i])+mem.PA(pi&(n-1))*prm.EQESize, e)
	s.d.Interrupt(i)
}

func comp(cqn uint32) func(prm.EQE) {
	return func(e prm.EQE) { e.SetType(prm.EventComp); e.SetCompCQN(cqn) }
}

func TestCompletionEvents(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	ch, err := u.CreateChannel(Caller{})
	if err != nil {
		t.Fatal(err)
	}
	r := s.cqReq(u, 15)
	r.Channel, r.Cookie, r.CompVector = ch, 77, 2
	h, cqn, err := u.CreateCQ(Caller{}, r)
	if err != nil {
		t.Fatal(err)
	}
	silent, silentN, err := u.CreateCQ(Caller{}, s.cqReq(u, 15))
	if err != nil {
		t.Fatal(err)
	}
	var woke sim.Time
	s.e.Go("waiter", func(p *sim.Proc) {
		c := Caller{P: p}
		_, err := ch.Wait(c, p.Now()+sim.Microsecond)
		wantErrno(t, "nothing yet", err, syscall.EAGAIN)
		cookie, err := ch.Wait(c, sim.Never)
		woke = p.Now()
		if cookie != 77 || err != nil {
			t.Errorf("cookie %d, %v", cookie, err)
		}
		p.Sleep(sim.Millisecond)
		// Three more came meanwhile, one after another.
		for range 2 {
			if cookie, err := ch.Wait(c, p.Now()); cookie != 77 || err != nil {
				t.Errorf("queued: cookie %d, %v", cookie, err)
			}
		}
		got, async, err := u.DestroyCQ(c, h)
		if got != 3 || async != 0 || err != nil {
			t.Errorf("%d events read, %v", got, err)
		}
		_, err = ch.Wait(c, p.Now())
		wantErrno(t, "events of a CQ that is gone", err, syscall.EAGAIN)
	})
	s.e.Go("device", func(p *sim.Proc) {
		p.Sleep(10 * sim.Microsecond)
		s.raise(3, 0, comp(cqn))
		p.Sleep(100 * sim.Microsecond)
		s.raise(3, 1, comp(cqn))
		s.raise(3, 2, comp(silentN))
		s.raise(3, 3, comp(cqn))
		s.raise(3, 4, comp(0xffffff))
		s.raise(3, 5, comp(cqn))
	})
	if err := s.e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	if want := 10*sim.Microsecond + sim.Microsecond + 2*sim.Microsecond; woke != want {
		t.Errorf("woke at %v, want %v", woke, want)
	}
	if c := s.d.Counters(); c.Interrupts != 2 || c.EQEs != 6 || c.CompEvents != 4 || c.StrayEvents != 1 {
		t.Errorf("%+v", c)
	}
	if n := len(s.f.arms); n != 5+2 || s.f.arms[n-1] != 6 {
		t.Errorf("EQ doorbells %v", s.f.arms)
	}
	_, _, err = u.DestroyCQ(Caller{}, silent)
	wantErrno(t, "silent CQ", err, 0)
}

func TestAsyncEvents(t *testing.T) {
	s := newSetup(t, testParams())
	u, other := s.open(), s.open()
	pd := s.pd(u)
	creq := s.cqReq(u, 15)
	creq.Cookie = 5
	cq, cqn, err := u.CreateCQ(Caller{}, creq)
	if err != nil {
		t.Fatal(err)
	}
	qreq := s.qpReq(pd, cq, verbs.QPTRC)
	qreq.Cookie = 6
	qp, resp, err := u.CreateQP(Caller{}, qreq)
	if err != nil {
		t.Fatal(err)
	}
	pi := uint32(0)
	raise := func(fill func(prm.EQE)) {
		s.raise(0, pi, fill)
		pi++
	}
	qpEv := func(typ prm.EventType) func(prm.EQE) {
		return func(e prm.EQE) { e.SetType(typ); e.SetQPSRQN(resp.QPN) }
	}
	raise(func(e prm.EQE) { e.SetType(prm.EventCQError); e.SetCQErrCQN(cqn); e.SetCQErrSyndrome(prm.CQErrOverrun) })
	for _, x := range []prm.EventType{prm.EventWQCatasError, prm.EventWQInvalReqError, prm.EventWQAccessError, prm.EventCommEst} {
		raise(qpEv(x))
	}
	raise(func(e prm.EQE) { e.SetType(prm.EventPortChange); e.SetSubType(prm.PortChangeDown); e.SetPort(1) })
	raise(func(e prm.EQE) { e.SetType(prm.EventPortChange); e.SetSubType(prm.PortChangeActive); e.SetPort(1) })
	raise(qpEv(prm.EventStall)) // nobody wants it
	raise(qpEv(prm.EventCommEst))
	if err := s.e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	for _, want := range []AsyncEvent{
		{Type: verbs.EventCQErr, Cookie: 5}, {Type: verbs.EventQPFatal, Cookie: 6}, {Type: verbs.EventQPReqErr, Cookie: 6},
		{Type: verbs.EventQPAccessErr, Cookie: 6}, {Type: verbs.EventCommEst, Cookie: 6},
		{Type: verbs.EventPortErr, Port: 1}, {Type: verbs.EventPortActive, Port: 1},
	} {
		if got, err := u.WaitAsync(Caller{}, 0); got != want || err != nil {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	for _, want := range []verbs.EventType{verbs.EventPortErr, verbs.EventPortActive} {
		if got, err := other.WaitAsync(Caller{}, 0); got.Type != want || err != nil {
			t.Errorf("other context: %+v, %v, want %v", got, err, want)
		}
	}
	_, err = other.WaitAsync(Caller{}, 0)
	wantErrno(t, "nothing of another's objects", err, syscall.EAGAIN)
	if n, err := u.DestroyQP(Caller{}, qp); n != 4 || err != nil {
		t.Errorf("%d events of the QP read, %v", n, err)
	}
	_, err = u.WaitAsync(Caller{}, 0)
	wantErrno(t, "the last event went with its QP", err, syscall.EAGAIN)
	if _, n, err := u.DestroyCQ(Caller{}, cq); n != 1 || err != nil {
		t.Errorf("%d events of the CQ read, %v", n, err)
	}
}

// The queue goes round: the owner bit tells old entries from new.
func TestEQWraps(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	ch, _ := u.CreateChannel(Caller{})
	r := s.cqReq(u, 15)
	r.Channel = ch
	_, cqn, err := u.CreateCQ(Caller{}, r)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 3 * 2048
	for pi := range uint32(rounds) {
		s.raise(1, pi, comp(cqn))
		if err := s.e.Run(sim.Time(pi+1) * sim.Millisecond); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.Wait(Caller{}, 0); err != nil {
			t.Fatalf("event %d: %v", pi, err)
		}
	}
	if c := s.d.Counters(); c.EQEs != rounds || c.StrayEvents != 0 {
		t.Errorf("%+v", c)
	}
}

// Closing a file ends the waits on it; a killed waiter leaves its event to the next.
func TestWaitsEnd(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	ch, _ := u.CreateChannel(Caller{})
	r := s.cqReq(u, 15)
	r.Channel = ch
	_, cqn, err := u.CreateCQ(Caller{}, r)
	if err != nil {
		t.Fatal(err)
	}
	victim := s.e.Go("victim", func(p *sim.Proc) { _, _ = ch.Wait(Caller{P: p}, sim.Never) })
	done := 0
	s.e.Go("heir", func(p *sim.Proc) {
		if _, err := ch.Wait(Caller{P: p}, sim.Never); err != nil {
			t.Error(err)
		}
		done++
		_, err := ch.Wait(Caller{P: p}, sim.Never)
		wantErrno(t, "closed under the waiter", err, syscall.EBADF)
		done++
	})
	s.e.Go("async", func(p *sim.Proc) {
		_, err := u.WaitAsync(Caller{P: p}, sim.Never)
		wantErrno(t, "context closed", err, syscall.EBADF)
		done++
	})
	s.e.Go("killer", func(p *sim.Proc) {
		p.Sleep(10 * sim.Microsecond)
		s.raise(1, 0, comp(cqn))
		p.Sleep(1500 * sim.Nanosecond) // the victim is being woken
		victim.Kill()
		p.Sleep(sim.Millisecond)
		u.Close(Caller{P: p})
	})
	if err := s.e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	if done != 3 {
		t.Errorf("%d of 3 waits ended", done)
	}
}

// A signal ends a wait with EINTR, unless an event has come by then; one that comes
// while the thread does not wait leaves no trace.
func TestSignals(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	ch, err := u.CreateChannel(Caller{})
	if err != nil {
		t.Fatal(err)
	}
	r := s.cqReq(u, 15)
	r.Channel, r.CompVector = ch, 2
	_, cqn, err := u.CreateCQ(Caller{}, r)
	if err != nil {
		t.Fatal(err)
	}
	var sig Signal
	s.e.Go("waiter", func(p *sim.Proc) {
		c := Caller{P: p, Signal: &sig}
		_, err := ch.Wait(c, sim.Never)
		wantErrno(t, "interrupted", err, syscall.EINTR)
		p.Sleep(10 * sim.Microsecond) // a signal comes meanwhile
		_, err = ch.Wait(c, p.Now()+sim.Microsecond)
		wantErrno(t, "nothing", err, syscall.EAGAIN)
		_, err = ch.Wait(c, sim.Never)
		wantErrno(t, "an event before the signal", err, 0)
	})
	s.e.Go("other", func(p *sim.Proc) {
		p.Sleep(10 * sim.Microsecond)
		sig.Raise()
		p.Sleep(7 * sim.Microsecond)
		sig.Raise()
		p.Sleep(20 * sim.Microsecond)
		s.raise(3, 0, comp(cqn))
		p.Sleep(s.d.p.Interrupt)
		sig.Raise()
	})
	if err := s.e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
}
