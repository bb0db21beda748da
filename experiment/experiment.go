package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Param is a value of an experiment that --set and --sweep can change.
type Param struct {
	Key, Default, Help string
	// Allowed lists the values; empty: a whole number between Min and Max.
	Allowed  []string
	Min, Max int
	// Assumed says that no source gives the default: a number that --sensitivity varies.
	Assumed bool
}

// Experiment is a named experiment.
type Experiment struct {
	Name, Title string
	Profile     string // default
	Params      []Param
	Columns     []string
	More        More
	// Details are kinds of rows that the table for people has only if a request asks for them.
	Details []string
	Plots   []chart.Plot
	// Drawings are the names of pictures that Run may add to its result.
	Drawings []string
	// Many says that Run makes more than one run. With Timeline it nevertheless writes --trace
	// itself.
	Many, Timeline bool
	// Brief are settings with which --sensitivity runs it: they leave out runs that take long and
	// show nothing more.
	Brief map[string]string
	// Confirms says that it runs again what --confirm asks for.
	Confirms bool
	// NoProfile says that nothing of its profile is used.
	NoProfile bool
	// Costs are what it assumes beside its profile and parameters.
	Costs []AssumedCost
	// Run emits rows as they are ready, so that an interrupted run keeps them.
	Run func(env *Env) error
	// scenario is set when the experiment is a scenario file: its keys are then those
	// of the file.
	scenario *Scenario
}

// AssumedCost is a time that an experiment assumes in addition to its profile and parameters.
type AssumedCost struct{ Name, Value string }

// Env is what an experiment gets to run with.
type Env struct {
	Ctx     context.Context
	Profile *profile.Profile
	Seed    uint64
	Out     *Result
	Confirm bool // a second run shall say whether what limits a run is its limit
	rec     *recorder
	// counters asks for a row for each counter that changed.
	counters bool
	brief    bool
	// histogram asks for rows of how long messages take.
	histogram bool
	vals      map[string]string
	costs     map[string]string   // other values of the experiment's costs
	ofRuns    map[string]*runNote // by the text without its figures
	// Progress is called before each run; it may be nil.
	Progress func(done, total int, what string)
}

// String returns the value of a parameter.
func (e *Env) String(key string) string { return e.vals[key] }

// Int returns the value of a numeric parameter.
func (e *Env) Int(key string) int {
	n, err := strconv.Atoi(e.vals[key])
	if err != nil {
		panic(fmt.Sprintf("experiment: parameter %s is %q after its check", key, e.vals[key]))
	}
	return n
}

// Emit appends a row.
func (e *Env) Emit(r table.Row) { e.Out.Rows = append(e.Out.Rows, r) }

// Note adds a note about the last run.
func (e *Env) Note(format string, args ...any) { e.Out.Note(format, args...) }

// Step reports progress and returns the error that ends an interrupted run.
func (e *Env) Step(done, total int, what string) error {
	if err := e.Ctx.Err(); err != nil {
		return ErrInterrupted
	}
	if e.Progress != nil {
		e.Progress(done, total, what)
	}
	return nil
}

// Silent returns a copy of e for runs of which nothing is kept: no rows, notes, progress, capture
// or timeline. Faults still apply.
func (e *Env) Silent() *Env {
	s := *e
	s.Out, s.ofRuns, s.Progress, s.rec = &Result{}, nil, nil, e.rec.silent()
	return &s
}

// ErrInterrupted ends a run whose context was cancelled; its rows stay.
var ErrInterrupted = errors.New("interrupted")

// UsageError is an error of usage or input: exit status 2.
type UsageError struct{ Err error }

// Error returns the message.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Request is what a run command asks for.
type Request struct {
	Set     []string // key=value
	Profile string
	Seed    uint64
	Pcap    string
	Trace   string
	Fault   string // file of faults (package roce/fault)
	// FaultText is the text of that file, if it has been read.
	FaultText []byte
	Version   string
	// Counters adds a row for each counter that changed, to the result of a scenario.
	Counters bool
	// Threads puts the rows of clients and threads of a scenario into its table for people; other
	// formats have them always.
	Threads bool
	// Every, unless 0, adds rows of what loads of a scenario deliver and of the queues of its
	// switch, each so often.
	Every time.Duration
	// Histogram adds rows of how long messages and flows of a scenario take.
	Histogram bool
	// Lockstep makes programs yield at every step: the results must not change by a byte.
	Lockstep bool
	// Confirm runs again with more of what limits a run.
	Confirm bool
	// Costs are other values of the experiment's costs, by their names.
	Costs map[string]string

	brief  bool         // one of many runs: notes that explain a single one are left out
	frames *pcap.Writer // of a recorded sweep, which writes the frames of all its points there
	point  string       // the name of the run there
}

