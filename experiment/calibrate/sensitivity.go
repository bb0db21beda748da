package calibrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// mostSensitivityRuns bounds the search.
const mostSensitivityRuns = 600

// trial is a run of the experiment with other values.
type trial struct {
	x   *experiment.Experiment
	req experiment.Request
	// runs are results by the assignments they were made with.
	mu    sync.Mutex
	known map[string]*trialResult
	ran   int
	done  func(ran int, what string)
}

type trialResult struct {
	rows  []table.Row
	plots []chart.Plot
	cols  []string
	print string // the rows as JSON, to compare
	err   error
}

// CheckSensitivity refuses what FindSensitivity cannot do with a request.
func CheckSensitivity(req *experiment.Request) error {
	if req.Pcap != "" || req.Trace != "" {
		return experiment.Usagef("--sensitivity makes many runs, and --pcap and --trace record one: leave them out")
	}
	return nil
}

// FindSensitivity runs an experiment again and again, with its assumed and fitted values at their
// bounds. Values are varied in groups first: of a group that changes nothing, none does.
func FindSensitivity(ctx context.Context, x *experiment.Experiment, req experiment.Request, progress func(done, total int, what string)) (*experiment.Sensitivity, error) {
	if err := CheckSensitivity(&req); err != nil {
		return nil, err
	}
	s := &experiment.Sensitivity{Settings: []string{}, Conclusions: []string{}, Values: []experiment.Sensitive{}, NotVaried: []string{}, Complete: true}
	req.Set = slices.Clone(req.Set)
	for _, k := range keysOf(x.Brief) {
		kv := k + "=" + x.Brief[k]
		if !slices.ContainsFunc(req.Set, func(own string) bool { return strings.HasPrefix(own, k+"=") }) {
			req.Set, s.Settings = append(req.Set, kv), append(s.Settings, kv)
		}
	}
	t := &trial{x: x, req: req, known: map[string]*trialResult{}}
	t.done = func(ran int, what string) {
		if progress != nil {
			progress(ran, mostSensitivityRuns, what)
		}
	}
	if sc := x.OfScenario(); sc != nil {
		_, _ = sc.LoadProfile() // it is read once, before many runs share it; the first run says what is wrong with it
	}
	base := t.run(ctx, nil)
	if base.err != nil {
		return nil, base.err
	}
	cands, not, err := candidates(x, req)
	if err != nil {
		return nil, err
	}
	s.NotVaried = append(s.NotVaried, not...)
	found, err := t.search(ctx, base, cands)
	if err != nil {
		return nil, err
	}
	shown := shapesOf(base)
	for _, sh := range shown {
		s.Conclusions = append(s.Conclusions, sh.conclusions()...)
	}
	if err := t.judge(ctx, base, shown, found, s); err != nil {
		return nil, err
	}
	s.Without = len(cands) - len(found)
	s.Runs, s.Complete = t.ran, t.ran < mostSensitivityRuns
	slices.SortStableFunc(s.Values, func(a, b experiment.Sensitive) int { return boolOrder(a.Holds, b.Holds) })
	return s, nil
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// run is the experiment with assignments; equal ones are run once.
func (t *trial) run(ctx context.Context, set []string) *trialResult {
	key := strings.Join(set, " ")
	t.mu.Lock()
	r, ok := t.known[key]
	if !ok && t.ran >= mostSensitivityRuns {
		t.mu.Unlock()
		return &trialResult{err: errTooMany}
	}
	if !ok {
		t.ran++
		t.done(t.ran, strings.Join(set[:min(1, len(set))], ""))
	}
	t.mu.Unlock()
	if ok {
		return r
	}
	req := t.req
	req.Set, req.Costs = slices.Clone(t.req.Set), maps.Clone(t.req.Costs)
	for _, kv := range set {
		if name, text, ok := cutCost(kv); ok {
			if req.Costs == nil {
				req.Costs = map[string]string{}
			}
			req.Costs[name] = text
			continue
		}
		req.Set = append(req.Set, kv)
	}
	res, err := t.x.Execute(ctx, req, nil)
	r = &trialResult{err: err}
	if err == nil {
		text, jerr := json.Marshal(res.Rows)
		r.rows, r.plots, r.cols, r.print, r.err = res.Rows, res.Plots, res.Columns, string(text), jerr
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[key] = r
	return r
}

var errTooMany = errors.New("the search ended at its limit of runs")

// search finds the candidates that change the rows, at their upper bounds and then, of the others,
// at their lower ones.
func (t *trial) search(ctx context.Context, base *trialResult, cands []*candidate) ([]*candidate, error) {
	var found []*candidate
	for side := range 2 {
		var groups [][]*candidate
		for _, c := range cands {
			if side >= len(c.tries) || c.tries[side] == "" || slices.Contains(found, c) {
				continue
			}
			if n := len(groups); n > 0 && section(groups[n-1][0].key) == section(c.key) {
				groups[n-1] = append(groups[n-1], c)
			} else {
				groups = append(groups, []*candidate{c})
			}
		}
		hit, err := t.split(ctx, base, groups, side)
		if err != nil {
			return nil, err
		}
		found = append(found, hit...)
	}
	return slices.DeleteFunc(slices.Clone(cands), func(c *candidate) bool { return !slices.Contains(found, c) }), nil
}

// split tries groups, and the halves of those that change something.
func (t *trial) split(ctx context.Context, base *trialResult, groups [][]*candidate, side int) (found []*candidate, err error) {
	for len(groups) > 0 {
		changed := make([]bool, len(groups))
		t.each(len(groups), func(i int) {
			var set []string
			for _, c := range groups[i] {
				set = append(set, c.key+"="+c.tries[side])
			}
			r := t.run(ctx, set)
			changed[i] = r.err != nil || r.print != base.print
		})
		if ctx.Err() != nil {
			return nil, experiment.ErrInterrupted
		}
		var next [][]*candidate
		for i, g := range groups {
			switch {
			case !changed[i]:
			case len(g) == 1:
				found = append(found, g[0])
			default:
				next = append(next, g[:len(g)/2], g[len(g)/2:])
			}
		}
		groups = next
	}
	return found, nil
}

// each calls f for 0 to n-1, as many at once as there are processors.
func (t *trial) each(n int, f func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	wg.Wait()
}

// judge runs what was found at all its bounds, and compares what the results show.
func (t *trial) judge(ctx context.Context, base *trialResult, shown []*shape, found []*candidate, s *experiment.Sensitivity) error {
	t.each(len(found), func(i int) {
		for _, v := range found[i].tries {
			if v != "" {
				t.run(ctx, []string{found[i].key + "=" + v})
			}
		}
	})
	if ctx.Err() != nil {
		return experiment.ErrInterrupted
	}
	for _, c := range found {
		v := experiment.Sensitive{Key: c.key, Value: c.value, Source: c.source, Bounds: c.bounds, Holds: true, Tries: []experiment.Tried{}}
		for _, text := range c.tries {
			if text == "" {
				continue
			}
			r := t.run(ctx, []string{c.key + "=" + text})
			if errors.Is(r.err, errTooMany) {
				continue
			}
			if r.err != nil {
				s.NotVaried = append(s.NotVaried, fmt.Sprintf("%s=%s: %v", c.key, text, r.err))
				continue
			}
			tried := experiment.Tried{Value: text, Changes: []string{}}
			now := shapesOf(r)
			for _, sh := range shown {
				changes, effect := sh.compare(now)
				tried.Changes, tried.Effect = append(tried.Changes, changes...), max(tried.Effect, effect)
			}
			tried.Effect = table.Rounded(tried.Effect)
			v.Holds = v.Holds && len(tried.Changes) == 0
			v.Tries = append(v.Tries, tried)
		}
		if len(v.Tries) > 0 {
			s.Values = append(s.Values, v)
		}
	}
	return nil
}

// section is the first word of a key.
func section(key string) string {
	head, _, _ := strings.Cut(key, ".")
	return head
}
