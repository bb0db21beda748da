package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/record"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// perfFlags are the flags of this program, which stand among those of perftest. They are not
// abbreviated, so that the abbreviations of perftest's flags mean what they mean there.
type perfFlags struct {
	target, profile, pcap, compare string
	set                            []string
	seed                           uint64
	both, explain                  bool
}

const perfUsage = `Flags of rdmasim, which cannot be abbreviated:
  --target=<sim|hw>                   on the simulator, both ends (default), or on a device of this machine, one end
  --both                              also print what the server prints, behind the client's output
  --explain                           also print each step of both ends, with its time and the verbs it called
  --compare=<file>                    print the results beside those of a stored output or JSON of perftest
  --profile=<name|file.yaml>          device and host of the simulator (default ` + profile.Default + `)
  --set=<key=value>                   change a value of the profile; may be repeated
  --seed=<n>                          seed of all random choices of the simulator (default 1)
  --pcap=<file>                       write the frames of the simulator to a pcapng file
`

func perfCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "perf TEST [flags] [HOST]",
		Short: "Measure as ib_write_bw and its relatives do, with their flags and output",
		Long: `Does what the programs of linux-rdma/perftest do, with their flags, output and arithmetic:
` + strings.Join(perf.Programs(), ", ") + `.
On the simulator one command runs both ends, and times are virtual. With --target=hw it is
one end on a device of this machine, whose peer may be a real ib_write_bw.
rdmasim perf TEST --help lists the flags of a test.

` + perfUsage,
		Example: `  rdmasim perf write_bw -a --report_gbits
  rdmasim perf write_lat -n 200 --explain
  rdmasim perf send_bw -c UD -s 1024 -q 4 --both
  rdmasim perf write_bw --target=hw -d mlx5_0 server`,
		DisableFlagParsing: true,
		RunE:               func(c *cobra.Command, args []string) error { return runPerf(c, args) },
	}
}

// split takes this program's flags out of a command line.
func (f *perfFlags) split(args []string) (rest []string, err error) {
	f.target, f.profile, f.seed = "sim", profile.Default, 1
	values := map[string]*string{"target": &f.target, "profile": &f.profile, "pcap": &f.pcap, "compare": &f.compare}
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		switch {
		case args[i] == "--":
			return append(rest, args[i:]...), nil
		case !strings.HasPrefix(args[i], "--"):
			rest = append(rest, args[i])
			continue
		case args[i] == "--both":
			f.both = true
			continue
		case args[i] == "--explain":
			f.explain = true
			continue
		case values[name] == nil && name != "set" && name != "seed":
			rest = append(rest, args[i])
			continue
		case !given:
			if i++; i == len(args) {
				return nil, fmt.Errorf("--%s needs a value", name)
			}
			value = args[i]
		}
		switch {
		case value == "":
			return nil, fmt.Errorf("--%s needs a value", name)
		case name == "set":
			f.set = append(f.set, value)
		case name == "seed":
			if f.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				return nil, fmt.Errorf("--seed %q is not a whole number", value)
			}
		default:
			*values[name] = value
		}
	}
	return rest, nil
}

// onlySim names a flag that is given and belongs to the simulator.
func (f *perfFlags) onlySim() string {
	switch {
	case f.profile != profile.Default:
		return "--profile"
	case len(f.set) > 0:
		return "--set"
	case f.seed != 1:
		return "--seed"
	case f.pcap != "":
		return "--pcap"
	case f.both:
		return "--both"
	}
	return ""
}

func runPerf(c *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		return c.Help()
	}
	test, err := perf.ParseTest(args[0])
	if err != nil {
		return usagef("perf: %w%s", err, input.Suggest(strings.TrimPrefix(args[0], "ib_"), perf.Programs()))
	}
	var f perfFlags
	rest, err := f.split(args[1:])
	if err != nil {
		return usagef("perf: %w", err)
	}
	if f.target != "sim" && f.target != "hw" {
		return usagef("perf: --target %q is neither sim nor hw", f.target)
	}
	o, err := parsePerf(c, "perf", test, args[0], rest, perfUsage)
	if o == nil {
		return err
	}
	stored, err := openComparison(c.Context(), &f, o)
	if err != nil {
		return err
	}
	if f.target == "hw" {
		if flag := f.onlySim(); flag != "" {
			return usagef("perf: %s works on the simulator only: leave it out with --target=hw", flag)
		}
		return perfOnDevice(c, &f, o, stored)
	}
	return perfOnSimulator(c, &f, o, stored)
}

