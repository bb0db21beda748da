package spec

import (
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/report"
)

// Deviation is what a ledger predicts for one step of a case: the errno, completion status or value
// that the target gives instead of the expected one, or "false" for a condition. It replaces the
// expectation and never removes the check. Sometimes marks what depends on chance: the target may
// also do what is expected.
type Deviation struct {
	ID, Step, Got string
	Sometimes     bool
}

// judge records an observation and reports whether the check holds: as expected, or exactly as
// the ledger predicts. A target that does what is expected although the ledger predicts otherwise
// fails the case, so that an outdated entry is noticed.
func (c *C) judge(o report.Observation, got string, expected bool) bool {
	d := c.run.predicted(o.Step, got)
	if d == nil {
		c.record(o)
		return expected
	}
	if got == d.Got && !expected {
		o.Deviation = d.ID
		c.record(o)
		c.run.saw(*d)
		return true
	}
	c.record(o)
	if expected && !d.Sometimes {
		where, skip := caller()
		c.run.conclude(c.now(Verdict{Outcome: report.Fail, Step: o.Step, Where: where, Stale: d.ID,
			Reason: fmt.Sprintf("%s: got %s as expected; deviation %s, which predicts %s, is stale", o.Step, got, d.ID, d.Got)}), skip)
		panic(stop{})
	}
	return expected
}

// predicted is the prediction for a step: that of the value, if there are several.
func (r *run) predicted(step, got string) (found *Deviation) {
	for i := range r.ledger {
		if d := &r.ledger[i]; d.Step == step && (found == nil || d.Got == got && found.Got != got) {
			found = d
		}
	}
	return found
}

func (r *run) saw(d Deviation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.shown, d) {
		r.shown = append(r.shown, d)
	}
	if !slices.Contains(r.seen, d.ID) {
		r.seen = append(r.seen, d.ID)
	}
}
