// Package report holds the record of a conformance run and writes it for programs
// (JSON, JUnit). Equal runs on a simulator give equal files: a record holds no wall
// time, no host name and no path of the machine.
package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// Schema names the format of a run record, which docs/record.schema.json describes. A change that
// an older program would read wrongly, or a new field that Diff needs, is a new version.
const Schema = "rdmasim/conform/2"

// olderSchemas are those of records that can still be read:
//
//	1  has no stale: a case that failed for it says so in its reason. Of a machine that is
//	   virtual, and of rdmasim exec, not every such record speaks
var olderSchemas = []string{"rdmasim/conform/1"}

// upgrade makes a record one of this version, or says why that cannot be.
func (r *Run) upgrade() error {
	switch {
	case r.Schema == Schema:
	case slices.Contains(olderSchemas, r.Schema):
		r.Schema, r.older = Schema, true
	default:
		return fmt.Errorf("the schema %q, and this program reads %s and older: a newer conform wrote it, or it is not the record of a run", r.Schema, Schema)
	}
	return nil
}

// Outcome of a case.
type Outcome string

// The outcomes, which docs/architecture.md explains.
const (
	Pass          Outcome = "pass"
	PassDeviation Outcome = "pass-deviation" // a ledger entry allows the difference
	Fail          Outcome = "fail"
	Unsupported   Outcome = "unsupported" // capability off, the call refused, and allowed for the target
	Unrecorded    Outcome = "unrecorded"  // to be recorded on hardware first
	Error         Outcome = "error"       // the harness broke, or the case hung or crashed
	Integrity     Outcome = "integrity"   // the capture is not whole: no verdict
	Flaky         Outcome = "flaky"       // differs on its repeat
	NotRun        Outcome = "not-run"
)

// Outcomes in the order of tables.
var outcomes = [...]Outcome{Pass, PassDeviation, Fail, Unsupported, Unrecorded, Error, Integrity, Flaky, NotRun}

// Outcomes lists all outcomes in the order of tables.
func Outcomes() []Outcome { return outcomes[:] }

// Known reports whether there is such an outcome.
func (o Outcome) Known() bool { return slices.Contains(outcomes[:], o) }

// meanings are the outcomes in words.
var meanings = map[Outcome]string{
	Pass:          "every step is as expected; only these count as passed cases",
	PassDeviation: "it differs, exactly as an entry of the ledger of known deviations predicts",
	Fail:          "it differs, or an entry of the ledger predicts a deviation that did not happen",
	Unsupported:   "the capability is off, the call was refused, and the target's checked-in list allows the case to be absent",
	Unrecorded:    "strength H, to be recorded on hardware first, and there is no recording to compare with",
	NotRun:        "a capability of the testbed is missing and the target's list allows it, or the run did not come to it",
	Error:         "the harness broke, or the case hung or crashed",
	Integrity:     "the capture is not whole, so there is no verdict",
	Flaky:         "the repeated case gave another result",
}

// Meaning is the outcome in words.
func (o Outcome) Meaning() string { return meanings[o] }

// Bad reports whether the outcome fails the run.
func (o Outcome) Bad() bool {
	switch o {
	case Fail, Error, Integrity, Flaky:
		return true
	}
	return false
}

// Run is the record of a run.
type Run struct {
	Schema      string            `json:"schema"`
	Target      Target            `json:"target"`
	Environment map[string]string `json:"environment"`
	Seed        uint64            `json:"seed"`
	// Incomplete says that the run was interrupted; cases not reached are not-run.
	Incomplete bool            `json:"incomplete,omitempty"`
	Findings   []string        `json:"findings,omitempty"` // about the run as a whole
	Summary    map[Outcome]int `json:"summary"`
	Cases      []Case          `json:"cases"`

	older bool // it was read, and has one of olderSchemas
}

// Target names what was tested.
type Target struct {
	Kind    string `json:"kind"`
	Profile string `json:"profile,omitempty"`
	Device  string `json:"device,omitempty"`
}

