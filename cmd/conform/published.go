package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
)

// readPublished reads a record of published measurements; its errors are wrong usage.
func readPublished(ctx context.Context, name string) (*report.Published, error) {
	p, err := conformance.ReadPublished(ctx, name)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return p, nil
}

// diffPublished compares a run with a record of published measurements and prints the result.
func diffPublished(cmd *cobra.Command, args []string, html string, o diffOptions) error {
	switch {
	case report.IsPublished(args[1]):
		return usagef("%s is a record of published measurements, which is the reference: give it first, and the report of a run behind it", args[1])
	case html != "":
		return usagef("--html shows two runs, and %s is a record of published measurements: leave --html out", args[0])
	case o.exact:
		return usagef("--exact compares two runs of one simulator, and %s is a record of published measurements: leave --exact out", args[0])
	}
	p, err := readPublished(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	b, err := readRecord(cmd.Context(), args[1])
	if err != nil {
		return err
	}
	c, err := p.Compare(b)
	if err != nil {
		return usagef("%w", err)
	}
	for i := range c.Cases {
		if x := &c.Cases[i]; x.Class.Notable() {
			x.Again = againAs(b, x.ID)
		}
	}
	if err := writeDiff(cmd.OutOrStdout(), c, b, o); err != nil {
		return err
	}
	switch {
	case c.Compared() == 0:
		return usagef("no case was compared: %s has run none that %s has values of", args[1], args[0])
	case !c.OK():
		return &status{code: exitFailed}
	}
	return nil
}
