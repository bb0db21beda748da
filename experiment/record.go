package experiment

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// recorder writes the frames of runs, one after the other, to one file and the
// timeline of one run to another, as they run; end puts the files in place. nil
// records nothing.
type recorder struct {
	lockstep          bool // of all runs
	capture, timeline *outfile.File
	buf               *bufio.Writer // of capture
	frames            *pcap.Writer
	point             string // of a recorded sweep
	traced            bool
	untraced          error // why the timeline is not whole: end says it, for the run has its results all the same

	faults     *fault.Plan
	met, acted []int // by rule, over all runs
	events     []string
	processes  []string // of all runs
}

// recorder makes the files that a request asks for.
func (r *Request) recorder(ctx context.Context) (*recorder, error) {
	rec := &recorder{lockstep: r.Lockstep, frames: r.frames, point: r.point}
	if r.Fault != "" {
		src, err := r.readFault(ctx)
		if err != nil {
			return nil, err
		}
		if rec.faults, err = fault.Parse(r.Fault, src); err != nil {
			return nil, &UsageError{err}
		}
		rec.expect(rec.faults)
	}
	for _, f := range []struct {
		path, flag string
		file       **outfile.File
	}{{r.Pcap, "--pcap", &rec.capture}, {r.Trace, "--trace", &rec.timeline}} {
		if f.path == "" {
			continue
		}
		var err error
		if *f.file, err = outfile.Create(ctx, f.path); err != nil {
			rec.abort()
			if errors.Is(err, outfile.ErrInterrupted) {
				return nil, fmt.Errorf("%s: %w", f.flag, err)
			}
			return nil, Usagef("%s: %w", f.flag, err)
		}
	}
	if rec.capture != nil {
		rec.buf = bufio.NewWriterSize(rec.capture, 1<<16)
		var err error
		if rec.frames, err = pcap.NewWriter(rec.buf, "rdmasim"); err != nil {
			rec.abort()
			return nil, err
		}
	}
	return rec, nil
}

// readFault is the text of the file of faults.
func (r *Request) readFault(ctx context.Context) ([]byte, error) {
	if r.FaultText != nil {
		return r.FaultText, nil
	}
	src, err := input.ReadFile(ctx, r.Fault)
	if err != nil {
		return nil, Usagef("--fault: %w", err)
	}
	return src, nil
}

// expect makes the recorder inject a plan in the next runs, and count what its rules do. The
// plans of a sweep's points have equally many rules.
func (r *recorder) expect(p *fault.Plan) {
	if r.faults = p; len(r.met) != len(p.Rules) {
		r.met, r.acted = make([]int, len(p.Rules)), make([]int, len(p.Rules))
	}
}

// attach makes a testbed record. name distinguishes the run from others in the
// capture; a single run needs none.
func (r *recorder) attach(cfg *testbed.Config, name string) {
	if r == nil {
		return
	}
	cfg.Capture, cfg.PcapName = r.frames, strings.TrimSpace(r.point+" "+name)
	cfg.Trace = r.timeline != nil && !r.traced
	cfg.Faults, cfg.Lockstep = r.faults, r.lockstep
}

// silent is a recorder for runs of which nothing is kept: with the same faults, and in lockstep if
// r is.
func (r *recorder) silent() *recorder {
	if r == nil {
		return nil
	}
	s := &recorder{lockstep: r.lockstep}
	if r.faults != nil {
		s.expect(r.faults)
	}
	return s
}

// finish closes a testbed that attach has prepared, and writes its timeline.
func (r *recorder) finish(tb *testbed.Testbed) error {
	err := tb.Close()
	if r != nil && r.timeline != nil && r.traced {
		err = errors.Join(err, errors.New("a timeline shows a single run, and this experiment makes several: its Experiment must say Many"))
	}
	if r != nil && r.faults != nil {
		met, acted := tb.FaultsActed()
		for i := range r.met {
			r.met[i] += met[i]
			r.acted[i] += acted[i]
		}
		r.events, r.processes = append(r.events, tb.EventsDone()...), union(r.processes, tb.Processes())
	}
	if r != nil && tb.Config().Trace {
		r.traced, r.untraced = true, tb.WriteTrace(r.timeline)
	}
	return err
}

// write writes a timeline, if one was asked for.
func (r *recorder) write(spans *sim.Spans) {
	if r != nil && r.timeline != nil {
		r.traced, r.untraced = true, spans.WriteJSON(r.timeline)
	}
}

// notes adds to a result what the rules and events did, those of --fault or the scenario's own.
func (r *recorder) notes(res *Result) {
	if r == nil || r.faults == nil || res == nil {
		return
	}
	for i, rule := range r.faults.Rules {
		count := FaultCount{What: fmt.Sprintf("fault %d (%v)", i+1, rule.Action), Matched: r.met[i], Acted: r.acted[i]}
		res.Faults = append(res.Faults, count)
		res.Notes = append(res.Notes, count.String())
	}
	for i, done := range r.events {
		k := i % len(r.faults.Events)
		note := fmt.Sprintf("event %d (%v): %s", k+1, &r.faults.Events[k], done)
		if !slices.Contains(res.Notes, note) { // another run may have added it
			res.Notes = append(res.Notes, note)
		}
	}
}

// end puts the files in place when the runs have ended well, or were interrupted: what has run is
// then in them. A file that cannot be written is an error, and no end of the results.
func (r *recorder) end(err error) error {
	if err == nil && r.faults != nil && len(r.processes) > 0 {
		err = r.faults.CheckProcesses(r.processes)
	}
	if err != nil && !errors.Is(err, ErrInterrupted) {
		r.abort()
		var bad *input.Error // of --fault: a port that this run does not have
		if errors.As(err, &bad) {
			return &UsageError{err}
		}
		return err
	}
	var lost error
	switch { // of a run that was interrupted before it began there is nothing to put in place
	case r.capture == nil:
	case err != nil && r.frames.Empty():
		r.capture.Abort()
	default:
		lost = r.capture.Commit(func(io.Writer) error {
			if err := r.frames.Close(); err != nil { // that of the buffer too, which keeps its first
				return err
			}
			return r.buf.Flush()
		})
	}
	switch {
	case r.timeline == nil:
	case err != nil && !r.traced:
		r.timeline.Abort()
	default:
		lost = errors.Join(lost, r.timeline.Commit(func(io.Writer) error { return r.untraced }))
	}
	return cmp.Or(lost, err) // a loss is more than an interrupted run, whose results so far are written
}

func (r *recorder) abort() {
	for _, f := range []*outfile.File{r.capture, r.timeline} {
		if f != nil {
			f.Abort()
		}
	}
}

// union is what is in a or b, in order.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
