package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/calibrate"
	"github.com/rdmasim/rdmasim/experiment/studies"
	"github.com/rdmasim/rdmasim/experiment/sweep"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// checkFormat refuses a format that is none; more are those of this command beside the usual ones.
func checkFormat(format string, more ...string) error {
	formats := append(slices.Clone(experiment.Formats), more...)
	if slices.Contains(formats, format) {
		return nil
	}
	return &experiment.UsageError{Err: fmt.Errorf("--format %q is not one of %s%s", format, strings.Join(formats, ", "), input.Suggest(format, formats))}
}

// profileHelp is the help of flags that take a profile for a run.
const profileHelp = "device and host profile: a name from rdmasim profile list, or the path of your own file, which ends in .yaml"

func runCommand() *cobra.Command {
	var req experiment.Request
	var out, format string
	s := &sweepFlags{}
	var sensitivity, stored bool
	c := &cobra.Command{
		Use:   "run NAME|FILE.yaml",
		Short: "Run an experiment or a scenario",
		Long: `Runs an experiment by its name, a scenario of your own by the path of its file, or a
scenario that comes with the program by the name of its file. rdmasim list shows them.`,
		Args: oneArg("the name of an experiment or a scenario file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormat(format, "jsonl"); err != nil {
				return err
			}
			if err := input.NamesGiven(c.Flags(), "output", "pcap", "trace", "fault", "store", "sample", "shard"); err != nil {
				return &experiment.UsageError{Err: err}
			}
			if err := s.reviews.check(c.Flags()); err != nil {
				return err
			}
			req.Version = experiment.Version()
			if err := s.reviews.read(); err != nil {
				return err
			}
			x, err := studies.Open(c.Context(), args[0])
			if err != nil {
				return err
			}
			if stored {
				if !sensitivity || out != "" || s.html+s.markdown+s.against != "" || len(s.Sweep) > 0 || req.Profile != "" || c.Flags().Changed("seed") {
					return &experiment.UsageError{Err: errStoredSensitivity}
				}
				rep, err := calibrate.StoredSensitivity(x.Name, req.Set)
				if err != nil {
					return err
				}
				return errors.Join(rep.Write(c.OutOrStdout(), format), rep.Current())
			}
			if err := distinctFiles(args[0], x, out, &req, &s.reviews); err != nil {
				return err
			}
			if err := checkOutputs(c.Context(), x, out, &req, s.reviews.outputs()); err != nil {
				return err
			}
			if req.Fault != "" {
				if req.FaultText, err = input.ReadFile(c.Context(), req.Fault); err != nil {
					return usagef("--fault: %w", err)
				}
			}
			if err := s.reviews.prepare(c.Context(), args[0], x, &req); err != nil {
				return err
			}
			if err := s.seedsGiven(c.Flags()); err != nil {
				return err
			}
			plan, err := sweep.NewPlan(c.Context(), args[0], x, req, s.Flags)
			if err != nil {
				return err
			}
			if plan != nil && req.Confirm {
				return &experiment.UsageError{Err: errConfirmAlone}
			}
			if plan != nil && (req.Every != 0 || req.Histogram) {
				return &experiment.UsageError{Err: errSamplesAlone}
			}
			switch {
			case plan != nil && sensitivity:
				err = usagef("--sensitivity works on one setting: drop --sweep and --seeds")
			case plan == nil:
				err = s.none(c.Flags())
				if sensitivity && err == nil {
					err = calibrate.CheckSensitivity(&req)
				}
			default:
				return runSweep(c, plan, s, out, format)
			}
			if err != nil {
				return err
			}
			res, err := x.Execute(c.Context(), req, progress())
			if res == nil || err != nil && !errors.Is(err, experiment.ErrInterrupted) && len(res.Rows) == 0 {
				return err
			}
			if sensitivity && err == nil {
				if res.Sensitivity, err = calibrate.FindSensitivity(c.Context(), x, req, progress()); err == nil {
					res.Note("%s", res.Sensitivity.Summary())
				}
			}
			err = s.judged(res, nil, err)
			s.depends(res, nil)
			return withReports(writeResult(c, res, req, out, format, err), s.reviews.write(c, res, nil))
		},
	}
	c.ValidArgsFunction = runnable
	f := c.Flags()
	f.StringArrayVar(&req.Set, "set", nil, "set a value of the experiment, the scenario or the profile, as `key=value`; may be repeated")
	f.StringVar(&req.Profile, "profile", "", profileHelp+" (default: the experiment's own)")
	f.Uint64Var(&req.Seed, "seed", 1, "seed of all random choices")
	f.StringVarP(&out, "output", "o", "", "write the results to this `DIR` as JSON, CSV, SVG and PNG files")
	f.StringVar(&format, "format", "table", "format of the output: table, json, csv or jsonl")
	f.StringVar(&req.Pcap, "pcap", "", "write the frames of the run to this pcapng `FILE`, with virtual time in nanoseconds")
	f.StringVar(&req.Trace, "trace", "", "write a timeline to this `FILE` (Trace Event JSON, for Perfetto)")
	f.StringVar(&req.Fault, "fault", "", "inject the faults of this YAML `FILE`, on frames, links, devices, processes and memory (docs/wire.md)")
	f.BoolVar(&sensitivity, "sensitivity", false, "also run with each assumed or fitted value at its bounds, and report whether the conclusion holds (many runs: a minute of CPU time and more)")
	f.BoolVar(&stored, "stored", false, "with --sensitivity: print the stored report for these settings, and run nothing")
	f.BoolVar(&req.Counters, "counters", false, "add the counters of hosts, devices and links that changed in a scenario")
	f.BoolVar(&req.Threads, "threads", false, "print a row for each client and each thread of a scenario too; JSON and CSV have them always")
	f.DurationVar(&req.Every, "every", 0, "sample what loads of a scenario deliver, and the queues, drops, marks and pauses of its switch, every `DURATION`, such as 10us, for JSON, CSV and pictures")
	f.BoolVar(&req.Histogram, "histogram", false, "add how long messages and flows of a scenario take, as histograms and cumulative distributions, to JSON, CSV and pictures")
	s.reviews.flags(f)
	f.BoolVar(&req.Lockstep, "lockstep", false, "let the simulated programs yield at every step, as a check of the simulator: the results stay the same")
	f.BoolVar(&req.Confirm, "confirm", false, "repeat the run with more of the limiting resource (column limited_by), such as half the interval of an engine, and report whether the rate rises")
	s.flags(f)
	commands.CompleteWith(c, "set", settings(false))
	commands.CompleteWith(c, "sweep", settings(true))
	return c
}

