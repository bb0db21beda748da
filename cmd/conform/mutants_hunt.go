package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/report"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// attack runs cases on a mutant, or on the unchanged simulator when the mutant has no name,
// and calls finished for each case that has ended, until ctx is done.
type attack func(ctx context.Context, m mutant.Mutant, ids []string, finished func(report.Case)) error

// Outcomes of a mutant.
const (
	killed     = "killed"
	survived   = "survived" // every case ended, and none by a failed assertion
	mutantFail = "error"    // cases crashed or hung, and no assertion failed
)

// tooManyErrors ends the hunt for a mutant on which case after case crashes or hangs.
const tooManyErrors = 12

// fate is the outcome of a mutant.
type fate struct {
	outcome string
	kill    report.Case
	kills   []string // with --matrix: the cases that killed it
	reason  string   // of an error
	judged  bool     // false: the run was interrupted before
}

// hunt looks for cases that kill mutants.
type hunt struct {
	items  []conformance.Item
	seed   uint64
	matrix bool
	near   bool // likely killers and the area only
	attack attack
	// explained says whether the survival of a mutant is.
	explained func(name string) bool

	mu    sync.Mutex
	plain map[baseline]*plainRun
}

// plainRun is a case without a mutant, which runs once.
type plainRun struct {
	once   sync.Once
	passes bool
	err    error
}

// baseline is a case on a profile without a mutant.
type baseline struct{ profile, id string }

// run judges the mutants, several at once, and calls done for each, one call at a time.
func (h *hunt) run(ctx context.Context, mutants []mutant.Mutant, parallel int, done func(fate)) ([]fate, error) {
	h.plain = map[baseline]*plainRun{}
	fates := make([]fate, len(mutants))
	errs := make([]error, len(mutants))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int)
	var wg sync.WaitGroup
	var reporting sync.Mutex // held during done
	for range min(parallel, len(mutants)) {
		wg.Go(func() {
			for i := range next {
				if fates[i], errs[i] = h.judge(ctx, mutants[i]); errs[i] != nil {
					cancel()
				}
				reporting.Lock()
				done(fates[i])
				reporting.Unlock()
			}
		})
	}
	for i := range mutants {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return fates, nil
}

// judge runs cases on one mutant until one kills it, or none is left.
func (h *hunt) judge(ctx context.Context, m mutant.Mutant) (fate, error) {
	f := fate{outcome: survived}
	errors := 0
	for _, ids := range h.rounds(m) {
		for len(ids) > 0 {
			if ctx.Err() != nil {
				return fate{}, nil
			}
			ended, err := h.round(ctx, m, ids)
			if err != nil {
				return fate{}, err
			}
			for _, c := range ended {
				ids = slices.DeleteFunc(ids, func(id string) bool { return id == c.ID })
				switch {
				case isKill(c):
					ok, err := h.passesWithout(ctx, m, c.ID)
					if err != nil {
						return fate{}, err
					}
					if ok {
						if f.kills = append(f.kills, c.ID); f.outcome != killed {
							f.outcome, f.kill = killed, c
						}
					}
				case c.Outcome == report.Error:
					ok, err := h.passesWithout(ctx, m, c.ID)
					if err != nil {
						return fate{}, err
					}
					if ok {
						if errors++; f.outcome == survived {
							f.outcome, f.reason = mutantFail, c.ID+": "+c.Reason
						}
					}
				}
			}
			if ctx.Err() != nil {
				return fate{}, nil
			}
			if f.outcome == killed && !h.matrix || errors >= tooManyErrors {
				f.judged = true
				return f, nil
			}
		}
	}
	f.judged = true
	return f, nil
}

// round runs cases on a mutant, up to the first that may be a kill, and returns those that ended in
// the order in which they did.
func (h *hunt) round(ctx context.Context, m mutant.Mutant, ids []string) ([]report.Case, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended []report.Case
	errors, stopped := 0, false
	err := h.attack(ctx, m, ids, func(c report.Case) {
		if stopped {
			return // the worker was quicker than the order to stop
		}
		ended = append(ended, c)
		if c.Outcome == report.Error {
			errors++
		}
		if isKill(c) && !h.matrix || errors >= tooManyErrors {
			stopped = true
			cancel()
		}
	})
	return ended, err
}

// rounds are the cases to try: those that are likely to kill, the rest of the mutant's area, the
// rest. The likely ones come alone in each case, before the hunt may end by too many errors. Of a mutant whose survival is explained only the likely ones are tried: --matrix tries
// all.
func (h *hunt) rounds(m mutant.Mutant) [][]string {
	if m.Counted() {
		return countRounds(m)
	}
	var likely, area, rest []string
	for _, i := range h.items {
		switch id := i.Entry.ID; {
		case slices.Contains(m.Killers, id):
			likely = append(likely, id)
		case i.Entry.Area == m.Area:
			area = append(area, id)
		default:
			rest = append(rest, id)
		}
	}
	switch {
	case h.matrix:
		return [][]string{likely, slices.Concat(area, rest)}
	case h.explained(m.Name):
		return [][]string{likely}
	case h.near:
		return [][]string{likely, area}
	}
	return [][]string{likely, area, rest}
}

// isKill says whether a case ended by an assertion of its own that failed.
func isKill(c report.Case) bool {
	return c.Outcome == report.Fail && c.Where != "" && !strings.HasPrefix(stepOf(c), kit.OracleStep)
}

// stepOf names the assertion that ended a case: its step where it has a name, else its place.
func stepOf(c report.Case) string {
	for _, o := range slices.Backward(c.Observations) { // what was deferred came behind it
		if strings.HasPrefix(c.Reason, o.Step) {
			return o.Step
		}
	}
	return c.Where
}

// passesWithout says whether a case passes without the mutant, on its profile.
func (h *hunt) passesWithout(ctx context.Context, m mutant.Mutant, id string) (bool, error) {
	key := baseline{m.Profile, id}
	h.mu.Lock()
	run := h.plain[key]
	if run == nil {
		run = &plainRun{}
		h.plain[key] = run
	}
	h.mu.Unlock()
	run.once.Do(func() { // others that ask for this case wait, and only they
		run.err = h.attack(ctx, mutant.Mutant{Profile: m.Profile, Area: m.Area}, []string{id}, func(c report.Case) {
			run.passes = c.Outcome == report.Pass || c.Outcome == report.PassDeviation || c.Outcome == report.Unrecorded
		})
	})
	return run.passes, run.err
}
