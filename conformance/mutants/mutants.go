// Package mutants checks that a suite notices every simulator that breaks a rule: it runs the
// suite's cases on mutants (sim/mutant) in worker processes, until an assertion of a case kills
// each, or all cases on all mutants for a matrix. Command conform mutants prints the result, and a
// project with cases of its own calls it in its CI:
//
//	program, err := mutants.Program(ctx, os.Stderr)
//	config := mutants.Config{Program: program, Items: items, Profile: "connectx-5", Identity: "connectx-5", Seed: 1}
//	hunt, err := mutants.New(ctx, config)
//	out, err := hunt.Run(ctx, mutant.All(), runtime.NumCPU(), func() {})
//	for _, finding := range out.Findings { ... }
package mutants

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// maxEvents bounds the simulated events of a case on a mutant, which may never come to
// an end. A case that needs more without a mutant kills none.
const maxEvents = 10_000_000

// DefaultWall bounds a case in real time, in case a mutant hangs in one event. It is generous,
// because no result may depend on the speed of the machine.
const DefaultWall = 10 * time.Minute

// Config says which cases run on mutants, and how.
type Config struct {
	Program string // that runs the cases, as Program finds it
	Items   []conformance.Item
	// Profile is the simulated device of mutants that choose none. ProfileText is the text of the
	// file Profile, if that is not a stored profile. Identity tells it apart from others in reports
	// and matrices.
	Profile, ProfileText, Identity string
	Seed                           uint64
	Near                           bool            // try the likely killers and the cases of a mutant's area only
	Matrix                         bool            // run every case on each mutant
	Every                          int             // above 1, with Matrix: run one in so many of the kills of the committed matrix
	Cases                          map[string]bool // with Matrix: the cases that run; nil: all
	Update                         string          // with Matrix: the file of the matrix that gets the results; empty: none
	Untried                        bool            // with Update: run only pairs that are not in that file
	Wall                           time.Duration   // real time that a case may take; 0: DefaultWall
	Stderr                         io.Writer       // where warnings go
	Verbose                        bool            // with what workers write to standard error
}

// Hunt runs cases on mutants, and knows with what the outcome is compared.
type Hunt struct {
	*hunt
	cfg       *Config
	survivors *Survivors
	rows      *rows
	known     *Matrix // the committed one, or that of Config.Update
	sample    *sample // with Matrix and Every
}

// New reads the files with which a run is compared and chooses the pairs of mutant and case to run.
// The errors name a file that cannot be read, or a matrix of another profile or seed.
func New(ctx context.Context, cfg Config) (*Hunt, error) {
	h := Hunt{cfg: &cfg}
	var err error
	if h.survivors, err = ReadSurvivors(); err != nil {
		return nil, err
	}
	if h.rows, err = readRows(); err != nil {
		return nil, err
	}
	if h.known, err = ReadMatrix(); cfg.Update != "" {
		h.known, err = openMatrix(ctx, &cfg)
	}
	if err != nil {
		return nil, err
	}
	memory, err := harness.NewMemory()
	if err != nil && cfg.Stderr != nil {
		fmt.Fprintln(cfg.Stderr, "conform: workers do not wait for memory:", err)
	}
	h.hunt = &hunt{items: cfg.Items, near: cfg.Near, attack: attackCounts(cfg.Program, cfg.Stderr, cfg.attack(memory)),
		explained: func(name string) bool { return h.survivors.Reason(name) != "" }, elsewhere: h.rows.profile, kills: h.known.kills}
	h.want()
	return &h, nil
}

// want chooses the pairs that run.
func (h *Hunt) want() {
	switch {
	case !h.cfg.Matrix:
	case h.cfg.Every > 1:
		h.sample = newSample(h.cfg.Every, h.known, h.rows, h.items, ofCases(mutant.All()))
		h.wanted, h.all = h.sample.has, true
		asked := map[baseline]bool{}
		for _, m := range ofCases(mutant.All()) {
			for _, i := range h.items {
				if id := i.Entry.ID; h.sample.has(m, id) || h.asksLikely(m, id) {
					asked[baseline{m.Profile, id}] = true
				}
			}
		}
		h.cheap = func(b baseline) bool { return asked[b] && !h.rows.seldom(b.id) }
	default:
		h.wanted = func(m mutant.Mutant, id string) bool {
			return (h.cfg.Cases == nil || h.cfg.Cases[id]) && !(h.cfg.Untried && h.known.tried(m.Name, id))
		}
	}
}

// Outcome is the result of a run.
type Outcome struct {
	Report    *Report
	Survivors *Survivors
	Findings  []string // what is wrong with it; without one the run is as it should be
	hunt      *Hunt
	ran       map[string]*fate // of the mutants that met all their cases, by their names
}

