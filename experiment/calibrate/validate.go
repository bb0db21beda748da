package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Validation is a file of published figures with the scenario that should give
// them.
type Validation struct {
	Check    int                          `yaml:"check" help:"number of the check in the list of published figures"`
	Title    string                       `yaml:"title" required:"true"`
	Source   string                       `yaml:"source" required:"true" help:"where the figures were published"`
	Scenario experiment.Scenario          `yaml:"scenario"`
	Runs     map[string]map[string]string `yaml:"runs" help:"named runs: values of the scenario to change in each"`
	Figures  []Figure                     `yaml:"figures"`
	// Fitted are values of the scenario that were tuned until a figure came out, as values of
	// profiles are with source fitted.
	Fitted map[string]string `yaml:"fitted" help:"values of the scenario that were tuned, each with the ID of the figure that it was tuned to"`
	// Parameters are values of the profile that are printed with their sources.
	Parameters []string `yaml:"parameters" help:"values of the profile to print with their sources, since figures are parts of one whole"`
	// NotModelled is the reason why there is nothing to run.
	NotModelled string `yaml:"not_modelled" help:"why the simulator cannot run the check yet; instead of scenario, runs and figures"`

	doc *input.Doc
}

// Figure is one published value.
type Figure struct {
	ID        string  `yaml:"id" required:"true"`
	Name      string  `yaml:"name" required:"true"`
	Value     string  `yaml:"value" required:"true" help:"expression over run.metric, such as 100 * (1 - shared.rate_mps / alone.rate_mps)"`
	Expected  float64 `yaml:"expected"`
	Unit      string  `yaml:"unit" required:"true"`
	Tolerance string  `yaml:"tolerance" required:"true" help:"exact, a percentage such as 10%, a number in the figure's unit such as 5, or at-least"`
	Kind      string  `yaml:"kind" oneof:"fitted,described,predicted" required:"true" help:"fitted: a value was fitted to the figure; described: a rule of the model was chosen with it in view; predicted: neither"`
	Profile   string  `yaml:"profile" help:"profile of the figure, if it is not the scenario's"`
	Fitted    string  `yaml:"fitted" help:"what was fitted to this figure: a key of the profile, or traffic.N.key or completions.key of the scenario"`
	KnownMiss string  `yaml:"known_miss" help:"why the figure is not met, as far as is known; it is printed as a known miss and does not fail the run"`
	// KnownValue belongs to KnownMiss: a miss that nobody has looked at is not a known one.
	KnownValue float64 `yaml:"known_value" help:"the simulator's value of a known miss; the run fails if it drifts by more than 5 % from it"`
	Note       string  `yaml:"note"`
}

// ParseValidation reads and checks a validation file.
func ParseValidation(file string, src []byte) (*Validation, error) {
	v := &Validation{}
	doc, err := input.Decode(file, src, v)
	if err != nil {
		return nil, err
	}
	v.doc = doc
	if v.NotModelled != "" {
		if len(v.Scenario.Traffic)+len(v.Runs)+len(v.Figures) > 0 {
			return nil, doc.Errorf("not_modelled", "a check that is not modelled has no scenario, runs or figures")
		}
		return v, nil
	}
	if len(v.Scenario.Traffic) == 0 && v.Scenario.Completions == nil || len(v.Runs) == 0 || len(v.Figures) == 0 {
		return nil, doc.Errorf("title", "a check needs scenario, runs and figures, or not_modelled")
	}
	if err := v.Scenario.CheckIn(file, doc.Sub("scenario")); err != nil {
		return nil, err
	}
	if _, err := v.sources(); err != nil {
		return nil, err
	}
	for _, name := range keysOf(v.Runs) {
		if _, err := v.run(name); err != nil {
			return nil, doc.Errorf("runs."+name, "%v", err)
		}
	}
	seen := map[string]string{}
	for i, f := range v.Figures {
		at := "figures." + strconv.Itoa(i)
		if _, _, err := tolerance(f.Tolerance); err != nil {
			return nil, doc.Errorf(at+".tolerance", "%v", err)
		}
		if (f.KnownMiss != "") != (f.KnownValue != 0) {
			return nil, doc.Errorf(at, "known_miss and known_value, the simulator's value, belong together: give both or neither")
		}
		seen[f.ID] = f.Fitted
		err := Names(f.Value, func(run, _ string) error {
			if _, ok := v.Runs[run]; !ok {
				return fmt.Errorf("there is no run %q%s", run, input.Suggest(run, keysOf(v.Runs)))
			}
			return nil
		})
		if err != nil {
			return nil, doc.Errorf(at+".value", "%v", err)
		}
	}
	for _, key := range keysOf(v.Fitted) {
		if id := v.Fitted[key]; seen[id] != key {
			return nil, doc.Errorf("fitted."+key, "no figure %q says that %s was fitted to it", id, key)
		}
	}
	return v, nil
}

// profileOf is the profile that figure i is of.
func (v *Validation) profileOf(i int) string { return cmp.Or(v.Figures[i].Profile, v.Scenario.Profile) }

