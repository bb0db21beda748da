package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/calibrate"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// calibrateMemory is where the collector begins to give memory back. Thousands of runs, of which
// some have hosts of 20 GiB that they touch here and there, would otherwise fill the machine:
// memory that is used again is cleared as a whole.
const calibrateMemory = 4 << 30

// keepMemorySmall lets this process collect its garbage earlier when it holds so many bytes, unless
// the user has set a limit ($GOMEMLIMIT).
func keepMemorySmall(bytes int64) {
	if _, given := os.LookupEnv("GOMEMLIMIT"); !given {
		debug.SetMemoryLimit(bytes)
	}
}

// errCheckNeedsLeaveOut refuses a choice of checks where all values are fitted.
var errCheckNeedsLeaveOut = errors.New("--check chooses the checks that --leave-one-out leaves out: add --leave-one-out")

var errStored = errors.New("--stored prints the whole table of --leave-one-out that comes with the program: give both, without --check and --seed")

var (
	errFromAlone = errors.New("--from is about your own card, and --leave-one-out, --stored and --check are about published figures: give one of them")
	errNeedsFrom = errors.New("--profile and --output belong to --from")
)

// fromMeasurements finds the values of the user's card, prints them and writes the profile.
func fromMeasurements(c *cobra.Command, dir, base, out, format string, seed uint64) error {
	if out != "" {
		if ext := filepath.Ext(out); ext != ".yaml" && ext != ".yml" {
			return &experiment.UsageError{Err: fmt.Errorf("--output %s: the name of a profile's file ends in .yaml", out)}
		}
		if err := experiment.CheckWritable(c.Context(), out, false); err != nil {
			return err
		}
	}
	rep, err := calibrate.FromMeasurements(c.Context(), dir, base, seed, progress())
	if err != nil {
		return err
	}
	lost := writeProfile(c, out, rep)
	return errors.Join(rep.Write(c.OutOrStdout(), format), lost)
}

// writeProfile writes the profile of a card, if a file is named for it.
func writeProfile(c *cobra.Command, out string, rep *calibrate.CardReport) error {
	if out == "" {
		return nil
	}
	f, err := outfile.Create(c.Context(), out)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(out), filepath.Ext(out))
	if err := f.Commit(func(w io.Writer) error { _, err := w.Write(rep.Profile(name)); return err }); err != nil {
		return err
	}
	fmt.Fprintln(c.ErrOrStderr(), "wrote", out)
	return nil
}

// cacheFolder is where results of runs are kept unless the user says so; "" if the system names no
// place.
func cacheFolder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rdmasim")
}

// showStored prints the stored table. It fails if the profiles have changed since it was made.
func showStored(c *cobra.Command, format string) error {
	rep, err := calibrate.StoredLeaveOneOut()
	if err != nil {
		return err
	}
	if err := writeLeftOut(c, rep, format); err != nil {
		return err
	}
	return rep.Current()
}

// writeLeftOut writes a whole table of left-out figures, and to people how well the intervals of
// results hold for them.
func writeLeftOut(c *cobra.Command, rep *calibrate.LeaveOneOut, format string) error {
	err := rep.Write(c.OutOrStdout(), format)
	if err == nil && format == "table" {
		err = calibrate.WriteReach(c.Context(), c.OutOrStdout(), rep)
	}
	return err
}

func calibrateCommand() *cobra.Command {
	var format string
	var seed uint64
	var leave, stored bool
	var cache, from, base, out string
	var checks []int
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit values of the profiles to published figures, predict each check without it, or find the values of your own card",
		Long: `Fits the values of profiles and scenarios that are marked as fitted to their figures, each within
bounds, and prints them beside the stored values. With --leave-one-out it fits without each check in
turn, predicts that check, and prints the errors. With --from it writes a profile of your own card
from measurements of it. It keeps the results of runs in a folder, so that an interrupted command
goes on where it was. The exit status is 1 if a fitted figure is out of its tolerance.`,
		Args: commands.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			keepMemorySmall(calibrateMemory)
			if from != "" {
				if leave || stored || len(checks) > 0 {
					return &experiment.UsageError{Err: errFromAlone}
				}
				return fromMeasurements(c, from, base, out, format, seed)
			}
			if out != "" || c.Flags().Changed("profile") {
				return &experiment.UsageError{Err: errNeedsFrom}
			}
			if stored {
				if !leave || len(checks) > 0 || c.Flags().Changed("seed") {
					return &experiment.UsageError{Err: errStored}
				}
				return showStored(c, format)
			}
			if leave {
				rep, err := calibrate.LeaveOut(c.Context(), seed, checks, cache, progress())
				if rep == nil {
					return err
				}
				if len(checks) > 0 {
					return errors.Join(rep.Write(c.OutOrStdout(), format), err)
				}
				return errors.Join(writeLeftOut(c, rep, format), err)
			}
			if len(checks) > 0 {
				return &experiment.UsageError{Err: errCheckNeedsLeaveOut}
			}
			rep, err := calibrate.Calibrate(c.Context(), seed, cache)
			if rep == nil {
				return err
			}
			if err := errors.Join(rep.Write(c.OutOrStdout(), format), err); err != nil {
				return err
			}
			if !rep.Pass() {
				return errFigures
			}
			return nil
		},
	}
	c.Flags().BoolVar(&leave, "leave-one-out", false, "fit without each check in turn, and predict its figures")
	c.Flags().IntSliceVar(&checks, "check", nil, "with --leave-one-out: leave out only the checks with these `NUMBERS`")
	c.Flags().StringVar(&from, "from", "", "find the values of your own card from what was measured on it: a `DIR` with outputs of perftest and records of conform (docs/calibrate.md)")
	c.Flags().StringVar(&base, "profile", profile.Default, "with --from: stored profile that is nearest to the card, for all other values")
	c.Flags().StringVarP(&out, "output", "o", "", "with --from: write the profile to this `FILE`, which --profile of other commands takes")
	c.Flags().BoolVar(&stored, "stored", false, "with --leave-one-out: print the table that comes with the program, and run nothing")
	c.Flags().StringVar(&cache, "cache", cacheFolder(), "`DIR` that keeps the results of runs; '' keeps none (default: rdmasim in the cache folder of the user)")
	c.Flags().Lookup("cache").DefValue = "" // manual pages are the same on every machine
	c.Flags().StringVar(&format, "format", "table", "format of the output: table, json or csv")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of all random choices")
	return c
}
