package report

import (
	"fmt"
	"maps"
	"slices"
)

// Class says how a difference between two runs is judged.
type Class string

// Classes of a case in a comparison, in the order of tables.
const (
	Same              Class = "SAME"
	SameInSet         Class = "SAME-IN-SET"
	ExpectedDeviation Class = "EXPECTED-DEVIATION"
	FromEnvironment   Class = "ENVIRONMENT"
	OtherPlatform     Class = "OTHER-PLATFORM"
	UnsupportedThere  Class = "UNSUPPORTED"
	Unproven          Class = "UNPROVEN"
	NotCompared       Class = "NOT-COMPARED"
	NewlySupported    Class = "NEWLY-SUPPORTED"
	NotRecorded       Class = "UNRECORDED"
	NewDeviation      Class = "NEW-DEVIATION"
	Improvement       Class = "IMPROVEMENT"
	DriftInSet        Class = "DRIFT-IN-SET"
	Changed           Class = "CHANGED"
	Unstable          Class = "FLAKY"
	Regression        Class = "REGRESSION"
	SimGap            Class = "SIM-GAP"
	NewlyUnsupported  Class = "NEWLY-UNSUPPORTED"
	StaleDeviation    Class = "STALE-DEVIATION"
	Incomparable      Class = "ERROR"
)

var classes = [...]Class{Same, SameInSet, ExpectedDeviation, FromEnvironment, OtherPlatform, UnsupportedThere, Unproven, NotCompared,
	NewlySupported, NotRecorded, Improvement, NewDeviation, DriftInSet, Changed, Unstable, Regression, SimGap, NewlyUnsupported, StaleDeviation, Incomparable}

// Classes lists all classes in the order of tables: the later, the worse.
func Classes() []Class { return classes[:] }

// About says in words when a case has the class.
func (c Class) About() string { return about[c] }

var about = map[Class]string{
	Same:              "both runs saw the same",
	SameInSet:         "each run shows a member of the set that the catalogue allows",
	ExpectedDeviation: "as one entry of the ledger predicts",
	FromEnvironment:   "follows from the machine, its kernel or a size that was granted; each run met its own expectation",
	OtherPlatform:     "a value that nothing fixes, of two kinds of device",
	UnsupportedThere:  "one of two kinds of device lacks it, and its call is refused",
	Unproven:          "one of two kinds of device says that it lacks it, and there is no call to prove it",
	NotCompared:       "not run in one of the runs",
	NewlySupported:    "was unsupported, now runs",
	NotRecorded:       "a value of strength H of the simulator and of hardware: waits for a baseline",
	Improvement:       "deviated or failed before, now as the catalogue says",
	NewDeviation:      "met the catalogue before, and now deviates as an entry of the ledger predicts",
	DriftInSet:        "a member of the set, but not the one that this platform showed before",
	Changed:           "a value that no expectation fixes, of one kind of device under another firmware, kernel or library",
	Unstable:          "differs within the first run, or within the second after the first failed",
	Regression:        "no entry predicts it",
	SimGap:            "the simulator claims it and shows something else than hardware",
	NewlyUnsupported:  "was run, is now unsupported",
	StaleDeviation:    "an entry predicts what no longer happens",
	Incomparable:      "other cases, preconditions, or a case without a verdict",
}

// Bad reports whether a class fails a comparison.
func (c Class) Bad() bool {
	switch c {
	case Regression, SimGap, NewlyUnsupported, StaleDeviation, Incomparable:
		return true
	}
	return false
}

// Notable reports whether people should look at a case of the class: it fails the comparison, or
// something has changed.
func (c Class) Notable() bool {
	switch c {
	case Unstable, Changed, DriftInSet, NewDeviation, Improvement, NewlySupported:
		return true
	}
	return c.Bad()
}

// Difference is a step that two runs saw differently.
type Difference struct {
	Step  string `json:"step"`
	Class Class  `json:"class"`
	A     any    `json:"a"`
	B     any    `json:"b"`
	// Deviation is the entry of the ledger that predicts it.
	Deviation string `json:"deviation,omitempty"`
	// Follows is the earlier step whose difference took one of the runs another way, which has this
	// step or has it not.
	Follows string `json:"follows,omitempty"`
}

