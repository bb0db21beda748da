package report

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// How a step's values of two runs are compared. Without a rule they must be equal; a step whose
// expectation is a set may show any member of it.
const (
	ByIdentity = "identity" // GUIDs, addresses, handles: never compared
	ByChance   = "chance"   // depends on races or on how busy the machine is: never compared
	ByRatio    = "ratio"    // the larger number is at most Within times the smaller
	ByCount    = "at-least" // both numbers are at least AtLeast
	ByGranted  = "granted"  // depends on the size that the device granted, which step On shows
)

// Rule says how a step of a case is compared.
type Rule struct {
	Case    string  `yaml:"case" required:"true" help:"ID, or a pattern such as PERF-*"`
	Step    string  `yaml:"step" required:"true" help:"step, or a pattern"`
	Compare string  `yaml:"compare" required:"true" oneof:"identity,chance,ratio,at-least,granted"`
	Within  float64 `yaml:"within" help:"of ratio: how many times the smaller number the larger one may be"`
	AtLeast float64 `yaml:"at_least" help:"of at-least: the least number"`
	On      string  `yaml:"on" help:"of granted: the step that shows the size"`
	Because string  `yaml:"because" required:"true"`
}

// Rules are the rules of the steps that are not compared for equality.
type Rules struct{ list []Rule }

// ParseRules reads a file of rules. exists says whether a case is in the catalogue.
func ParseRules(name string, text []byte, exists func(id string) bool) (*Rules, error) {
	var f struct {
		Rules []Rule `yaml:"rules" required:"true"`
	}
	doc, err := input.Decode(name, text, &f)
	if err != nil {
		return nil, err
	}
	for i, r := range f.Rules {
		at := fmt.Sprintf("rules.%d", i)
		for _, pattern := range []string{r.Case, r.Step} {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, doc.Errorf(at, "pattern %q: %v", pattern, err)
			}
		}
		switch {
		case !hasPattern(r.Case) && !exists(r.Case):
			return nil, doc.Errorf(at+".case", "case %q is unknown", r.Case)
		case (r.Compare == ByRatio) != (r.Within != 0) || r.Compare == ByRatio && !(r.Within > 1):
			return nil, doc.Errorf(at, "compare: ratio needs within, a number above 1, and no other comparison takes it")
		case (r.Compare == ByCount) != (r.AtLeast != 0):
			return nil, doc.Errorf(at, "compare: at-least needs at_least, a number, and no other comparison takes it")
		case (r.Compare == ByGranted) != (r.On != ""):
			return nil, doc.Errorf(at, "compare: granted needs on, the step that shows the size, and no other comparison takes it")
		}
	}
	return &Rules{f.Rules}, nil
}

// hasPattern reports whether text has characters that path.Match does not take for themselves.
func hasPattern(text string) bool { return slices.ContainsFunc([]rune(text), isMeta) }

func isMeta(c rune) bool { return c == '*' || c == '?' || c == '[' || c == '\\' }

// Of returns the rule of a step, or nil.
func (r *Rules) Of(id, step string) *Rule {
	if r == nil {
		return nil
	}
	for i := range r.list {
		x := &r.list[i]
		in, err := path.Match(x.Case, id)
		if err != nil || !in {
			continue
		}
		if is, err := path.Match(x.Step, step); err == nil && is {
			return x
		}
	}
	return nil
}

// All lists the rules in the order of their file.
func (r *Rules) All() []Rule {
	if r == nil {
		return nil
	}
	return slices.Clone(r.list)
}

// String is the rule in words, for people.
func (r *Rule) String() string {
	switch r.Compare {
	case ByRatio:
		return fmt.Sprintf("the larger is at most %g times the smaller", r.Within)
	case ByCount:
		return fmt.Sprintf("at least %g", r.AtLeast)
	case ByGranted:
		return fmt.Sprintf("depends on %q", r.On)
	}
	return "never compared (" + r.Compare + ")"
}

// same reports whether the rule takes two different values for the same.
func (r *Rule) same(a, b any) bool {
	switch r.Compare {
	case ByIdentity, ByChance:
		return true
	case ByRatio, ByCount:
		x, okX := numbers(a)
		y, okY := numbers(b)
		if !okX || !okY || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !r.near(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return false
}

func (r *Rule) near(x, y float64) bool {
	if r.Compare == ByCount {
		return min(x, y) >= r.AtLeast
	}
	low, high := math.Abs(x), math.Abs(y)
	if low > high {
		low, high = high, low
	}
	return math.Signbit(x) == math.Signbit(y) && high <= low*r.Within
}

// numbers are those of a number or of a list of numbers.
func numbers(v any) ([]float64, bool) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []float64
	for _, x := range list {
		switch x.(type) {
		case float64, json.Number, int, int64, uint64, uint32:
		default:
			return nil, false
		}
		f, err := strconv.ParseFloat(text(x), 64)
		if err != nil {
			return nil, false
		}
		out = append(out, f)
	}
	return out, true
}