// Execute runs an experiment once.
func (x *Experiment) Execute(ctx context.Context, req Request, progress func(done, total int, what string)) (res *Result, err error) {
	if x.scenario != nil {
		return x.scenario.execute(ctx, x, req, progress)
	}
	if req.Counters {
		return nil, Usagef("--counters prints the counters of a scenario, and %s is an experiment: leave the flag out", x.Name)
	}
	if req.Threads {
		return nil, Usagef("--threads prints the threads of a scenario, and %s is an experiment: leave the flag out", x.Name)
	}
	if req.Every > 0 || req.Histogram {
		return nil, Usagef("--every and --histogram look into the run of a scenario, and %s is an experiment: leave them out", x.Name)
	}
	if req.Confirm && !x.Confirms {
		return nil, Usagef("--confirm: %s does not name what limits its runs: leave the flag out", x.Name)
	}
	name := cmp.Or(req.Profile, x.Profile)
	vals, over, err := x.Settings(req.Set)
	if err != nil {
		return nil, err
	}
	prof, err := profile.Load(name)
	if err != nil {
		return nil, Usagef("--profile: %w", err)
	}
	for _, kv := range over {
		if err := prof.Set(kv.Key, kv.Value); err != nil {
			return nil, &UsageError{fmt.Errorf("--set %s=%s: %w", kv.Key, kv.Value, err)}
		}
	}
	if x.Many && !x.Timeline && req.Trace != "" {
		return nil, Usagef("--trace records a single run, and this experiment makes several: use a scenario file without --sweep")
	}
	rec, err := req.recorder(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { rec.notes(res); err = rec.end(err) }()
	res = &Result{Name: x.Name, Version: req.Version, Profile: name, ProfileHash: prof.Hash(), Seed: req.Seed,
		Hypotheses: []string{}, Rows: []table.Row{}, Notes: []string{}, Columns: x.Columns, More: x.More, Plots: x.Plots}
	res.AddHypotheses(prof)
	env := &Env{Ctx: ctx, Profile: prof, Seed: req.Seed, Out: res, vals: vals, Progress: progress, rec: rec, costs: req.Costs, Confirm: req.Confirm}
	if err := x.Run(env); err != nil {
		if errors.Is(err, ErrInterrupted) {
			return res, err
		}
		return res, fmt.Errorf("%s: %w", x.Name, err)
	}
	res.Complete = true
	return res, nil
}

// Settings separates the key=value settings of --set: the experiment's own parameters, checked, and
// overrides of the profile, whose keys contain a dot.
func (x *Experiment) Settings(set []string) (map[string]string, []Setting, error) {
	vals := map[string]string{}
	for _, p := range x.Params {
		vals[p.Key] = p.Default
	}
	var over []Setting
	for _, kv := range set {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, nil, Usagef("--set %q is not of the form key=value", kv)
		}
		if p := x.param(k); p != nil {
			if err := p.check(v); err != nil {
				return nil, nil, Usagef("--set %s: %w", kv, err)
			}
			vals[k] = v
		} else if strings.Contains(k, ".") {
			over = append(over, Setting{k, v})
		} else {
			return nil, nil, Usagef("--set %s: %s has no key %q%s", kv, x.Name, k, input.Suggest(k, x.keys()))
		}
	}
	return vals, over, nil
}

func (x *Experiment) param(key string) *Param {
	for i := range x.Params {
		if x.Params[i].Key == key {
			return &x.Params[i]
		}
	}
	return nil
}

func (x *Experiment) keys() []string {
	var keys []string
	for _, p := range x.Params {
		keys = append(keys, p.Key)
	}
	return keys
}

func (p *Param) check(v string) error {
	if len(p.Allowed) > 0 {
		for _, a := range p.Allowed {
			if a == v {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s%s", v, strings.Join(p.Allowed, ", "), input.Suggest(v, p.Allowed))
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < p.Min || n > p.Max {
		return fmt.Errorf("%q is not a whole number from %d to %d", v, p.Min, p.Max)
	}
	return nil
}