// CaseDiff is the comparison of one case.
type CaseDiff struct {
	ID          string       `json:"id"`
	Class       Class        `json:"class"`
	A           Outcome      `json:"a"`
	B           Outcome      `json:"b"`
	Reason      string       `json:"reason,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
	// Again is the command that runs the case as in the second record.
	Again string `json:"again,omitempty"`
}

// First is the first difference of the case's class, or nil.
func (c *CaseDiff) First() *Difference {
	for i := range c.Differences {
		if c.Differences[i].Class == c.Class {
			return &c.Differences[i]
		}
	}
	return nil
}

// DiffSchema names the format of a comparison.
const DiffSchema = "rdmasim/diff/2"

// Comparison is the comparison of two runs: A is the reference, and B is compared with it.
type Comparison struct {
	Schema  string        `json:"schema"`
	A       Platform      `json:"a"`
	B       Platform      `json:"b"`
	Summary map[Class]int `json:"summary"`
	Cases   []CaseDiff    `json:"cases"`
	// Findings are what is wrong with the comparison as a whole: an open prediction of the ledger
	// that explains too much.
	Findings []string `json:"findings,omitempty"`
}

// OK reports whether nothing fails the comparison.
func (c *Comparison) OK() bool {
	for class, n := range c.Summary {
		if n > 0 && class.Bad() {
			return false
		}
	}
	return len(c.Findings) == 0
}

// Compared counts the cases that both runs have run.
func (c *Comparison) Compared() int {
	n := 0
	for _, x := range c.Cases {
		if x.Class != NotCompared && x.Class != Unproven && x.A != "" && x.B != "" {
			n++
		}
	}
	return n
}

// DiffOptions say what is compared.
type DiffOptions struct {
	// Common compares only the cases that both runs have; otherwise a case that only
	// one run has is an error.
	Common bool
	Ledger *Ledger
	Rules  *Rules
	// Exact compares two runs that must be the same, such as those of a simulator with one profile:
	// every difference of what a case saw is a regression. Ledger and rules are not asked.
	Exact bool
}

// kinds of a pair of runs.
type pair int

const (
	samePlatform  pair = iota // an older and a newer run
	simAgainstHW              // one simulator and the hardware that it models
	otherPlatform             // two kinds of device
)

// Diff compares two runs. They must have the same schema and seed: cases draw from it.
func Diff(a, b *Run, o DiffOptions) (*Comparison, error) {
	if a.Schema != Schema || b.Schema != Schema {
		return nil, fmt.Errorf("records of schema %q and %q: this program compares %q", a.Schema, b.Schema, Schema)
	}
	if a.Seed != b.Seed {
		return nil, fmt.Errorf("the runs have seeds %d and %d: what a case does is drawn from the seed, so run one of them again", a.Seed, b.Seed)
	}
	d := &differ{kind: kindOf(a, b), moved: !sameStack(a, b), rules: o.Rules, explained: map[*Prediction]int{}, ledgerA: o.Ledger.Of(a.Platform()), ledgerB: o.Ledger.Of(b.Platform())}
	compare := d.compare
	if o.Exact {
		compare = exactly
	}
	out := &Comparison{Schema: DiffSchema, A: a.Platform(), B: b.Platform(), Summary: map[Class]int{}, Cases: []CaseDiff{}}
	inB := map[string]*Case{}
	for i := range b.Cases {
		inB[b.Cases[i].ID] = &b.Cases[i]
	}
	for i := range a.Cases {
		x := &a.Cases[i]
		y, both := inB[x.ID]
		delete(inB, x.ID)
		switch {
		case both:
			out.Cases = append(out.Cases, compare(x, y))
		case !o.Common:
			out.Cases = append(out.Cases, CaseDiff{ID: x.ID, Class: Incomparable, A: x.Outcome, Reason: "only in the first record (--common leaves such cases out)"})
		}
	}
	for i := range b.Cases {
		if y := &b.Cases[i]; inB[y.ID] != nil && !o.Common {
			out.Cases = append(out.Cases, CaseDiff{ID: y.ID, Class: Incomparable, B: y.Outcome, Reason: "only in the second record (--common leaves such cases out)"})
		}
	}
	for _, c := range out.Cases {
		out.Summary[c.Class]++
	}
	out.Findings = d.exceeded
	return out, nil
}

// kindOf distinguishes two runs of one kind of device, a simulator and the hardware that it
// models, and two kinds of device.
func kindOf(a, b *Run) pair {
	p, q := a.Platform(), b.Platform()
	switch {
	case p[KeyProvider] != q[KeyProvider]:
		return otherPlatform
	case a.Target.Kind != b.Target.Kind:
		return simAgainstHW
	case p[KeyPart] != q[KeyPart] || p[KeyProfile] != q[KeyProfile]:
		return otherPlatform
	}
	return samePlatform
}

// sameStack reports whether nothing that either record names of device, kernel, libraries, suite or
// simulator differs. What differs all the same then has no cause but the device, or a change that
// carries no version.
func sameStack(a, b *Run) bool {
	if !maps.Equal(a.Platform(), b.Platform()) {
		return false
	}
	return !slices.ContainsFunc([]string{"conform", "profile_hash"}, func(key string) bool { return a.Environment[key] != b.Environment[key] })
}