var errConfirmAlone = errors.New("--confirm works on a single run: drop --sweep and --seeds, or run the points that you doubt one by one")

var errSamplesAlone = errors.New("--every and --histogram work on a single run: drop --sweep and --seeds, or run the points that you want to see one by one")

var errStoredSensitivity = errors.New("--stored prints the sensitivity that comes with the program: give it with --sensitivity, and with --set at most")

// writeResult prints a result and writes it to a folder, if there is one; err is what ended the
// runs. What standard output does not take is in the folder all the same, and one file that cannot
// be written does not keep others from their place.
func writeResult(c *cobra.Command, res *experiment.Result, req experiment.Request, out, format string, err error) error {
	err = errors.Join(err, res.Write(c.OutOrStdout(), format))
	notesBeside(c, res.Notes, format)
	if out == "" {
		return err
	}
	var lost error
	if res.Sensitivity != nil {
		lost = writeSensitivity(c, filepath.Join(out, res.Name+sensitivityEnding), calibrate.SensitivityOf(res, req))
	}
	names, werr := res.WriteFolder(c.Context(), out)
	wrote(c, out, names)
	lost = errors.Join(lost, werr)
	switch {
	case lost == nil:
		return err
	case errors.Is(err, experiment.ErrInterrupted): // a loss is more than an interrupted run, whose results so far are written
		return lost
	}
	return errors.Join(err, lost)
}

// withReports adds what kept reports from their place. A loss is more than an interrupted run,
// whose results so far are written.
func withReports(err, lost error) error {
	if lost != nil && errors.Is(err, experiment.ErrInterrupted) {
		return lost
	}
	return errors.Join(err, lost)
}

// wrote names the files that are in a folder now.
func wrote(c *cobra.Command, folder string, names []string) {
	for _, n := range names {
		fmt.Fprintln(c.ErrOrStderr(), "wrote", filepath.Join(folder, n))
	}
}

// sensitivityEnding ends the name of the file of a sensitivity, behind that of its experiment.
const sensitivityEnding = "-sensitivity.json"

// writeSensitivity writes the sensitivity of a result to a file.
func writeSensitivity(c *cobra.Command, path string, rep *calibrate.SensitivityReport) error {
	f, err := outfile.Create(c.Context(), path)
	if err != nil {
		return err
	}
	if err := f.Commit(rep.WriteJSON); err != nil {
		return err
	}
	fmt.Fprintln(c.ErrOrStderr(), "wrote", path)
	return nil
}

