package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// mutantEvents bounds the simulated events of a case on a mutant, which may never come to
// an end. A case that needs more without a mutant kills none.
const mutantEvents = 10_000_000

// mutantWall bounds it in real time, for a mutant that hangs in one event: generously, since
// nothing may depend on the speed of the machine.
const mutantWall = 10 * time.Minute

type mutantOptions struct {
	filter    []string
	report    string
	profile   string
	sim       simProfile // what profile chooses
	seed      uint64
	parallel  int
	list      bool
	matrix    bool
	near      bool
	every     int
	shard     string
	part      part
	wholeHash string // hash of what the parts are parts of
	cases     string
	update    string
	untried   bool
	verbose   bool
	wall      time.Duration
}

func newMutants() *cobra.Command {
	o := &mutantOptions{wall: mutantWall}
	cmd := &cobra.Command{
		Use:   "mutants",
		Short: "Check that the suite notices every simulator that breaks a rule",
		Long: "mutants runs the suite on simulators that break one rule each, of the device, the driver or the library. A case\n" +
			"kills a mutant when one of its assertions fails, and none does without the mutant; a crash, a hang or a verdict of\n" +
			"the wire's judge alone does not count. Cases that are likely to kill it come first, then those of its area, then all others.\n" +
			"Mutants of area KCQ break a rule of the kernel's completion models, which no case reaches: counts of interrupts, polls and\n" +
			"wake-ups that follow from the kernel's source stand in their place.\n" +
			"--matrix runs every case on each, and asks of each row of strength E or S that it kills a mutant, or that\n" +
			"fixtures/mutants/rows.yaml says why it does not; with --every 10 a fixed tenth of the pairs runs that\n" +
			"kill in the committed matrix, and one of each row: they must still do so.\n" +
			"Exit status: 0 every mutant is killed or explained in fixtures/mutants/survivors.yaml, 1 a mutant is neither, or an\n" +
			"explained one is killed, or the same of a row, 2 wrong usage, 130 interrupted.",
		Example: "  conform mutants\n  conform mutants --filter RC,'mr-*' --report mutants.json\n  conform mutants --matrix --every 10\n" +
			"  conform mutants --matrix --label-filter RC-034 --update fixtures/mutants/matrix.json\n  conform mutants --list",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("mutants takes no %q: conform mutants --filter %s", args[0], strings.Join(args, ","))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runMutants(cmd, o) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.filter, "filter", nil, "run mutants with these `NAMES` or of these areas; * stands for any characters")
	f.StringVar(&o.report, "report", "", "write the outcome of each mutant as JSON to `FILE`; - is standard output, and the table goes to standard error")
	f.StringVar(&o.profile, "profile", simulator.DefaultProfile, profileHelp+", for mutants that do not choose one")
	f.Uint64Var(&o.seed, "seed", 1, "root of everything random in the runs")
	f.IntVar(&o.parallel, "parallel", processors(), "number of mutants that run at once")
	f.BoolVar(&o.list, "list", false, "list the mutants, and run nothing")
	f.BoolVar(&o.matrix, "matrix", false, "run every case on each mutant and count those that kill it")
	f.IntVar(&o.every, "every", 1, "run one mutant in every `N` (with --matrix: one kill of the committed matrix), always the same ones")
	f.StringVar(&o.shard, "shard", "", shardHelp)
	f.StringVar(&o.cases, "label-filter", "", "with --matrix: run only cases that this label filter selects, as for conform run")
	f.StringVar(&o.update, "update", "", "with --matrix: put the results of the pairs into the matrix in `FILE`, and keep the rest of it")
	f.BoolVar(&o.untried, "untried", false, "with --update: run only pairs that are not in the file")
	f.BoolVar(&o.near, "near", false, "try the likely killers and the cases of a mutant's area only")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print what each mutant's worker writes to standard error")
	return cmd
}

