package experiment

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/input"
)

// Validation is a file of published figures with the scenario that should give
// them.
type Validation struct {
	Check    int                          `yaml:"check" help:"number of the check in the list of published figures"`
	Title    string                       `yaml:"title" required:"true"`
	Source   string                       `yaml:"source" required:"true" help:"where the figures were published"`
	Scenario Scenario                     `yaml:"scenario" required:"true"`
	Runs     map[string]map[string]string `yaml:"runs" required:"true" help:"named runs: values of the scenario to change in each"`
	Figures  []Figure                     `yaml:"figures" required:"true"`

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
	Kind      string  `yaml:"kind" oneof:"fitted,predicted" required:"true"`
	Fitted    string  `yaml:"fitted" help:"the profile value that was fitted to this figure"`
	Note      string  `yaml:"note"`
}

// Check is the verdict on a figure.
type Check struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Profile   string  `json:"profile"`
	Expected  float64 `json:"expected"`
	Got       float64 `json:"got"`
	Unit      string  `json:"unit"`
	Tolerance string  `json:"tolerance"`
	Pass      bool    `json:"pass"`
	Kind      string  `json:"kind"`
	Source    string  `json:"source"`
	Note      string  `json:"note,omitempty"`
}

// ValidationReport is what validate prints.
type ValidationReport struct {
	Version  string            `json:"version"`
	Seed     uint64            `json:"seed"`
	Profiles map[string]string `json:"profiles"` // name to hash
	// Hypotheses that were on, by profile.
	Hypotheses map[string][]string `json:"hypotheses"`
	Complete   bool                `json:"complete"`
	Checks     []Check             `json:"checks"`
	Notes      []string            `json:"notes"`
}

// Pass reports whether every check is within its tolerance.
func (r *ValidationReport) Pass() bool {
	for _, c := range r.Checks {
		if !c.Pass {
			return false
		}
	}
	return r.Complete
}

// ParseValidation reads and checks a validation file.
func ParseValidation(file string, src []byte) (*Validation, error) {
	v := &Validation{}
	doc, err := input.Decode(file, src, v)
	if err != nil {
		return nil, err
	}
	v.doc = doc
	v.Scenario.file, v.Scenario.doc = file, doc.Sub("scenario")
	if err := v.Scenario.check(); err != nil {
		return nil, err
	}
	for name := range v.Runs {
		if _, err := v.run(name); err != nil {
			return nil, doc.Errorf("runs."+name, "%v", err)
		}
	}
	for i, f := range v.Figures {
		at := "figures." + strconv.Itoa(i)
		if _, _, err := tolerance(f.Tolerance); err != nil {
			return nil, doc.Errorf(at+".tolerance", "%v", err)
		}
		_, err := Eval(f.Value, func(run, metric string) (float64, error) {
			if _, ok := v.Runs[run]; !ok {
				return 0, fmt.Errorf("no run %q%s", run, input.Suggest(run, keysOf(v.Runs)))
			}
			return 1, nil
		})
		if err != nil {
			return nil, doc.Errorf(at+".value", "%v", err)
		}
	}
	return v, nil
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
func (v *Validation) run(name string) (*Scenario, error) {
	var changes []sweepValue
	for _, k := range keysOf(v.Runs[name]) {
		changes = append(changes, sweepValue{k, v.Runs[name][k]})
	}
	return v.Scenario.with(changes...)
}

// tolerance reads "exact", "10%", "5" or "at-least".
func tolerance(s string) (kind byte, v float64, err error) {
	switch {
	case s == "exact":
		return '=', 0, nil
	case s == "at-least":
		return '>', 0, nil
	case strings.HasSuffix(s, "%"):
		v, err = strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		kind = '%'
	default:
		v, err = strconv.ParseFloat(s, 64)
		kind = '+'
	}
	if err != nil || v < 0 {
		return 0, 0, fmt.Errorf("tolerance %q is not exact, at-least, a percentage such as 10%%, or a number in the figure's unit", s)
	}
	return kind, v, nil
}

func within(got, expected float64, tol string) bool {
	kind, v, err := tolerance(tol)
	if err != nil || math.IsNaN(got) {
		return false
	}
	switch kind {
	case '=':
		return got == expected
	case '>':
		return got >= expected
	case '%':
		return math.Abs(got-expected) <= v/100*math.Abs(expected)
	}
	return math.Abs(got-expected) <= v
}

// Validate runs the given validation files, or all that come with the program, and
// compares. With prof, only files of that profile.
func Validate(ctx context.Context, files []string, prof string, seed uint64, progress func(done, total int, what string)) (*ValidationReport, error) {
	all, err := loadValidations(files)
	if err != nil {
		return nil, err
	}
	rep := &ValidationReport{Version: Version(), Seed: seed, Profiles: map[string]string{}, Hypotheses: map[string][]string{}, Checks: []Check{}, Notes: []string{}}
	var chosen []*Validation
	var profiles []string
	for _, v := range all {
		profiles = append(profiles, v.Scenario.Profile)
		if prof == "" || v.Scenario.Profile == prof {
			chosen = append(chosen, v)
		}
	}
	if len(chosen) == 0 {
		return nil, usage("no check is for profile %q%s", prof, input.Suggest(prof, profiles))
	}
	for i, v := range chosen {
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
	return rep, nil
}

func loadValidations(files []string) ([]*Validation, error) {
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
				return nil, &UsageError{err}
			}
			all = append(all, v)
		}
		return all, nil
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			return nil, usage("cannot read validation file: %w", err)
		}
		v, err := ParseValidation(f, src)
		if err != nil {
			return nil, &UsageError{err}
		}
		all = append(all, v)
	}
	return all, nil
}

