package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// job is the run on one target.
type job struct {
	*runOptions
	items     []conformance.Item
	whole     bool // nothing was filtered out
	baselines []*report.Run
	published []*report.Published
	program   string // of the workers
	out       outputs
}

// runSuite runs the suite on the targets of the command line. If there are two, it compares them.
func runSuite(cmd *cobra.Command, o *runOptions) error {
	if err := input.NamesGiven(cmd.Flags(), "report", "junit", "html", "captures", "mutant", "pcap", "trace", "fault", "peer-key"); err != nil {
		return usagef("%w", err)
	}
	o.parallelGiven = cmd.Flags().Changed("parallel")
	if err := o.check(cmd.Context()); err != nil {
		return err
	}
	if !o.on("sim") && cmd.Flags().Changed("profile") {
		return usagef("--profile chooses a simulated device: add --target=sim, or leave it out")
	}
	toStandard(cmd, &o.report, &o.junit)
	if err := outfile.CheckFolder(); err != nil {
		return &status{exitUsage, err}
	}
	jobs, err := o.jobs(cmd.Context(), cmd.ErrOrStderr(), cmd.Flags().Changed("parallel"))
	if err != nil {
		return err
	}
	var done []*report.Run
	var lost error // outputs
	bad := false
	for i, j := range jobs {
		run, err := j.run(cmd)
		if run == nil {
			abort(jobs[i:])
			return withOutputError(lost, withJournal(j.out.journal, err))
		}
		// What could be written and printed is there before the error that says what could not.
		printRun(cmd.OutOrStdout(), j.runOptions, run)
		if err != nil {
			j.out.abort()
			lost = withOutputError(lost, withJournal(j.out.journal, err))
		}
		if run.Incomplete {
			abort(jobs[i+1:])
			return withOutputError(lost, &status{code: exitInterrupted})
		}
		bad = bad || !run.OK() || j.out.journal.Failed()
		done = append(done, run)
	}
	if len(done) == 2 {
		// The simulator is the reference, and hardware ran first.
		_, err = compareRuns(cmd.OutOrStdout(), done[1], done[0], diffOptions{format: "table", verbose: o.verbose, today: o.today, ledgers: jobs[0].ledgerFiles})
	}
	if err == nil && bad {
		err = &status{code: exitFailed}
	}
	return withOutputError(lost, err)
}

// withOutputError joins the error of a failed output and the error of the command; the exit status
// is the one of the output.
func withOutputError(lost, err error) error {
	if lost == nil {
		return err
	}
	if err == nil || err.Error() == "" {
		return lost
	}
	return &status{exitFailed, errors.Join(lost, err)}
}

// abort discards the outputs of runs that do not take place.
func abort(jobs []*job) {
	for _, j := range jobs {
		j.out.abort()
	}
}

