package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Runner runs cases one at a time, each on a fresh testbed, and judges them.
type Runner struct {
	Target spec.Target
	Seed   uint64 // of the run; spec.SeedOf makes that of a case
	// Policy says what the target may lack; nil: nothing.
	Policy *Policy
	// Ledger holds the known deviations of platforms; nil: none.
	Ledger *report.Ledger
	// Repeat is how many times each case runs; a case whose records differ is flaky.
	Repeat int
	// Again is called before each run of a case but the first; it may be nil. Before the second it
	// gets the record of the first.
	Again func(first *report.Case)
	// Options returns the options of a case's testbed; nil: none.
	Options func(id string) spec.BedOptions
	// Evidence names the file that gets the frames of a case that fails (pcapng); nil or empty:
	// none, and the record of the case has no frames.
	Evidence func(id string) string

	failed func(v spec.Verdict, skip int) // see spec.Running.OnFailure; may be nil
}

// Run runs a case and returns its record.
func (r *Runner) Run(e Entry, c spec.Case) report.Case {
	c.Deadline = cmp.Or(c.Deadline, spec.DefaultDeadline)
	first := r.once(e, c, "")
	for i := 1; i < r.Repeat; i++ {
		if r.Again != nil {
			var told *report.Case
			if i == 1 {
				told = &first.Case
			}
			r.Again(told)
		}
		if again := r.once(e, c, ""); !sameRecord(first.Case, again.Case) {
			step, what := report.FirstDifference(&first.Case, &again.Case)
			first.Outcome, first.Step, first.Differs = report.Flaky, step, &again.Case
			first.Reason = fmt.Sprintf("repeat %d differs from the first run with the same seed", i+1)
			if step != "" {
				first.Reason += ", at step " + step
			}
			first.Reason += ": " + what
			break
		}
	}
	r.addFrames(&first, e, c)
	if first.opened && !first.exact {
		first.RealNs = first.took.Nanoseconds()
	}
	return first.Case
}

func sameRecord(a, b report.Case) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// once runs a case once, with a capture if it is told a file.
func (r *Runner) once(e Entry, c spec.Case, capture string) (rec attempt) {
	seed := spec.SeedOf(r.Seed, e.ID)
	rec.Case = report.Case{ID: e.ID, Area: e.Area, Text: e.Text, Strength: string(e.Strength), Seed: seed,
		Observations: []report.Observation{}}
	var o spec.BedOptions
	if r.Options != nil {
		o = r.Options(e.ID)
	}
	o.Needs, o.ID = e.Needs, e.ID
	if capture != "" {
		o.Pcap, o.PcapKeep, o.Trace = capture, mostEvidence, ""
	}
	bed, err := r.Target.NewTestbed(seed, o)
	if err != nil {
		rec.Outcome, rec.Reason = report.Error, "no testbed: "+err.Error()
		return rec
	}
	defer func() {
		if err := closeBed(bed); err != nil && !rec.Outcome.Bad() {
			rec.Outcome, rec.Reason = report.Error, err.Error()
		}
	}()
	if v, ok := bed.(spec.Variant); ok {
		rec.Testbed = v.Changed()
	}
	missing := unmet(bed, e.Needs)
	if len(missing) > 0 {
		r.lacking(&rec.Case, bed, c, missing)
		return rec
	}
	running := spec.NewRunning(e.ID, seed, predictions(r.Ledger, platformOf(bed), e.ID)...)
	running.SetFull(o.Full)
	start := time.Now()
	x := r.execute(running, bed, c.Deadline, c.Body)
	rec.took, rec.opened, rec.exact = time.Since(start), true, bed.Capability(spec.ExactTime) == verbs.Present
	rec.kept, rec.by = x.result.Frames, "a rule of the case"
	if r, ok := bed.(spec.Recorder); ok && len(rec.kept) == 0 {
		rec.kept, rec.by = r.Recorded(), "a fault of the simulation"
	}
	if v := x.result.Verdict; v != nil {
		rec.failedAt = v.At
	}
	x.fill(&rec.Case)
	if rec.Outcome == report.Pass && e.Strength == Record {
		rec.Outcome, rec.Reason = report.Unrecorded, "no recording on hardware to compare with"
	}
	return rec
}

// platformOf returns what the ledger may ask about a testbed.
func platformOf(bed spec.Bed) report.Platform {
	t := bed.Target()
	return report.PlatformOf(t.Profile, t.Details)
}

// closeBed closes a testbed. A panic while it closes is an error too.
func closeBed(bed spec.Bed) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("closing the testbed: %s", panicText(p))
		}
	}()
	return bed.Close()
}

// execution is the outcome of running one body.
type execution struct {
	result  spec.Result
	err     error         // of the testbed, or a panic
	virtual time.Duration // how long the body took, where time is virtual
}

// execute runs body on the testbed. A panic of it becomes an error.
func (r *Runner) execute(running *spec.Running, bed spec.Bed, deadline time.Duration, body func(*spec.C)) (x execution) {
	running.OnFailure(r.failed)
	defer func() {
		if p := recover(); p != nil {
			x.err = &panicked{panicText(p)}
		}
		x.result = running.Result()
	}()
	x.err = bed.Run(deadline, func(t verbs.Thread) {
		start := t.Now()
		running.Execute(t, bed, body)
		if bed.Capability(spec.ExactTime) == verbs.Present {
			x.virtual = t.Now() - start
		}
	})
	return x
}

// panicked is a panic of a body or of the simulator below it.
type panicked struct{ text string }

func (p *panicked) Error() string { return "panic: " + p.text }

func panicText(p any) string {
	if err, ok := p.(error); ok {
		return err.Error()
	}
	return fmt.Sprint(p)
}

// fill judges an execution. A failed check counts before an error of the testbed, which may be its
// consequence; a panic counts before both.
func (x execution) fill(rec *report.Case) {
	rec.Observations = append(rec.Observations, x.result.Observations...)
	rec.VirtualNs = x.virtual.Nanoseconds()
	var p *panicked
	switch {
	case errors.As(x.err, &p):
		rec.Outcome, rec.Reason = report.Error, x.err.Error()
	case x.result.Verdict != nil:
		v := x.result.Verdict
		rec.Outcome, rec.Step, rec.Reason, rec.Where = v.Outcome, v.Step, v.Reason, v.Where
		if v.Stale != "" {
			rec.Stale = []string{v.Stale}
		}
	case x.err != nil:
		rec.Outcome, rec.Reason = report.Error, "the case did not end: "+x.err.Error()
	case len(x.result.Stale) > 0:
		rec.Outcome = report.Fail
		var what []string
		for _, d := range x.result.Stale {
			what = append(what, fmt.Sprintf("%s (%s: %s)", d.ID, d.Step, d.Got))
			if !slices.Contains(rec.Stale, d.ID) {
				rec.Stale = append(rec.Stale, d.ID)
			}
		}
		rec.Reason = "stale: no step shows deviation " + strings.Join(what, ", ")
	default:
		rec.Outcome = report.Pass
		if d := x.result.Deviations; len(d) > 0 {
			rec.Outcome, rec.Reason = report.PassDeviation, "deviates as known: "+strings.Join(d, ", ")
		}
	}
}
