package mutants

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// attack runs cases on a mutant, or on the unchanged simulator when the mutant has no name,
// and calls finished for each case that has ended, until ctx is done.
type attack func(ctx context.Context, m mutant.Mutant, ids []string, finished func(report.Case)) error

// Outcomes of a mutant.
const (
	Killed   = "killed"
	Survived = "survived" // every case ended, and none by a failed assertion
	Failed   = "error"    // cases crashed or hung, and no assertion failed
)

// tooManyErrors ends the hunt for a mutant on which case after case crashes or hangs.
const tooManyErrors = 12

// fate is the outcome of a mutant.
type fate struct {
	outcome string
	kill    report.Case     // the first that killed it
	kills   []string        // the cases that killed it
	crashes []string        // those that crashed or hung, and those that were left out behind too many of them
	tried   map[string]bool // the cases that ran, or were left out so
	reason  string          // of an error
	judged  bool            // false: the run was interrupted before
}

// hunt looks for cases that kill mutants.
type hunt struct {
	items []conformance.Item
	near  bool // likely killers and the area only
	// wanted are the pairs that run whatever else kills the mutant; nil: cases run until one kills
	// it.
	wanted func(m mutant.Mutant, id string) bool
	// all says that a mutant which no wanted case kills meets the others too.
	all bool
	// cheap says which cases compare runs beside those that it is asked for; nil: none.
	cheap func(baseline) bool
	// kills says which cases are known to kill a mutant; nil: nothing is known.
	kills  func(name, id string) bool
	attack attack
	// explained says whether the survival of a mutant is.
	explained func(name string) bool
	// elsewhere is the profile on which a case runs that the usual one lacks something for; empty:
	// the usual one.
	elsewhere func(id string) string

	mu    sync.Mutex
	plain map[baseline]bool
}

// baseline is a case on a profile without a mutant.
type baseline struct{ profile, id string }

// run judges the mutants, several at once, and calls done for each, one call at a time.
func (h *hunt) run(ctx context.Context, mutants []mutant.Mutant, parallel int, done func(fate)) ([]fate, error) {
	h.plain = map[baseline]bool{}
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

// judge runs cases on one mutant: those that are wanted, and others until one kills it or none is
// left.
func (h *hunt) judge(ctx context.Context, m mutant.Mutant) (fate, error) {
	f := fate{outcome: Survived, tried: map[string]bool{}}
	if m.Counted() {
		if err := h.count(ctx, m, &f); err != nil || ctx.Err() != nil {
			return fate{}, err
		}
		f.judged = true
		return f, nil
	}
	likely, area, rest := h.sorted(m)
	if h.wanted != nil {
		wanted := slices.DeleteFunc(slices.Concat(likely, area, rest), func(id string) bool { return !h.wanted(m, id) && !h.asksLikely(m, id) })
		done, err := h.try(ctx, m, slices.Clone(wanted), &f, true)
		if err != nil || ctx.Err() != nil {
			return fate{}, err
		}
		if !done { // case after case crashed: those that should kill are not left out for it
			should := slices.DeleteFunc(wanted, func(id string) bool { return !h.shouldKill(m, id) || !slices.Contains(f.crashes, id) })
			if _, err := h.try(ctx, m, should, &f, true); err != nil || ctx.Err() != nil {
				return fate{}, err
			}
		}
	}
	if h.wanted == nil || h.all {
		if err := h.hunt(ctx, m, &f, likely, area, rest); err != nil || ctx.Err() != nil {
			return fate{}, err
		}
	}
	f.judged = true
	return f, nil
}

// asksLikely says whether a case that is likely to kill a mutant runs beside those that are wanted:
// where the mutant is to be killed in any case, one worker for both costs half of two.
func (h *hunt) asksLikely(m mutant.Mutant, id string) bool {
	return h.all && slices.Contains(m.Killers, id)
}

// shouldKill says whether a case is likely to kill a mutant, or known to.
func (h *hunt) shouldKill(m mutant.Mutant, id string) bool {
	return slices.Contains(m.Killers, id) || h.kills != nil && h.kills(m.Name, id)
}

// count tries probes until one notices the mutant, which no case can.
func (h *hunt) count(ctx context.Context, m mutant.Mutant, f *fate) error {
	for _, ids := range countRounds(m) {
		if f.outcome == Killed {
			return nil
		}
		if _, err := h.try(ctx, m, ids, f, false); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// hunt tries cases until one kills the mutant. Those that are likely to come alone in each case,
// before the hunt may end by too many errors. Of a mutant whose survival is explained only they are
// tried: the matrix tries all.
func (h *hunt) hunt(ctx context.Context, m mutant.Mutant, f *fate, likely, area, rest []string) error {
	rounds := [][]string{likely, area, rest}
	switch {
	case h.explained(m.Name):
		rounds = rounds[:1]
	case h.near:
		rounds = rounds[:2]
	}
	for _, ids := range rounds {
		if f.outcome == Killed {
			return nil
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return f.tried[id] && !slices.Contains(f.crashes, id) })
		done, err := h.try(ctx, m, ids, f, false)
		if err != nil || ctx.Err() != nil || !done {
			return err
		}
	}
	return nil
}

// try runs cases on a mutant and says whether all ended: without on, the first that kills it ends
// the round, and in any case too many errors do.
func (h *hunt) try(ctx context.Context, m mutant.Mutant, ids []string, f *fate, on bool) (done bool, err error) {
	errors := 0
	for len(ids) > 0 {
		m, some := h.onOneProfile(m, ids)
		ended, err := h.round(ctx, m, some, on)
		if err != nil || ctx.Err() != nil {
			return false, err
		}
		if err := h.compare(ctx, m, ended); err != nil {
			return false, err
		}
		for _, c := range ended {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == c.ID })
			f.tried[c.ID] = true
			if h.passes(m, c.ID) && h.note(f, c) {
				errors++
			}
		}
		if f.outcome == Killed && !on {
			return false, nil
		}
		if errors >= tooManyErrors {
			for _, id := range ids {
				f.tried[id], f.crashes = true, append(f.crashes, id)
			}
			return len(ids) == 0, nil
		}
	}
	return true, nil
}

