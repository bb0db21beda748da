package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

type differ struct {
	kind             pair
	moved            bool // firmware, kernel, libraries, suite or simulator are not the same
	rules            *Rules
	ledgerA, ledgerB []*Deviation
	explained        map[*Prediction]int
	exceeded         []string
}

// explains counts a difference that a prediction of an entry explains, and returns the entry's
// name.
func (d *differ) explains(e *Deviation, p *Prediction) string {
	d.explained[p]++
	if p.AtMost > 0 && d.explained[p] == p.AtMost+1 {
		d.exceeded = append(d.exceeded, fmt.Sprintf("deviation %s explains more than %d differences (%s: %s, field %s)", e.ID, p.AtMost, p.Case, p.Step, p.Field))
	}
	return e.ID
}

// compare compares one case of two runs.
func (d *differ) compare(a, b *Case) CaseDiff {
	out := CaseDiff{ID: a.ID, Class: Same, A: a.Outcome, B: b.Outcome}
	if class, reason := d.outcomes(a, b); class != "" {
		out.Class, out.Reason = class, reason
		return out
	}
	if a.Seed != b.Seed || a.Strength != b.Strength {
		out.Class, out.Reason = Incomparable, "the records come from different versions of the case"
		return out
	}
	out.Differences = d.observations(a, b)
	for _, x := range out.Differences {
		if rank(x.Class) > rank(out.Class) {
			out.Class = x.Class
		}
	}
	if out.Class == Same && a.Outcome != b.Outcome {
		switch {
		case a.Outcome == PassDeviation || b.Outcome == PassDeviation:
			out.Class = ExpectedDeviation
		case !ran(a) || !ran(b):
			out.Class = d.worst()
		}
	}
	return out
}

func rank(c Class) int { return slices.Index(classes[:], c) }

// exactly compares one case of two runs that must be the same.
func exactly(a, b *Case) CaseDiff {
	out := CaseDiff{ID: a.ID, Class: Same, A: a.Outcome, B: b.Outcome}
	n := max(len(a.Observations), len(b.Observations))
	for i := range n {
		var x, y Observation
		if i < len(a.Observations) {
			x = a.Observations[i]
		}
		if i < len(b.Observations) {
			y = b.Observations[i]
		}
		if x.Step != y.Step || x.Deviation != y.Deviation || text(x.Got) != text(y.Got) {
			out.Class = Regression
			out.Differences = append(out.Differences, Difference{Step: cmp.Or(x.Step, y.Step), Class: Regression, A: x.Got, B: y.Got, Deviation: cmp.Or(x.Deviation, y.Deviation)})
			if x.Step != y.Step { // from here on nothing is paired
				break
			}
		}
	}
	if a.Outcome != b.Outcome || a.Reason != b.Reason {
		out.Class, out.Reason = Regression, reasons(a, b)
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
		if b.IsStale() {
			return StaleDeviation, reasons(a, b)
		}
		return d.worst(), "second: " + b.Reason
	case a.Outcome == Fail && ran(b) && !a.IsStale() && d.kind != samePlatform:
		return d.worst(), "first: " + a.Reason
	case a.Outcome == Fail && ran(b) && d.kind == samePlatform:
		return Improvement, "first: " + a.Reason
	case a.Outcome == Flaky || b.Outcome == Flaky:
		return Unstable, reasons(a, b)
	case d.kind == samePlatform && ran(a) && b.lacks():
		return NewlyUnsupported, b.Reason + ", and no call proves it"
	case d.kind == samePlatform && a.lacks() && ran(b):
		return NewlySupported, "first: " + a.Reason
	case d.kind != samePlatform && (a.lacks() || b.lacks()):
		return Unproven, reasons(a, b)
	case a.Outcome == NotRun || b.Outcome == NotRun:
		return NotCompared, reasons(a, b)
	case a.Outcome == Unsupported && b.Outcome == Unsupported:
		return Same, ""
	case a.Outcome == Unsupported || b.Outcome == Unsupported:
		return d.unsupported(a, b)
	case a.IsStale() || b.IsStale():
		return StaleDeviation, reasons(a, b)
	}
	return "", ""
}

// ran reports whether a case ran to its end, and nothing that it saw was wrong.
func ran(c *Case) bool {
	return c.Outcome == Pass || c.Outcome == PassDeviation || c.Outcome == Unrecorded
}

// Lacking begins the reason of a case whose needs are not met.
const Lacking = "the target lacks "

