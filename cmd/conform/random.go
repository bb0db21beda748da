package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/conformance/mutants"
	"github.com/rdmasim/rdmasim/conformance/random"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/workers"
)

type randomOptions struct {
	target   string
	profiles []string
	mutant   string
	programs int
	seed     uint64
	program  string
	shrink   time.Duration
	source   string
	device   string
	port     int
	gidIndex int
	coverage bool
	digest   bool
}

func newRandom() *cobra.Command {
	o := &randomOptions{}
	cmd := &cobra.Command{
		Use:   "random",
		Short: "Draw programs and judge them by a model of verbs, on one target or two",
		Long: "random draws programs of two queue pairs, RC, UC, UD or XRC, with an SRQ or without, that post by ibv_post_send or by\n" +
			"ibv_wr_*, and runs each on one target or two. A model of verbs judges each call, completion, event and byte in memory; it\n" +
			"names the rule that is broken and its source. With two targets random also compares their results. If a program shows a\n" +
			"difference, random searches for a smaller one, and prints it as text, which --program runs again, and as a case in Go.\n" +
			"Targets: the simulator and the hardware (sim,hw), one of them (--target=sim, --target=hw), or with --target=sim two\n" +
			"profiles, or the simulator and a mutant (--mutant).\n" +
			"Exit status: 0 no difference, 1 a difference, or a program that did not end, 2 wrong usage, 130 interrupted.",
		Example: "  conform random --target=sim --programs 1000 --coverage\n  conform random --programs 1000\n" +
			"  conform random --target=sim --profile connectx-4,generic-roce\n" +
			"  conform random --target=sim --mutant long-send-cut --case case.go",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("random takes no %q: flags choose the targets (conform random --help)", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runRandom(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.target, "target", "sim,hw", "sim,hw: compare the two; sim or hw: judge one alone (sim with two profiles or a mutant: compare these)")
	f.StringSliceVar(&o.profiles, "profile", []string{simulator.DefaultProfile}, "`PROFILES` of the simulated device, by name or path of a file that ends in .yaml: one, or two that are compared")
	f.StringVar(&o.mutant, "mutant", "", "compare the simulator with a simulator that breaks this rule (conform mutants --list)")
	f.IntVar(&o.programs, "programs", 200, "number of programs to draw")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all random choices")
	f.StringVar(&o.program, "program", "", "run this program, as it was printed, instead of drawing some")
	f.DurationVar(&o.shrink, "shrink", time.Minute, "time for the search for a smaller program with the same difference")
	f.BoolVar(&o.coverage, "coverage", false, "print which operations met which states of the model")
	f.BoolVar(&o.digest, "digest", false, "print a hash of what the programs did and of the frames that they sent (--target=sim)")
	f.StringVar(&o.source, "case", "", "also write the program that shows a difference to `FILE`, as a case in Go")
	f.StringVar(&o.device, "device", "", "device of the hardware, by its name in ibv_devices (default: the first with an active port)")
	f.IntVar(&o.port, "port", 0, "port of the device (default: the first that is active)")
	f.IntVar(&o.gidIndex, "gid-index", defaultGIDIndex, "index of the GID that connections use (default: RoCE v2 with an IPv4 address)")
	return cmd
}

// sides are the jobs of the two targets, and what they are called.
func (o *randomOptions) sides(ctx context.Context) (jobs []harness.Job, names []string, err error) {
	sims := make([]simProfile, len(o.profiles))
	for i, p := range o.profiles {
		if sims[i], err = readProfile(ctx, p); err != nil {
			return jobs, names, err
		}
	}
	first := harness.Job{Target: "sim", Profile: sims[0].given, ProfileText: sims[0].text, Seed: o.seed}
	jobs, names = []harness.Job{first, first}, []string{"sim " + sims[0].identity(), "sim " + sims[0].identity()}
	hw := o.target == "sim,hw" || o.target == "hw"
	switch {
	case !hw && o.target != "sim":
		return jobs, names, usagef("--target %q: give sim,hw, or sim or hw alone", o.target)
	case !hw && (o.device != "" || o.port != 0 || o.gidIndex != defaultGIDIndex):
		return jobs, names, usagef("--device, --port and --gid-index choose hardware: add --target=sim,hw")
	case hw && checkPort(o.port, o.gidIndex) != nil:
		return jobs, names, checkPort(o.port, o.gidIndex)
	case hw && (o.mutant != "" || len(o.profiles) > 1):
		return jobs, names, usagef("the simulator with one profile is compared with the hardware: --target=sim compares two profiles, or a mutant")
	case hw:
		jobs[1] = harness.Job{Target: "hw", Device: o.device, Port: o.port, GIDIndex: o.gidIndex, Seed: o.seed}
		names[1] = "hw"
		if o.target == "hw" {
			jobs, names = jobs[1:], names[1:]
		}
	case o.mutant != "" && len(o.profiles) > 1:
		return jobs, names, usagef("--mutant %s is compared with the same profile: give one", o.mutant)
	case o.mutant != "":
		if err := mutants.Known(o.mutant); err != nil {
			return jobs, names, err
		}
		jobs[1].Mutant = o.mutant
		names[1] += " with " + o.mutant
	case len(sims) == 2 && sims[0] == sims[1]:
		return jobs, names, usagef("--profile %s is given twice: give two different profiles", o.profiles[0])
	case len(o.profiles) == 2:
		jobs[1].Profile, jobs[1].ProfileText = sims[1].given, sims[1].text
		names[1] = "sim " + sims[1].identity()
	case len(o.profiles) > 2:
		return jobs, names, usagef("%d profiles: give one, which the model judges, or two that are compared", len(o.profiles))
	default:
		jobs, names = jobs[:1], names[:1]
	}
	return jobs, names, nil
}

// runRandom is the command.
func runRandom(cmd *cobra.Command, o *randomOptions) error {
	jobs, names, err := o.sides(cmd.Context())
	if err != nil {
		return err
	}
	if err := input.NamesGiven(cmd.Flags(), "case"); err != nil {
		return usagef("%w", err)
	}
	if f := cmd.Flags().Lookup("program"); f.Changed && o.program == "" {
		return usagef("--program is empty: give the program as it was printed, or leave the flag out, and programs are drawn")
	}
	if o.digest && len(jobs)+len(o.profiles) > 2 || o.digest && o.target != "sim" {
		return usagef("--digest works on a single simulator: give --target=sim and one profile")
	}
	if o.programs < 1 || o.shrink < 0 {
		return usagef("--programs %d, --shrink %v: at least one program and no time below 0 are needed", o.programs, o.shrink)
	}
	var given []random.Program
	if o.program != "" {
		if given, err = random.Parse([]byte(o.program)); err != nil {
			return usagef("--program: %w", err)
		}
	}
	var file *outfile.File
	if o.source != "" {
		if file, err = create(cmd.Context(), o.source); err != nil {
			return err
		}
		defer file.Abort() // where there was nothing to write
	}
	var sides []random.Side
	var has random.Has
	for i, job := range jobs {
		side, own, end, err := startSide(cmd, job, len(jobs) > 1, o.digest)
		if err != nil && cmd.Context().Err() != nil {
			return errNoDifference
		} else if err != nil {
			return err
		}
		defer end()
		if has = has.And(own); i == 0 {
			has = own
		}
		sides = append(sides, side)
	}
	digest := &random.Digest{Side: sides[0]}
	if o.digest {
		sides[0] = digest
	}
	var cover model.Coverage
	f, err := search(o, sides, given, has, &cover)
	if o.coverage {
		fmt.Fprint(cmd.OutOrStdout(), &cover)
	}
	if o.digest {
		fmt.Fprintln(cmd.OutOrStdout(), "digest: "+digest.Sum())
	}
	interrupted := cmd.Context().Err() != nil
	switch {
	case f != nil && (interrupted || err != nil): // what was found is told, whatever ended the search for a smaller program
		why, code := err, exitFailed
		if interrupted {
			why, code = errors.New("interrupted"), exitInterrupted
		}
		return &status{code, errors.Join(o.report(cmd, f, names, file), fmt.Errorf("the search for a smaller program did not end: %w", why))}
	case interrupted:
		return errNoDifference
	case err != nil:
		return &status{exitFailed, err}
	case f == nil && given != nil:
		fmt.Fprintf(cmd.OutOrStdout(), "ok: the program %s\n", agrees("does", names))
		return nil
	case f == nil:
		fmt.Fprintf(cmd.OutOrStdout(), "ok: %d programs %s, seed %d\n", o.programs, agrees("do", names), o.seed)
		return nil
	}
	return o.report(cmd, f, names, file)
}

// agrees says that programs do what the model allows, and the same on two targets.
func agrees(do string, names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("%s what the model allows on %s", do, names[0])
	}
	return fmt.Sprintf("%s the same, and what the model allows, on %s and %s", do, names[0], names[1])
}

var errNoDifference = &status{exitInterrupted, errors.New("interrupted before a difference was found")}

// startSide makes a target ready and returns what it has: the simulator in this process, and in one
// of their own what may end its process, or has another simulator.
func startSide(cmd *cobra.Command, job harness.Job, text, digest bool) (random.Side, random.Has, func() error, error) {
	if job.Target != "sim" || job.Mutant != "" {
		s := &process{ctx: cmd.Context(), job: job, alone: !text, stderr: cmd.ErrOrStderr()}
		err := s.start()
		return s, s.has, s.end, err
	}
	target, err := makeTarget(job)
	if err != nil {
		return nil, random.Has{}, nil, usagef("target %s: %w", job.Target, err)
	}
	debug.SetGCPercent(400) // a heap that is small is not worth the time
	l := &random.Local{Target: target, Seed: job.Seed, Text: text || digest, Tap: digest, Ended: cmd.Context().Err}
	has, err := l.Has()
	return l, has, func() error { return nil }, err
}

func search(o *randomOptions, sides []random.Side, given []random.Program, has random.Has, cover *model.Coverage) (*random.Finding, error) {
	if given == nil {
		return random.Search(sides, has, o.programs, o.seed, o.shrink, cover)
	}
	at, d, err := random.Judge(given, sides, cover)
	if err != nil || d == nil {
		return nil, err
	}
	return &random.Finding{Programs: given[:at+1], Difference: *d}, nil
}

// report prints a difference.
func (o *randomOptions) report(cmd *cobra.Command, f *random.Finding, names []string, file *outfile.File) error {
	d, source := &f.Difference, f.Source("random")
	out := cmd.OutOrStdout()
	what := fmt.Sprintf("%s leaves the model", names[d.Side])
	if d.Violation != nil {
		fmt.Fprintf(out, "%s. %s\n\n", what, d.Violation)
	} else {
		what = fmt.Sprintf("%s and %s differ", names[0], names[1])
		fmt.Fprintf(out, "The targets differ. %s, line %d:\n  %s: %s\n  %s: %s\n\n", d.Stream, d.Line, names[0], d.Sides[0], names[1], d.Sides[1])
	}
	fmt.Fprintf(out, "The program, which --program runs again:\n\n%s\n\nThe program as a case to add, in which each observation is to become the check that is right:\n\n%s\n", f.Text(), source)
	if file != nil {
		if err := file.Commit(func(w io.Writer) error { _, err := io.WriteString(w, source); return err }); err != nil {
			return &status{exitFailed, err}
		}
	}
	after := ""
	if f.Tried > 0 {
		after = fmt.Sprintf(" after %d programs", f.Tried)
	}
	return &status{exitFailed, fmt.Errorf("%s%s, seed %d", what, after, o.seed)}
}

// process is a side in a process of its own, since the hardware may end it.
type process struct {
	ctx    context.Context
	job    harness.Job
	stderr io.Writer

	*workers.Process // nil: none runs
	out              *bufio.Reader
	has              random.Has
	alone            bool // nobody compares its outcomes
}

// start begins a process, which says what the target has.
func (s *process) start() error {
	program, err := workerCommand(s.job.Target)
	if s.job.Mutant != "" {
		program, err = mutants.Program(s.ctx, s.stderr)
	}
	if err != nil {
		return err
	}
	args := []string{randomWorker}
	if s.alone {
		args = append(args, "alone")
	}
	cmd := exec.CommandContext(s.ctx, program, args...)
	cmd.Stderr, cmd.Env = s.stderr, workerEnv(s.job.Target)
	out, err := cmd.StdoutPipe()
	if err == nil {
		s.Process, err = workers.Start(cmd, workers.NewHead(0), false)
	}
	if err != nil {
		return fmt.Errorf("start the worker of target %s: %w", s.job.Target, err)
	}
	s.out = bufio.NewReader(out)
	if err := s.Send(s.job); err != nil {
		return s.died(err)
	}
	h, err := workers.Next[random.Hello](s.out, workers.MaxMessage)
	if err != nil {
		return s.died(err)
	}
	if h.Error != "" {
		s.end()
		return usagef("target %s: %s", s.job.Target, h.Error)
	}
	s.has = h.Has
	return nil
}

// Run implements random.Side.
func (s *process) Run(list []random.Program) ([]*random.Outcome, error) {
	if s.Process == nil {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	if err := s.Send(list); err != nil {
		s.end() // it had its last program before, and another goes on
		if err := s.start(); err != nil {
			return nil, err
		}
		if err := s.Send(list); err != nil {
			return nil, s.died(err)
		}
	}
	a, err := workers.Next[random.Answer](s.out, workers.MaxMessage)
	if err != nil {
		return nil, s.died(err)
	}
	if a.Last {
		s.end()
	}
	if a.Failed != "" {
		err = errors.New(a.Failed)
	}
	return a.Outcomes, err
}

// died ends the process and says how it ended.
func (s *process) died(err error) error {
	if end := s.end(); end != nil && errors.Is(err, io.EOF) {
		err = end
	}
	return fmt.Errorf("the worker of target %s ended: %w", s.job.Target, err)
}

func (s *process) end() error {
	if s.Process == nil {
		return nil
	}
	_ = s.In.Close()
	err := s.Wait()
	s.Process = nil
	return err
}

// randomWorker is the hidden command of the processes.
const randomWorker = "random-worker"

func newRandomWorker() *cobra.Command {
	return &cobra.Command{Use: randomWorker, Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in := bufio.NewReader(os.Stdin)
			text, err := in.ReadBytes('\n')
			if err != nil {
				return fmt.Errorf("job: %w", err)
			}
			var job harness.Job
			if err := json.Unmarshal(text, &job); err != nil {
				return fmt.Errorf("job: %w", err)
			}
			target, err := makeTarget(job)
			if err != nil {
				return json.NewEncoder(os.Stdout).Encode(random.Hello{Error: err.Error()})
			}
			return random.Serve(in, os.Stdout, target, job.Seed, len(args) == 0)
		}}
}
