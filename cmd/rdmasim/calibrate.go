package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
)

// errCheckNeedsLeaveOut refuses a choice of checks where all values are fitted.
var errCheckNeedsLeaveOut = errors.New("--check chooses what --leave-one-out leaves out, and does nothing without it")

var errStored = errors.New("--stored prints the whole table of --leave-one-out that comes with the program: give both, without --check and --seed")

// cacheFolder is where results of runs are kept unless the user says so; "" if the system names no place.
func cacheFolder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rdmasim")
}

// showStored prints the stored table. It fails if the profiles have changed since it was made.
func showStored(c *cobra.Command, format string) error {
	rep, err := experiment.StoredLeaveOneOut()
	if err != nil {
		return err
	}
	if err := rep.Write(c.OutOrStdout(), format); err != nil {
		return err
	}
	return rep.Current()
}

func calibrateCommand() *cobra.Command {
	var format string
	var seed uint64
	var leave, stored bool
	var cache string
	var checks []int
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit values of the profiles to published figures, and predict each check without it",
		Long: `Fits the values of profiles and scenarios that are marked as fitted to their figures, each within bounds, and prints them
beside those that are stored. With --leave-one-out it fits without each check in turn, predicts that check, and prints
the errors. The results of runs are kept in a folder, so that a command that was interrupted goes on where it was. The exit
status is 1 if a fitted figure is out of its tolerance.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			if stored {
				if !leave || len(checks) > 0 || c.Flags().Changed("seed") {
					return &experiment.UsageError{Err: errStored}
				}
				return showStored(c, format)
			}
			if leave {
				rep, err := experiment.LeaveOut(c.Context(), seed, checks, cache, progress())
				if err != nil {
					return err
				}
				return rep.Write(c.OutOrStdout(), format)
			}
			if len(checks) > 0 {
				return &experiment.UsageError{Err: errCheckNeedsLeaveOut}
			}
			rep, err := experiment.Calibrate(c.Context(), seed, cache)
			if err != nil {
				return err
			}
			if err := rep.Write(c.OutOrStdout(), format); err != nil {
				return err
			}
			if !rep.Pass() {
				return errFigures
			}
			return nil
		},
	}
	c.Flags().BoolVar(&leave, "leave-one-out", false, "fit without each check in turn, and predict its figures")
	c.Flags().IntSliceVar(&checks, "check", nil, "with --leave-one-out: leave out only the checks with these `numbers`")
	c.Flags().BoolVar(&stored, "stored", false, "with --leave-one-out: print the table that comes with the program, and run nothing")
	c.Flags().StringVar(&cache, "cache", cacheFolder(), "`folder` that keeps the results of runs; empty: none is kept")
	c.Flags().StringVar(&format, "format", "table", "format of the output: table, json or csv")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of all random choices")
	return c
}
