package workload

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Started is a load that has been built and connected, and not yet begun.
type Started struct {
	l     *Load
	tb    verbs.Testbed
	a, b  *side
	res   *Result
	begin time.Duration
	stop  time.Duration
	// flows by thread and QP of its set.
	flows     [][]flow
	sharedCQs bool
	intervals []interval // by group of threads that share QPs
	ended     atomic.Bool
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
	for range l.Threads {
		s.flows = append(s.flows, make([]flow, l.QPs))
	}
	s.intervals = make([]interval, l.Threads/l.QPShare)
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
	if err = l.connect(t, s.a, s.b); err != nil {
		return nil, fmt.Errorf("load %s: connect: %w", l.Name, err)
	}
	return s, nil
}

// Go runs the load to its end on its own threads and returns what they measured.
// Several loads can be built first and then run at once with Begin and Finish.
func (s *Started) Go(t verbs.Thread) *Result {
	w := s.Begin(t)
	return s.Finish(t, w)
}

// Begin starts the load's threads and returns them.
func (s *Started) Begin(t verbs.Thread) []verbs.Thread {
	l := s.l
	var ths []verbs.Thread
	if l.Churn == "" && l.needsReceiver() {
		th := s.b.proc.Start(t, l.Name+"-fill", -1, func(t verbs.Thread) {
			for _, set := range s.b.qps {
				if !s.fill(t, set) {
					return
				}
			}
		})
		t.Join(th)
		for g := range s.b.qps {
			s.b.proc.Start(t, fmt.Sprintf("%s-recv%d", l.Name, g), l.core(g), func(t verbs.Thread) { s.receive(t, s.b.qps[g]) })
		}
	}
	if l.Latency && l.Mix[0].Verb == Write {
		for g := range s.b.qps {
			s.b.proc.Start(t, fmt.Sprintf("%s-pong%d", l.Name, g), l.core(g), func(t verbs.Thread) { s.pong(t, g) })
		}
	}
	s.begin = t.Now() + l.Warmup
	s.stop = s.begin + l.Duration
	for i := 0; i < l.Threads; i++ {
		ths = append(ths, s.a.proc.Start(t, fmt.Sprintf("%s-%d", l.Name, i), l.core(i), func(t verbs.Thread) {
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
	return s.SoFar()
}

// FewPolls reports whether some thread saw so few polls with completions in the
// measured time that its rate says little.
func (s *Started) FewPolls() bool {
	for _, iv := range s.intervals {
		if iv.polls < 8 {
			return true
		}
	}
	return false
}

// SoFar is what the threads have measured until now.
func (s *Started) SoFar() *Result {
	for i := range s.res.Threads {
		r := &s.res.Threads[i]
		r.Thread = i
		r.First, r.Last = s.intervals[i/s.l.QPShare].first, s.intervals[i/s.l.QPShare].last
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

func (l *Load) needsReceiver() bool {
	if l.NoReceive {
		return false
	}
	for _, m := range l.Mix {
		if m.Verb == Send || m.Verb == WriteImm {
			return true
		}
	}
	return false
}

func (s *Started) fail(format string, args ...any) {
	if s.res.Failed == nil {
		s.res.Failed = fmt.Errorf("load %s: %s", s.l.Name, fmt.Sprintf(format, args...))
	}
}
