package calibrate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/profile"
)

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
	Fitted    string  `json:"fitted,omitempty"` // the value that was fitted to it, or read off it
	// Number is that of the check in the list of published figures that the figure
	// belongs to; 0 when it is in none.
	Number    int    `json:"number,omitempty"`
	Source    string `json:"source"`
	KnownMiss string `json:"known_miss,omitempty"`
	// KnownValue is what Got was when the miss was looked at.
	KnownValue float64 `json:"known_value,omitempty"`
	Note       string  `json:"note,omitempty"`
}

// Verdict is the outcome of the figure in a word or two.
func (c *Check) Verdict() string {
	switch {
	case c.Pass && c.KnownMiss != "":
		return "ok, STALE"
	case c.Pass:
		return "ok"
	case c.drifted():
		return "MISS, DRIFTED"
	case c.KnownMiss != "":
		return "miss (known)"
	}
	return "MISS"
}

// expected reports whether the outcome is what the file says: the figure is within its tolerance,
// or it is marked as a known miss and misses by as much as before. A fixed miss that is still
// marked as known fails the run.
func (c *Check) expected() bool { return c.Pass == (c.KnownMiss == "") && !c.drifted() }

// driftOfMiss is how far a known miss may move from the value that its file states, as a share of
// that.
const driftOfMiss = 0.05

// drifted reports whether a known miss is another one than its file says.
func (c *Check) drifted() bool {
	return c.KnownMiss != "" && !c.Pass && !(math.Abs(c.Got-c.KnownValue) <= driftOfMiss*math.Abs(c.KnownValue))
}

// NotModelled is a numbered check that has nothing to run yet.
type NotModelled struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// ValidationSummary counts numbered checks: one is within tolerance when all its
// figures are.
type ValidationSummary struct {
	// Predicted counts figures to which nothing was fitted, and PredictedWithin those of them
	// within tolerance. Described figures were in view when a rule of the model was chosen.
	Predicted       int `json:"predicted_figures"`
	PredictedWithin int `json:"predicted_within_tolerance"`
	Fitted          int `json:"fitted_figures"`
	FittedWithin    int `json:"fitted_within_tolerance"`
	Described       int `json:"described_figures"`
	DescribedWithin int `json:"described_within_tolerance"`

	Numbered int     `json:"numbered_checks"`
	Within   int     `json:"within_tolerance"`
	Percent  float64 `json:"within_tolerance_percent"`
	// FittedParameters are the values of all stored profiles, and of the scenarios of checks, that
	// were fitted; FittedChecks are the numbered checks with a figure marked fitted. Both are 0
	// unless the run was over all checks.
	FittedParameters int `json:"fitted_parameters"`
	FittedChecks     int `json:"fitted_checks"`
}

// ValidationReport is what validate prints.
type ValidationReport struct {
	Version  string            `json:"version"`
	Seed     uint64            `json:"seed"`
	Profiles map[string]string `json:"profiles"` // name to hash
	// Hypotheses that were on, by profile.
	Hypotheses  map[string][]string `json:"hypotheses"`
	Complete    bool                `json:"complete"`
	Checks      []Check             `json:"checks"`
	NotModelled []NotModelled       `json:"not_modelled"`
	Summary     ValidationSummary   `json:"summary"`
	Notes       []string            `json:"notes"`

	whole  bool // the run has all checks that come with the program
	fitted int  // values of their scenarios that were fitted
}

// Pass reports whether every figure is within its tolerance, or a known miss.
func (r *ValidationReport) Pass() bool {
	for i := range r.Checks {
		if !r.Checks[i].expected() {
			return false
		}
	}
	return r.Complete
}

func (r *ValidationReport) summarize() ValidationSummary {
	within, fitted := map[int]bool{}, map[int]bool{}
	var s ValidationSummary
	for _, c := range r.Checks {
		s.count(&c)
		if c.Number == 0 {
			continue
		}
		so, seen := within[c.Number]
		within[c.Number] = c.Pass && (so || !seen)
		fitted[c.Number] = fitted[c.Number] || c.Kind == "fitted"
	}
	s.Numbered, s.Within = len(within), count(within)
	if s.Numbered > 0 {
		s.Percent = table.Rounded(100 * float64(s.Within) / float64(s.Numbered))
	}
	if r.whole {
		s.FittedParameters, s.FittedChecks = len(profile.FittedValues())+r.fitted, count(fitted)
	}
	return s
}

// count counts a figure by its kind.
func (s *ValidationSummary) count(c *Check) {
	all, ok := &s.Predicted, &s.PredictedWithin
	switch c.Kind {
	case "fitted":
		all, ok = &s.Fitted, &s.FittedWithin
	case "described":
		all, ok = &s.Described, &s.DescribedWithin
	}
	*all++
	if c.Pass {
		*ok++
	}
}

func count(m map[int]bool) int {
	n := 0
	for _, v := range m {
		if v {
			n++
		}
	}
	return n
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
	if err != nil || !(v >= 0) || math.IsInf(v, 0) || kind == '%' && v >= 100 {
		return 0, 0, fmt.Errorf("tolerance %q is not exact, at-least, a percentage below 100%% such as 10%%, or a number in the figure's unit", s)
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
