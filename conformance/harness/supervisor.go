package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
)

// Supervisor runs a job in worker processes.
type Supervisor struct {
	// Command makes the command of a worker that runs until ctx ends.
	Command func() (*exec.Cmd, error)
	Job     Job
	// Shards is how many workers run at once.
	Shards int
	// Wall is how long, in real time, a worker may take to start and for each run of a case.
	// It is generous: a case has its own deadline in the testbed's time.
	Wall time.Duration
	// Stderr gets what the workers write to standard error; it may be nil.
	Stderr io.Writer
	// Started and Finished are called for every case, one call at a time; they may be nil.
	Started  func(id string)
	Finished func(report.Case)
	// Memory makes workers wait until there is memory for them; nil: they do not. Waiting is then
	// called once, and may be nil.
	Memory  *Memory
	Waiting func(why string)
	// Hello is called with the description that the first worker sends; it may be nil.
	Hello func(Hello)

	mu     sync.Mutex
	hello  *Hello
	cases  map[string]report.Case
	waited bool
	hangs  int  // of cases
	ended  bool // a case has ended
}

// Result is the outcome of a run.
type Result struct {
	Hello Hello
	// Cases by ID; those that were not reached are missing.
	Cases map[string]report.Case
	// Interrupted says that the context ended the run.
	Interrupted bool
}

// ErrTarget is wrapped by the error of a run whose target cannot be made.
var ErrTarget = errors.New("no testbed")

// ErrWorker is wrapped by the error of a run whose command is no worker.
var ErrWorker = errors.New("not a worker of this conform")

// lateStart is how long a worker may take to describe its target before the wait for it is told.
const lateStart = 10 * time.Second

// maxHangs is how many cases may hang before the first that ends: a worker that ends none is given
// up.
const maxHangs = 3

// Run runs every case of the job once. It returns when all have ended, or when ctx ends.
func (s *Supervisor) Run(ctx context.Context) (Result, error) {
	s.cases = map[string]report.Case{}
	shards := max(1, min(s.Shards, len(s.Job.Cases)))
	lists := make([][]string, shards)
	for i, id := range s.Job.Cases {
		lists[i%shards] = append(lists[i%shards], id)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, shards)
	var wg sync.WaitGroup
	for i, ids := range lists {
		wg.Go(func() {
			if errs[i] = s.shard(ctx, ids); errs[i] != nil {
				cancel()
			}
		})
	}
	interrupted := ctx.Err() != nil
	wg.Wait()
	res := Result{Cases: s.cases}
	if s.hello != nil {
		res.Hello = *s.hello
	}
	if err := errors.Join(errs...); err != nil {
		return res, errs[slices.IndexFunc(errs, func(e error) bool { return e != nil })]
	}
	res.Interrupted = interrupted || ctx.Err() != nil
	return res, nil
}

// shard runs cases in one worker after another. When a worker hangs or crashes, the case that it
// was running is an error, and the next worker runs the rest.
func (s *Supervisor) shard(ctx context.Context, ids []string) error {
	idle := 0 // how many workers in a row ended without having run a case
	for len(ids) > 0 && ctx.Err() == nil {
		end, err := s.worker(ctx, ids)
		if err != nil {
			return err
		}
		rest := s.unfinished(ids)
		if ctx.Err() != nil {
			return nil
		}
		if end.running != "" {
			s.finish(end.record())
			rest = slices.DeleteFunc(rest, func(id string) bool { return id == end.running })
		}
		if len(rest) == len(ids) {
			idle++
		} else {
			idle = 0
		}
		if idle == 2 || s.hopeless(end) {
			for _, id := range rest {
				s.finish(report.Case{ID: id, Outcome: report.Error, Reason: "no worker runs it: " + end.reason})
			}
			return nil
		}
		ids = rest
	}
	return nil
}

// hopeless counts the hangs of a run, and reports whether there are too many before any case has
// ended.
func (s *Supervisor) hopeless(end ending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end.hung {
		s.hangs++
	}
	return s.hangs >= maxHangs && !s.ended
}

func (s *Supervisor) unfinished(ids []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, id := range ids {
		if _, done := s.cases[id]; !done {
			out = append(out, id)
		}
	}
	return out
}

func (s *Supervisor) finish(c report.Case) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.cases[c.ID]; twice {
		return
	}
	s.cases[c.ID] = c
	if s.Finished != nil {
		s.Finished(c)
	}
}

