package conformance

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/verbs"
)

//go:embed unsupported/*.yaml
var policies embed.FS

// Policy says what a target may lack and what it must have. It is checked in, so that a run
// fails when a device stops supporting something, instead of skipping more cases.
type Policy struct {
	// Profiles of testbeds for which the policy holds, or patterns of those for which there is no
	// other.
	Profiles []string `yaml:"profiles"`
	// Profile for which it was loaded.
	Profile string `yaml:"-"`
	// Required capabilities: a target without one fails the run.
	Required []string `yaml:"required"`
	// MinPass is how many cases of a whole run must pass.
	MinPass int `yaml:"min_pass"`
	// Absent are capabilities that the target may lack, whichever case needs them.
	Absent []Absence `yaml:"absent"`
	// Allowed are the cases that may be unsupported.
	Allowed []Allowance `yaml:"allowed"`
}

// Absence allows that one capability is missing. With "no " before it, as in needs, it allows that
// the target has it.
type Absence struct {
	Token   string `yaml:"token"`
	Because string `yaml:"because"`
}

// Allowance allows that one case is unsupported.
type Allowance struct {
	ID      string `yaml:"id"`
	Because string `yaml:"because"`
}

// ExtendsKey is the entry of a target's details, and of a record's environment, that names the
// stored profile which a user's own extends.
const ExtendsKey = report.KeyExtends

// ResponderSuffix ends the profile of a device whose cases run on a simulated peer.
const ResponderSuffix = report.ResponderSuffix

// LoadPolicy returns the policy of a profile, or if there is none, of the stored one that it
// extends, as the details of its target or the environment of its record say. A target of an
// unknown profile may lack nothing.
func LoadPolicy(profile string, details map[string]string) (*Policy, error) {
	p, err := loadPolicy(profile)
	if base := details[ExtendsKey]; err == nil && base != "" && p.Profiles == nil {
		p, err = loadPolicy(base)
	}
	if err != nil {
		return nil, err
	}
	p.Profile = profile
	return p, nil
}

func loadPolicy(profile string) (*Policy, error) {
	files, err := fs.Glob(policies, "unsupported/*.yaml")
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for _, f := range files {
		if texts[f], err = policies.ReadFile(f); err != nil {
			return nil, err
		}
	}
	// Those that have the name come first, since most files need not be read then.
	named := func(f string) int {
		if bytes.Contains(texts[f], []byte(profile)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(files, func(a, b string) int { return named(a) - named(b) })
	found := &Policy{}
	for _, f := range files {
		text := texts[f]
		p, err := ParsePolicy(f, text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(p.Profiles, profile) {
			return p, nil
		}
		if slices.ContainsFunc(p.Profiles, func(x string) bool { ok, err := path.Match(x, profile); return err == nil && ok }) {
			found = p
		}
	}
	return found, nil
}

// ParsePolicy reads a policy; name is that of its file, for messages.
func ParsePolicy(name string, text []byte) (*Policy, error) {
	p := &Policy{}
	if err := yaml.UnmarshalWithOptions(text, p, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	for _, r := range p.Required {
		if !slices.Contains(cat.capabilityNames(), r) {
			return nil, fmt.Errorf("%s: required %q is not a capability%s; conform list --capabilities lists them", name, r, input.Suggest(r, cat.capabilityNames()))
		}
	}
	for _, a := range p.Absent {
		if slices.Contains(p.Required, a.Token) || a.Because == "" || !slices.ContainsFunc(cat.Cases, func(e Entry) bool { return slices.Contains(e.Needs, a.Token) }) {
			return nil, fmt.Errorf("%s: absent %q is required too, no case needs it, or no reason is given", name, a.Token)
		}
	}
	for _, a := range p.Allowed {
		if !cat.knows(a.ID) || a.Because == "" {
			return nil, fmt.Errorf("%s: allowed %q is not in the catalogue, or no reason is given", name, a.ID)
		}
	}
	return p, nil
}

// allows reports whether a case may be left out because of what is missing.
func (p *Policy) allows(id string, missing []string) bool {
	if p == nil {
		return false
	}
	for _, a := range p.Absent {
		if slices.Contains(missing, a.Token) {
			return true
		}
	}
	return slices.ContainsFunc(p.Allowed, func(a Allowance) bool { return a.ID == id })
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

// Findings says what is wrong with a run as a whole: too few cases passed, as on a target that
// refuses everything. whole means that no case was filtered out.
func (p *Policy) Findings(cases []report.Case, whole bool) []string {
	pass := Passed(cases)
	switch {
	case whole && p != nil && pass < p.MinPass:
		who := cmp.Or(p.Profile, "the policy")
		return []string{fmt.Sprintf("passed cases: %d, and %s promises at least %d", pass, who, p.MinPass)}
	case whole && pass == 0:
		return []string{"no case passes: the target refuses everything"}
	}
	return nil
}

// Passed counts the cases that pass, including those that show a known deviation.
func Passed(cases []report.Case) int {
	pass := 0
	for _, c := range cases {
		if c.Outcome == report.Pass || c.Outcome == report.PassDeviation {
			pass++
		}
	}
	return pass
}
