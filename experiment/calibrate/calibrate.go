// Package calibrate compares the simulator with published figures, fits values of profiles to them
// or to what a card measured, and finds the values that a result depends on.
package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Calibration says which values are fitted, and to what. Groups are fitted one after the other,
// each with the values that the groups before it have given.
type Calibration struct {
	Groups []FitGroup `yaml:"groups" required:"true" help:"groups of values that are fitted together, in this order"`

	doc   *input.Doc
	files map[string]*Validation // by name
	at    map[string]figureAt    // by ID
	// profiles are all that are stored.
	profiles map[string]*profile.Profile
}

// FitGroup are values that are fitted together.
type FitGroup struct {
	Name       string      `yaml:"name" required:"true"`
	Parameters []Parameter `yaml:"parameters" required:"true"`
}

// Parameter is a value that is fitted: of a stored profile, or of the scenario of a validation
// file.
type Parameter struct {
	Profile string `yaml:"profile" help:"stored profile whose file gives the value"`
	File    string `yaml:"file" help:"validation file whose scenario has the value, instead of profile"`
	Run     string `yaml:"run" help:"the only run of that file that has it"`
	Key     string `yaml:"key" required:"true" help:"key of the value"`
	Low     string `yaml:"low" required:"true" help:"least value that the fit may try, with its unit"`
	High    string `yaml:"high" required:"true" help:"largest value that the fit may try"`
	Prior   string `yaml:"prior" help:"value used when no figure is left to fit it to; the fit begins there (default: the geometric mean of the bounds)"`
	Source  string `yaml:"source" help:"where the prior is from, and what the bounds are"`
	// With are keys that have the same value.
	With []string `yaml:"with" help:"values of the profile that are the same"`
	// Figures are those that the value is fitted to.
	Figures []string `yaml:"figures" required:"true"`
	// Otherwise are figures of other checks that depend on it.
	Otherwise []string `yaml:"otherwise" help:"figures of other checks, to which it is fitted when the check of its own figures is left out"`

	unit             string // ps, B or none
	low, high, prior uint64
}

// figureAt is where a figure stands.
type figureAt struct {
	v *Validation
	i int
}

func (f figureAt) figure() *Figure { return &f.v.Figures[f.i] }

// Name is the value's name in tables.
func (p *Parameter) Name() string {
	if p.File != "" {
		return strings.TrimSuffix(p.File, ".yaml") + " " + p.Key
	}
	return p.Profile + " " + p.Key
}

// LoadCalibration reads the parameters that come with the program, and the validation files.
func LoadCalibration(ctx context.Context) (*Calibration, error) {
	const file = "calibration/parameters.yaml"
	src, err := fixtures.Read(file)
	if err != nil {
		return nil, err
	}
	return ParseCalibration(ctx, file, src)
}

// ParseCalibration reads and checks a file of parameters. Its errors carry file, line and column.
func ParseCalibration(ctx context.Context, file string, src []byte) (*Calibration, error) {
	all, err := loadValidations(ctx, nil)
	if err != nil {
		return nil, err
	}
	profiles := map[string]*profile.Profile{}
	for _, name := range profile.List() {
		if profiles[name], err = profile.Load(name); err != nil {
			return nil, err
		}
	}
	return parseCalibration(all, profiles, file, src)
}

