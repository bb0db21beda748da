package perf

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// errQuiet is the end of a wait that is too long.
var errQuiet = errors.New("nothing has come for 120 s")

// look is how long a poll may wait before the program looks at the clock and at the user.
const look = 100 * time.Millisecond

// poll takes completions. An idle program, which can do nothing before one comes, polls on until
// one is there or something else is due: the same polls, without a turn of the program's loop for
// each.
func (e *End) poll(t verbs.Thread, q verbs.CQ, wc []verbs.WC, idle time.Duration) (int, error) {
	if idle <= 0 {
		return q.Poll(t, wc)
	}
	return q.PollWait(t, wc, min(idle, look))
}

// event waits for a completion event of a queue and arms it again (ctx_notify_events).
func (e *End) event(t verbs.Thread, ch verbs.CompChannel) error {
	for waited := time.Duration(0); ; waited += look {
		q, err := ch.Event(t, look)
		if err == nil {
			ch.Ack(t, q, 1)
			return q.ReqNotify(t, false)
		}
		if !errors.Is(err, syscall.EAGAIN) { // which says that no event has come
			return fmt.Errorf("wait for a completion event: %w", err)
		}
		if e.tired(waited) {
			return e.quiet(0, 0)
		}
	}
}

// tired reports whether a wait is over: it takes too long, or the user wants no more.
func (e *End) tired(waited time.Duration) bool {
	return waited > patience || e.o.Method != Infinite && e.interrupted()
}

// ErrInterrupted is the end of a wait by the user.
var ErrInterrupted = errors.New("interrupted")

// quiet is the error of the watch-dog (check_alive).
func (e *End) quiet(got, want uint64) error {
	if e.interrupted() {
		return ErrInterrupted
	}
	return &StepError{Step: stepRun, Err: fmt.Errorf("%w: %d of %d messages are complete", errQuiet, got, want), Hint: "the peer has ended, or messages are lost and nothing sends them again",
		Words: fmt.Sprintf(" Did not get Message for 120 Seconds, exiting..\n Total Received=%d, Total Iters Required=%d\n", got, want)}
}

// sender is the loop of an end that posts (run_iter_bw).
type sender struct {
	e              *End
	clock          clock
	total          uint64 // messages that are to be complete; 0 with a time
	posted, done   uint64
	counted        uint64 // in the time that counts
	limit          limiter
	quietSince     time.Duration
	infinite       bool
	idleCompletion bool // the last poll found nothing
}

// limiter paces bursts.
type limiter struct {
	on       bool
	gap      time.Duration
	deadline time.Duration
	sending  bool
	inBurst  int
}

// pace is the time between two bursts.
func (e *End) pace(now time.Duration) limiter {
	if e.o.RateType == "" {
		return limiter{}
	}
	return limiter{on: true, gap: time.Duration(e.o.interval(e.size) * 1e9), deadline: now}
}

// open reports whether a burst may go on, or begins now.
func (l *limiter) open(now time.Duration) bool {
	if !l.on || l.sending {
		return true
	}
	if now < l.deadline {
		return false
	}
	l.deadline += l.gap
	l.sending, l.inBurst = true, 0
	return true
}

func (l *limiter) sent(n, burst int) {
	if l.on {
		if l.inBurst += n; l.inBurst >= burst {
			l.sending = false
		}
	}
}

// runSender posts and completes the messages of a measurement.
func (e *End) runSender(t verbs.Thread) error {
	s := &sender{e: e, clock: e.newClock(t.Now()), total: e.o.Iters * uint64(e.o.QPs), limit: e.pace(t.Now()), quietSince: t.Now(), idleCompletion: true}
	e.startTimes(t.Now())
	for !s.finished(t.Now()) {
		posted, err := s.fill(t)
		if err != nil {
			return err
		}
		if err := s.complete(t, posted); err != nil {
			return err
		}
	}
	e.stopTimes(t.Now(), &s.clock)
	e.counted(s.counted)
	return nil
}

// startTimes begins a measurement.
func (e *End) startTimes(now time.Duration) {
	e.times = times{first: now}
	e.batch = e.newBatch()
	if n := max(e.batch.size, pollBatch); len(e.wc) < n {
		e.wc = make([]verbs.WC, n)
	}
	if !e.o.NoPeak {
		e.times.posted = make([]time.Duration, e.o.Iters*uint64(e.o.QPs))
	}
}

func (e *End) stopTimes(now time.Duration, c *clock) {
	if c.on {
		c.finish(&e.times)
	} else {
		e.times.last = now
	}
}

// counted notes how many messages a timed test has counted.
func (e *End) counted(n uint64) {
	e.mine.Iters = e.o.Iters * uint64(e.o.QPs)
	if e.o.Timed {
		e.mine.Iters = n
	}
}