// parsePerf reads the flags of a program of perftest for a command. Without options there was help
// instead, to which more is added, or there is an error.
func parsePerf(c *cobra.Command, command string, test perf.Test, program string, args []string, more string) (*perf.Options, error) {
	o, err := perf.Parse(test, program, args)
	var refusal *perf.Refusal
	var help *perf.Help
	switch {
	case errors.As(err, &help):
		fmt.Fprint(c.OutOrStdout(), help.Text)
		if strings.HasPrefix(help.Text, "Usage") && more != "" {
			fmt.Fprint(c.OutOrStdout(), "\n"+more)
		}
		return nil, nil
	case errors.As(err, &refusal):
		fmt.Fprint(c.OutOrStdout(), refusal.Out)
		fmt.Fprint(c.ErrOrStderr(), refusal.Err)
		return nil, programStatus(exitUsage)
	case err != nil:
		return nil, usagef("%s: %w", command, err)
	}
	for _, n := range o.Notes {
		note(c, command)(n)
	}
	return o, nil
}

// note prints notes of a command.
func note(c *cobra.Command, command string) func(string) {
	return func(text string) { fmt.Fprintf(c.ErrOrStderr(), "rdmasim %s: note: %s\n", command, text) }
}

// perfNote prints notes.
func perfNote(c *cobra.Command) func(string) { return note(c, "perf") }

// mostSimulated is less than the range of the simulator's clock (sim.Time), 106 days.
const mostSimulated = 100 * 24 * time.Hour

// perfOnSimulator runs both ends in one simulation.
func perfOnSimulator(c *cobra.Command, f *perfFlags, client *perf.Options, stored *comparison) (err error) {
	if t := time.Duration(client.Duration)*time.Second + client.WaitEnd; client.Method != perf.Infinite && t > mostSimulated {
		return usagef("perf: -D and --wait_destroy are %v, and the simulator's clock reaches %v", t, mostSimulated)
	}
	p, err := profile.Load(f.profile)
	if err != nil {
		return &experiment.UsageError{Err: err}
	}
	p = p.Clone()
	if err := withPeerMemory(c, f, client, p); err != nil {
		return err
	}
	if err := setProfile(p, "perf", f.set); err != nil {
		return err
	}
	noteTiming(c, "perf", p)
	if client.Host == "" {
		client = client.Client()
	}
	if err := outfile.Distinct([]outfile.Named{{Flag: "--pcap", Path: f.pcap}, {Flag: "--out_json_file", Path: jsonFile(client)}}, []outfile.Named{{Flag: "--compare", Path: f.compare}}); err != nil {
		return usagef("perf: %w", err)
	}
	cfg := testbed.Default(p)
	cfg.Seed, cfg.NoTap = f.seed, true
	report, err := openPerfReport(c, client)
	if err != nil {
		return err
	}
	defer func() { err = withLoss(c, err, report.finish()) }()
	interrupted := ended(c, client)
	if client.Method != perf.Infinite { // which ends in good order
		cfg.Interrupt = interrupted
	}
	var frames *outfile.File
	if f.pcap != "" {
		if frames, err = outfile.Create(c.Context(), f.pcap); err != nil {
			if errors.Is(err, outfile.ErrInterrupted) {
				return fmt.Errorf("perf: --pcap: %w", err)
			}
			return usagef("perf: --pcap: %w", err)
		}
		defer frames.Abort()
		cfg.Pcap = frames
	}
	tb, err := testbed.New(cfg)
	if err != nil {
		return err
	}
	defer func() {
		if frames == nil {
			err = errors.Join(err, tb.Close())
			return
		}
		err = withLoss(c, err, frames.Commit(func(io.Writer) error { return tb.Close() })) // also of a test that failed or was interrupted
	}()
	e := &perfEnds{f: f, timing: p.Timing(), interrupted: interrupted, report: report, out: stored.tee(c.OutOrStdout())}
	return e.run(c, tb, client, stored)
}

// setProfile changes values of a profile, as --set says.
func setProfile(p *profile.Profile, command string, set []string) error {
	for _, s := range set {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return usagef("%s: --set %q is not of the form key=value", command, s)
		}
		if err := p.Set(key, value); err != nil {
			return usagef("%s: --set %s: %w", command, s, err)
		}
	}
	if err := p.Validate(); err != nil {
		return usagef("%s: --set: %w", command, err)
	}
	return nil
}

// withLoss adds to the end of a test that an output is lost. The end decides the status, and may be
// nothing but that number.
func withLoss(c *cobra.Command, end, lost error) error {
	if end == nil || lost == nil {
		return errors.Join(end, lost)
	}
	fmt.Fprintln(c.ErrOrStderr(), "rdmasim perf:", plain.Message(lost.Error()))
	return end
}

