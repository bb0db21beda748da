package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Class says how a difference between two runs is judged.
type Class string

// Classes of a case in a comparison, in the order of tables.
const (
	Same              Class = "SAME"
	SameInSet         Class = "SAME-IN-SET"        // each run shows a member of the set that the catalogue allows
	ExpectedDeviation Class = "EXPECTED-DEVIATION" // as one entry of the ledger predicts
	DriftInSet        Class = "DRIFT-IN-SET"       // a member of the set, but not the one that this platform showed before
	OtherPlatform     Class = "OTHER-PLATFORM"     // a value that nothing fixes, of two kinds of device
	UnsupportedThere  Class = "UNSUPPORTED"        // one of two kinds of device lacks it, as its list allows
	NotCompared       Class = "NOT-COMPARED"       // not run in one of the runs
	NewlySupported    Class = "NEWLY-SUPPORTED"    // was unsupported, now runs
	NotRecorded       Class = "UNRECORDED"         // waits for a recording on hardware
	Unstable          Class = "FLAKY"              // differs within the first run, or within the second after the first failed
	Regression        Class = "REGRESSION"         // no entry predicts it
	SimGap            Class = "SIM-GAP"            // the simulator claims it and shows something else than hardware
	NewlyUnsupported  Class = "NEWLY-UNSUPPORTED"  // was run, is now unsupported
	StaleDeviation    Class = "STALE-DEVIATION"    // an entry predicts what no longer happens
	Incomparable      Class = "ERROR"              // other cases, preconditions, or a case without a verdict
)

var classes = [...]Class{Same, SameInSet, ExpectedDeviation, DriftInSet, OtherPlatform, UnsupportedThere, NotCompared, NewlySupported, NotRecorded,
	Unstable, Regression, SimGap, NewlyUnsupported, StaleDeviation, Incomparable}

// Classes lists all classes in the order of tables: the later, the worse.
func Classes() []Class { return classes[:] }

// Bad reports whether a class fails a comparison.
func (c Class) Bad() bool {
	switch c {
	case Regression, SimGap, NewlyUnsupported, StaleDeviation, Incomparable:
		return true
	}
	return false
}

// Difference is a step that two runs saw differently.
type Difference struct {
	Step  string `json:"step"`
	Class Class  `json:"class"`
	A     any    `json:"a"`
	B     any    `json:"b"`
	// Deviation is the entry of the ledger that predicts it.
	Deviation string `json:"deviation,omitempty"`
}