// onOneProfile returns the cases that run on the same profile as the first, and the mutant on that.
// A mutant that chooses its profile meets all cases there.
func (h *hunt) onOneProfile(m mutant.Mutant, ids []string) (mutant.Mutant, []string) {
	if m.Profile != "" || h.elsewhere == nil || m.Counted() {
		return m, ids
	}
	m.Profile = h.elsewhere(ids[0])
	var some []string
	for _, id := range ids {
		if h.elsewhere(id) == m.Profile {
			some = append(some, id)
		}
	}
	return m, some
}

// note adds to the fate of a mutant what a case showed that passes without it, and says whether it
// was an error.
func (h *hunt) note(f *fate, c report.Case) bool {
	f.crashes = slices.DeleteFunc(f.crashes, func(id string) bool { return id == c.ID })
	switch {
	case isKill(c):
		if f.kills = append(f.kills, c.ID); f.outcome != Killed {
			f.outcome, f.kill = Killed, c
		}
	case c.Outcome == report.Error:
		f.crashes = append(f.crashes, c.ID)
		if f.outcome == Survived {
			f.outcome, f.reason = Failed, c.ID+": "+c.Reason
		}
		return true
	}
	return false
}

// round runs cases on a mutant, without on up to the first that may be a kill, and returns those
// that ended in the order in which they did.
func (h *hunt) round(ctx context.Context, m mutant.Mutant, ids []string, on bool) ([]report.Case, error) {
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
		if isKill(c) && !on || errors >= tooManyErrors {
			stopped = true
			cancel()
		}
	})
	return ended, err
}

// sorted are the cases that are likely to kill a mutant, or of one for which nobody named any,
// those that are known to; the others of its area; and the rest.
func (h *hunt) sorted(m mutant.Mutant) (likely, area, rest []string) {
	for _, i := range h.items {
		switch id := i.Entry.ID; {
		case slices.Contains(m.Killers, id), len(m.Killers) == 0 && h.kills != nil && h.kills(m.Name, id):
			likely = append(likely, id)
		case i.Entry.Area == m.Area:
			area = append(area, id)
		default:
			rest = append(rest, id)
		}
	}
	return likely, area, rest
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

// compare runs without the mutant what may have killed it or crashed on it, where that is not known
// yet. Others that ask for the same case at the same time run it too, rather than wait.
func (h *hunt) compare(ctx context.Context, m mutant.Mutant, ended []report.Case) error {
	var ids []string
	h.mu.Lock()
	for _, c := range ended {
		if _, known := h.plain[baseline{m.Profile, c.ID}]; !known && (isKill(c) || c.Outcome == report.Error) {
			ids = append(ids, c.ID)
		}
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if h.cheap != nil && !m.Counted() { // nearly every mutant asks for cases: those that take little run in one worker, whoever asks first
		for _, i := range h.items {
			id := i.Entry.ID
			b := baseline{m.Profile, id}
			h.mu.Lock()
			_, known := h.plain[b]
			h.mu.Unlock()
			if !known && h.cheap(b) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return h.attack(ctx, mutant.Mutant{Profile: m.Profile, Area: m.Area}, ids, func(c report.Case) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.plain[baseline{m.Profile, c.ID}] = c.Outcome == report.Pass || c.Outcome == report.PassDeviation || c.Outcome == report.Unrecorded
	})
}

// passes says whether a case that compare has run passes without the mutant, on its profile.
func (h *hunt) passes(m mutant.Mutant, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.plain[baseline{m.Profile, id}]
}
