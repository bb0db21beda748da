package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

func newAccept() *cobra.Command {
	into, passed, replace := "baselines", false, false
	cmd := &cobra.Command{
		Use:   "accept REPORT.json",
		Short: "Make the record of a hardware run the baseline of its kind of device",
		Long: "accept makes the record of a run on hardware the baseline of its provider and part, if the record has no bad case.\n" +
			"With conform --target=hw --baseline DIR/NAME.json later runs expect what this run saw in cases of strength H. An\n" +
			"existing baseline is replaced, unless the record fixes fewer values.",
		Args: needs(1, "a record, which conform --target=hw --report writes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := outfile.NotStandard(outfile.Named{Flag: "--into", Path: into}); err != nil {
				return &status{exitUsage, err}
			}
			r, err := report.ReadFile(cmd.Context(), args[0])
			if err != nil {
				return usagef("%w", err)
			}
			if passed {
				if err := r.PassThrough(); err != nil {
					return usagef("%s: %w", args[0], err)
				}
			}
			if err := r.Acceptable(); err != nil {
				return usagef("%s: %w", args[0], err)
			}
			if err := os.MkdirAll(into, 0o755); err != nil {
				return usagef("%w", err)
			}
			name := filepath.Join(into, r.BaselineName())
			if !replace {
				if err := superseded(cmd.Context(), name, r); err != nil {
					return err
				}
			}
			f, err := create(cmd.Context(), name)
			if err != nil {
				return err
			}
			if err := f.Commit(r.WriteJSON); err != nil {
				return &status{exitFailed, err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, of which %d of strength H are now fixed\n", name, cases(len(r.Cases)), len(r.Freeze()))
			return nil
		},
	}
	cmd.Flags().BoolVar(&passed, "passed-through", false, "the run was made in a virtual machine whose host has passed a real card through to it (vfio); the baseline says so")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a baseline even if the new record fixes fewer values")
	cmd.Flags().StringVar(&into, "into", into, "directory for baselines")
	return cmd
}

// superseded refuses to replace what is at path by a record that fixes less.
func superseded(ctx context.Context, path string, r *report.Run) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil // nothing is there that could be lost; create says what is wrong
	}
	old, err := report.ReadFile(ctx, path)
	if err != nil {
		return usagef("%s exists, and is not a baseline: %w; choose another --into, or remove it", path, err)
	}
	if err := r.Supersedes(old); err != nil {
		return usagef("%s would be lost: %w: run the whole suite with that seed, or give --replace or another --into", path, err)
	}
	return nil
}
