package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep"
	"github.com/rdmasim/rdmasim/experiment/sweep/shard"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/internal/cli/rlimit"
)

// storeVariable names the store where --store does not.
const storeVariable = "RDMASIM_STORE"

// noStore is the value of --store and the variable that keeps nothing.
const noStore = "none"

// sweepFlags are the flags of run that say what is swept, and how.
type sweepFlags struct {
	sweep.Flags
	reviews
	jobs           int
	memory, worker uint64
	wall           time.Duration
	store          string
	shard          string
	yes            bool
	slurm          slurmFlags
}

// only are the flags that mean something only with a sweep.
var only = []string{"jobs", "memory", "worker-memory", "wall-limit", "store", "shard", "yes", "slurm", "partition", "time", "mem", "array-size", "program"}

func (s *sweepFlags) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.Sweep, "sweep", nil, "run for each value: `key=v1,v2,...`, key=LOW:HIGH:STEP, key=LOW..HIGH+STEP, key=LOW..HIGH*FACTOR, key=@FILE, or key,key=a:b,c:d for keys that change together; \"a,b\" is one value; several sweeps give every combination")
	f.IntVar(&s.Seeds, "seeds", 0, "run each point with `N` seeds, from --seed up, and give means with 95 % confidence intervals")
	f.StringVar(&s.Sample, "sample", "", "run a sample of the grid instead of all points: `N` points of a Latin hypercube, or random:N")
	f.IntVarP(&s.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "worker processes of a sweep")
	input.SizeVar(f, &s.memory, "memory", 0, "memory that all workers of a sweep may take (default: four fifths of what is free)")
	input.SizeVar(f, &s.worker, "worker-memory", 0, "memory that one worker may take (default: its part of --memory)")
	f.DurationVar(&s.wall, "wall-limit", 30*time.Minute, "real time that one run of a sweep may take before it is given up")
	f.StringVar(&s.store, "store", "", "`DIR` that keeps the result of each run of a sweep, so that none is run twice; none: keep nothing (default: $"+storeVariable+", or rdmasim/results in the user's cache folder)")
	f.StringVar(&s.shard, "shard", "", "run one part of a sweep into the store: `i/n` with i from 0, auto/n or auto (of a Slurm array or a Kubernetes indexed job); the command without it then prints the answer")
	f.BoolVar(&s.yes, "yes", false, fmt.Sprintf("start a sweep of more than %d runs", sweep.ManyPoints))
	s.slurm.flags(f)
}

// seedsGiven refuses a number of seeds that is none.
func (s *sweepFlags) seedsGiven(f *pflag.FlagSet) error {
	if f.Changed("seeds") && s.Seeds < 1 {
		return usagef("--seeds %d: a number of seeds from 1 to %d is needed", s.Seeds, sweep.MostSeeds)
	}
	return nil
}

// none refuses flags that need a sweep.
func (s *sweepFlags) none(f *pflag.FlagSet) error {
	for _, name := range only {
		if f.Changed(name) {
			return usagef("--%s is for sweeps: add --sweep key=v1,v2,... or --seeds N, or leave it out", name)
		}
	}
	return nil
}

func usagef(format string, args ...any) error {
	return &experiment.UsageError{Err: fmt.Errorf(format, args...)}
}

// options are how the sweep is carried out.
func (s *sweepFlags) options(c *cobra.Command) (*sweep.Options, error) {
	if s.jobs < 1 || s.jobs > 4096 {
		return nil, usagef("-j %d: a number of workers from 1 to 4096 is needed", s.jobs)
	}
	if s.wall <= 0 {
		return nil, usagef("--wall-limit %v: a time above zero is needed, such as 30m", s.wall)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := &sweep.Options{Workers: s.jobs, Wall: s.wall, Command: func() *exec.Cmd { return exec.Command(self, sweep.WorkerCommand) }}
	if err := s.share(o, c.ErrOrStderr()); err != nil {
		return nil, err
	}
	if s.shard != "" {
		if o.Shard, o.Shards, err = shard.Parse(s.shard, os.Getenv); err != nil {
			return nil, usagef("--shard %s: %w", s.shard, err)
		}
	}
	o.Failed = func(l sweep.Failure) { fmt.Fprintln(c.ErrOrStderr(), "rdmasim: lost:", plain.Message(l.Error())) }
	return o, nil
}

// leastMemory is what a worker needs for a small run.
const leastMemory = 256 << 20

// share divides the memory among the workers, and makes them fewer if it is little.
func (s *sweepFlags) share(o *sweep.Options, stderr io.Writer) error {
	total := s.memory
	if total != 0 && total < leastMemory/4 {
		return usagef("--memory %s: a worker needs %s", input.FormatSize(total), input.FormatSize(leastMemory/4))
	}
	if total == 0 {
		total = rlimit.Available(os.DirFS("/")) / 5 * 4
	}
	each := cmp.Or(s.worker, max(total/uint64(o.Workers), leastMemory))
	if each < leastMemory/4 {
		return usagef("--worker-memory %s: a worker needs %s", input.FormatSize(each), input.FormatSize(leastMemory/4))
	}
	if fit := int(min(max(total/each, 1), 4096)); fit < o.Workers {
		fmt.Fprintf(stderr, "rdmasim: %s instead of %d: each may take %s, and all together %s\n", plain.Count(fit, "worker"), o.Workers, input.FormatSize(each), input.FormatSize(total>>20<<20))
		o.Workers = fit
	}
	o.Memory = each
	return nil
}

// openStore opens the folder that keeps results. What it returns removes a temporary one.
func (s *sweepFlags) openStore(model string, stderr io.Writer) (*store.Store, func(), error) {
	dir := cmp.Or(s.store, os.Getenv(storeVariable))
	given := dir != ""
	if !given {
		if cache, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(cache, "rdmasim", "results")
		}
	}
	if dir != "" && dir != noStore {
		st, err := store.Open(dir, model)
		if err == nil {
			return st, func() {}, nil
		}
		if given {
			return nil, nil, usagef("--store: %w", err)
		}
		fmt.Fprintf(stderr, "rdmasim: results are not kept: %v\n", err)
	}
	if s.shard != "" || s.slurm.mode != "" {
		return nil, nil, usagef("a shard leaves its results in a store: give one with --store")
	}
	tmp, err := outfile.TempDir("rdmasim-sweep")
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Open(filepath.Join(tmp.Path, "results"), model)
	return st, func() { _ = tmp.Remove() }, err
}

