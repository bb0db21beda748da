package conformance

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/rdmasim/rdmasim/report"
	"github.com/rdmasim/rdmasim/verbs"
)

//go:embed unsupported/*.yaml
var policies embed.FS

// Policy is what a target may lack, and what it may not. It is checked in, so that a
// device that stops supporting something turns the run red, not grey.
type Policy struct {
	// Profiles that the policy is of.
	Profiles []string `yaml:"profiles"`
	// Profile that it was loaded for.
	Profile string `yaml:"-"`
	// Required capabilities: a target without one fails the run.
	Required []string `yaml:"required"`
	// MinPass is how many cases of a whole run pass at least.
	MinPass int `yaml:"min_pass"`
	// Absent are capabilities that the target may lack whatever case asks for them.
	Absent []Absence `yaml:"absent"`
	// Allowed are the cases that may be unsupported.
	Allowed []Allowance `yaml:"allowed"`
}

// Absence lets one capability be missing; a token may begin with "no " as in needs.
type Absence struct {
	Token   string `yaml:"token"`
	Because string `yaml:"because"`
}

// Allowance lets one case be unsupported.
type Allowance struct {
	ID      string `yaml:"id"`
	Because string `yaml:"because"`
}

// LoadPolicy is the policy of a profile; a profile without one may lack nothing.
func LoadPolicy(profile string) (*Policy, error) {
	files, err := fs.Glob(policies, "unsupported/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		p, err := readPolicy(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		if slices.Contains(p.Profiles, profile) {
			p.Profile = profile
			return p, nil
		}
	}
	return &Policy{Profile: profile}, nil
}

func readPolicy(file string) (*Policy, error) {
	text, err := policies.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &Policy{}
	if err := yaml.UnmarshalWithOptions(text, p, yaml.Strict()); err != nil {
		return nil, err
	}
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	for _, a := range p.Absent {
		if slices.Contains(p.Required, a.Token) || a.Because == "" || !slices.ContainsFunc(cat.Cases, func(e Entry) bool { return slices.Contains(e.Needs, a.Token) }) {
			return nil, fmt.Errorf("absent %q is required too, no case needs it, or no reason is given", a.Token)
		}
	}
	for _, a := range p.Allowed {
		if _, ok := cat.Find(a.ID); !ok || a.Because == "" {
			return nil, fmt.Errorf("%q is not in the catalogue, or no reason is given", a.ID)
		}
	}
	return p, nil
}

// allows says whether a case may be left out because of what is missing.
func (p *Policy) allows(id string, missing []string) bool {
	if p == nil {
		return false
	}
	for _, a := range p.Absent {
		if slices.Contains(missing, a.Token) {
			return true
		}
	}
	for _, a := range p.Allowed {
		if a.ID == id {
			return true
		}
	}
	return false
}

// Lacks lists the required capabilities that the testbed does not claim.
func (p *Policy) Lacks(tb verbs.Testbed) []string {
	var out []string
	if p == nil {
		return nil
	}
	for _, r := range p.Required {
		if tb.Capability(r) != verbs.Present {
			out = append(out, r)
		}
	}
	return out
}

// Findings are what is wrong with a run as a whole: too few cases passed. A target
// that refuses everything must not look green. whole says that nothing was filtered
// out.
func (p *Policy) Findings(cases []report.Case, whole bool) []string {
	pass := Passed(cases)
	switch {
	case whole && p != nil && pass < p.MinPass:
		return []string{fmt.Sprintf("%d cases pass, and %s promises at least %d", pass, p.Profile, p.MinPass)}
	case whole && pass == 0:
		return []string{"no case passes: the target refuses everything"}
	}
	return nil
}

// Passed counts the cases that pass, those that show a known deviation included.
func Passed(cases []report.Case) int {
	pass := 0
	for _, c := range cases {
		if c.Outcome == report.Pass || c.Outcome == report.PassDeviation {
			pass++
		}
	}
	return pass
}
