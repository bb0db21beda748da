package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
)

// errCheckNeedsLeaveOut refuses a choice of checks where all values are fitted.
var errCheckNeedsLeaveOut = errors.New("--check chooses what --leave-one-out leaves out, and does nothing without it")

func calibrateCommand() *cobra.Command {
	var format string
	var seed uint64
	var leave bool
	var checks []int
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit values of the profiles to published figures, and predict each check without it",
		Long: `Fits the values of profiles and scenarios that are marked as fitted to their figures, each within bounds, and prints them
beside those that are stored. With --leave-one-out it fits without each check in turn, predicts that check, and prints
the errors. The exit status is 1 if a fitted figure is out of its tolerance.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			if leave {
				rep, err := experiment.LeaveOut(c.Context(), seed, checks, progress())
				if err != nil {
					return err
				}
				return rep.Write(c.OutOrStdout(), format)
			}
			if len(checks) > 0 {
				return &experiment.UsageError{Err: errCheckNeedsLeaveOut}
			}
			rep, err := experiment.Calibrate(c.Context(), seed)
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
	c.Flags().StringVar(&format, "format", "table", "format of the output: table, json or csv")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of all random choices")
	return c
}