// runSweep runs a sweep and writes its answer.
func runSweep(c *cobra.Command, plan *sweep.Plan, s *sweepFlags, out, format string) error {
	if plan.Request.Trace != "" {
		return usagef("--trace records a single run: leave out --sweep and --seeds")
	}
	if s.shard != "" && (out != "" || c.Flags().Changed("format") || len(s.require) > 0 || s.html+s.markdown+s.against != "") {
		return usagef("--shard leaves its results in the store: the command without it writes the answer, with -o, --format, --require, --against, --html and --markdown")
	}
	if err := s.slurm.check(c.Flags()); err != nil {
		return err
	}
	recorded := plan.Request.Pcap != ""
	if recorded {
		if err := s.recorded(c.Flags()); err != nil {
			return err
		}
	} else {
		keepMemorySmall(sweep.SupervisorMemory)
	}
	sw, err := plan.Prepare()
	if err != nil {
		return err
	}
	o, err := s.options(c)
	if err != nil {
		return err
	}
	st, remove, err := s.openStore(sw.Model(), c.ErrOrStderr())
	if err != nil {
		return err
	}
	defer remove()
	o.Store = st
	if recorded && sw.Points() > sweep.ManyPoints {
		return usagef("--pcap records at most %d runs, and the sweep makes %d: give fewer values", sweep.ManyPoints, sw.Points())
	}
	if sw.Points() > sweep.ManyPoints && !s.yes {
		return usagef("the sweep makes %s: --yes starts it, --sample N takes some of the points", sw.Estimate(c.Context(), o, 20*time.Second))
	}
	if s.slurm.mode != "" {
		answer, err := s.slurm.run(c, sw, plan, o, s.worker)
		if answer == nil {
			return err
		}
		return s.writeAnswer(c, answer, out, format, err)
	}
	var ended func()
	o.Progress, ended = sweepProgress()
	answer, outcome, err := sw.Run(c.Context(), o)
	ended()
	if s.shard != "" {
		fmt.Fprintf(c.OutOrStdout(), "shard %d/%d: %d known, %d run, %d lost\n", o.Shard, o.Shards, outcome.Cached, outcome.Ran, outcome.Failed)
		return errors.Join(err, outcome.Err())
	}
	if answer == nil {
		return err
	}
	return s.writeAnswer(c, answer, out, format, errors.Join(err, outcome.Err()))
}

// recorded prepares a sweep that one process runs into one capture.
func (s *sweepFlags) recorded(f *pflag.FlagSet) error {
	for _, name := range only {
		if f.Changed(name) {
			return usagef("--pcap records a sweep in one process, which keeps no results: leave out --%s", name)
		}
	}
	s.store, s.jobs = noStore, 1
	return nil
}

// writeAnswer writes the answer; err is what ended the runs.
func (s *sweepFlags) writeAnswer(c *cobra.Command, answer *sweep.Answer, out, format string, err error) error {
	if s.old != nil && !answer.Whole || len(s.require) > 0 && !answer.Whole {
		err = errors.Join(err, usagef("--require and --against look at answers that fit into a table, and this one has too many rows: give fewer points"))
	} else {
		err = s.judged(answer.Result, answer, err)
	}
	s.depends(answer.Result, answer)
	err = errors.Join(err, answer.Write(c.OutOrStdout(), format))
	notesBeside(c, answer.Result.Notes, format)
	if out != "" {
		names, lost := answer.WriteFolder(c.Context(), out)
		wrote(c, out, names)
		if lost != nil {
			err = errors.Join(lost, err)
		}
	}
	return errors.Join(s.reviews.write(c, answer.Result, answer), err)
}

// notesBeside says what formats that have rows only leave out.
func notesBeside(c *cobra.Command, notes []string, format string) {
	if format == "table" || format == "json" {
		return
	}
	for _, n := range notes {
		fmt.Fprintln(c.ErrOrStderr(), n)
	}
}

// sweepProgress draws a bar with the rate of points and the time that is left, if standard error is
// a terminal.
func sweepProgress() (progress func(done, total, known int), end func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, func() {}
	}
	var bar *progressbar.ProgressBar
	return func(done, total, known int) {
			if bar == nil {
				bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30),
					progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("runs"), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond))
			}
			if known > 0 {
				bar.Describe(fmt.Sprintf("%d known", known))
			}
			_ = bar.Set(done)
		}, func() {
			if bar != nil {
				_ = bar.Finish()
			}
		}
}

// sweepWorkerCommand is the program as a worker of a sweep.
func sweepWorkerCommand() *cobra.Command {
	return &cobra.Command{Use: sweep.WorkerCommand, Hidden: true, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return sweep.Work(context.WithoutCancel(c.Context()), os.Stdin, os.Stdout)
	}}
}
