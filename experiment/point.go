package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Setting is one value of a point of a sweep.
type Setting struct{ Key, Value string }

// PointName returns the name of a point, such as "window=4 payload=2".
func PointName(pt []Setting) string {
	var words []string
	for _, s := range pt {
		words = append(words, s.Key+"="+s.Value)
	}
	return strings.Join(words, " ")
}

// Prepared is an experiment with the checked settings that all points of a sweep share. Several
// goroutines may use it.
type Prepared struct {
	x        *Experiment
	req      Request
	base     *Scenario // of a scenario
	vals     map[string]string
	over     []Setting
	mu       sync.Mutex
	profiles map[string]*profile.Profile // as stored, by name
	hashes   map[string]string           // of profiles with their settings
}

// Prepare checks the settings of a request, and returns the experiment with them.
func (x *Experiment) Prepare(req Request) (*Prepared, error) {
	p := &Prepared{x: x, req: req, profiles: map[string]*profile.Profile{}, hashes: map[string]string{}}
	if x.scenario != nil {
		changes, err := req.changes()
		if err != nil {
			return nil, err
		}
		if p.base, err = x.scenario.With(changes...); err != nil {
			return nil, Usagef("--set: %w", err)
		}
		return p, nil
	}
	if req.Counters {
		return nil, Usagef("--counters prints the counters of a scenario, and %s is an experiment: leave the flag out", x.Name)
	}
	if req.Threads {
		return nil, Usagef("--threads prints the threads of a scenario, and %s is an experiment: leave the flag out", x.Name)
	}
	var err error
	if p.vals, p.over, err = x.Settings(req.Set); err != nil {
		return nil, err
	}
	prof, err := p.stored(cmp.Or(req.Profile, x.Profile))
	if err != nil {
		return nil, Usagef("--profile: %w", err)
	}
	for _, kv := range p.over {
		if err := prof.Set(kv.Key, kv.Value); err != nil {
			return nil, Usagef("--set %s=%s: %w", kv.Key, kv.Value, err)
		}
	}
	return p, nil
}

// stored is a copy of a stored profile.
func (p *Prepared) stored(name string) (*profile.Profile, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profiles[name] == nil {
		prof, err := profile.Load(name)
		if err != nil {
			return nil, err
		}
		p.profiles[name] = prof
	}
	return p.profiles[name].Clone(), nil
}

// Identity is everything that decides the result of a run, and nothing else: two points whose
// identities have equal JSON have equal results.
type Identity struct {
	Experiment  string            `json:"experiment,omitempty"`
	Values      map[string]string `json:"values,omitempty"`
	Scenario    json.RawMessage   `json:"scenario,omitempty"`
	Profile     string            `json:"profile"`
	ProfileHash string            `json:"profile_hash"`
	// Given are values of the profile that were set: an experiment may refuse those that it sets
	// itself.
	Given    []string `json:"given,omitempty"`
	Seed     uint64   `json:"seed"`
	Fault    string   `json:"fault,omitempty"` // text of --fault
	Counters bool     `json:"counters,omitempty"`
	Lockstep bool     `json:"lockstep,omitempty"`
}

// Identity checks the settings of a point and returns what decides its result. Errors name the
// setting.
func (p *Prepared) Identity(pt []Setting, seed uint64) (*Identity, error) {
	id := &Identity{Seed: seed, Fault: string(p.req.FaultText), Counters: p.req.Counters, Lockstep: p.req.Lockstep}
	if p.base != nil {
		return id, p.scenarioIdentity(id, pt)
	}
	id.Experiment, id.Values = p.x.Name, maps.Clone(p.vals)
	name := cmp.Or(p.req.Profile, p.x.Profile)
	over := slices.Clone(p.over)
	for _, s := range pt {
		switch q := p.x.param(s.Key); {
		case q != nil:
			if err := q.check(s.Value); err != nil {
				return nil, Usagef("%s=%s: %w", s.Key, s.Value, err)
			}
			id.Values[s.Key] = s.Value
			if n, err := strconv.Atoi(s.Value); err == nil && len(q.Allowed) == 0 {
				id.Values[s.Key] = strconv.Itoa(n)
			}
		case s.Key == "profile":
			name = s.Value
		case strings.Contains(s.Key, "."):
			over = append(over, s)
		default:
			return nil, Usagef("%s has no key %q%s", p.x.Name, s.Key, input.Suggest(s.Key, append(p.x.keys(), "profile")))
		}
	}
	prof, err := p.stored(name)
	if err != nil {
		return nil, Usagef("profile=%s: %w", name, err)
	}
	for _, kv := range over {
		if err := prof.Set(kv.Key, kv.Value); err != nil {
			return nil, Usagef("%s=%s: %w", kv.Key, kv.Value, err)
		}
		id.Given = append(id.Given, kv.Key)
	}
	slices.Sort(id.Given)
	id.Given = slices.Compact(id.Given)
	id.Profile, id.ProfileHash = name, prof.Hash()
	return id, nil
}

