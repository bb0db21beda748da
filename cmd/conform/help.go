package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

// newOutcomes is the page of help about the words for how a case ends.
func newOutcomes() *cobra.Command {
	var b strings.Builder
	b.WriteString("Each case of a run ends with one of these outcomes:\n\n")
	for _, o := range report.Outcomes() {
		fails := ""
		if o.Bad() {
			fails = " (fails the run)"
		}
		fmt.Fprintf(&b, "  %-14s  %s%s\n", o, o.Meaning(), fails)
	}
	b.WriteString("\nThe catalogue gives each case a strength: E, the expected value is exact; S, it is one of a set, and the member that\n" +
		"was seen is recorded; H, it is not known until a run on hardware has recorded it (conform accept, --baseline).\n" +
		"conform show ID prints what a case asserts, what it needs, and the source of its rule.")
	c := &cobra.Command{Use: "outcomes", Short: "What the outcomes of a case mean", Long: b.String()}
	commands.Topic(c)
	return c
}