// runMutants is the command.
func runMutants(cmd *cobra.Command, o *mutantOptions) error {
	mutants, err := o.check(cmd.Context())
	if err != nil {
		return err
	}
	if err := errors.Join(input.Alone(cmd.Flags(), "list", "filter"), input.NamesGiven(cmd.Flags(), "report", "update")); err != nil {
		return usagef("%w", err)
	}
	if o.list {
		return listMutants(cmd.OutOrStdout(), mutants)
	}
	toStandard(cmd, &o.report)
	if err := outfile.Distinct([]outfile.Named{{Flag: "--report", Path: o.report}, {Flag: "--update", Path: o.update}}, []outfile.Named{{Flag: "--profile", Path: o.sim.path()}}); err != nil {
		return usagef("%w", err)
	}
	hunt, err := o.prepare(cmd)
	if err != nil {
		return err
	}
	var files [2]*outfile.File // the report and the matrix
	for i, path := range []string{o.report, o.update} {
		if path == "" {
			continue
		}
		if files[i], err = create(cmd.Context(), path); err != nil {
			return err
		}
		defer files[i].Abort() // if nothing was committed
	}
	p := newProgress(cmd.ErrOrStderr(), len(mutants))
	fates, err := hunt.run(cmd.Context(), mutants, o.parallel, func(fate) { p.add() })
	p.done()
	if err != nil {
		if errors.Is(err, harness.ErrTarget) || errors.Is(err, harness.ErrWorker) {
			return &status{exitUsage, err}
		}
		return &status{exitFailed, err}
	}
	r := newMutantReport(o, mutants, fates, cmd.Context().Err() != nil)
	if o.part.parts > 0 {
		r.Part = &mutantPart{Part: o.part.String(), Of: o.wholeHash, Matrix: o.matrix}
	}
	findings := hunt.judgeAll(o, r, mutants, fates)
	update, unread := hunt.updated(cmd.Context(), o, mutants, fates)
	fill := []func(io.Writer) error{r.writeJSON, func(w io.Writer) error {
		if unread != nil {
			return unread
		}
		return update.write(w)
	}}
	var lost []error
	for i, f := range files {
		if f != nil {
			lost = append(lost, f.Commit(fill[i]))
		}
	}
	printMutants(cmd.OutOrStdout(), r, hunt.explainedBy, findings)
	switch err := errors.Join(lost...); {
	case err != nil:
		return &status{exitFailed, err}
	case r.Incomplete:
		return &status{code: exitInterrupted}
	case len(findings) > 0:
		return &status{code: exitFailed}
	}
	return nil
}

// mutantRun is a hunt with what its outcome is compared with.
type mutantRun struct {
	*hunt
	explainedBy *survivors
	rows        *rows
	known       *matrix // the committed one, or that of --update
	sample      *sample // with --matrix --every N
}

// prepare reads what a run needs, and says which pairs of mutant and case it takes.
func (o *mutantOptions) prepare(cmd *cobra.Command) (*mutantRun, error) {
	var h mutantRun
	var err error
	if h.explainedBy, err = readSurvivors(); err != nil {
		return nil, err
	}
	if h.rows, err = readRows(); err != nil {
		return nil, err
	}
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		return nil, err
	}
	if h.known, err = readMatrix(); o.update != "" {
		h.known, err = openMatrix(cmd.Context(), o)
	}
	if err != nil {
		return nil, err
	}
	program, err := mutantsProgram(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	memory, err := harness.NewMemory()
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "conform: workers do not wait for memory:", err)
	}
	h.hunt = &hunt{items: items, seed: o.seed, near: o.near, attack: attackCounts(program, cmd.ErrOrStderr(), o.attack(program, memory, cmd.ErrOrStderr())),
		explained: func(name string) bool { return h.explainedBy.reason(name) != "" }, elsewhere: h.rows.profile, kills: h.known.kills}
	return &h, h.want(o)
}