// lacks reports whether a case was not run because the target says that it lacks a need of it, with
// no call that proves it.
func (c *Case) lacks() bool { return c.Outcome == NotRun && strings.HasPrefix(c.Reason, Lacking) }

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

// IsStale reports whether a case failed because an entry of the ledger no longer holds.
func (c *Case) IsStale() bool {
	return c.Outcome == Fail && (len(c.Stale) > 0 || strings.HasPrefix(c.Reason, "stale: ") || strings.HasSuffix(c.Reason, " is stale"))
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

// KindPlatform is the kind of an observation of the machine or its kernel, which nothing about RDMA
// fixes.
const KindPlatform = "platform"

// platformDiffers reports whether two runs of a case saw other machines. How often the case then
// does a step may follow from that.
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

// found is a difference and where the two runs stood: the index of its observation, or of the last
// one before it that both have.
type found struct {
	Difference
	inA, inB int
	loose    bool // only one run has the step, and nothing explains that yet
}

// observations pairs what two runs of a case saw: the first of a step with the first, and so
// on. A case that failed ends early, so that what follows is of one run only.
func (d *differ) observations(a, b *Case) []Difference {
	var all []found
	platform := d.platformDiffers(a, b)
	later := map[string][]int{}
	for j := range b.Observations {
		later[b.Observations[j].Step] = append(later[b.Observations[j].Step], j)
	}
	partner := make([]int, len(b.Observations)) // in a, or -1
	for j := range partner {
		partner[j] = -1
	}
	last := -1
	for i := range a.Observations {
		x := &a.Observations[i]
		if len(later[x.Step]) == 0 {
			all = d.unpaired(all, a, b, x, platform, found{inA: i, inB: last})
			continue
		}
		j := later[x.Step][0]
		later[x.Step] = later[x.Step][1:]
		partner[j], last = i, j
		for _, diff := range d.step(a, b, x, &b.Observations[j]) {
			all = append(all, found{Difference: diff, inA: i, inB: j})
		}
	}
	last = -1
	for j := range b.Observations {
		if partner[j] >= 0 {
			last = partner[j]
			continue
		}
		all = d.unpaired(all, b, a, &b.Observations[j], platform, found{inA: last, inB: j, Difference: Difference{B: b.Observations[j].Got}})
	}
	return follow(all)
}

// unpaired adds a step that only one run of a case has. One that repeats what both have seen may
// follow from the platform.
func (d *differ) unpaired(all []found, c, other *Case, o *Observation, platform bool, f found) []found {
	f.Step, f.Deviation = o.Step, o.Deviation
	mine := f.B == nil
	if mine {
		f.A = o.Got
	}
	rule := d.rules.Of(c.ID, o.Step)
	switch {
	case rule != nil && (rule.Compare == ByIdentity || rule.Compare == ByChance):
		return all
	case o.Deviation != "":
		f.Class = ExpectedDeviation
		if mine && d.kind == samePlatform && ran(other) && !sometimes(d.ledgerA, o.Deviation, c.ID, o.Step) {
			f.Class = Improvement
		}
		if !mine && d.kind == samePlatform && ran(other) && !sometimes(d.ledgerB, o.Deviation, c.ID, o.Step) {
			f.Class = NewDeviation
		}
	case rule != nil && rule.Compare == ByGranted && granted(c, other, rule):
		f.Class = FromEnvironment
	case platform && slices.ContainsFunc(other.Observations, func(x Observation) bool { return x.Step == o.Step && equal(x.Got, o.Got) }):
		f.Class = FromEnvironment
	default:
		f.Class, f.loose = d.free(c), true
		if d.kind == samePlatform { // which steps a case does is fixed, even where a value is not
			f.Class = Regression
		}
	}
	return append(all, f)
}

// follow gives the steps that only one run has the class of an earlier difference that is
// explained: from there on that run may have gone another way. A case that passed has checked what
// it saw there.
func follow(all []found) []Difference {
	var first *found
	for i := range all {
		if f := &all[i]; !f.loose && !f.Class.Bad() && f.Class != FromEnvironment && (first == nil || f.inA < first.inA || f.inB < first.inB) {
			first = f
		}
	}
	var out []Difference
	for i := range all {
		f := &all[i]
		if f.loose && first != nil && (f.B == nil && f.inA > first.inA || f.A == nil && f.inB > first.inB) {
			f.Class, f.Follows = first.Class, first.Step
			if first.Class == Improvement || first.Class == NewDeviation { // it is the earlier step that is so
				f.Class = ExpectedDeviation
			}
		}
		out = append(out, f.Difference)
	}
	return out
}

// granted reports whether the size that a step depends on differs between two runs, or one of the
// records is older than its observation.
func granted(a, b *Case, rule *Rule) bool {
	x, y := got(a, rule.On), got(b, rule.On)
	return x == nil || y == nil || !equal(x, y)
}

// got are all values of a step, in order; nil if there is none.
func got(c *Case, step string) []any {
	var out []any
	for _, o := range c.Observations {
		if o.Step == step {
			out = append(out, o.Got)
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
// allows, or a value that may differ between two kinds of device, or under another firmware, kernel
// or library.
func (d *differ) free(c *Case) Class {
	switch {
	case c.Strength == "S":
		return d.inSet()
	case d.kind == otherPlatform:
		return OtherPlatform
	case d.kind == samePlatform && d.moved:
		return Changed
	case d.kind == simAgainstHW && c.Strength == "H":
		return NotRecorded
	}
	return d.worst()
}

// step compares two observations of one step; completions and other structures are compared field
// by field.
func (d *differ) step(a, b *Case, x, y *Observation) []Difference {
	if equal(x.Got, y.Got) {
		return nil
	}
	if rule := d.rules.Of(a.ID, x.Step); rule != nil {
		switch {
		case rule.same(x.Got, y.Got):
			return nil
		case rule.Compare == ByGranted && granted(a, b, rule):
			return []Difference{{Step: x.Step, Class: FromEnvironment, A: x.Got, B: y.Got}}
		}
	}
	fx, okX := x.Got.(map[string]any)
	fy, okY := y.Got.(map[string]any)
	if !okX || !okY || x.Kind == KindPlatform {
		return []Difference{d.value(a, b, x, y, x.Got, y.Got)}
	}
	var out []Difference
	if x.Kind == "wc" && !equal(fx["status"], fy["status"]) {
		return append(out, d.value(a, b, x, y, fx["status"], fy["status"]))
	}
	for _, name := range sorted(fx, fy) {
		if equal(fx[name], fy[name]) {
			continue
		}
		diff := Difference{Step: x.Step + ": " + name, Class: d.worst(), A: fx[name], B: fy[name]}
		if x.Kind != "wc" {
			v := d.value(a, b, x, y, fx[name], fy[name])
			diff.Class, diff.Deviation = v.Class, v.Deviation
		}
		if e, p := field(d.ledgerB, a.ID, x.Step, name, text(fy[name])); e != nil {
			diff.Class, diff.Deviation = ExpectedDeviation, d.explains(e, p)
		} else if e, p := field(d.ledgerA, a.ID, x.Step, name, text(fx[name])); e != nil {
			diff.Class, diff.Deviation = ExpectedDeviation, d.explains(e, p)
		}
		out = append(out, diff)
	}
	return out
}

// value classes two different values of one step.
func (d *differ) value(c, other *Case, x, y *Observation, a, b any) Difference {
	diff := Difference{Step: x.Step, A: a, B: b}
	_, set := x.Want.([]any)
	if _, list := x.Got.([]any); list { // of which another one is expected, not a member
		set = false
	}
	switch {
	case x.Kind == KindPlatform && y.Kind == KindPlatform && d.kind != samePlatform:
		diff.Class = FromEnvironment
	case x.Deviation != "" && y.Deviation == "" && d.kind == samePlatform && ran(other) && !sometimes(d.ledgerA, x.Deviation, c.ID, x.Step):
		diff.Class, diff.Deviation = Improvement, x.Deviation
	case x.Deviation == "" && y.Deviation != "" && d.kind == samePlatform && ran(c) && !sometimes(d.ledgerB, y.Deviation, c.ID, x.Step):
		diff.Class, diff.Deviation = NewDeviation, y.Deviation
	case x.Deviation != "" || y.Deviation != "":
		diff.Class, diff.Deviation = ExpectedDeviation, cmp.Or(y.Deviation, x.Deviation)
	case set:
		diff.Class = d.inSet()
	case x.Want == nil && y.Want == nil:
		diff.Class = d.free(c)
	case !equal(x.Want, y.Want) && equal(x.Got, x.Want) && equal(y.Got, y.Want):
		// What was expected follows from the device, the machine or the suite: a capability, a
		// table's size, a count before.
		diff.Class = FromEnvironment
		if d.kind == simAgainstHW || d.kind == samePlatform && !d.moved {
			diff.Class = d.free(c)
		}
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
