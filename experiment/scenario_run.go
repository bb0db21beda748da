package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// profileError is what is wrong with the profile that a scenario asks for, and where the
// scenario says so.
type profileError struct {
	at  string
	err error
}

func (e *profileError) Error() string { return e.err.Error() }

// stored is a profile as it is stored, by the name that it was asked for.
type stored struct {
	name string
	p    *profile.Profile
}

// LoadProfile returns the scenario's profile with the scenario's changes, in the order of their
// keys.
func (s *Scenario) LoadProfile() (*profile.Profile, error) {
	name := cmp.Or(s.Profile, profile.Default)
	if s.base == nil || s.base.name != name {
		p, err := profile.Load(name)
		if err != nil {
			return nil, &profileError{"profile", err}
		}
		s.base = &stored{name, p}
	}
	p := s.base.p.Clone()
	keys := make([]string, 0, len(s.Set))
	for k := range s.Set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if err := p.Set(k, s.Set[k]); err != nil {
			return nil, &profileError{"set." + k, err}
		}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// ProfileOver returns the scenario's profile with the scenario's changes, with base in place of the
// stored profile.
func (s *Scenario) ProfileOver(base *profile.Profile) (*profile.Profile, error) {
	s.base = &stored{s.Profile, base}
	return s.LoadProfile()
}

// With returns a copy of the scenario with values changed by dotted path, which are checked
// together; a key that neither the scenario nor its loads have is a profile key.
func (s *Scenario) With(changes ...Setting) (*Scenario, error) {
	c := *cmp.Or(s.given, s)
	c.base = s.base
	c.Traffic = append([]Traffic(nil), c.Traffic...)
	for i := range c.Traffic {
		t := &c.Traffic[i]
		t.Mix, t.Cores = slices.Clone(t.Mix), slices.Clone(t.Cores)
	}
	c.Faults = append([]fault.FileRule(nil), s.Faults...)
	c.Set = map[string]string{}
	for k, v := range s.Set {
		c.Set[k] = v
	}
	for _, ch := range changes {
		head, _, dotted := strings.Cut(ch.Key, ".")
		if dotted && head != "traffic" && head != "completions" && head != "set" && head != "faults" {
			c.Set[ch.Key] = ch.Value
		} else if err := input.Set(&c, ch.Key, ch.Value); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", ch.Key, ch.Value, err)
		}
		c.zero(ch.Key)
	}
	for _, ch := range changes {
		var i int
		if _, err := fmt.Sscanf(ch.Key, "traffic.%d.duration", &i); err == nil && c.Traffic[i].Duration == 0 && c.Traffic[i].Messages == 0 {
			return nil, fmt.Errorf("%s=%s: give the time that is counted, such as 200us, or messages", ch.Key, ch.Value)
		}
	}
	if _, err := c.LoadProfile(); err != nil && !inFile(s, err) {
		return nil, err
	}
	if err := c.check(); err != nil {
		return &c, err
	}
	return &c, c.checkAttributes()
}

// zero notes a payload of 0 that a change gives: nothing, or 0, is otherwise the default.
func (s *Scenario) zero(key string) {
	p := strings.Split(key, ".")
	if len(p) == 3 && p[0] == "traffic" && p[2] == "payload" {
		i, _ := strconv.Atoi(p[1]) // it was set
		s.Traffic[i].bare = s.Traffic[i].Payload == 0
	}
}

// inFile reports whether the scenario as its file has it already has the error: then
// the file is the place to name.
func inFile(s *Scenario, err error) bool {
	_, own := s.LoadProfile()
	return own != nil && own.Error() == err.Error()
}

