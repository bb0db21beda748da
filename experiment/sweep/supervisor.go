package sweep

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
)

// Options say how a plan is carried out; they change no result.
type Options struct {
	Workers int
	// Memory is what a worker may take, in bytes; 0: no limit.
	Memory uint64
	// Wall is the real time that a run may take.
	Wall  time.Duration
	Store *store.Store
	// Shard of Shards chooses every Shards-th point, from Shard on. Shards 0 is all of them.
	Shard, Shards int
	// Command makes a worker: this program with WorkerCommand.
	Command func() *exec.Cmd
	// Progress is told of each run that ended, one call at a time; it may be nil.
	Progress func(done, total, cached int)
	// Failed is told of each run that has no result.
	Failed func(Failure)
}

// Failure is a run without a result.
type Failure struct {
	Point         int
	Name, Command string
	Reason        string
}

// Error returns the message.
func (l *Failure) Error() string {
	return fmt.Sprintf("%s: %s\n(alone: %s)", l.Name, l.Reason, l.Command)
}

// states of a run.
const (
	_ = iota // not run yet
	done
	failed
)

// Outcome is what is known of the points when the runs have ended.
type Outcome struct {
	addresses []store.Address
	state     []uint8
	Cached    int // runs whose result was in the store already
	Ran       int
	Failures  []Failure // the first mostFailures of them
	Failed    int
	points    int // that were to be run
}

// mostFailures is how many failed runs are remembered one by one.
const mostFailures = 100

// supervisor hands out runs to workers.
type supervisor struct {
	*prepared
	o   *Options
	out *Outcome

	mu     sync.Mutex
	next   int
	fatal  error
	cancel context.CancelFunc
}

// run carries out the points of a shard. What was done before an error or an interrupt stays.
func (r *prepared) run(ctx context.Context, o *Options) (*Outcome, error) {
	out := &Outcome{addresses: make([]store.Address, r.n), state: make([]uint8, r.n)}
	step := max(o.Shards, 1)
	out.points = (r.n - o.Shard + step - 1) / step
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &supervisor{prepared: r, o: o, out: out, next: o.Shard, cancel: cancel}
	if r.Request.Pcap != "" {
		s.record(ctx)
	} else {
		var wg sync.WaitGroup
		for range min(o.Workers, out.points) {
			wg.Go(func() { s.worker(work) })
		}
		wg.Wait()
	}
	if s.fatal != nil {
		return out, s.fatal
	}
	if ctx.Err() != nil {
		return out, experiment.ErrInterrupted
	}
	return out, nil
}

// take is the next point to run; none is left when it is r.n or more.
func (s *supervisor) take() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.next
	s.next += max(s.o.Shards, 1)
	return i
}

// record runs the points in this process, one after the other, into one capture.
func (s *supervisor) record(ctx context.Context) {
	end, err := s.prep.Record(ctx)
	if err != nil {
		s.fail(err)
		return
	}
	w := &worker{s.prepared, s.o.Store}
	for i := s.take(); i < s.n && s.fatal == nil; i = s.take() {
		r := w.run(ctx, i)
		if ctx.Err() != nil {
			err = experiment.ErrInterrupted
			break
		}
		s.accept(i, r)
	}
	if err = end(err); !errors.Is(err, experiment.ErrInterrupted) {
		s.fail(err)
	}
}

// worker keeps one worker process busy, and starts another when it ends.
func (s *supervisor) worker(ctx context.Context) {
	for ctx.Err() == nil {
		i := s.take()
		if i >= s.n {
			return
		}
		p, err := s.start(ctx)
		if err != nil {
			s.fail(err)
			return
		}
		if p == nil {
			return // interrupted
		}
		for i < s.n && s.one(ctx, p, i) {
			i = s.take()
		}
		if i >= s.n {
			p.stop()
		}
	}
}

// startTries is how often in a row a worker may fail to start.
const startTries = 3

// start starts a worker and waits until it is ready.
func (s *supervisor) start(ctx context.Context) (*process, error) {
	j := &job{Plan: s.Plan, Store: s.o.Store.Dir(), Model: s.model, Memory: s.o.Memory}
	for try := 1; ; try++ {
		p, err := startProcess(s.o.Command, j)
		if err != nil {
			return nil, err
		}
		select {
		case r, ok := <-p.C:
			if ok && r.Error == "" {
				return p, nil
			}
			if ok {
				p.stop()
				return nil, fmt.Errorf("a worker cannot begin: %s", r.Error)
			}
			if why := p.died(s.o.Memory); try == startTries {
				return nil, fmt.Errorf("workers do not start: %s", why)
			}
		case <-ctx.Done():
			p.stop()
			return nil, nil
		}
	}
}

// one has a worker run one point, and reports whether the worker can go on.
func (s *supervisor) one(ctx context.Context, p *process, i int) bool {
	_ = p.Send(order{i}) // an error is seen when no reply comes
	late := time.NewTimer(s.o.Wall)
	defer late.Stop()
	select {
	case r, ok := <-p.C:
		if !ok {
			s.failRun(i, p.died(s.o.Memory))
			return false
		}
		s.accept(i, r)
		return true
	case <-late.C:
		p.stop()
		s.failRun(i, fmt.Sprintf("it has not ended after %v: more time is given with --wall-limit", s.o.Wall))
		return false
	case <-ctx.Done():
		p.stop()
		return false
	}
}

// accept takes a reply.
func (s *supervisor) accept(i int, r reply) {
	at, err := hex.DecodeString(r.Address)
	switch {
	case r.Fatal:
		s.fail(fmt.Errorf("%s: %s", s.pointName(i), r.Error))
	case r.Error != "":
		s.failRun(i, r.Error)
	case err != nil || len(at) != store.AddressSize:
		s.failRun(i, "its worker has answered nonsense")
	default:
		s.mu.Lock()
		s.out.addresses[i], s.out.state[i] = store.Address(at), done
		if r.Cached {
			s.out.Cached++
		} else {
			s.out.Ran++
		}
		s.report()
		s.mu.Unlock()
	}
}

// failRun notes a run that has no result, and why.
func (s *supervisor) failRun(i int, why string) {
	l := Failure{i, s.pointName(i), s.command(i), why}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.state[i] = failed
	s.out.Failed++
	if s.o.Failed != nil && s.out.Failed <= mostFailures {
		s.o.Failed(l)
	}
	// The first ones stay, whatever the order in which they came.
	at, _ := slices.BinarySearchFunc(s.out.Failures, i, func(have Failure, i int) int { return have.Point - i })
	s.out.Failures = slices.Insert(s.out.Failures, at, l)
	s.out.Failures = s.out.Failures[:min(len(s.out.Failures), mostFailures)]
	s.report()
}

// report is called with the lock held.
func (s *supervisor) report() {
	if s.o.Progress != nil {
		s.o.Progress(s.out.Cached+s.out.Ran+s.out.Failed, s.out.points, s.out.Cached)
	}
}

func (s *supervisor) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fatal = errors.Join(s.fatal, err)
	if s.fatal != nil {
		s.cancel()
	}
}
