package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// FaultsOfHelp finds each kind of fault, and UniformFlags mends what it can.
func TestFaultsOfHelp(t *testing.T) {
	newRoot := func() *cobra.Command {
		root, sub := &cobra.Command{Use: "p"}, &cobra.Command{Use: "sub"}
		root.AddCommand(sub)
		root.Flags().Int("port", -1, "port (default: the first)")
		root.Flags().String("out", "", "a `file`")
		sub.Flags().Int("port", 0, "a `NUMBER`")
		sub.Flags().Duration("grace", 0, "time to wait")
		sub.Flags().Bool("odp", true, "on-demand paging")
		return root
	}
	root := newRoot()
	faults := FaultsOfHelp(root)
	for _, want := range []string{`p --port: place-holder "int"`, "p --port: default", `p --out: place-holder "file"`, `p sub --port: place-holder "NUMBER", elsewhere "int"`, `p sub --grace: place-holder "duration"`} {
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("not found: %s in %q", want, faults)
		}
	}
	UniformFlags(root)
	if faults = FaultsOfHelp(root); len(faults) != 2 { // the word "file", and NUMBER for N
		t.Errorf("%q", faults)
	}
	if help := root.Flags().FlagUsages(); !strings.Contains(help, "--port N ") || strings.Contains(help, "-1") {
		t.Error(help)
	}
	if err := root.ParseFlags([]string{"--port", "7"}); err != nil || fmt.Sprint(root.Flags().Lookup("port").Value) != "7" {
		t.Errorf("--port 7: %v, %v", root.Flags().Lookup("port").Value, err)
	}
}