// execute is Experiment.Execute for a scenario file: --set names values of the file, or of the
// profile.
func (s *Scenario) execute(ctx context.Context, x *Experiment, req Request, progress func(done, total int, what string)) (res *Result, err error) {
	changes, err := req.changes()
	if err != nil {
		return nil, err
	}
	sc, err := s.With(changes...)
	switch {
	case err != nil && len(changes) == 0:
		return nil, &UsageError{err}
	case err != nil:
		return nil, Usagef("--set: %w", err)
	}
	prof, err := sc.LoadProfile()
	if err != nil {
		return nil, &UsageError{err}
	}
	rec, err := req.recorder(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { rec.notes(res); err = rec.end(err) }()
	res = &Result{Name: s.Name, Version: req.Version, Profile: sc.Profile, ProfileHash: prof.Hash(), Seed: req.Seed,
		Hypotheses: []string{}, Rows: []table.Row{}, Notes: []string{}, Columns: x.Columns}
	if !req.Threads {
		res.Hidden = x.Details
	}
	if req.Every < 0 {
		return res, Usagef("--every %v: give a time above 0, such as 10us", req.Every)
	}
	if sc.every = req.Every; sc.every > 0 {
		res.Inside = append(res.Inside, seriesPlots(s.Name)...)
	}
	if req.Histogram {
		res.Inside = append(res.Inside, histogramPlots(s.Name)...)
	}
	res.Aside = sampled
	if s.Source != "" {
		res.Note("Source of the scenario: %s", s.Source)
	}
	res.AddHypotheses(prof)
	if progress != nil {
		progress(0, thousand, s.Name)
		sc.clock = sc.clockOf(progress)
	}
	if req.Fault == "" && len(sc.Faults) > 0 {
		plan, err := fault.NewPlan(sc.doc, sc.Faults)
		if err != nil {
			return res, &UsageError{err}
		}
		rec.expect(plan)
	}
	notes := slices.Concat(sc.sharedCores(), sc.idle(prof, rec.faults), hypothetical(prof))
	if req.brief { // what is idle at one point may act at another
		notes = slices.Concat(sc.sharedCores(), hypothetical(prof))
	}
	for _, what := range notes {
		res.Note("%s", what)
	}
	if err := sc.emit(&Env{Ctx: ctx, Seed: req.Seed, Out: res, rec: rec, counters: req.Counters, brief: req.brief, histogram: req.Histogram, Confirm: req.Confirm}); err != nil {
		return res, err
	}
	if progress != nil {
		progress(thousand, thousand, "done")
	}
	res.Complete = true
	return res, nil
}

// thousand parts of a run are what its progress counts.
const thousand = 1000

// clock tells how far the loads of a run are.
type clock struct {
	name     string
	began    time.Duration // by the clock of threads; 0: they have not
	longest  time.Duration // load; 0: one ends with its messages, at a time that nobody knows
	progress func(done, total int, what string)
}

// clockOf is the clock of a run of the scenario.
func (s *Scenario) clockOf(progress func(done, total int, what string)) *clock {
	c := &clock{name: s.Name, progress: progress}
	for i := range s.Traffic {
		l := s.Traffic[i].load()
		if l.Duration == 0 {
			c.longest = 0
			break
		}
		c.longest = max(c.longest, l.Start+l.Warmup+l.Duration)
	}
	return c
}

// tick tells how far the run is at a time.
func (c *clock) tick(now time.Duration) {
	gone := (now - c.began).Round(time.Microsecond)
	switch {
	case c.began == 0:
		c.progress(0, thousand, c.name+": making its objects")
	case c.longest == 0:
		c.progress(0, thousand, fmt.Sprintf("%s: %v of virtual time", c.name, gone))
	case gone < c.longest:
		c.progress(int(thousand*gone.Microseconds()/max(c.longest.Microseconds(), 1)), thousand, fmt.Sprintf("%s: %v of %v", c.name, gone, c.longest))
	default:
		c.progress(thousand-1, thousand, fmt.Sprintf("%s: %v, waiting for what is under way", c.name, gone))
	}
}

// sharedCores names loads whose threads share cores although nobody asked for it: threads of a load
// without clients are put on cores 0, 1, ... of their host unless cores names others, and another
// load may name just these.
func (s *Scenario) sharedCores() (out []string) {
	users := map[place]int{}
	for i := range s.Traffic {
		if t := &s.Traffic[i]; t.crowded {
			what := fmt.Sprintf("Clients of load %s share cores: they have more threads on a host than its %d cores; cores of the scenario says how many there are.", t.group, s.Cores)
			if !slices.Contains(out, what) {
				out = append(out, what)
			}
		}
	}
	for _, named := range []bool{true, false} {
		for i := range s.Traffic {
			t := &s.Traffic[i]
			if len(t.Cores) > 0 != named {
				continue
			}
			l := t.load()
			for _, side := range []struct{ host, threads int }{{t.From, t.Threads}, {*t.To, l.TargetThreads()}} {
				host, shared := side.host, i
				for core := range side.threads {
					if named {
						core = t.Cores[core%len(t.Cores)]
					}
					if first, ok := users[place{host, core}]; ok {
						shared = first
					} else {
						users[place{host, core}] = i
					}
				}
				if shared == i || named {
					continue
				}
				why := "because neither names its own"
				if len(s.Traffic[shared].Cores) > 0 {
					why = fmt.Sprintf("because %s names none", t.Name)
				}
				out = append(out, fmt.Sprintf("Loads %s and %s share cores of host%d, %s: cores: [...] puts the threads of a load elsewhere.", s.Traffic[shared].Name, t.Name, host, why))
			}
		}
	}
	return out
}