// Case is the record of one case.
type Case struct {
	ID       string   `json:"id"`
	Area     string   `json:"area"`
	Text     string   `json:"text"`
	Strength string   `json:"strength"`
	Outcome  Outcome  `json:"outcome"`
	Reason   string   `json:"reason,omitempty"`
	Step     string   `json:"step,omitempty"`  // of the check that ended the case
	Where    string   `json:"where,omitempty"` // the line of that check
	Seed     uint64   `json:"seed"`
	Testbed  []string `json:"testbed,omitempty"` // what the case's needs changed of it
	// Stale are the entries of the ledger that predict what the case no longer shows.
	Stale        []string      `json:"stale,omitempty"`
	VirtualNs    int64         `json:"virtual_ns,omitempty"` // on a simulator
	RealNs       int64         `json:"real_ns,omitempty"`    // on hardware
	Observations []Observation `json:"observations"`
	// FailedNs is when the check failed, on the clock of Frames; 0 where that is not known.
	FailedNs int64 `json:"failed_ns,omitempty"`
	// Frames are those around the failure of a case, where the target has a wire that can be
	// watched, and FramesBefore and FramesAfter how many more there were.
	Frames       []Frame `json:"frames,omitempty"`
	FramesBefore int     `json:"frames_before,omitempty"`
	FramesAfter  int     `json:"frames_after,omitempty"`
	// Differs is the record of the repeat that differs, of a flaky case. The other fields, but for
	// Outcome, Step and Reason, are those of the first run.
	Differs *Case `json:"differs,omitempty"`
}

// Took is how long the case took, in nanoseconds of its target's clock; 0 where that is not known.
func (c *Case) Took() int64 { return max(c.VirtualNs, c.RealNs) }

// Frame is a frame on the wire, in words.
type Frame struct {
	AtNs int64  `json:"at_ns"`
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
	Fate string `json:"fate,omitempty"` // what was done to it on its way
}

// FirstDifference is the step at which two runs of a case differ first (empty: none has a name),
// and what they saw there.
func FirstDifference(a, b *Case) (step, what string) {
	n := min(len(a.Observations), len(b.Observations))
	for i := range n {
		if x, y := &a.Observations[i], &b.Observations[i]; x.Step != y.Step {
			return x.Step, fmt.Sprintf("%q came here, then %q", x.Step, y.Step)
		} else if text(x.Got) != text(y.Got) {
			return x.Step, fmt.Sprintf("%s, then %s", text(x.Got), text(y.Got))
		} else if text(x) != text(y) { // what was wanted, or the deviation that explains it
			return x.Step, fmt.Sprintf("%s, then %s", text(x), text(y))
		}
	}
	switch {
	case a.Outcome != b.Outcome || a.Reason != b.Reason || a.Step != b.Step:
		return cmp.Or(b.Step, a.Step), ended(a) + ", then " + ended(b)
	case len(a.Observations) > n:
		return a.Observations[n].Step, text(a.Observations[n].Got) + ", then nothing"
	case len(b.Observations) > n:
		return b.Observations[n].Step, "nothing, then " + text(b.Observations[n].Got)
	}
	return "", fmt.Sprintf("the case took %d ns, then %d ns", a.VirtualNs, b.VirtualNs)
}

// ended is how a case ended, in words.
func ended(c *Case) string {
	if c.Reason == "" {
		return string(c.Outcome)
	}
	return fmt.Sprintf("%s (%s)", c.Outcome, c.Reason)
}

// Observation is one thing that a case saw.
type Observation struct {
	Step string `json:"step"`
	Kind string `json:"kind"` // errno, wc, value, check, platform
	Got  any    `json:"got"`
	Want any    `json:"want,omitempty"` // a list is a set of allowed values
	// Deviation names the ledger entry that predicted Got where Want is not met.
	Deviation string `json:"deviation,omitempty"`
}

// Digest stands for bytes in an observation.
func Digest(p []byte) string {
	sum := sha256.Sum256(p)
	return fmt.Sprintf("%d bytes %s", len(p), hex.EncodeToString(sum[:6]))
}

// Count fills the summary from the cases.
func (r *Run) Count() {
	r.Summary = map[Outcome]int{}
	for _, c := range r.Cases {
		r.Summary[c.Outcome]++
	}
}

// OK reports whether the run as a whole is as expected.
func (r *Run) OK() bool {
	if r.Incomplete || len(r.Findings) > 0 {
		return false
	}
	return !slices.ContainsFunc(r.Cases, func(c Case) bool { return c.Outcome.Bad() })
}
