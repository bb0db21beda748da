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

	"github.com/rdmasim/rdmasim/report"
)

// Supervisor runs a job in worker processes.
type Supervisor struct {
	// Command makes the command of a worker that runs until ctx ends.
	Command func() (*exec.Cmd, error)
	Job     Job
	// Shards is how many workers run at once.
	Shards int
	// Wall is how long, in real time, a worker may take to start and for each case.
	// It is generous: a case has its own deadline in the testbed's time.
	Wall time.Duration
	// Stderr gets what the workers write to standard error; it may be nil.
	Stderr io.Writer
	// Started and Finished are called for every case, one call at a time; they may be nil.
	Started  func(id string)
	Finished func(report.Case)
	// Memory makes workers wait until there is memory for them; nil: they do not. Waiting is then called once, and
	// may be nil.
	Memory  *Memory
	Waiting func(why string)
	// Hello is called with the description that the first worker sends; it may be nil.
	Hello func(Hello)

	mu     sync.Mutex
	hello  *Hello
	cases  map[string]report.Case
	waited bool
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

// shard runs cases in one worker after another. When a worker hangs or crashes, the case that it was
// running is an error, and the next worker runs the rest.
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
			s.finish(report.Case{ID: end.running, Outcome: report.Error, Reason: end.reason})
			rest = slices.DeleteFunc(rest, func(id string) bool { return id == end.running })
		}
		if len(rest) == len(ids) {
			if idle++; idle == 2 {
				for _, id := range rest {
					s.finish(report.Case{ID: id, Outcome: report.Error, Reason: "no worker runs it: " + end.reason})
				}
				return nil
			}
		} else {
			idle = 0
		}
		ids = rest
	}
	return nil
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
	running string // the case that it was in
	reason  string
}

// worker runs one worker to its end.
func (s *Supervisor) worker(ctx context.Context, ids []string) (ending, error) {
	job := s.Job
	job.Cases = ids
	memory, err := s.Memory.reserve(ctx, s.waits)
	if ctx.Err() != nil {
		return ending{}, nil
	}
	if err != nil {
		return ending{}, fmt.Errorf("memory for a worker: %w", err)
	}
	defer memory.release()
	w, err := s.start(job)
	if err != nil {
		return ending{}, err
	}
	defer w.stop()
	memory.use(w.cmd.Process.Pid)
	var running string
	timer := time.NewTimer(s.Wall)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ending{running, "interrupted"}, nil
		case <-timer.C:
			return ending{running, "killed: it hung in real time"}, nil
		case m, open := <-w.messages:
			if !open {
				return ending{running, w.crash()}, nil
			}
			timer.Reset(s.Wall)
			switch {
			case m.Hello != nil:
				if m.Hello.Error != "" {
					return ending{}, fmt.Errorf("%w: %s", ErrTarget, m.Hello.Error)
				}
				s.greet(m.Hello)
			case m.Started != "":
				running = m.Started
				s.begin(running)
			case m.Finished != nil:
				running = ""
				s.finish(*m.Finished)
			case m.Done:
				return ending{"", "the worker ended without running it"}, nil
			}
		}
	}
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