// judge runs each run of the file once and appends a check for each figure.
func (v *Validation) judge(ctx context.Context, seed uint64, rep *ValidationReport) error {
	outs := map[string]*outcome{}
	for _, name := range keysOf(v.Runs) {
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		s, err := v.run(name)
		if err != nil {
			return err
		}
		p, err := s.profile()
		if err != nil {
			return err
		}
		if outs[name], err = s.run(ctx, seed, p, nil, ""); err != nil {
			return fmt.Errorf("%s: run %s: %w", v.doc.File, name, err)
		}
		rep.Hypotheses[s.Profile] = union(rep.Hypotheses[s.Profile], p.Hypotheses())
		rep.Profiles[s.Profile] = ""
	}
	for i, f := range v.Figures {
		got, err := Eval(f.Value, func(run, metric string) (float64, error) { return outs[run].metric(metric) })
		if err != nil {
			return v.doc.Errorf("figures."+strconv.Itoa(i)+".value", "%v", err)
		}
		rep.Checks = append(rep.Checks, Check{ID: f.ID, Name: f.Name, Profile: v.Scenario.Profile, Expected: f.Expected, Got: significant(got),
			Unit: f.Unit, Tolerance: f.Tolerance, Pass: within(significant(got), f.Expected, f.Tolerance), Kind: f.Kind, Source: v.Source, Note: f.Note})
	}
	for name := range rep.Profiles {
		h, err := profileHash(name)
		if err != nil {
			return err
		}
		rep.Profiles[name] = h
	}
	return nil
}

func union(a, b []string) []string {
	for _, s := range b {
		if !contains(a, s) {
			a = append(a, s)
		}
	}
	sort.Strings(a)
	return a
}

func contains(a []string, s string) bool {
	for _, x := range a {
		if x == s {
			return true
		}
	}
	return false
}

// metric is a value of the first load's row, or the sum of a counter.
func (o *outcome) metric(name string) (float64, error) {
	row := trafficRow(o.loads[0], o.results[0])
	if v, ok := row.Float(name); ok {
		return v, nil
	}
	if v, ok := o.counter(name); ok {
		return v, nil
	}
	var names []string
	names = append(names, row.Keys()...)
	for i := range o.counters {
		names = append(names, o.counters[i].short(false))
	}
	return 0, fmt.Errorf("no metric %q%s", name, input.Suggest(name, names))
}

// Write prints the report in one of Formats.
func (r *ValidationReport) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	case "csv":
		c := csv.NewWriter(w)
		err := c.Write([]string{"id", "name", "profile", "expected", "got", "unit", "tolerance", "pass", "kind", "source"})
		for _, k := range r.Checks {
			err = errors.Join(err, c.Write([]string{k.ID, k.Name, k.Profile, text(k.Expected), text(k.Got), k.Unit, k.Tolerance, strconv.FormatBool(k.Pass), k.Kind, k.Source}))
		}
		c.Flush()
		return errors.Join(err, c.Error())
	}
	return r.writeTable(w)
}

func (r *ValidationReport) writeTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "check\tfigure\tprofile\tpublished\tours\tunit\ttolerance\tverdict\tkind")
	failed := 0
	for _, c := range r.Checks {
		verdict := "ok"
		if !c.Pass {
			verdict = "MISS"
			failed++
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Name, c.Profile, short(c.Expected), short(c.Got), c.Unit, c.Tolerance, verdict, c.Kind)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, c := range r.Checks {
		if c.Note != "" {
			fmt.Fprintln(w, wrap(c.ID+": "+c.Note, 100))
		}
	}
	state := ""
	if !r.Complete {
		state = ", INCOMPLETE"
	}
	fmt.Fprintf(w, "%d figures, %d within tolerance, %d not%s. rdmasim %s, seed %d\n", len(r.Checks), len(r.Checks)-failed, failed, state, r.Version, r.Seed)
	for _, p := range keysOf(r.Profiles) {
		h := "none"
		if len(r.Hypotheses[p]) > 0 {
			h = strings.Join(r.Hypotheses[p], ", ")
		}
		fmt.Fprintf(w, "  profile %s (%s); hypotheses on: %s\n", p, r.Profiles[p], h)
	}
	return nil
}
