// Command conform runs the conformance suite for RDMA verbs on a target.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1 // a case or the run as a whole is not as expected
	exitUsage       = 2 // wrong usage or bad input
	exitInterrupted = 130
)

// status is an error that carries the exit status; its text, if any, is printed.
type status struct {
	code int
	err  error
}

func (s *status) Error() string {
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

func (s *status) Unwrap() error { return s.err }

func usagef(format string, a ...any) error { return &status{exitUsage, fmt.Errorf(format, a...)} }

var program = &commands.Program{Name: "conform", Root: newRoot, Status: exitStatus}

func main() { program.Main() }

// exitStatus prints an error and returns the exit status.
func exitStatus(err error, stderr io.Writer, _ bool) int {
	if err == nil {
		return exitOK
	}
	var s *status
	if !errors.As(err, &s) {
		s = &status{exitUsage, err} // cobra's own: unknown command, wrong arguments
	}
	if text := s.Error(); text != "" {
		fmt.Fprintln(stderr, "conform:", plain.Message(text))
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return s.code
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	o := &runOptions{}
	root := &cobra.Command{
		Use:           "conform",
		Short:         "Conformance suite for RDMA verbs",
		Long:          "conform runs the conformance suite for RDMA verbs on a target and reports every case.",
		Example:       "  conform --target=sim\n  conform --target=sim --label-filter 'RC && !tap' --report run.json\n  conform show RC-013",
		Version:       version(),
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return runSuite(cmd, o) },
	}
	run := &cobra.Command{
		Use:   "run",
		Short: "Run the suite (the default command)",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if err := meantCase(args[0]); err != nil {
				return err
			}
			return usagef("run takes no %q: flags choose the cases (conform run --help)", args[0])
		},
		RunE: root.RunE,
	}
	o.flags(root.Flags())
	o.flags(run.Flags())
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	// Help lists them in this order, by use.
	root.AddCommand(run, newList(), newShow(), newDiff(), newWire(), newRandom(), newMutants(), newAccept(), newMerge(), newGaps(), newRecover(), newOutcomes())
	root.AddCommand(newCounts(), newRandomWorker(), newWorker())
	root.AddCommand(hwCommands()...)
	root.AddCommand(commands.ManCommand())
	commands.CompleteFlag(root, "profile", simulator.Profiles, true)
	commands.CompleteFlag(root, "target", func() []string { return []string{"sim", "hw", "sim,hw"} }, false)
	commands.CompleteFormats(root)
	for _, c := range append(root.Commands(), root) {
		if c.Flags().Lookup("label-filter") != nil {
			commands.CompleteWith(c, "label-filter", filterLabels)
		}
	}
	for name, words := range map[string]func() []string{"show": caseIDs, "list": areaNames} {
		c, _, _ := root.Find([]string{name})
		commands.CompleteArgs(c, 100, words, false)
	}
	commands.StrictHelp(root, knownCommand)
	for _, c := range append(root.Commands(), root) {
		input.PlainNumbers(c.Flags())
	}
	commands.UniformFlags(root)
	return root
}

func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	if err := meantCase(args[0]); err != nil {
		return err
	}
	return usagef("unknown command %q%s; see conform --help", args[0], commands.Meant(cmd, args[0], names))
}

// caseID is the name of a case, written in one way or another.
var caseID = regexp.MustCompile(`^([A-Z]+)[-_ ]?([0-9]{1,3})$`)

// meantCase returns what to type in place of the name of a case or an area alone.
func meantCase(word string) error {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return err
	}
	word = strings.ToUpper(word)
	if _, ok := cat.Find(word); ok {
		return usagef("%s is a case: conform --label-filter %s runs it, conform show %s explains it", word, word, word)
	}
	for _, a := range cat.Areas {
		if a.Area == word {
			return usagef("%s is an area: conform --label-filter %s runs its cases, conform list %s lists them", word, word, word)
		}
	}
	if id := caseID.FindStringSubmatch(word); id != nil { // RC012, RC_12
		n, _ := strconv.Atoi(id[2])
		word = fmt.Sprintf("%s-%03d", id[1], n)
		if _, ok := cat.Find(word); ok {
			return usagef("cases have names such as %s: conform --label-filter %s runs that one, conform show %s explains it", word, word, word)
		}
	}
	return nil
}

// needs checks the number of a command's arguments; otherwise it says what to type.
func needs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s needs %s: %s (%d given)", cmd.Name(), what, cmd.UseLine(), len(args))
		}
		return nil
	}
}

// version is that of the suite, with the commit that the program was built from when the build
// recorded one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return conformance.Version
	}
	return versionOf(info.Settings)
}

func versionOf(settings []debug.BuildSetting) string {
	for _, s := range settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return conformance.Version + "+" + s.Value[:12]
		}
	}
	return conformance.Version
}

func flagError(cmd *cobra.Command, err error) error {
	if flag, ok := strings.CutPrefix(err.Error(), "unknown flag: "); ok {
		return usagef("unknown flag %s%s; see %s --help", flag, commands.MeantFlag(cmd, flag), cmd.CommandPath())
	}
	var value *pflag.InvalidValueError
	if said := input.FlagError(err); errors.As(err, &value) { // which says what it takes
		return usagef("%w", said)
	}
	return usagef("%w%s; see %s --help", err, commands.MeantLong(cmd, err), cmd.CommandPath())
}