func (s *sender) finished(now time.Duration) bool {
	if s.clock.on {
		return s.clock.phase(now) == over
	}
	return s.done >= s.total
}

// fill posts to each queue pair in turn as much as it takes, and returns how many messages.
func (s *sender) fill(t verbs.Thread) (posted int, err error) {
	e, o := s.e, s.e.o
	list := uint64(o.PostList)
	for _, c := range e.conns {
		if !s.limit.open(t.Now()) {
			continue
		}
		for (o.Timed || c.scnt < o.Iters) && c.scnt+list <= uint64(o.TxDepth)+c.ccnt && (!s.limit.on || s.limit.sending) {
			e.signal(c)
			if !o.NoPeak {
				e.times.posted[s.posted] = t.Now()
			}
			if s.clock.on && s.clock.phase(t.Now()) == over {
				return posted, nil
			}
			if err := e.post(t, c); err != nil {
				return posted, err
			}
			e.advance(c)
			c.scnt += list
			s.posted += list
			posted += o.PostList
			s.limit.sent(o.PostList, o.Burst)
		}
	}
	return posted, nil
}

// idle is how long the program can do nothing but poll.
func (s *sender) idle(now time.Duration, posted int) time.Duration {
	if posted > 0 {
		return 0
	}
	d := look
	if s.clock.on {
		d = min(d, s.clock.left(now))
	}
	if s.limit.on && !s.limit.sending {
		d = min(d, s.limit.deadline-now)
	}
	return d
}

// complete polls once.
func (s *sender) complete(t verbs.Thread, posted int) error {
	e := s.e
	if s.done >= s.posted {
		if d := s.idle(t.Now(), posted); d > 0 && posted == 0 { // nothing is outstanding: the limit of the rate holds it back
			t.Work(min(d, look))
		}
		return nil
	}
	if e.o.Events && s.idleCompletion {
		if err := e.event(t, e.sendCh); err != nil {
			return err
		}
	}
	idle := s.idle(t.Now(), posted)
	if e.o.Events {
		idle = 0
	}
	n, err := e.poll(t, e.sendCQ, e.wc[:e.batch.size], idle)
	if err != nil {
		return fmt.Errorf("ibv_poll_cq: %w", err)
	}
	now := t.Now()
	s.idleCompletion = n == 0
	if n == 0 {
		if e.tired(now - s.quietSince) {
			return e.quiet(s.done, s.total)
		}
		return nil
	}
	s.quietSince = now
	for i := range e.wc[:n] {
		if err := s.account(&e.wc[i], now); err != nil {
			return err
		}
	}
	e.batch.found(n, s.done)
	return nil
}

// account counts a completion, which stands for the messages since the one before it.
func (s *sender) account(w *verbs.WC, now time.Duration) error {
	e := s.e
	if w.Status != verbs.WCSuccess {
		return e.failedSend(w, s.posted, s.done)
	}
	c := e.conns[w.ID>>idQP]
	n := uint64(e.o.CQMod)
	if !e.o.Timed {
		n = min(n, e.o.Iters-c.ccnt)
	}
	c.ccnt += n
	s.done += n
	if !e.o.NoPeak {
		e.times.done = append(e.times.done, done{s.done, now})
	}
	if s.clock.on && (s.infinite || s.clock.phase(now) == sampling) {
		s.counted += n
	}
	return nil
}

// warmUp posts a window to each queue pair and completes it, all of it signalled (perform_warm_up).
func (e *End) warmUp(t verbs.Thread) error {
	n := e.o.TxDepth
	if e.o.PostList > 1 {
		n = 1
	}
	for _, c := range e.conns {
		flags := c.wrs[0].Flags
		if e.o.PostList == 1 {
			c.wrs[0].Flags |= verbs.SendSignaled
		}
		for range n {
			if err := e.post(t, c); err != nil {
				return err
			}
		}
		c.wrs[0].Flags = flags
		want := n
		if e.o.PostList > 1 {
			want = e.o.PostList / e.o.CQMod
		}
		began := t.Now()
		for left := want; left > 0; {
			var wc [pollBatch]verbs.WC
			got, err := e.sendCQ.PollWait(t, wc[:], look)
			switch {
			case err != nil:
				return fmt.Errorf("ibv_poll_cq: %w", err)
			case got > 0:
				began = t.Now()
			case e.tired(t.Now() - began):
				return e.quiet(0, uint64(left))
			}
			for i := range wc[:got] {
				if wc[i].Status != verbs.WCSuccess {
					return e.failedSend(&wc[i], uint64(n), 0)
				}
			}
			left -= got
		}
	}
	return nil
}