// resultFiles are the names of the files that a run may write to the folder of -o.
func resultFiles(x *experiment.Experiment) []string {
	names := append(x.Files(), x.Name+sensitivityEnding)
	for _, ending := range sweep.Endings {
		if n := x.Name + ending; !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// checkOutputs says before a run what will keep its outputs from being written.
func checkOutputs(ctx context.Context, x *experiment.Experiment, out string, req *experiment.Request, reports []outfile.Named) error {
	if out != "" {
		if err := experiment.CheckWritable(ctx, out, true); err != nil {
			return err
		}
		for _, name := range resultFiles(x) {
			path := filepath.Join(out, name)
			st, err := os.Stat(path)
			if always := name == x.Name+".json" || name == x.Name+".csv"; !always && (err != nil || st.Mode().IsRegular()) {
				continue // it is made where the folder has just been seen to take files
			}
			if err := experiment.CheckWritable(ctx, path, false); err != nil {
				return err
			}
		}
	}
	for _, f := range append(reports, outfile.Named{Path: req.Pcap}, outfile.Named{Path: req.Trace}) {
		if f.Path != "" {
			if err := experiment.CheckWritable(ctx, f.Path, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// distinctFiles refuses outputs of a run that are one file, or a file that the run reads.
func distinctFiles(name string, x *experiment.Experiment, folder string, req *experiment.Request, v *reviews) error {
	var outputs []outfile.Named
	if folder != "" {
		for _, n := range resultFiles(x) {
			outputs = append(outputs, outfile.Named{Flag: "a result of -o", Path: filepath.Join(folder, n)})
		}
	}
	outputs = append(append(outputs, v.outputs()...), outfile.Named{Flag: "--pcap", Path: req.Pcap}, outfile.Named{Flag: "--trace", Path: req.Trace})
	if err := outfile.NotStandard(outfile.Named{Flag: "--output", Path: folder}); err != nil {
		return &experiment.UsageError{Err: err}
	}
	if err := outfile.Distinct(outputs, []outfile.Named{{Flag: "the scenario", Path: name}, {Flag: "--fault", Path: req.Fault}, {Flag: "--against", Path: v.against}}); err != nil {
		return &experiment.UsageError{Err: err}
	}
	return nil
}

func validateCommand() *cobra.Command {
	var prof, format string
	var seed uint64
	c := &cobra.Command{
		Use:   "validate [FILE.yaml...]",
		Short: "Compare the simulator with published figures",
		Long: `Runs the checks that come with the program, or those of the given files, and prints each
published figure beside the simulator's. The exit status is 1 if a figure is out of its
tolerance and not marked as a known miss, or is marked as one and has drifted or is within
its tolerance.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			rep, err := calibrate.Validate(c.Context(), args, prof, seed, progress())
			if rep != nil {
				if werr := rep.Write(c.OutOrStdout(), format); werr != nil {
					return werr
				}
				notesBeside(c, rep.Said(), format)
			}
			if err == nil && !rep.Pass() {
				return errFigures
			}
			return err
		},
	}
	c.Flags().StringVar(&prof, "profile", "", "run only the checks of the stored profile of this `NAME`")
	c.Flags().StringVar(&format, "format", "table", "format of the output: table, json or csv")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of all random choices")
	return c
}

// noteTiming says on standard error that the rates of a command are no evidence, where its output,
// such as that of an unmodified program, has no place for it.
func noteTiming(c *cobra.Command, command string, p *profile.Profile) {
	if p.NotCalibrated != "" {
		fmt.Fprintf(c.ErrOrStderr(), "rdmasim %s: profile %s: %s: %s\n", command, plain.Line(p.Name), profile.TimingNotCalibrated, plain.Line(p.NotCalibrated))
	}
}

func profileCommand() *cobra.Command {
	c := &cobra.Command{Use: "profile", Short: "Show device and host profiles, each value with its source", Args: func(c *cobra.Command, args []string) error {
		if len(args) == 1 && slices.Contains(profile.List(), args[0]) {
			return fmt.Errorf("%s is a profile: did you mean rdmasim profile show %s?", args[0], args[0])
		}
		return knownCommand(c, args)
	}, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(profilesCommand("list"), &cobra.Command{
		Use: "show NAME|FILE.yaml", Short: "Show the values of a profile with unit and source", Args: oneArg("the name of a profile, or the path of its file"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := profile.Load(args[0])
			if err != nil {
				return &experiment.UsageError{Err: err}
			}
			var b bytes.Buffer
			p.Show(&b)
			fmt.Fprintln(&b)
			if err := showAttributes(&b, p); err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(b.Bytes())
			return err
		},
	})
	show, _, _ := c.Find([]string{"show"})
	commands.CompleteArgs(show, 1, profile.List, true)
	return c
}
