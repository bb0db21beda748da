package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/experiment/sweep"
	"github.com/rdmasim/rdmasim/experiment/sweep/slurm"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// slurmFlags say how a sweep runs on a cluster.
type slurmFlags struct {
	mode                    string // "", run or script
	partition, time, memory string
	program                 string
	tasks                   int
}

// askEvery is the time between two looks at a job. Sites do not like to be asked more often.
const askEvery = 2 * time.Second

func (s *slurmFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&s.mode, "slurm", "", "run the sweep as a job array of Slurm, follow it and print the answer; --slurm=script writes the script only")
	f.Lookup("slurm").NoOptDefVal = "run"
	f.StringVar(&s.partition, "partition", "", "with --slurm: `PARTITION` of the cluster (default: the site's)")
	f.StringVar(&s.time, "time", "", "with --slurm: `TIME` that a task may take, as sbatch takes it (default: the site's)")
	f.StringVar(&s.memory, "mem", "", "with --slurm: `MEMORY` of a task, as sbatch takes it (default: the site's)")
	f.IntVar(&s.tasks, "array-size", 100, "with --slurm: largest `N` of tasks")
	f.StringVar(&s.program, "program", "", "with --slurm: `PATH` of rdmasim on the nodes (default: the path of this program)")
}

// check refuses what cannot be meant.
func (s *slurmFlags) check(f *pflag.FlagSet) error {
	if s.mode != "" && s.mode != "run" && s.mode != "script" {
		return usagef("--slurm=%s: --slurm runs the sweep, and --slurm=script writes the script only", s.mode)
	}
	for _, name := range []string{"partition", "time", "mem", "array-size", "program"} {
		if s.mode == "" && f.Changed(name) {
			return usagef("--%s is for --slurm: add it, or leave --%s out", name, name)
		}
	}
	if s.mode == "" {
		return nil
	}
	for _, name := range []string{"shard", "jobs", "memory"} {
		if f.Changed(name) {
			return usagef("--slurm makes its own parts of one worker each: leave out --%s", name)
		}
	}
	if s.tasks < 1 || s.tasks > 1_000_000 {
		return usagef("--array-size %d: a number of tasks from 1 to 1000000 is needed", s.tasks)
	}
	return nil
}

// rounds bounds how often what is missing is submitted again.
const rounds = 5

// cluster is a sweep that runs on a cluster.
type cluster struct {
	*slurmFlags
	c     *cobra.Command
	sweep *sweep.Sweep
	o     *sweep.Options
	dir   string // of scripts and logs
	args  []string
	why   func(point int) string // has no result, after the last job
}

// run carries out a sweep on a cluster. It returns the answer; nil if only a script was asked for.
func (s *slurmFlags) run(c *cobra.Command, sw *sweep.Sweep, plan *sweep.Plan, o *sweep.Options, worker uint64) (*sweep.Answer, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(o.Store.Dir())
	if err != nil {
		return nil, err
	}
	if s.program == "" {
		if s.program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	h := sha256.Sum256(append([]byte(sw.Model()+"\n"), text...))
	k := &cluster{slurmFlags: s, c: c, sweep: sw, o: o, dir: filepath.Join(folder, store.Jobs, hex.EncodeToString(h[:8])), why: func(int) string { return "it was not run" }}
	if err := os.MkdirAll(k.dir, 0o777); err != nil {
		return nil, usagef("--slurm: %w", err)
	}
	name := filepath.Join(k.dir, "plan")
	if err := keepPlan(c.Context(), name, text); err != nil {
		return nil, err
	}
	k.args = []string{shardCommand, name, "--store", folder, "--wall-limit", o.Wall.String()}
	if worker > 0 {
		k.args = append(k.args, "--worker-memory", input.FormatSize(worker))
	}
	k.args = append(k.args, "--shard")
	return k.rounds()
}

// keepPlan puts a plan in place, and leaves one alone that is there: tasks of the job may be
// reading it.
func keepPlan(ctx context.Context, name string, text []byte) error {
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, text) {
		return nil
	}
	f, err := outfile.Create(ctx, name)
	if err != nil {
		return err
	}
	return f.Commit(func(w io.Writer) error { _, err := w.Write(text); return err })
}

// rounds submits what is missing until nothing is, or no more comes of it.
func (k *cluster) rounds() (*sweep.Answer, error) {
	var failed error
	before := -1
	for round := range rounds {
		out, err := k.sweep.Look(k.o.Store)
		if err != nil {
			return nil, err
		}
		missing := k.sweep.Missing(out)
		if len(missing) == 0 {
			failed = nil
			break
		}
		if round > 0 && len(missing) == before {
			break
		}
		before = len(missing)
		job := &slurm.Job{Name: k.sweep.Name(), Dir: k.dir, Tasks: min(k.tasks, len(missing)), Partition: k.partition, Time: k.time, Memory: k.memory, Program: k.program, Args: k.args}
		script, err := job.Write()
		if err != nil {
			return nil, usagef("--slurm: %w", err)
		}
		if k.mode == "script" {
			fmt.Fprintf(k.c.OutOrStdout(), "%s runs %s of %d: submit it with sbatch; the same command with --slurm collects the answer\n", script, plain.Count(len(missing), "run"), k.sweep.Points())
			return nil, nil
		}
		status, err := k.submit(job, script)
		if err != nil {
			return nil, err
		}
		if out, err = k.sweep.Look(k.o.Store); err != nil {
			return nil, err
		}
		if failed = k.failures(job, status, k.sweep.Missing(out)); failed == nil {
			break
		}
	}
	answer, out, err := k.sweep.Collect(k.o.Store, k.why)
	if err != nil {
		return nil, errors.Join(err, failed)
	}
	for _, l := range out.Failures[:min(len(out.Failures), mostLost)] {
		k.o.Failed(l)
	}
	return answer, failed
}