func (p *Prepared) scenarioIdentity(id *Identity, pt []Setting) error {
	sc, err := p.scenario(pt)
	if err != nil {
		return err
	}
	id.Profile = sc.Profile
	if id.ProfileHash, err = p.hash(sc); err != nil {
		return err
	}
	plain := *sc // the profile's hash has what set says, and the rest changes nothing
	plain.Set, plain.Title, plain.Sweep = nil, "", nil
	id.Scenario, err = json.Marshal(&plain)
	return err
}

// mostHashes bounds the hashes that are remembered: points differ in few settings of the profile,
// or in many.
const mostHashes = 10_000

// hash is that of a scenario's profile with its settings.
func (p *Prepared) hash(sc *Scenario) (string, error) {
	var b strings.Builder
	b.WriteString(sc.Profile)
	for _, k := range slices.Sorted(maps.Keys(sc.Set)) {
		fmt.Fprintf(&b, "\n%q=%q", k, sc.Set[k])
	}
	p.mu.Lock()
	known, ok := p.hashes[b.String()]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	prof, err := sc.LoadProfile()
	if err != nil {
		return "", &UsageError{err}
	}
	hash := prof.Hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.hashes) < mostHashes {
		p.hashes[b.String()] = hash
	}
	return hash, nil
}

// scenario is the scenario of a point.
func (p *Prepared) scenario(pt []Setting) (*Scenario, error) {
	changes := make([]Setting, len(pt))
	base := p.base
	for i, s := range pt {
		if s.Key == "name" { // a column of the result has that name
			return nil, Usagef("%s: the name changes nothing in a run", PointName(pt[i:i+1]))
		}
		if s.Key == "profile" {
			prof, err := p.stored(s.Value)
			if err != nil {
				return nil, Usagef("profile=%s: %w", s.Value, err)
			}
			c := *base
			c.base = &stored{s.Value, prof}
			base = &c
		}
		changes[i] = s
	}
	sc, err := base.With(changes...)
	if err != nil {
		return nil, &UsageError{err}
	}
	return sc, nil
}

// Record makes the request's capture take the frames of all runs that follow; end puts the file in
// place. From then on only one goroutine may use p.
func (p *Prepared) Record(ctx context.Context) (end func(error) error, err error) {
	rec, err := (&Request{Pcap: p.req.Pcap}).recorder(ctx)
	if err != nil {
		return nil, err
	}
	p.req.Pcap, p.req.frames = "", rec.frames
	return rec.end, nil
}

// Run runs one point. Its rows and notes do not name the point; a capture names it name.
func (p *Prepared) Run(ctx context.Context, pt []Setting, seed uint64, name string) (*Result, error) {
	req := p.req
	req.Set, req.Seed, req.point, req.brief = slices.Clone(req.Set), seed, name, true
	for _, s := range pt {
		if s.Key == "profile" {
			req.Profile = s.Value
		} else {
			req.Set = append(req.Set, s.Key+"="+s.Value)
		}
	}
	return p.x.Execute(ctx, req, nil)
}

// Command returns the command line that runs a point by itself.
func (p *Prepared) Command(pt []Setting, seed uint64, file string) []string {
	args := []string{"rdmasim", "run", cmp.Or(file, p.x.Name), "--seed", strconv.FormatUint(seed, 10)}
	name := p.req.Profile
	set := slices.Clone(p.req.Set)
	for _, s := range pt {
		if s.Key == "profile" {
			name = s.Value
		} else {
			set = append(set, s.Key+"="+s.Value)
		}
	}
	if name != "" {
		args = append(args, "--profile", name)
	}
	for _, kv := range set {
		args = append(args, "--set", kv)
	}
	if p.req.Fault != "" {
		args = append(args, "--fault", p.req.Fault)
	}
	return args
}

// Experiment returns the experiment that runs the scenario.
func (s *Scenario) Experiment() *Experiment { return s.experiment() }

// OfScenario returns the scenario that an experiment runs; nil for a named experiment.
func (x *Experiment) OfScenario() *Scenario { return x.scenario }

// changes are the settings of a request as changes of a scenario.
func (r *Request) changes() ([]Setting, error) {
	var changes []Setting
	if r.Profile != "" {
		if _, err := profile.Load(r.Profile); err != nil {
			return nil, Usagef("--profile: %w", err)
		}
		changes = append(changes, Setting{"profile", r.Profile})
	}
	for _, kv := range r.Set {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, Usagef("--set %q is not of the form key=value", kv)
		}
		if k == "name" {
			return nil, Usagef("--set %s: name sets the names of the output files, and only the scenario's file can give it", kv)
		}
		if k == "profile" && r.Profile != "" {
			return nil, Usagef("--set %s gives the profile: leave out --profile %s", kv, r.Profile)
		}
		changes = append(changes, Setting{k, v})
	}
	return changes, nil
}

// FaultCount is what a rule of faults did: the frames that it matched, and those on which it acted.
type FaultCount struct {
	What           string `json:"what"`
	Matched, Acted int
}

// String returns the text form.
func (f *FaultCount) String() string {
	return fmt.Sprintf("%s: frames matched: %d, acted on: %d", f.What, f.Matched, f.Acted)
}