// only is the part of v with the figures of one profile, and the runs that they need.
func (v *Validation) only(prof string) *Validation {
	w := *v
	w.Figures, w.Runs = nil, map[string]map[string]string{}
	for i, f := range v.Figures {
		if v.profileOf(i) != prof {
			continue
		}
		w.Figures = append(w.Figures, f)
		_ = Names(f.Value, func(run, _ string) error { // parsed before
			w.Runs[run] = v.Runs[run]
			return nil
		})
	}
	return &w
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// run is the scenario with the changes of a named run.
func (v *Validation) run(name string) (*experiment.Scenario, error) {
	var changes []experiment.Setting
	for _, k := range keysOf(v.Runs[name]) {
		changes = append(changes, experiment.Setting{Key: k, Value: v.Runs[name][k]})
	}
	return v.Scenario.With(changes...)
}

// Validate runs the given validation files, or all that come with the program, and
// compares. With prof, only files of that profile.
func Validate(ctx context.Context, files []string, prof string, seed uint64, progress func(done, total int, what string)) (*ValidationReport, error) {
	all, err := loadValidations(ctx, files)
	if err != nil {
		return nil, err
	}
	rep := &ValidationReport{Version: experiment.Version(), Seed: seed, Profiles: map[string]string{}, Hypotheses: map[string][]string{},
		Checks: []Check{}, NotModelled: []NotModelled{}, Notes: []string{}, whole: len(files) == 0 && prof == ""}
	var chosen []*Validation
	var profiles []string
	for _, v := range all {
		if v.NotModelled != "" {
			if prof == "" {
				rep.NotModelled = append(rep.NotModelled, NotModelled{v.Check, v.Title, v.NotModelled})
			}
			continue
		}
		for i := range v.Figures {
			profiles = append(profiles, v.profileOf(i))
		}
		if prof == "" {
			chosen = append(chosen, v)
		} else if w := v.only(prof); len(w.Figures) > 0 {
			chosen = append(chosen, w)
		}
	}
	if len(chosen) == 0 && len(rep.NotModelled) == 0 {
		return nil, experiment.Usagef("there is no check for profile %q%s", prof, input.Suggest(prof, profiles))
	}
	for i, v := range chosen {
		rep.fitted += len(v.Fitted)
		if progress != nil {
			progress(i, len(chosen), v.Title)
		}
		if err := v.judge(ctx, seed, rep); err != nil {
			return rep, err
		}
	}
	if progress != nil {
		progress(len(chosen), len(chosen), "done")
	}
	rep.Complete = true
	rep.Summary = rep.summarize()
	return rep, nil
}

func loadValidations(ctx context.Context, files []string) ([]*Validation, error) {
	var all []*Validation
	if len(files) == 0 {
		names, err := fixtures.List("validation")
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			src, err := fixtures.Read("validation/" + n)
			if err != nil {
				return nil, err
			}
			v, err := ParseValidation(n, src)
			if err != nil {
				return nil, experiment.Usagef("%w", err)
			}
			all = append(all, v)
		}
		return all, nil
	}
	for _, f := range files {
		src, err := input.ReadFile(ctx, f)
		if err != nil {
			return nil, experiment.Usagef("cannot read the validation file: %w", err)
		}
		v, err := ParseValidation(f, src)
		if err != nil {
			return nil, experiment.Usagef("%w", err)
		}
		all = append(all, v)
	}
	return all, nil
}

// judge runs each run of the file once and appends a check for each figure.
func (v *Validation) judge(ctx context.Context, seed uint64, rep *ValidationReport) error {
	outs := map[string]*experiment.Outcome{}
	for _, name := range keysOf(v.Runs) {
		if ctx.Err() != nil {
			return experiment.ErrInterrupted
		}
		s, err := v.run(name)
		if err != nil {
			return err
		}
		p, err := s.LoadProfile()
		if err != nil {
			return err
		}
		if outs[name], err = s.Run(ctx, seed, p); err != nil {
			return fmt.Errorf("%s: run %s: %w", v.doc.File, name, err)
		}
		rep.Hypotheses[s.Profile] = slices.Compact(slices.Sorted(slices.Values(append(rep.Hypotheses[s.Profile], p.Hypotheses()...))))
		if rep.Profiles[s.Profile] == "" {
			if rep.Profiles[s.Profile], err = profileHash(s.Profile); err != nil {
				return err
			}
		}
	}
	notes, err := v.sources()
	if err != nil {
		return err
	}
	rep.Notes = append(rep.Notes, notes...)
	for i, f := range v.Figures {
		got, err := Eval(f.Value, func(run, metric string) (float64, error) {
			v, note, err := outs[run].Metric(metric)
			if note != "" {
				rep.Notes = append(rep.Notes, fmt.Sprintf("%s, %s of run %s: %s", f.ID, metric, run, note))
			}
			return v, err
		})
		if err != nil {
			return v.doc.Errorf("figures."+strconv.Itoa(i)+".value", "%v", err)
		}
		got = table.Rounded(got)
		rep.Checks = append(rep.Checks, Check{ID: f.ID, Name: f.Name, Profile: v.profileOf(i), Expected: f.Expected, Got: got, Unit: f.Unit,
			Tolerance: f.Tolerance, Pass: within(got, f.Expected, f.Tolerance), Kind: f.Kind, Fitted: f.Fitted, Number: v.Check, Source: v.Source, KnownMiss: f.KnownMiss, KnownValue: f.KnownValue, Note: f.Note})
	}
	return nil
}

// sources are the parameters of the check, each with its source.
func (v *Validation) sources() (notes []string, err error) {
	if len(v.Parameters) == 0 {
		return nil, nil
	}
	p, err := v.Scenario.LoadProfile()
	if err != nil {
		return nil, err
	}
	for i, key := range v.Parameters {
		if _, ok := p.Lookup(key); !ok {
			return nil, v.doc.Errorf("parameters."+strconv.Itoa(i), "there is no value %q%s", key, input.Suggest(key, p.Keys()))
		}
		notes = append(notes, fmt.Sprintf("%d: %s", v.Check, p.WithSource(key)))
	}
	return notes, nil
}

// profileHash is the hash of a stored profile.
func profileHash(name string) (string, error) {
	p, err := profile.Load(name)
	if err != nil {
		return "", err
	}
	return p.Hash(), nil
}
