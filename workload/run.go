package workload

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Started is a load that has been built and connected, and not yet begun.
type Started struct {
	l      *Load
	tb     verbs.Testbed
	a, b   *side
	res    *Result
	start  time.Duration // of the load, warm-up included
	meters []*meter      // of each thread; none before the load begins
	progress
	motion
	// flows by thread and QP of its set.
	flows     [][]flow
	sharedCQs bool
	ended     atomic.Bool
	done      atomic.Int32  // threads that have come to their end
	refilled  atomic.Uint64 // receives that the target has posted in the measured time
	churners  []churner
}

// Build opens devices, creates the objects and connects them. None of it is part of the
// measurement.
func Build(t verbs.Thread, tb verbs.Testbed, l *Load) (*Started, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	hosts := tb.Hosts()
	for _, h := range []int{l.From, l.To} {
		if h < 0 || h >= len(hosts) {
			return nil, fmt.Errorf("host %d: the testbed has hosts 0 to %d", h, len(hosts)-1)
		}
	}
	s := &Started{l: l, tb: tb, res: &Result{Threads: make([]ThreadResult, l.Threads)}}
	for i := range l.Threads {
		s.res.Threads[i].Thread = i
		s.flows = append(s.flows, make([]flow, l.QPs))
		for q := range l.QPs {
			if l.Timed {
				s.flows[i][q].at = make([]time.Duration, l.Window)
			}
		}
	}
	s.sharedCQs = l.QPShare > 1 || l.CQShare > l.QPs
	if l.Churn != "" {
		if err := s.buildChurn(t, hosts[l.From]); err != nil {
			return nil, fmt.Errorf("load %s, host %d: %w", l.Name, l.From, err)
		}
		return s, nil
	}
	var err error
	if s.a, err = l.openSide(t, hosts[l.From], false); err != nil {
		return nil, fmt.Errorf("load %s, host %d: %w", l.Name, l.From, err)
	}
	if s.b, err = l.openSide(t, hosts[l.To], true); err != nil {
		return nil, fmt.Errorf("load %s, host %d: %w", l.Name, l.To, err)
	}
	counted := s.a
	if l.LocalMRSize != 0 { // the sides differ, and those of the target are mr_size
		counted = s.b
	}
	for _, c := range counted.ctxs {
		for _, r := range c.mrs {
			s.res.countTranslation(r.mr)
		}
	}
	if err = l.connect(t, s.a, s.b); err != nil {
		return nil, fmt.Errorf("load %s: connect: %w", l.Name, err)
	}
	return s, nil
}

// Go runs the load to its end on its own threads and returns what they measured.
// Several loads can be built first and then run at once with Prepare, Begin and Finish.
func (s *Started) Go(t verbs.Thread) *Result {
	s.Prepare(t)
	w := s.Begin(t)
	return s.Finish(t, w)
}

// Prepare posts the receives with which the load begins. Of loads that run at the same time all
// are prepared before the first begins.
func (s *Started) Prepare(t verbs.Thread) {
	if s.l.Churn != "" || !s.l.needsReceiver() {
		return
	}
	t.Join(s.b.proc.Start(t, s.l.Name+"-fill", -1, func(t verbs.Thread) {
		for _, set := range s.b.qps {
			if !s.fill(t, set) {
				return
			}
		}
	}))
}

// Begin starts the load's threads, now, and returns them.
func (s *Started) Begin(t verbs.Thread) []verbs.Thread {
	l := s.l
	var ths []verbs.Thread
	if l.Churn == "" && l.needsReceiver() {
		for g := range s.b.qps {
			s.b.proc.Start(t, fmt.Sprintf("%s-recv%d", l.Name, g), l.core(g), func(t verbs.Thread) { s.receive(t, s.b.qps[g]) })
		}
	}
	if l.Latency && l.Mix[0].Verb == Write {
		for g := range s.b.qps {
			s.b.proc.Start(t, fmt.Sprintf("%s-pong%d", l.Name, g), l.core(g), func(t verbs.Thread) { s.pong(t, g) })
		}
	}
	for g := range l.answerers() {
		s.b.proc.Start(t, fmt.Sprintf("%s-answer%d", l.Name, g), l.core(g), func(t verbs.Thread) { s.answer(t, g) })
	}
	s.start = t.Now() + l.Start
	s.measure(s.start+l.Warmup, l.Duration)
	s.watch()
	s.watchMotion()
	for i := 0; i < l.Threads; i++ {
		ths = append(ths, s.a.proc.Start(t, fmt.Sprintf("%s-%d", l.Name, i), l.core(i), func(t verbs.Thread) {
			if l.Start > 0 {
				t.Sleep(l.Start)
			}
			switch {
			case l.Churn != "":
				s.churn(t, i)
			case l.Latency:
				s.latency(t, i)
			case l.Spread > 0:
				s.spread(t, i)
			default:
				s.rate(t, i)
			}
			s.done.Add(1)
		}))
	}
	return ths
}