// want chooses the pairs that run.
func (h *mutantRun) want(o *mutantOptions) error {
	if !o.matrix {
		return nil
	}
	if o.every > 1 {
		h.sample = newSample(o.every, h.known, h.rows, h.items, ofCases(mutant.All()))
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
		return nil
	}
	chosen := map[string]bool{}
	picked := h.items
	if o.cases != "" {
		var err error
		if picked, err = (&runOptions{filter: o.cases}).pick(h.items); err != nil {
			return err
		}
	}
	for _, i := range picked {
		chosen[i.Entry.ID] = true
	}
	h.wanted = func(m mutant.Mutant, id string) bool {
		return chosen[id] && !(o.untried && h.known.tried(m.Name, id))
	}
	return nil
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

// updated is the matrix of --update with what a run showed, also one that was interrupted: of the mutants that met all their cases. The file is
// read again, for another run may have put its pairs there meanwhile.
func (h *mutantRun) updated(ctx context.Context, o *mutantOptions, mutants []mutant.Mutant, fates []fate) (*matrix, error) {
	if o.update == "" {
		return h.known, nil
	}
	m, err := openMatrix(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, err
	}
	m.merge(ofCases(mutant.All()), h.items, judged(mutants, fates))
	return m, nil
}

// judgeAll lists what is wrong with what a run showed.
func (h *mutantRun) judgeAll(o *mutantOptions, r *mutantReport, mutants []mutant.Mutant, fates []fate) []string {
	ran := judged(mutants, fates)
	if o.cases != "" || o.untried { // which mutants survive is not the question
		return nil
	}
	all := len(o.filter) == 0 && (o.every == 1 || o.matrix) && o.part.parts == 0
	findings := h.explainedBy.judge(r, all)
	switch {
	case h.sample != nil:
		findings = append(findings, h.sample.judge(ran)...)
	case o.matrix && all && !r.Incomplete:
		r.Idle = idleCases(h.items, r)
		findings = append(findings, h.rows.judge(h.items, r.Idle)...)
	}
	return findings
}

// check refuses values that no run can have, and picks the mutants.
func (o *mutantOptions) check(ctx context.Context) ([]mutant.Mutant, error) {
	var err error
	if o.sim, err = readProfile(ctx, o.profile); err != nil {
		return nil, err
	}
	if o.parallel < 1 {
		return nil, usagef("--parallel must be above zero")
	}
	switch {
	case o.every < 1:
		return nil, usagef("--every must be above zero")
	case o.matrix && o.near:
		return nil, usagef("--matrix tries every case, and --near only some: give one of them")
	case !o.matrix && (o.cases != "" || o.update != ""):
		return nil, usagef("--label-filter and --update are for --matrix: add it")
	case o.untried && o.update == "":
		return nil, usagef("--untried skips the pairs in the file of --update: add --update FILE")
	case o.every > 1 && (o.cases != "" || o.update != ""):
		return nil, usagef("--every chooses the pairs: leave out --label-filter and --update")
	}
	if o.part, err = readPart(o.shard, o.report); err != nil {
		return nil, err
	}
	picked, err := pickMutants(mutant.All(), o.filter)
	if err != nil {
		return nil, err
	}
	step := o.every
	if o.matrix {
		step = 1 // pairs are chosen, and no mutants
	}
	var some []mutant.Mutant
	for i := 0; i < len(picked); i += step {
		some = append(some, picked[i])
	}
	var names []string
	for _, m := range some {
		names = append(names, m.Name)
	}
	o.wholeHash = wholeOf(names, o.near, o.every, o.cases, o.untried)
	if some = of(o.part, some); len(some) == 0 {
		return nil, usagef("--shard %v: there are fewer mutants than parts", o.part)
	}
	return some, nil
}

// knownMutant refuses the name of no mutant.
func knownMutant(name string) error {
	var names []string
	for _, m := range mutant.All() {
		if m.Name == name && m.Counted() {
			return usagef("--mutant %s: no case of the suite reaches the kernel's completion models: conform mutants --filter %s", name, name)
		}
		if m.Name == name {
			return nil
		}
		names = append(names, m.Name)
	}
	return usagef("--mutant: no mutant %q%s; conform mutants --list shows them", name, input.Suggest(name, names))
}

// pickMutants are those that a word of the filter names, or all without one.
func pickMutants(all []mutant.Mutant, filter []string) ([]mutant.Mutant, error) {
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
				return nil, usagef("--filter %q: %w", w, err)
			}
			if name || strings.EqualFold(w, m.Area) {
				chosen[i], met = true, true
			}
		}
		if !met {
			return nil, usagef("--filter: no mutant %q%s; conform mutants --list shows them", w, input.Suggest(w, words))
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
func (o *mutantOptions) attack(program string, memory *harness.Memory, stderr io.Writer) attack {
	return func(ctx context.Context, m mutant.Mutant, ids []string, finished func(report.Case)) error {
		profile, text := m.Profile, ""
		if profile == "" {
			profile, text = o.profile, o.sim.text
		}
		s := &harness.Supervisor{
			Command: func() (*exec.Cmd, error) { return exec.Command(program, "worker"), nil },
			Job: harness.Job{Target: "sim", Profile: profile, ProfileText: text, Seed: o.seed, Cases: ids, Mutant: m.Name, MaxEvents: mutantEvents,
				Wall: o.wall},
			Shards: 1, Wall: o.wall, Finished: finished, Memory: memory,
		}
		if o.verbose {
			s.Stderr = stderr
		}
		_, err := s.Run(ctx)
		if err != nil {
			return fmt.Errorf("mutant %q: %w", m.Name, err)
		}
		return nil
	}
}