// Run tries mutants, parallel at a time, and calls done after each, one call at a time. If ctx ends
// first, the report is incomplete. The error comes from a worker that cannot run cases
// (harness.ErrTarget, harness.ErrWorker).
func (h *Hunt) Run(ctx context.Context, mutants []mutant.Mutant, parallel int, done func()) (*Outcome, error) {
	fates, err := h.run(ctx, mutants, parallel, func(fate) { done() })
	if err != nil {
		return nil, err
	}
	out := &Outcome{Report: newReport(h.cfg, mutants, fates, ctx.Err() != nil), Survivors: h.survivors, hunt: h, ran: judged(mutants, fates)}
	h.judgeAll(out, len(mutants) == len(mutant.All()))
	return out, nil
}

// judged are the fates of the mutants that met all their cases, by their names.
func judged(mutants []mutant.Mutant, fates []fate) map[string]*fate {
	ran := map[string]*fate{}
	for i, m := range mutants {
		if fates[i].judged {
			ran[m.Name] = &fates[i]
		}
	}
	return ran
}

// Matrix returns the matrix in the file Config.Update with the results of the mutants that met all
// their cases, even if the run was interrupted. It reads the file again, because another run may
// have added pairs. Without Update it returns the committed matrix unchanged.
func (o *Outcome) Matrix(ctx context.Context) (*Matrix, error) {
	if o.hunt.cfg.Update == "" {
		return o.hunt.known, nil
	}
	m, err := openMatrix(context.WithoutCancel(ctx), o.hunt.cfg)
	if err != nil {
		return nil, err
	}
	m.merge(ofCases(mutant.All()), o.hunt.items, o.ran)
	return m, nil
}

// judgeAll lists what is wrong with what a run showed; all says that it tried all mutants.
func (h *Hunt) judgeAll(o *Outcome, all bool) {
	if h.cfg.Cases != nil || h.cfg.Untried { // which mutants survive is not the question
		return
	}
	o.Findings = h.survivors.judge(o.Report, all)
	switch {
	case h.sample != nil:
		o.Findings = append(o.Findings, h.sample.judge(o.ran)...)
	case h.cfg.Matrix && all && !o.Report.Incomplete:
		o.Report.Idle = idleCases(h.items, o.Report)
		o.Findings = append(o.Findings, h.rows.judge(h.items, o.Report.Idle)...)
	}
}

// Known returns an error unless name is a mutant that cases can notice. The error suggests a
// similar name, or says what notices the mutant.
func Known(name string) error {
	var names []string
	for _, m := range mutant.All() {
		if m.Name == name && m.Counted() {
			return fmt.Errorf("--mutant %s: no case of the suite reaches the kernel's completion models: conform mutants --filter %s", name, name)
		}
		if m.Name == name {
			return nil
		}
		names = append(names, m.Name)
	}
	return fmt.Errorf("--mutant: no mutant %q%s; conform mutants --list shows them", name, input.Suggest(name, names))
}

// Pick returns the mutants that a word of the filter selects: a name, a pattern of names
// (path.Match) or an area in any case. An empty filter selects all; a word that selects none, or is
// a bad pattern, is an error.
func Pick(all []mutant.Mutant, filter []string) ([]mutant.Mutant, error) {
	if len(filter) == 0 {
		return all, nil
	}
	var words []string
	for _, m := range all {
		words = append(words, m.Name)
		if !slices.Contains(words, m.Area) {
			words = append(words, m.Area)
		}
	}
	chosen := make([]bool, len(all))
	for _, w := range filter {
		met := false
		for i, m := range all {
			name, err := path.Match(w, m.Name)
			if err != nil {
				return nil, fmt.Errorf("--filter %q: %w", w, err)
			}
			if name || strings.EqualFold(w, m.Area) {
				chosen[i], met = true, true
			}
		}
		if !met {
			return nil, fmt.Errorf("--filter: no mutant %q%s; conform mutants --list shows them", w, input.Suggest(w, words))
		}
	}
	var picked []mutant.Mutant
	for i, m := range all {
		if chosen[i] {
			picked = append(picked, m)
		}
	}
	return picked, nil
}

// attack runs cases on a mutant in one worker process, and reports each case that ends to finished.
func (c *Config) attack(memory *harness.Memory) attack {
	wall := cmp.Or(c.Wall, DefaultWall)
	return func(ctx context.Context, m mutant.Mutant, ids []string, finished func(report.Case)) error {
		profile, text := m.Profile, ""
		if profile == "" {
			profile, text = c.Profile, c.ProfileText
		}
		s := &harness.Supervisor{
			Command: func() (*exec.Cmd, error) { return exec.Command(c.Program, "worker"), nil },
			Job: harness.Job{Target: "sim", Profile: profile, ProfileText: text, Seed: c.Seed, Cases: ids, Mutant: m.Name, MaxEvents: maxEvents,
				Wall: wall},
			Shards: 1, Wall: wall, Finished: finished, Memory: memory,
		}
		if c.Verbose {
			s.Stderr = c.Stderr
		}
		_, err := s.Run(ctx)
		if err != nil {
			return fmt.Errorf("mutant %q: %w", m.Name, err)
		}
		return nil
	}
}
