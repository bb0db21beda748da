package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/mutants"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

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
	part      runs.Part
	wholeHash string // hash of what the parts are parts of
	cases     string
	update    string
	untried   bool
	verbose   bool
}

func newMutants() *cobra.Command {
	o := &mutantOptions{}
	cmd := &cobra.Command{
		Use:   "mutants",
		Short: "Check that the suite notices every simulator that breaks a rule",
		Long: "mutants runs the suite on simulators that break one rule each, of the device, the driver or the library. A case\n" +
			"kills a mutant if one of its assertions fails, and none fails without the mutant; a crash, a hang or a verdict of\n" +
			"conform wire alone does not count. Cases that are likely to kill it come first, then those of its area, then all others.\n" +
			"Mutants of area KCQ break a rule of the kernel's completion models, which no case reaches: counts of interrupts, polls and\n" +
			"wake-ups that follow from the kernel's source are compared instead.\n" +
			"--matrix runs every case on each mutant. Each case of strength E or S must kill a mutant, or fixtures/mutants/rows.yaml\n" +
			"must say why it does not. With --every 10 it runs only a fixed tenth of the pairs that kill in the committed matrix, and\n" +
			"one pair of each case; these must still kill.\n" +
			"Exit status: 0 every mutant is killed or explained in fixtures/mutants/survivors.yaml, 1 a mutant is neither or both,\n" +
			"or with --matrix a case that kills none has no reason in rows.yaml or one that kills has, 2 wrong usage, 130 interrupted.",
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
	f.Uint64Var(&o.seed, "seed", 1, "seed of all random choices")
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
	chosen, err := o.check(cmd.Context())
	if err != nil {
		return err
	}
	if err := errors.Join(input.Alone(cmd.Flags(), "list", "filter"), input.NamesGiven(cmd.Flags(), "report", "update")); err != nil {
		return usagef("%w", err)
	}
	if o.list {
		return listMutants(cmd.OutOrStdout(), chosen)
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
	p := newProgress(cmd.ErrOrStderr(), len(chosen))
	out, err := hunt.Run(cmd.Context(), chosen, o.parallel, p.add)
	p.done()
	if err != nil {
		if errors.Is(err, harness.ErrTarget) || errors.Is(err, harness.ErrWorker) {
			return &status{exitUsage, err}
		}
		return &status{exitFailed, err}
	}
	r := out.Report
	if o.part.Parts > 0 {
		r.Part = &mutants.Part{Part: o.part.String(), Of: o.wholeHash, Matrix: o.matrix}
	}
	update, unread := out.Matrix(cmd.Context())
	fill := []func(io.Writer) error{r.WriteJSON, func(w io.Writer) error {
		if unread != nil {
			return unread
		}
		return update.WriteJSON(w)
	}}
	var lost []error
	for i, f := range files {
		if f != nil {
			lost = append(lost, f.Commit(fill[i]))
		}
	}
	printMutants(cmd.OutOrStdout(), out)
	switch err := errors.Join(lost...); {
	case err != nil:
		return &status{exitFailed, err}
	case r.Incomplete:
		return &status{code: exitInterrupted}
	case len(out.Findings) > 0:
		return &status{code: exitFailed}
	}
	return nil
}

// prepare finds the program that runs mutants, and says which cases run.
func (o *mutantOptions) prepare(cmd *cobra.Command) (*mutants.Hunt, error) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		return nil, err
	}
	c := mutants.Config{Items: items, Profile: o.profile, ProfileText: o.sim.text, Identity: o.sim.identity(), Seed: o.seed, Near: o.near,
		Matrix: o.matrix, Every: o.every, Update: o.update, Untried: o.untried, Stderr: cmd.ErrOrStderr(), Verbose: o.verbose}
	if o.cases != "" {
		picked, err := (&runOptions{filter: o.cases}).pick(items)
		if err != nil {
			return nil, err
		}
		c.Cases = map[string]bool{}
		for _, i := range picked {
			c.Cases[i.Entry.ID] = true
		}
	}
	if c.Program, err = mutants.Program(cmd.Context(), cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	return mutants.New(cmd.Context(), c)
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
	picked, err := mutants.Pick(mutant.All(), o.filter)
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
	o.wholeHash = runs.Hash(names, o.near, o.every, o.cases, o.untried)
	if some = runs.Of(o.part, some); len(some) == 0 {
		return nil, usagef("--shard %v: there are fewer mutants than parts", o.part)
	}
	return some, nil
}

func listMutants(w io.Writer, all []mutant.Mutant) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "MUTANT\tAREA\tRULE THAT IT BREAKS")
	for _, m := range all {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", m.Name, m.Area, m.Rule)
	}
	return tw.Flush()
}

// printMutants prints the result for people.
func printMutants(w io.Writer, out *mutants.Outcome) {
	r, findings := out.Report, out.Findings
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "MUTANT\tAREA\tOUTCOME\tCASE\tASSERTION")
	for _, m := range r.Mutants {
		outcome, how := m.Outcome, m.Step
		if m.Outcome != mutants.Killed {
			how = m.Reason
			if why := out.Survivors.Reason(m.Name); why != "" {
				outcome, how = outcome+" (explained)", why
			}
		}
		if m.Kills > 1 {
			how += fmt.Sprintf(" (and %d more cases)", m.Kills-1)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Area, outcome, m.Case, how)
	}
	_ = tw.Flush()
	if len(r.Idle) > 0 {
		fmt.Fprintf(w, "%s of strength E or S kill none: %s\n", plain.Count(len(r.Idle), "case"), strings.Join(r.Idle, ", "))
	}
	for _, f := range findings {
		fmt.Fprintln(w, "fail:", f)
	}
	head := "ok:"
	if len(findings) > 0 {
		head = "FAIL:"
	}
	if r.Incomplete {
		head = "interrupted:"
	}
	fmt.Fprintf(w, "%s %s on sim %s, seed %d: %d killed, %d survived, %d error\n", head, plain.Count(len(r.Mutants), "mutant"), r.Profile, r.Seed,
		r.Summary[mutants.Killed], r.Summary[mutants.Survived], r.Summary[mutants.Failed])
}

// newCounts is the worker of mutants that counts notice: it prints a record for each probe.
func newCounts() *cobra.Command {
	return &cobra.Command{Use: "counts MUTANT PROBE...", Hidden: true, Args: cobra.MinimumNArgs(2), RunE: func(cmd *cobra.Command, args []string) error {
		return mutants.WorkOnCounts(cmd.OutOrStdout(), args[0], args[1:])
	}}
}