// Finish waits for the threads that Begin started.
func (s *Started) Finish(t verbs.Thread, ths []verbs.Thread) *Result {
	for _, th := range ths {
		t.Join(th)
	}
	t.Sleep(0)
	s.ended.Store(true)
	if s.complete() {
		return s.until(s.last())
	}
	return s.until(t.Now())
}

// SoFar is what the threads have measured until now, in a run that does not go on.
func (s *Started) SoFar(now time.Duration) *Result {
	if s.meters == nil { // it has not begun
		s.measure(now, 0)
	}
	return s.until(now)
}

// measure starts the meters of a time that lasts for long, or with 0 until the load is complete.
func (s *Started) measure(begin, long time.Duration) {
	for range s.l.Threads {
		s.meters = append(s.meters, newMeter(begin, long))
	}
}

// Measured is the measured time of a load that has begun; end is 0 if the measured time ends when
// the load is complete.
func (s *Started) Measured() (begin, end time.Duration) { return s.begin(), s.stop() }

// begin and stop are the measured time; stop is 0 if that ends when the load is complete.
func (s *Started) begin() time.Duration { return s.meters[0].begin }
func (s *Started) stop() time.Duration  { return s.meters[0].stop }

// complete reports whether the load has ended because nothing was left to do for it.
func (s *Started) complete() bool {
	return (s.l.Messages > 0 || s.l.Churn != "") && s.res.Failed == nil && int(s.done.Load()) == s.l.Threads
}

// last is the time of the latest delivery.
func (s *Started) last() time.Duration {
	last := time.Duration(0)
	for i := range s.res.Threads {
		last = max(last, s.res.Threads[i].End)
	}
	return last
}

// until completes the result of a load that ended at a time.
func (s *Started) until(end time.Duration) *Result {
	if stop := s.stop(); stop > 0 {
		end = min(end, stop)
	}
	end = max(end, s.begin())
	complete := s.complete()
	s.res.Began = s.start
	s.res.Begin, s.res.End, s.res.Bursts = s.begin(), end, s.burst(end)
	s.res.batches = s.batches(end)
	if s.measured(end) {
		s.res.progress = s.total[:]
	}
	s.res.Confidence = confidence(s.res.batches) + s.res.Bursts
	s.settle(end, complete)
	s.res.Moving = s.motion.seen()
	s.res.Refilled = s.refilled.Load()
	for i := range s.res.Threads {
		r := &s.res.Threads[i]
		if !complete {
			r.End = end
		}
		r.Begin, r.End = s.begin(), min(max(r.End, s.begin()), end)
		if s.l.Churn != "" {
			continue
		}
		k := s.a.qps[i/s.l.QPShare][0]
		if m, ok := k.qp.(verbs.Mlx5QP); ok {
			r.Register, r.HasRegister = m.BFReg(), true
		}
		if i%s.l.QPShare == 0 {
			for _, k := range s.a.qps[i/s.l.QPShare] {
				if c, ok := k.qp.(verbs.LockCounter); ok {
					addLocks(&r.Locks, c.LockStats())
				}
			}
		}
	}
	return s.res
}

func addLocks(a *verbs.LockStats, b verbs.LockStats) {
	a.SQ += b.SQ
	a.RQ += b.RQ
	a.BF += b.BF
	a.CQ += b.CQ
	a.Waits += b.Waits
	a.WaitTime += b.WaitTime
}

func (l *Load) core(i int) int {
	if len(l.Cores) == 0 {
		return i
	}
	return l.Cores[i%len(l.Cores)]
}

// TargetThreads is how many threads run at the target, on the same cores as those that post.
func (l *Load) TargetThreads() int {
	if l.Churn == "" && (l.needsReceiver() || l.Latency && l.Mix[0].Verb == Write) {
		return l.Threads / l.QPShare
	}
	return l.answerers()
}

// answerers is how many threads post at the target.
func (l *Load) answerers() int {
	if l.BothWays {
		return l.Threads
	}
	return 0
}

func (l *Load) needsReceiver() bool {
	return !l.NoReceive && slices.ContainsFunc(l.Mix, func(m Mix) bool { return m.Verb == Send || m.Verb == WriteImm })
}