// mostLost bounds the points without a result that are told one by one.
const mostLost = 20

// submit submits a job, or finds the one of an earlier call that still runs, and follows it.
func (k *cluster) submit(job *slurm.Job, script string) (slurm.Status, error) {
	record := filepath.Join(k.dir, "id")
	id := ""
	if text, err := os.ReadFile(record); err == nil {
		n, old, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		if status, known, err := slurm.Query(k.c.Context(), n); err == nil && known && goesOn(status) {
			id = n
			_, _ = fmt.Sscanf(old, "%d", &job.Tasks)
			k.say("follows job %s, which an earlier command submitted", id)
		}
	}
	if id == "" {
		var err error
		if id, err = job.Submit(k.c.Context(), script); err != nil {
			return nil, usagef("--slurm: %w", err)
		}
		if err := os.WriteFile(record, fmt.Appendf(nil, "%s %d\n", id, job.Tasks), 0o644); err != nil {
			return nil, err
		}
		k.say("job %s: %s, logs in %s", id, plain.Count(job.Tasks, "task"), job.Dir)
	}
	status, err := job.Follow(k.c.Context(), id, askEvery, func(s slurm.Status) { k.say("job %s: %v", id, s) })
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("job %s goes on: scancel %s ends it, and the same command follows it and collects the answer: %w", id, id, err)
	}
	return status, err
}

func goesOn(s slurm.Status) bool {
	for _, state := range s {
		if !slurm.Ended(state) {
			return true
		}
	}
	return false
}

func (k *cluster) say(format string, a ...any) {
	fmt.Fprintf(k.c.ErrOrStderr(), "rdmasim: "+format+"\n", a...)
}

// meanings are what states of Slurm mean for a sweep.
var meanings = map[string]string{
	"OUT_OF_MEMORY": "it took more memory than its task has: give more with --mem",
	"TIMEOUT":       "it took longer than its task may: give more with --time, or more and smaller tasks with --array-size; what it did is kept",
	"NODE_FAIL":     "its node failed",
	"CANCELLED":     "it was cancelled",
	"DEADLINE":      "its deadline has passed",
	"PREEMPTED":     "it had to give way to another job",
}

// mostTasks bounds the failed tasks that are told one by one.
const mostTasks = 5

// failures says why runs are missing; nil if none are.
func (k *cluster) failures(job *slurm.Job, status slurm.Status, missing []int) error {
	if len(missing) == 0 {
		return nil
	}
	var tasks []int
	for _, i := range missing {
		if t := i % job.Tasks; !slices.Contains(tasks, t) {
			tasks = append(tasks, t)
		}
	}
	slices.Sort(tasks)
	k.why = func(point int) string {
		t := point % job.Tasks
		return fmt.Sprintf("task %d ended as %s", t, ending(status[t], job.LastLines(t, lastLines)))
	}
	for n, t := range tasks {
		if n == mostTasks {
			k.say("%d more tasks have not done all of their runs", len(tasks)-n)
			break
		}
		lines := job.LastLines(t, lastLines)
		k.say("task %d ended as %s\n  %s", t, ending(status[t], lines), strings.ReplaceAll(plain.Text(lines), "\n", "\n  "))
	}
	return &sweep.FailureError{Failed: len(missing), Points: k.sweep.Points()}
}

// lastLines is how much of a task's output is looked at and told.
const lastLines = 8

// ending says how a task ended and what that means. Without control groups Slurm calls a task that
// it killed for its memory FAILED, and only the output says why (slurmstepd's words).
func ending(state, lines string) string {
	if state == "" {
		return "not known to Slurm any more"
	}
	why := meanings[state]
	if why == "" && strings.Contains(lines, "exceeded memory limit") {
		why = meanings["OUT_OF_MEMORY"]
	}
	if why == "" {
		return state
	}
	return state + ": " + why
}

// shardCommand is the argument with which a task of a job array runs its part.
const shardCommand = "sweep-shard"

// sweepShardCommand runs a part of a sweep whose plan is in a file.
func sweepShardCommand() *cobra.Command {
	s := &sweepFlags{}
	c := &cobra.Command{Use: shardCommand + " PLAN", Hidden: true, Args: oneArg("the file of a plan"), RunE: func(c *cobra.Command, args []string) error {
		text, err := input.ReadFile(c.Context(), args[0])
		if err != nil {
			return usagef("%w", err)
		}
		plan := &sweep.Plan{}
		if err := json.Unmarshal(text, plan); err != nil {
			return usagef("%s is not the plan of a sweep: %w", args[0], err)
		}
		if !c.Flags().Changed("jobs") {
			s.jobs = 1
		}
		s.yes = true
		return runSweep(c, plan, s, "", "table")
	}}
	s.flags(c.Flags())
	return c
}