func parseCalibration(all []*Validation, profiles map[string]*profile.Profile, file string, src []byte) (*Calibration, error) {
	c := &Calibration{files: map[string]*Validation{}, at: map[string]figureAt{}, profiles: profiles}
	doc, err := input.Decode(file, src, c)
	if err != nil {
		return nil, err
	}
	c.doc = doc
	for _, v := range all {
		c.files[v.doc.File] = v
		for i := range v.Figures {
			c.at[v.Figures[i].ID] = figureAt{v, i}
		}
	}
	for g := range c.Groups {
		for i := range c.Groups[g].Parameters {
			if err := c.check(&c.Groups[g].Parameters[i], fmt.Sprintf("groups.%d.parameters.%d", g, i)); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *Calibration) check(p *Parameter, at string) error {
	switch {
	case (p.Profile == "") == (p.File == ""):
		return c.doc.Errorf(at, "a value belongs to a profile or to a validation file: give either profile or file")
	case p.File != "" && c.files[p.File] == nil:
		return c.doc.Errorf(at+".file", "there is no validation file %q%s", p.File, input.Suggest(p.File, keysOf(c.files)))
	case p.Profile != "":
		stored, err := c.storedValue(p)
		if err != nil {
			return c.doc.Errorf(at, "%v", err)
		}
		if stored == "" {
			return c.doc.Errorf(at, "no file gives %s of profile %s", p.Key, p.Profile)
		}
	}
	for _, x := range []struct {
		name, text string
		to         *uint64
	}{{"low", p.Low, &p.low}, {"high", p.High, &p.high}, {"prior", p.Prior, &p.prior}} {
		if x.text == "" {
			continue
		}
		n, unit, err := quantity(x.text)
		if err != nil || p.unit != "" && unit != p.unit {
			return c.doc.Errorf(at+"."+x.name, "%q is not a time, a size or a whole number as the other bound is", x.text)
		}
		*x.to, p.unit = n, unit
	}
	if p.low == 0 || p.low >= p.high || p.Prior != "" && (p.prior < p.low || p.prior > p.high) {
		return c.doc.Errorf(at, "bounds %s to %s: want 0 < low < high, and a prior between them", p.Low, p.High)
	}
	if p.Prior == "" {
		p.prior = p.value(0.5)
	}
	for _, id := range slices.Concat(p.Figures, p.Otherwise) {
		f, ok := c.at[id]
		if !ok {
			return c.doc.Errorf(at+".figures", "there is no figure %q%s", id, input.Suggest(id, keysOf(c.at)))
		}
		if name := f.v.profileOf(f.i); p.Profile != "" && c.profiles[name].GivenBy(p.Key) != p.Profile {
			return c.doc.Errorf(at+".figures", "figure %s uses profile %s, which does not take %s from profile %s", id, name, p.Key, p.Profile)
		}
		if kind, _, _ := tolerance(f.figure().Tolerance); kind == '=' || kind == '>' {
			return c.doc.Errorf(at+".figures", "figure %s has the tolerance %s, which a fit cannot use", id, f.figure().Tolerance)
		}
	}
	return nil
}

// quantity reads a time, a size or a count.
func quantity(s string) (n uint64, unit string, err error) {
	if t, err := input.ParseTime(s); err == nil {
		return uint64(t), "ps", nil
	}
	if n, err = input.Whole(s); err == nil {
		return n, "-", nil
	}
	n, err = input.ParseSize(s)
	return n, "B", err
}

// value is that at x between the bounds, 0 to 1 on a logarithmic scale, to three digits.
func (p *Parameter) value(x float64) uint64 {
	x = min(1, max(0, x))
	v := float64(p.low) * math.Pow(float64(p.high)/float64(p.low), x)
	s, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	return min(p.high, max(p.low, uint64(math.Round(s))))
}

// position is the inverse of value.
func (p *Parameter) position(v uint64) float64 {
	return math.Log(float64(v)/float64(p.low)) / math.Log(float64(p.high)/float64(p.low))
}

// text is a value as files have it.
func (p *Parameter) text(v uint64) string {
	switch p.unit {
	case "ps":
		return input.FormatTime(int64(v))
	case "B":
		return input.FormatSize(v)
	}
	return strconv.FormatUint(v, 10)
}

// storedValue is the value that a profile has from its own file.
func (c *Calibration) storedValue(p *Parameter) (string, error) {
	for _, name := range keysOf(c.profiles) {
		q := c.profiles[name]
		if _, ok := q.Lookup(p.Key); !ok {
			return "", fmt.Errorf("there is no value %q%s", p.Key, input.Suggest(p.Key, q.Keys()))
		}
		if q.GivenBy(p.Key) == p.Profile {
			return q.Get(p.Key), nil
		}
	}
	return "", nil
}