// CaseDiff is the comparison of one case.
type CaseDiff struct {
	ID          string       `json:"id"`
	Class       Class        `json:"class"`
	A           Outcome      `json:"a"`
	B           Outcome      `json:"b"`
	Reason      string       `json:"reason,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
}

// Comparison is the comparison of two runs: A is the reference, and B is compared with it.
type Comparison struct {
	Schema  string        `json:"schema"`
	A       Platform      `json:"a"`
	B       Platform      `json:"b"`
	Summary map[Class]int `json:"summary"`
	Cases   []CaseDiff    `json:"cases"`
}

// OK reports whether nothing fails the comparison.
func (c *Comparison) OK() bool {
	for class, n := range c.Summary {
		if n > 0 && class.Bad() {
			return false
		}
	}
	return true
}

// Compared counts the cases that both runs have run.
func (c *Comparison) Compared() int {
	n := 0
	for _, x := range c.Cases {
		if x.Class != NotCompared && x.A != "" && x.B != "" {
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
	d := &differ{kind: kindOf(a, b), ledgerA: o.Ledger.Of(a.Platform()), ledgerB: o.Ledger.Of(b.Platform())}
	out := &Comparison{Schema: "rdmasim/diff/1", A: a.Platform(), B: b.Platform(), Summary: map[Class]int{}, Cases: []CaseDiff{}}
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
			out.Cases = append(out.Cases, d.compare(x, y))
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

type differ struct {
	kind             pair
	ledgerA, ledgerB []*Deviation
}

// compare compares one case of two runs.
func (d *differ) compare(a, b *Case) CaseDiff {
	out := CaseDiff{ID: a.ID, Class: Same, A: a.Outcome, B: b.Outcome}
	if class, reason := d.outcomes(a, b); class != "" {
		out.Class, out.Reason = class, reason
		return out
	}
	if a.Seed != b.Seed || a.Strength != b.Strength {
		out.Class, out.Reason = Incomparable, "the records are of other versions of the case"
		return out
	}
	out.Differences = d.observations(a, b)
	for _, x := range out.Differences {
		if slices.Index(classes[:], x.Class) > slices.Index(classes[:], out.Class) {
			out.Class = x.Class
		}
	}
	if out.Class == Same && a.Outcome != b.Outcome {
		out.Class = d.worst()
		if a.Outcome == PassDeviation || b.Outcome == PassDeviation {
			out.Class = ExpectedDeviation
		}
	}
	return out
}

// outcomes judges by the outcomes alone; an empty class leaves the judgement to what the case
// saw.
func (d *differ) outcomes(a, b *Case) (Class, string) {
	switch {
	case a.Outcome == Error || a.Outcome == Integrity:
		return Incomparable, "first: " + a.Reason
	case b.Outcome == Error || b.Outcome == Integrity:
		return Incomparable, "second: " + b.Reason
	case b.Outcome.Bad() && !a.Outcome.Bad() && (d.kind == samePlatform || ran(a)):
		if stale(b) {
			return StaleDeviation, reasons(a, b)
		}
		return d.worst(), "second: " + b.Reason
	case a.Outcome == Fail && ran(b) && d.kind != samePlatform && !stale(a):
		return d.worst(), "first: " + a.Reason
	case a.Outcome == Flaky || b.Outcome == Flaky:
		return Unstable, reasons(a, b)
	case a.Outcome == NotRun || b.Outcome == NotRun:
		return NotCompared, reasons(a, b)
	case a.Outcome == Unsupported && b.Outcome == Unsupported:
		return Same, ""
	case a.Outcome == Unsupported || b.Outcome == Unsupported:
		return d.unsupported(a, b)
	case a.Outcome == Unrecorded || b.Outcome == Unrecorded:
		return NotRecorded, ""
	case stale(a) || stale(b):
		return StaleDeviation, reasons(a, b)
	}
	return "", ""
}

// ran reports whether a case ran to its end, and nothing that it saw was wrong.
func ran(c *Case) bool {
	return c.Outcome == Pass || c.Outcome == PassDeviation || c.Outcome == Unrecorded
}

// reasons are those of both, once if they are the same.
func reasons(a, b *Case) string {
	switch {
	case a.Reason == b.Reason || b.Reason == "":
		return a.Reason
	case a.Reason == "":
		return b.Reason
	}
	return a.Reason + "; " + b.Reason
}

// stale reports whether a case failed because an entry of the ledger no longer holds.
func stale(c *Case) bool {
	return c.Outcome == Fail && (strings.HasPrefix(c.Reason, "stale: ") || strings.HasSuffix(c.Reason, " is stale"))
}

func (d *differ) unsupported(a, b *Case) (Class, string) {
	switch {
	case d.kind != samePlatform:
		return UnsupportedThere, reasons(a, b)
	case b.Outcome == Unsupported:
		return NewlyUnsupported, b.Reason
	}
	return NewlySupported, ""
}

// worst is the class of an unexplained difference.
func (d *differ) worst() Class {
	if d.kind == simAgainstHW {
		return SimGap
	}
	return Regression
}

// KindPlatform is the kind of an observation of the machine or its kernel, which nothing about RDMA fixes.
const KindPlatform = "platform"

// platformDiffers reports whether two runs of a case saw other machines. How often the case then does a step may follow
// from that.
func (d *differ) platformDiffers(a, b *Case) bool {
	if d.kind == samePlatform {
		return false
	}
	of := func(c *Case) (got []any) {
		for _, o := range c.Observations {
			if o.Kind == KindPlatform {
				got = append(got, o.Got)
			}
		}
		return got
	}
	return !equal(of(a), of(b))
}

// unpaired is the class of a step that only one run of a case has. One that repeats what both have seen may follow from
// the platform.
func (d *differ) unpaired(c, other *Case, o *Observation, platform bool) Class {
	if platform && slices.ContainsFunc(other.Observations, func(x Observation) bool { return x.Step == o.Step && equal(x.Got, o.Got) }) {
		return OtherPlatform
	}
	return d.free(c)
}

// observations pairs what two runs of a case saw: the first of a step with the first, and so
// on. A case that failed ends early, so that what follows is of one run only.
func (d *differ) observations(a, b *Case) []Difference {
	var out []Difference
	platform := d.platformDiffers(a, b)
	later := map[string][]*Observation{}
	for i := range b.Observations {
		o := &b.Observations[i]
		later[o.Step] = append(later[o.Step], o)
	}
	for i := range a.Observations {
		x := &a.Observations[i]
		if len(later[x.Step]) == 0 {
			out = append(out, Difference{Step: x.Step, Class: d.unpaired(a, b, x, platform), A: x.Got, B: nil})
			continue
		}
		y := later[x.Step][0]
		later[x.Step] = later[x.Step][1:]
		out = append(out, d.step(a, x, y)...)
	}
	for i := range b.Observations {
		y := &b.Observations[i]
		if rest := later[y.Step]; len(rest) > 0 && rest[0] == y {
			later[y.Step] = rest[1:]
			out = append(out, Difference{Step: y.Step, Class: d.unpaired(b, a, y, platform), A: nil, B: y.Got})
		}
	}
	return out
}

// inSet is the class of two members of a set: one platform must keep its own.
func (d *differ) inSet() Class {
	if d.kind == samePlatform {
		return DriftInSet
	}
	return SameInSet
}

// free is the class of a value that no expectation fixes: a choice that a case of strength S
// allows, or a value that may differ between two kinds of device.
func (d *differ) free(c *Case) Class {
	switch {
	case c.Strength == "S":
		return d.inSet()
	case d.kind == otherPlatform:
		return OtherPlatform
	}
	return d.worst()
}

// step compares two observations of one step; completions and other structures are compared field by field.
func (d *differ) step(c *Case, x, y *Observation) []Difference {
	if equal(x.Got, y.Got) {
		return nil
	}
	fx, okX := x.Got.(map[string]any)
	fy, okY := y.Got.(map[string]any)
	if !okX || !okY || x.Kind == KindPlatform {
		return []Difference{d.value(c, x, y, x.Got, y.Got)}
	}
	var out []Difference
	if x.Kind == "wc" && !equal(fx["status"], fy["status"]) {
		return append(out, d.value(c, x, y, fx["status"], fy["status"]))
	}
	for _, name := range sorted(fx, fy) {
		if equal(fx[name], fy[name]) {
			continue
		}
		diff := Difference{Step: x.Step + ": " + name, Class: d.worst(), A: fx[name], B: fy[name]}
		if x.Kind != "wc" {
			v := d.value(c, x, y, fx[name], fy[name])
			diff.Class, diff.Deviation = v.Class, v.Deviation
		}
		if e := field(d.ledgerB, c.ID, x.Step, name, text(fy[name])); e != nil {
			diff.Class, diff.Deviation = ExpectedDeviation, e.ID
		} else if e := field(d.ledgerA, c.ID, x.Step, name, text(fx[name])); e != nil {
			diff.Class, diff.Deviation = ExpectedDeviation, e.ID
		}
		out = append(out, diff)
	}
	return out
}

// value classes two different values of one step.
func (d *differ) value(c *Case, x, y *Observation, a, b any) Difference {
	diff := Difference{Step: x.Step, A: a, B: b}
	_, set := x.Want.([]any)
	switch {
	case x.Kind == KindPlatform && y.Kind == KindPlatform && d.kind != samePlatform:
		diff.Class = OtherPlatform
	case x.Deviation != "" || y.Deviation != "":
		diff.Class, diff.Deviation = ExpectedDeviation, x.Deviation
		if y.Deviation != "" {
			diff.Deviation = y.Deviation
		}
	case set:
		diff.Class = d.inSet()
	case x.Want == nil && y.Want == nil:
		diff.Class = d.free(c)
	case !equal(x.Want, y.Want) && equal(x.Got, x.Want) && equal(y.Got, y.Want):
		// What was expected follows from the device: a capability, a table's size.
		diff.Class = d.free(c)
	default:
		diff.Class = d.worst()
	}
	return diff
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// text is a value as a ledger spells it.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// sorted are the keys of both, in order.
func sorted(a, b map[string]any) []string {
	var names []string
	for k := range a {
		names = append(names, k)
	}
	for k := range b {
		if _, twice := a[k]; !twice {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}
