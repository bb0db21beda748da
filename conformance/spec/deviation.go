package spec

import "github.com/rdmasim/rdmasim/report"

// Deviation is what a ledger predicts of one step of a case: the errno, completion status or
// value that the target gives instead of the expected one, or "false" of a condition.
// It replaces the expectation and never removes the check. Sometimes is of what depends on
// chance: the expectation holds besides.
type Deviation struct {
	ID, Step, Got string
	Sometimes     bool
}

// judge records an observation of an errno, a status, a value or a condition and says whether the check
// holds: as expected, or exactly as the ledger predicts. A target that now meets the
// expectation fails the case, so that the ledger does not rot.
func (c *C) judge(o report.Observation, got string, expected bool) bool {
	d := c.run.predicted(o.Step)
	if d == nil {
		c.record(o)
		return expected
	}
	if got == d.Got && !expected {
		o.Deviation = d.ID
		c.record(o)
		c.run.meet(d.ID)
		return true
	}
	c.record(o)
	if expected && !d.Sometimes {
		c.Failf("%s: got %s as expected; deviation %s, which predicts %s, is stale", o.Step, got, d.ID, d.Got)
	}
	return expected
}

func (r *run) predicted(step string) *Deviation {
	for i := range r.ledger {
		if r.ledger[i].Step == step {
			return &r.ledger[i]
		}
	}
	return nil
}

func (r *run) meet(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.met {
		if m == id {
			return
		}
	}
	r.met = append(r.met, id)
}
