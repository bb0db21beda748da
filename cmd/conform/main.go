// Command conform runs the conformance suite for RDMA verbs on a target.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/input"
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var s *status
	if !errors.As(err, &s) {
		s = &status{exitUsage, err} // cobra's own: unknown command, wrong arguments
	}
	if text := s.Error(); text != "" {
		fmt.Fprintln(stderr, "conform:", text)
	}
	return s.code
}

func newRoot() *cobra.Command {
	o := &runOptions{}
	root := &cobra.Command{
		Use:           "conform",
		Short:         "Conformance suite for RDMA verbs",
		Long:          "conform runs the conformance suite for RDMA verbs on a target and reports every case.",
		Example:       "  conform --target=sim\n  conform --target=sim --label-filter 'RC && !tap' --report run.json\n  conform show RC-013",
		Version:       conformance.Version,
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return runSuite(cmd, o) },
	}
	run := &cobra.Command{
		Use:   "run",
		Short: "Run the suite (the default command)",
		Args:  cobra.NoArgs,
		RunE:  root.RunE,
	}
	o.flags(root.Flags())
	o.flags(run.Flags())
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(run, newList(), newShow(), newWire(), newDiff(), newAccept(), newMutants(), newWorker())
	root.AddCommand(hwCommands()...)
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
	return usagef("unknown command %q%s", args[0], input.Suggest(args[0], names))
}

func flagError(cmd *cobra.Command, err error) error {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	if flag, ok := strings.CutPrefix(err.Error(), "unknown flag: "); ok {
		return usagef("unknown flag %s%s", flag, input.Suggest(flag, names))
	}
	return usagef("%w", err)
}