func jsonFile(o *perf.Options) string {
	if o.JSON {
		return o.JSONFile
	}
	return ""
}

// perfEnds are both ends of a simulated test.
type perfEnds struct {
	f              *perfFlags
	report         *perfReport
	interrupted    func() bool
	out            io.Writer // the client's
	server, errors bytes.Buffer
	use            perfUse
	timing         []string // what Timing of the profile says
}

// noteRNR says that senders have waited since no receive was posted: how much of a test that takes
// depends on its length.
func (e *perfEnds) noteRNR(c *cobra.Command, tb *testbed.Testbed) {
	waits := uint64(0)
	for _, r := range tb.Counters() {
		if r.Name == "rnr_naks_sent" {
			waits += r.Value
		}
	}
	if waits > 0 {
		perfNote(c)(fmt.Sprintf("messages met no receive %d times, and the sender waited for the RNR timer (0.64 ms in perftest). These waits are in the rates, and what they cost depends on the length of the test: compare one with ten times as many messages (-n).", waits))
	}
}

func (e *perfEnds) run(c *cobra.Command, tb *testbed.Testbed, client *perf.Options, stored *comparison) error {
	envs := [2]*perf.Env{
		{Out: e.out, Err: c.ErrOrStderr(), Interrupted: e.interrupted, Random: random(e.f.seed, 1), WriteJSON: e.report.write, Note: perfNote(c)},
		{Out: &e.server, Err: &e.errors, Random: random(e.f.seed, 2), Note: perfNote(c)},
	}
	var bed verbs.Testbed = tb
	if e.f.explain {
		r := record.New(tb)
		r.CountOnly()
		bed = r
		for i, name := range []string{"client", "server"} {
			envs[i].Steps = &perf.Steps{}
			envs[i].Steps.Parsed()
			envs[i].Calls = counts(r, name)
		}
		envs[0].Measuring = e.use.watch(tb)
	}
	var failure error
	err := tb.Run(0, func(t verbs.Thread) {
		if r, ok := bed.(*record.Testbed); ok {
			t = r.Thread(t)
		}
		failure = perf.Both(t, bed, client, envs[0], envs[1])
	})
	switch {
	case errors.Is(err, sim.ErrInterrupted):
		return fmt.Errorf("perf: %w", outfile.ErrInterrupted)
	case err != nil:
		return fmt.Errorf("perf: %w", err)
	}
	if e.f.both {
		fmt.Fprintf(c.OutOrStdout(), "\nThe server:\n%s", e.server.String())
		fmt.Fprint(c.ErrOrStderr(), e.errors.String())
	}
	if e.f.explain {
		for i, name := range []string{"client", "server"} {
			if err := envs[i].Steps.Write(c.OutOrStdout(), name); err != nil {
				return err
			}
		}
	}
	if failure != nil && c.Context().Err() != nil {
		return fmt.Errorf("perf: %w: %w", outfile.ErrInterrupted, failure)
	}
	if failure != nil {
		return perfFailed(c, "perf", failure)
	}
	if err := e.use.write(c.OutOrStdout()); err != nil {
		return err
	}
	e.noteRNR(c, tb)
	return stored.print(c.OutOrStdout(), strings.Join(append([]string{"simulator " + e.f.profile}, e.timing...), ", "))
}

// perfFailed prints perftest's words for what went wrong, and then which step failed, why, and what
// to try.
func perfFailed(c *cobra.Command, command string, err error) error {
	var f *perf.Failure
	ends := []error{err}
	if errors.As(err, &f) {
		ends = f.Unwrap()
		slices.SortStableFunc(ends, func(a, b error) int { // the end that has only seen the other end says nothing new
			return map[bool]int{true: 1}[errors.Is(a, io.EOF)] - map[bool]int{true: 1}[errors.Is(b, io.EOF)]
		})
	}
	var s *perf.StepError
	if errors.As(ends[0], &s) {
		fmt.Fprint(c.ErrOrStderr(), s.Words)
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(c.ErrOrStderr(), "rdmasim %s: %s\n", command, plain.Message(strings.TrimSuffix(line, "\n")))
	}
	return programStatus(exitFailure)
}

// counts gives the verbs calls of the thread of an end since it was called last.
func counts(r *record.Testbed, thread string) func() []perf.CallCount {
	return func() (all []perf.CallCount) {
		for _, x := range r.TakeCounts(thread) {
			all = append(all, perf.CallCount{Name: x.Name, N: x.N})
		}
		return all
	}
}

// random draws for an end of a simulated test.
func random(seed, end uint64) func() uint32 {
	r := rand.New(rand.NewPCG(seed, end))
	return r.Uint32
}
