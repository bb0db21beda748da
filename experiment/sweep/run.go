package sweep

import (
	"context"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// ManyPoints is how many runs a sweep may make without being asked twice.
const ManyPoints = 100_000

// SupervisorMemory is what the process that hands out the runs should hold of memory, in bytes:
// addresses of a million runs take half of it. The program itself takes 25 MiB more.
const SupervisorMemory = 45 << 20

// Sweep is a plan whose settings have been checked.
type Sweep struct{ r *prepared }

// Prepare checks the settings of a plan, before the first run.
func (p *Plan) Prepare() (*Sweep, error) {
	r, err := p.prepare()
	if err != nil {
		return nil, err
	}
	return &Sweep{r}, r.check()
}

// Points is the number of runs.
func (s *Sweep) Points() int { return s.r.n }

// Model is the version of the model, for the store.
func (s *Sweep) Model() string { return s.r.model }

// Name is the name of the experiment.
func (s *Sweep) Name() string { return s.r.x.Name }

// Run carries out the points, or those of a shard. A shard has no answer. After ErrInterrupted, and
// when runs are lost, the answer has what there is.
func (s *Sweep) Run(ctx context.Context, o *Options) (*Answer, *Outcome, error) {
	out, err := s.r.run(ctx, o)
	if o.Shards > 0 || err != nil && out.Cached+out.Ran == 0 {
		return nil, out, err
	}
	a, aerr := s.r.assemble(o.Store, out)
	if aerr != nil && err == nil {
		err = aerr
	}
	return a, out, err
}

// Collect puts the answer together from what the store has, and runs nothing. The first of the
// points without a result stand in it with the reason that why gives.
func (s *Sweep) Collect(st *store.Store, why func(point int) string) (*Answer, *Outcome, error) {
	out, err := s.Look(st)
	if err != nil {
		return nil, nil, err
	}
	missing := s.Missing(out)
	out.Failed = len(missing)
	for _, i := range missing[:min(len(missing), mostFailures)] {
		out.Failures = append(out.Failures, Failure{i, s.r.pointName(i), s.r.command(i), why(i)})
	}
	a, err := s.r.assemble(st, out)
	return a, out, err
}

// Look says which points the store has.
func (s *Sweep) Look(st *store.Store) (*Outcome, error) {
	out := &Outcome{addresses: make([]store.Address, s.r.n), state: make([]uint8, s.r.n), points: s.r.n}
	for i := range s.r.n {
		at, _, err := s.r.address(i)
		if err != nil {
			continue // a run that cannot be made
		}
		there, err := known(st, at)
		if err != nil {
			return nil, fmt.Errorf("the store cannot be read: %w", err)
		}
		if there {
			out.addresses[i], out.state[i] = at, done
			out.Cached++
		}
	}
	return out, nil
}

// Missing are the points that have no result.
func (s *Sweep) Missing(o *Outcome) []int {
	var missing []int
	for i, state := range o.state {
		if state != done {
			missing = append(missing, i)
		}
	}
	return missing
}

// Estimate says how many runs there are and how long they take, from how long the first one takes
// on this machine, at most the given time.
func (s *Sweep) Estimate(ctx context.Context, o *Options, atMost time.Duration) string {
	many := plain.Count(s.r.n, "run")
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	sv := &supervisor{prepared: s.r, o: o}
	p, err := sv.start(ctx)
	if err != nil || p == nil {
		return many
	}
	defer p.stop()
	began := time.Now()
	_ = p.Send(order{0})
	select {
	case r, ok := <-p.C:
		if !ok || r.Error != "" || r.Cached {
			return many
		}
	case <-ctx.Done():
		return many + fmt.Sprintf(", of which the first takes more than %v", atMost)
	}
	took := time.Since(began)
	all := time.Duration(float64(took) * float64(s.r.n) / float64(max(o.Workers, 1)))
	return fmt.Sprintf("%s, of which the first takes %v: about %s with %s", many, took.Round(time.Millisecond), roughly(all), plain.Count(o.Workers, "worker"))
}

func roughly(d time.Duration) string {
	switch {
	case d > 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d > 2*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	case d > 2*time.Minute:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f seconds", d.Seconds())
}

// FailureError ends a sweep of which runs have no result.
type FailureError struct{ Failed, Points int }

// Error returns the message.
func (e *FailureError) Error() string {
	return fmt.Sprintf("%d of %s have no result; the same command runs what no store has", e.Failed, plain.Count(e.Points, "run"))
}

// Err is a FailureError if runs of an outcome failed, else nil.
func (o *Outcome) Err() error {
	if o.Failed > 0 {
		return &FailureError{o.Failed, o.points}
	}
	return nil
}