// ending is how a worker ended before its job was done.
type ending struct {
	running string       // the case that it was in
	run     int          // which of its runs
	first   *report.Case // the record of the first, if that is not it
	reason  string
	hung    bool
}

// record is that of the case, of which the run that ended the worker is an error.
func (e *ending) record() report.Case {
	c := report.Case{ID: e.running, Outcome: report.Error, Reason: e.reason}
	if e.first == nil || e.first.ID != e.running {
		return c
	}
	kept := *e.first
	kept.Outcome, kept.Differs = report.Flaky, &c
	kept.Reason = fmt.Sprintf("repeat %d differs from the first run with the same seed: %s, then %s (%s)", e.run, e.first.Outcome, c.Outcome, c.Reason)
	return kept
}

// worker runs one worker to its end.
func (s *Supervisor) worker(ctx context.Context, ids []string) (ending, error) {
	job := s.Job
	job.Cases = ids
	memory, err := s.Memory.reserve(ctx, s.waits)
	defer memory.release()
	if err != nil || ctx.Err() != nil {
		return ending{}, nil
	}
	w, err := s.start(job)
	if err != nil {
		return ending{}, err
	}
	defer w.stop()
	memory.use(w.Cmd.Process.Pid)
	o := newOrder(ids, s.Job.Repeat)
	timer := time.NewTimer(s.Wall)
	defer timer.Stop()
	late := time.NewTimer(lateStart)
	defer late.Stop()
	for {
		output, errs, slow := w.stdout.TooMuch(), w.Errors.TooMuch(), late.C
		if o.greeted {
			output, errs, slow = nil, nil, nil
		}
		select {
		case <-ctx.Done():
			return o.ending("interrupted"), nil
		case <-slow:
			s.waits(fmt.Sprintf("waiting for %s to describe its target; it is killed after %v", w.Cmd.Path, s.Wall))
		case <-timer.C:
			return s.hung(w, o)
		case <-output:
			return s.broken(w, o, "prints without end")
		case <-errs:
			return s.broken(w, o, "prints errors without end")
		case m, open := <-w.C:
			if !open && w.Err() != nil {
				return s.broken(w, o, "sent "+w.Err().Error())
			}
			if !open {
				return o.ending(w.crash()), nil
			}
			if err := o.check(m); err != nil {
				return s.broken(w, o, "sent "+err.Error())
			}
			timer.Reset(s.Wall)
			if done, err := s.take(m); done || err != nil {
				return ending{reason: "the worker ended without running it"}, err
			}
		}
	}
}

// broken is the end of a worker that broke the protocol. In a run in which none has described its
// target yet the command is no worker, and the next would do the same.
func (s *Supervisor) broken(w *process, o *order, what string) (ending, error) {
	if !s.greeted() {
		return ending{}, fmt.Errorf("%s: %w: it %s%s", w.Cmd.Path, ErrWorker, what, w.printed())
	}
	return o.ending(fmt.Sprintf("killed: %s %s%s", w.Cmd.Path, what, w.printed())), nil
}

// hung is the end of a worker from which nothing came.
func (s *Supervisor) hung(w *process, o *order) (ending, error) {
	if !s.greeted() {
		return ending{}, fmt.Errorf("%w: %s did not describe its target in %v, and was killed: its driver hangs, or it is %w%s", ErrTarget, w.Cmd.Path, s.Wall, ErrWorker, w.printed())
	}
	end := o.ending(fmt.Sprintf("killed: it hung in real time: nothing in %v from %s%s", s.Wall, w.Cmd.Path, w.printed()))
	end.hung = true
	return end, nil
}

func (s *Supervisor) greeted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello != nil
}

// take passes a message on. It reports whether the worker is done.
func (s *Supervisor) take(m Message) (done bool, err error) {
	switch {
	case m.Hello != nil:
		if m.Hello.Error != "" {
			return false, fmt.Errorf("%w: %s", ErrTarget, m.Hello.Error)
		}
		s.greet(m.Hello)
	case m.Started != "":
		s.begin(m.Started)
	case m.Finished != nil:
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		s.finish(*m.Finished)
	}
	return m.Done, nil
}

func (s *Supervisor) waits(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Waiting != nil && !s.waited {
		s.Waiting(why)
	}
	s.waited = true
}

func (s *Supervisor) greet(h *Hello) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hello == nil {
		s.hello = h
		if s.Hello != nil {
			s.Hello(*h)
		}
	}
}

func (s *Supervisor) begin(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Started != nil {
		s.Started(id)
	}
}
