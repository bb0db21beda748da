package perf

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// receiver is the loop of an end that only receives (run_iter_bw_server).
type receiver struct {
	e          *End
	clock      clock
	begun      bool
	got, total uint64
	counted    uint64
	quietSince time.Duration
	infinite   bool
	backlog    backlog
}

// runReceiver receives the messages of a measurement. Its time begins with the first.
func (e *End) runReceiver(t verbs.Thread) error {
	r := &receiver{e: e, total: e.o.Iters * uint64(e.o.QPs), quietSince: t.Now()}
	r.backlog = e.newBacklog(r.total)
	e.startTimes(t.Now())
	if err := r.run(t, func() bool { return r.finished(t.Now()) }); err != nil {
		return err
	}
	e.judgeBacklog(&r.backlog, r.got, t.Now())
	e.stopTimes(t.Now(), &r.clock)
	e.counted(r.counted)
	return nil
}

func (r *receiver) finished(now time.Duration) bool {
	if r.e.o.Timed {
		return r.begun && r.clock.phase(now) == over
	}
	return r.got >= r.total
}

func (r *receiver) run(t verbs.Thread, end func() bool) error {
	e := r.e
	for !end() {
		if e.o.Events {
			if err := e.event(t, e.rcCh); err != nil {
				return err
			}
		}
		for n := 1; n > 0 && !end(); {
			idle := look
			switch {
			case e.o.Events:
				idle = 0
			case r.begun && r.clock.on:
				idle = min(idle, r.clock.left(t.Now()))
			}
			var err error
			if n, err = r.poll(t, idle); err != nil {
				return err
			}
		}
		if e.tired(t.Now() - r.quietSince) {
			return e.quiet(r.got, r.total)
		}
	}
	return nil
}

// poll takes receives, and posts others in their place.
func (r *receiver) poll(t verbs.Thread, idle time.Duration) (int, error) {
	e := r.e
	n, err := e.poll(t, e.rcq, e.wc[:e.batch.size], idle)
	if err != nil {
		return n, fmt.Errorf("ibv_poll_cq: %w", err)
	}
	if n == 0 {
		return 0, nil
	}
	now := t.Now()
	r.quietSince = now
	if !r.begun {
		r.begun, r.clock, e.times.first = true, e.newClock(now), now
	}
	r.backlog.polled(r.got, now)
	for i := range e.wc[:n] {
		if err := e.take(t, &e.wc[i], r.got); err != nil {
			return n, err
		}
		r.got++
		if r.clock.on && (r.infinite || r.clock.phase(now) == sampling) {
			r.counted++
		}
	}
	e.batch.found(n, r.got)
	return n, nil
}

// take is one receive.
func (e *End) take(t verbs.Thread, w *verbs.WC, got uint64) error {
	if w.Status != verbs.WCSuccess {
		return e.failedReceive(w, got)
	}
	if (e.o.Test.Verb == SendImm || e.o.Test.Verb == WriteImm) && w.Flags&verbs.WCWithImm == 0 {
		return &StepError{Step: stepRun, Err: fmt.Errorf("a message to queue pair %#06x came without its immediate", w.QPN), Hint: "run the same test at both ends"}
	}
	return e.repost(t, e.byReceive(w))
}

// byReceive is the queue pair of a receive; those of a shared queue are told apart by their number.
func (e *End) byReceive(w *verbs.WC) *conn { return e.conns[w.ID>>idQP] }

// runBothWays is the loop of an end that sends and receives (run_iter_bi). The server sends nothing
// before its first receive.
func (e *End) runBothWays(t verbs.Thread) error {
	now := t.Now()
	total := e.o.Iters * uint64(e.o.QPs)
	s := &sender{e: e, total: total, quietSince: now}
	r := &receiver{e: e, total: total, quietSince: now, backlog: e.newBacklog(total)}
	e.startTimes(now)
	if len(e.swc) == 0 {
		e.swc = make([]verbs.WC, e.o.CQEPoll)
	}
	begun := e.o.Sender
	if begun {
		s.clock = e.newClock(now)
		r.clock, r.begun = s.clock, true
	}
	rn, sn, posted := 0, 0, 0
	idleSince := now
	for {
		if e.o.Timed && begun && s.clock.phase(t.Now()) == over || !e.o.Timed && s.done >= total && r.got >= total {
			break
		}
		var err error
		if posted = 0; begun {
			if posted, err = s.fill(t); err != nil {
				return err
			}
		}
		if e.o.Events && rn == 0 && sn == 0 {
			if err := e.eitherEvent(t, s, r); err != nil {
				return err
			}
		}
		if posted+rn+sn > 0 {
			idleSince = t.Now()
		}
		if rn, err = r.poll(t, (t.Now()-idleSince)/idleShare); err != nil {
			return err
		}
		if rn > 0 && !begun {
			begun, s.clock = true, r.clock
		}
		if sn, err = s.take(t); err != nil {
			return err
		}
		if rn+sn == 0 && e.tired(t.Now()-max(s.quietSince, r.quietSince)) {
			return e.quiet(r.got, total)
		}
	}
	e.stopBothWays(t.Now(), s, r)
	return nil
}

// idleShare: an end that has had nothing to do for a while polls its receives for this part of that
// while, before it looks at its sends again. So a wait has few turns, and what ends it is seen at
// most so much later.
const idleShare = 32

func (e *End) stopBothWays(now time.Duration, s *sender, r *receiver) {
	e.judgeBacklog(&r.backlog, r.got, now)
	e.stopTimes(now, &s.clock)
	e.counted(s.counted + r.counted)
}

// take polls the completions of what an end sends that receives too.
func (s *sender) take(t verbs.Thread) (int, error) {
	e := s.e
	n, err := e.sendCQ.Poll(t, e.swc)
	if err != nil {
		return n, fmt.Errorf("ibv_poll_cq: %w", err)
	}
	now := t.Now()
	for i := range e.swc[:n] {
		if err := s.account(&e.swc[i], now); err != nil {
			return n, err
		}
	}
	if n > 0 {
		s.quietSince = now
	}
	return n, nil
}

// eitherEvent waits for an event of one queue or the other (ctx_notify_send_recv_events), looking
// at both in turn.
func (e *End) eitherEvent(t verbs.Thread, s *sender, r *receiver) error {
	for began := t.Now(); !e.tired(t.Now() - began); {
		for _, ch := range []verbs.CompChannel{e.rcCh, e.sendCh} {
			if ch == e.sendCh && s.posted == s.done || ch == e.rcCh && r.got == r.total && !e.o.Timed {
				continue
			}
			q, err := ch.Event(t, eventLook)
			if err == nil {
				ch.Ack(t, q, 1)
				return q.ReqNotify(t, false)
			}
			if !errors.Is(err, syscall.EAGAIN) {
				return fmt.Errorf("wait for a completion event: %w", err)
			}
		}
	}
	return e.quiet(r.got, r.total)
}

// eventLook is how long one of two channels is looked at.
const eventLook = 20 * time.Microsecond