// jobs prepares the runs of the targets. Hardware comes first, because its problems show at once.
// parallel says that the number of workers was given.
func (o *runOptions) jobs(ctx context.Context, stderr io.Writer, parallel bool) ([]*job, error) {
	all, err := conformance.Items(conformance.Suite())
	if err != nil {
		return nil, err
	}
	items, err := o.pick(all)
	if err != nil {
		return nil, err
	}
	whole := len(items) == len(all)
	var ids []string
	for _, i := range items {
		ids = append(ids, i.Entry.ID)
	}
	o.wholeHash = runs.Hash(ids, o.repeat, o.full, o.lockstep)
	if items = runs.Of(o.part, items); len(items) == 0 {
		return nil, usagef("--shard %v: there are fewer cases than parts", o.part)
	}
	if err := o.distinct(parallel, ids); err != nil {
		return nil, err
	}
	if err := o.readFaults(ctx); err != nil {
		return nil, err
	}
	if o.ledgerFiles, err = readLedgers(ctx, o.ledgers); err != nil {
		return nil, err
	}
	var jobs []*job
	for _, target := range []string{"hw", "sim"} {
		if !o.on(target) {
			continue
		}
		j := &job{runOptions: o.of(target, parallel), items: items, whole: whole}
		if j.baselines, err = j.readBaselines(ctx); err == nil {
			j.published, err = j.readPublished(ctx)
		}
		if err == nil {
			j.program, err = j.workerCommand(ctx, stderr)
		}
		if err == nil {
			err = checkCaptures(ctx, j.captures, ids)
		}
		if err == nil {
			j.out, err = j.open(ctx)
		}
		if err != nil {
			abort(jobs)
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// distinct refuses outputs of a run of cases that would overwrite each other or an input.
func (o *runOptions) distinct(parallel bool, ids []string) error {
	inputs := []outfile.Named{{Flag: "--profile", Path: o.sim.path()}, {Flag: "--fault", Path: o.fault}, {Flag: "--peer-key", Path: o.peerKey}}
	for _, l := range o.ledgers {
		inputs = append(inputs, outfile.Named{Flag: "--ledger", Path: l})
	}
	for _, b := range o.baselines {
		inputs = append(inputs, outfile.Named{Flag: "--baseline", Path: b})
	}
	outputs := []outfile.Named{{Flag: "--captures", Path: o.captures}}
	for _, target := range []string{"hw", "sim"} {
		if o.on(target) {
			t := o.of(target, parallel)
			outputs = append(outputs, outfile.Named{Flag: "--report", Path: t.report}, outfile.Named{Flag: "--junit", Path: t.junit}, outfile.Named{Flag: "--html", Path: t.html}, outfile.Named{Flag: "--pcap", Path: t.pcap}, outfile.Named{Flag: "--trace", Path: t.trace})
			if t.report != "" {
				outputs = append(outputs, outfile.Named{Flag: "the journal of --report", Path: t.report + report.JournalSuffix})
			}
		}
	}
	err := outfile.Distinct(outputs, inputs)
	for _, f := range append(outputs[1:], inputs...) {
		name, within := outfile.Within(f.Path, o.captures)
		if id, capture := strings.CutSuffix(name, capturesSuffix); err == nil && within && capture && slices.Contains(ids, id) {
			err = fmt.Errorf("%s %s is where --captures puts the frames of %s if it fails: give each its own", f.Flag, f.Path, id)
		}
	}
	if err != nil {
		return usagef("%w", err)
	}
	return nil
}

// run runs the suite on one target and writes its outputs. After an error the caller has to abort
// them; with a run it is that of an output.
func (j *job) run(cmd *cobra.Command) (*report.Run, error) {
	dir := ""
	d, err := outfile.TempDir("conform-run")
	switch {
	case err == nil:
		defer func() { _ = d.Remove() }()
		dir = d.Path
	case j.pcap != "" || j.trace != "" || j.captures != "":
		return nil, &status{exitFailed, err}
	default:
		fmt.Fprintln(cmd.ErrOrStderr(), "conform: failures are reported without their frames:", err)
	}
	start := time.Now()
	res, err := j.supervise(cmd.Context(), cmd, dir)
	outfile.Sweep(outfile.CaseFolder) // of workers that were killed
	if errors.Is(err, harness.ErrTarget) || errors.Is(err, harness.ErrWorker) {
		return nil, &status{exitUsage, err}
	}
	if err != nil {
		return nil, &status{exitFailed, err}
	}
	policy, err := conformance.LoadPolicy(res.Hello.Target.Profile, res.Hello.Target.Details)
	if err != nil {
		return nil, err
	}
	ledger, err := conformance.LoadLedger(j.ledgerFiles...)
	if err != nil {
		return nil, err
	}
	run := j.assemble(res, policy, ledger)
	if j.target == "hw" && nothingRan(run) && j.part.Parts == 0 {
		j.out.journal.Drop()
		return nil, usagef("%s supports none of the cases that --label-filter %q selects (%s: %s); choose others, or another --device",
			run.Target.Device, j.filter, run.Cases[0].ID, run.Cases[0].Reason)
	}
	if err := hold(run, j.baselines, j.published); err != nil {
		return nil, err
	}
	j.took = time.Since(start)
	again := func(id string) string { return j.again(run, id) }
	if err := errors.Join(j.out.write(run, dir, again), saveCaptures(cmd.Context(), run, dir, j.captures)); err != nil {
		return run, &status{exitFailed, fmt.Errorf("part of the run's results is lost: %w", err)}
	}
	return run, nil
}

// nothingRan reports whether the target lacks what every case needs.
func nothingRan(run *report.Run) bool {
	for _, c := range run.Cases {
		if !strings.HasPrefix(c.Reason, conformance.Lacking) {
			return false
		}
	}
	return len(run.Cases) > 0
}

// wallLimit is the real time for a case. On the simulator a case has a bound on its events,
// so the limit ends only what hangs, however busy the machine is.
func (j *job) wallLimit() time.Duration {
	switch {
	case j.wall > 0:
		return j.wall
	case j.target == "sim":
		return 30 * time.Minute
	}
	if d, err := time.ParseDuration(os.Getenv("LAB_WALL_LIMIT")); err == nil && d > 0 {
		return d // of an emulated machine, set by scripts/lab
	}
	return 2 * time.Minute
}

func (j *job) supervise(ctx context.Context, cmd *cobra.Command, dir string) (harness.Result, error) {
	ids := make([]string, len(j.items))
	for i, it := range j.items {
		ids[i] = it.Entry.ID
	}
	p := newProgress(cmd.ErrOrStderr(), len(ids))
	defer p.done()
	s := &harness.Supervisor{
		Command: func() (*exec.Cmd, error) {
			c := exec.Command(j.program, "worker")
			c.Env = workerEnv(j.target)
			return c, nil
		},
		Job: harness.Job{Target: j.target, Profile: j.profile, ProfileText: j.sim.text, Seed: j.seed, Repeat: j.repeat, Cases: ids,
			Device: j.device, Port: j.port, GIDIndex: j.gidIndex, Wire: j.wire, Peer: j.peer, PeerKey: j.peerKey, Responder: j.role == roleResponder, Wall: j.wallLimit(),
			Lockstep: j.lockstep, FaultFile: j.fault, Faults: j.faults, Ledgers: j.ledgerFiles, Full: j.full, Dir: dir, Pcap: j.pcap != "", Trace: j.trace != "", Evidence: dir != "", Mutant: j.mutant},
		Shards: j.parallel,
		Wall:   j.wallLimit(),
		Hello: func(h harness.Hello) {
			noteJournal(cmd.ErrOrStderr(), j.out.journal.Begin(j.record(harness.Result{Hello: h})))
			if h.Chosen != "" {
				p.clear()
				printTarget(cmd.OutOrStdout(), h)
			}
		},
		Finished: func(c report.Case) {
			p.add()
			noteJournal(cmd.ErrOrStderr(), j.out.journal.Add(c))
			if j.verbose {
				p.clear()
				printCase(cmd.OutOrStdout(), c)
			}
		},
	}
	if j.verbose {
		s.Stderr = cmd.ErrOrStderr()
	}
	if j.target == "sim" { // the memory that hardware needs is in the hands of its driver
		memory, err := harness.NewMemory()
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "conform: workers do not wait for memory:", err)
		}
		s.Memory = memory
		s.Waiting = func(why string) {
			p.clear()
			fmt.Fprintln(cmd.ErrOrStderr(), "conform:", why)
		}
	}
	return s.Run(ctx)
}

// record is the record of the run before it is judged.
func (j *job) record(res harness.Result) *report.Run {
	run := conformance.NewRecord(j.target, j.seed, res.Hello.Description, j.items, res.Cases)
	if j.fault != "" {
		run.Environment[faultsKey] = filepath.Base(j.fault) + ", " + report.Digest([]byte(j.faults))
	}
	if j.target == "hw" {
		noteGuest(run)
	}
	if file := j.sim.file(); file != "" && j.target == "sim" {
		run.Environment[profileKey] = file
	}
	if j.mutant != "" {
		run.Environment[mutantKey] = j.mutant
	}
	if flags := j.flagsOf(); flags != "" {
		run.Environment[flagsKey] = flags
	}
	if j.part.Parts > 0 {
		run.Environment[runs.PartKey], run.Environment[runs.WholeKey] = j.part.String(), j.wholeHash
	}
	if j.target == "hw" && len(res.Hello.Target.Details) == 0 {
		j.undescribed(run)
	}
	if run.Environment[report.KeyBelow] == "rdmasim exec" && os.Getenv(commands.SessionVariable) != "" {
		words := session(run, true)
		words[0] = "rdmasim" // wherever it lies on this machine
		run.Environment[report.KeySession] = commands.Shell(words)
	}
	return run
}

// assemble makes the record of the run and judges it as a whole.
func (j *job) assemble(res harness.Result, policy *conformance.Policy, ledger *report.Ledger) *report.Run {
	run := j.record(res)
	run.Incomplete = res.Interrupted
	if j.part.Parts == 0 { // conform merge judges a run of several parts
		runs.Judge(run, policy, ledger, runs.Demands{Whole: j.whole, MinPass: j.minPass, Today: j.day()})
	}
	return run
}

// hold judges cases of strength H by the baselines of the run's kind of device, and all cases by
// published measurements of it.
func hold(run *report.Run, baselines []*report.Run, published []*report.Published) error {
	if len(baselines)+len(published) == 0 {
		return nil
	}
	rules, err := conformance.LoadRules()
	if err != nil {
		return err
	}
	held := false
	for _, b := range baselines {
		held = run.Hold(b, rules) || held
	}
	for _, p := range published {
		held = p.Hold(run) || held
	}
	if !held {
		run.Findings = append(run.Findings, runs.NoBaseline)
	}
	return nil
}
