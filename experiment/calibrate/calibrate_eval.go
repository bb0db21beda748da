package calibrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// setting is a parameter with the value that it is tried with.
type setting struct {
	p *Parameter
	v uint64
}

// evaluator computes figures under settings, each run once for the same content.
type evaluator struct {
	c    *Calibration
	seed uint64
	// monotone says that each figure rises or falls with its value everywhere: then the bounds
	// decide at once whether a value can give it.
	monotone bool
	cache    *runCache
	mu       sync.Mutex
	used     map[string]bool // profiles
	asked    map[string]bool // contents of runs that were needed
	ran      int             // simulations that were made: the others were known
}

func newEvaluator(c *Calibration, seed uint64, cache *runCache) *evaluator {
	return &evaluator{c: c, seed: seed, cache: cache, used: map[string]bool{}, asked: map[string]bool{}}
}

// figures are the values of figures under the settings, in the order of ids.
func (e *evaluator) figures(ctx context.Context, ids []string, set []setting) ([]float64, error) {
	type job struct {
		v   *Validation
		run string
	}
	seen, jobs := map[job]bool{}, []job{}
	for _, id := range ids {
		at := e.c.at[id]
		_ = Names(at.figure().Value, func(run, _ string) error { // parsed before
			if j := (job{at.v, run}); !seen[j] {
				seen[j] = true
				jobs = append(jobs, j)
			}
			return nil
		})
	}
	got, errs := make([]map[string]float64, len(jobs)), make([]error, len(jobs))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, j := range jobs {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			got[i], errs[i] = e.run(ctx, j.v, j.run, set)
		})
	}
	wg.Wait()
	results := map[job]map[string]float64{}
	for i, j := range jobs {
		if errs[i] != nil {
			return nil, fmt.Errorf("%s: run %s: %w", j.v.doc.File, j.run, errs[i])
		}
		results[j] = got[i]
	}
	values := make([]float64, len(ids))
	for i, id := range ids {
		at := e.c.at[id]
		v, err := Eval(at.figure().Value, func(run, metric string) (float64, error) { return results[job{at.v, run}][metric], nil })
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", id, err)
		}
		values[i] = table.Rounded(v)
	}
	return values, nil
}

// impossibleError says that no device has these values together.
type impossibleError struct{ error }

func (e *impossibleError) Unwrap() error { return e.error }

// impossible reports whether an error is only that.
func impossible(err error) bool {
	var e *impossibleError
	return errors.As(err, &e)
}

// run gives what the figures of a file read of one of its runs.
func (e *evaluator) run(ctx context.Context, v *Validation, name string, set []setting) (map[string]float64, error) {
	if ctx.Err() != nil {
		return nil, experiment.ErrInterrupted
	}
	s, p, err := e.scenario(v, name, set)
	if err != nil {
		return nil, &impossibleError{err}
	}
	key, err := e.content(v, name, s, p)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.asked[key] = true
	e.mu.Unlock()
	if known, ok := e.cache.get(key); ok {
		return known, nil
	}
	out, err := s.Run(ctx, e.seed, p)
	if err != nil {
		return nil, err
	}
	m := map[string]float64{}
	for i := range v.Figures {
		err := Names(v.Figures[i].Value, func(run, metric string) (err error) {
			if run == name {
				m[metric], _, err = out.Metric(metric)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	e.ran++
	e.mu.Unlock()
	e.cache.put(key, m)
	return m, nil
}

// scenario is a run with its profile under the settings.
func (e *evaluator) scenario(v *Validation, name string, set []setting) (*experiment.Scenario, *profile.Profile, error) {
	s, err := v.run(name)
	if err != nil {
		return nil, nil, err
	}
	e.mu.Lock()
	e.used[s.Profile] = true
	e.mu.Unlock()
	base := e.c.profiles[s.Profile].Clone()
	for _, x := range set {
		text := x.p.text(x.v)
		if x.p.File == "" {
			if _, err := base.Refit(x.p.Profile, x.p.Key, text); err != nil {
				return nil, nil, err
			}
			for _, key := range x.p.With {
				if _, err := base.Refit(base.GivenBy(key), key, text); err != nil {
					return nil, nil, err
				}
			}
		} else if x.p.File == v.doc.File && (x.p.Run == "" || x.p.Run == name) {
			if s, err = s.With(experiment.Setting{Key: x.p.Key, Value: text}); err != nil {
				return nil, nil, err
			}
		}
	}
	p, err := s.ProfileOver(base)
	return s, p, err
}

// content identifies what a run computes: its scenario, all values of its profile and the metrics
// that are read.
func (e *evaluator) content(v *Validation, name string, s *experiment.Scenario, p *profile.Profile) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d\n%s\n%s", v.doc.File, name, e.seed, p.Hash(), text)
	return hex.EncodeToString(h.Sum(nil)), nil
}
