// Command rdmasim runs what-if experiments and scenarios on the simulated adapter,
// and compares the simulator with published figures.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/schollz/progressbar/v3"

	"github.com/rdmasim/rdmasim/attach/exec"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
	"github.com/rdmasim/rdmasim/experiment/sweep"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Exit statuses of the program.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errFigures ends validate with exit status 1 when a figure is out of tolerance; the output
// has named it.
var errFigures = errors.New("a figure is out of tolerance")

var program = &commands.Program{Name: "rdmasim", Root: newRoot, Status: exitStatus}

func main() {
	exec.Child() // this may be a re-execution of itself by exec
	program.Main()
}

// exitStatus prints an error and returns the exit status.
func exitStatus(err error, stderr io.Writer, wrote bool) int {
	if errors.Is(err, experiment.ErrInterrupted) && !wrote {
		fmt.Fprintln(stderr, "rdmasim: interrupted before there was a result")
		return exitInterrupted
	}
	var bad *experiment.UsageError
	var program programStatus
	var losses *sweep.FailureError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &program):
		return int(program)
	case errors.Is(err, errFigures):
		return exitFailure
	case errors.As(err, &losses):
		fmt.Fprintln(stderr, "rdmasim:", plain.Message(err.Error()))
		return exitFailure
	case errors.Is(err, experiment.ErrInterrupted):
		fmt.Fprintln(stderr, "rdmasim: interrupted; the results so far are written and marked as incomplete")
		return exitInterrupted
	case errors.Is(err, outfile.ErrInterrupted), errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "rdmasim:", plain.Message(err.Error()))
		return exitInterrupted
	case errors.As(err, &bad):
		fmt.Fprintln(stderr, "rdmasim:", plain.Message(err.Error()))
		return exitUsage
	}
	fmt.Fprintln(stderr, "rdmasim:", plain.Message(err.Error()))
	return exitFailure
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "rdmasim",
		Short: "Experiments on a simulated mlx5 RDMA adapter",
		Long: `rdmasim simulates an mlx5 RDMA adapter and the host around it. It runs experiments and
scenarios, compares the simulator with published figures, and runs unmodified RDMA
programs on the simulated adapter.`,
		Example: `  rdmasim list
  rdmasim help scenario
  rdmasim run uar-sharing -o out
  rdmasim run stream.yaml --sweep traffic.0.payload=64B,1KiB,4KiB
  rdmasim exec -- ibv_devinfo -v
  rdmasim vm -- ibv_devinfo
  rdmasim pci --socket /tmp/mlx5.sock`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       experiment.Version(),
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	// Help lists them in this order, by use.
	root.AddCommand(runCommand(), execCommand(), perfCommand(), wireCommand(), vmCommand(), pciCommand(), listCommand(), profileCommand(), validateCommand(), calibrateCommand(), resultsCommand())
	root.AddCommand(scenarioTopic(), sweepWorkerCommand(), sweepShardCommand(), commands.ManCommand())
	commands.CompleteFlag(root, "profile", profile.List, true)
	commands.CompleteFlag(root, "program", wirePrograms, false)
	commands.CompleteFormats(root)
	// cobra's own errors (an unknown command, a wrong number of arguments) are usage.
	commands.StrictHelp(root, knownCommand)
	wrapArgs(root)
	for _, c := range root.Commands() {
		input.PlainNumbers(c.Flags())
	}
	commands.UniformFlags(root)
	return root
}

// knownCommand refuses an argument where a command belongs.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	if _, err := studies.Find(args[0]); c == c.Root() && (err == nil || strings.HasSuffix(args[0], ".yaml")) {
		return fmt.Errorf("unknown command %q (did you mean rdmasim run %[1]s?)", args[0])
	}
	return fmt.Errorf("unknown command %q%s", args[0], commands.Meant(c, args[0], names))
}

// oneArg demands exactly one argument, which what describes.
func oneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s is needed", what)
		}
		if len(args) > 1 {
			return fmt.Errorf("one argument is allowed, %s; %d are given", what, len(args))
		}
		return nil
	}
}

func flagError(c *cobra.Command, err error) error {
	suggestion := commands.MeantLong(c, err)
	if flag, ok := strings.CutPrefix(err.Error(), "unknown flag: "); ok {
		suggestion = commands.MeantFlag(c, flag)
	}
	return &experiment.UsageError{Err: fmt.Errorf("%w%s; see %s --help", input.FlagError(err), suggestion, c.CommandPath())}
}

func wrapArgs(c *cobra.Command) {
	check := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(c, args); err != nil {
			return &experiment.UsageError{Err: fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
		}
		return nil
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// progress draws a bar on stderr when it is a terminal, and nothing otherwise.
func progress() func(done, total int, what string) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return progressLines(os.Stderr, time.Now)
	}
	var bar *progressbar.ProgressBar
	return func(done, total int, what string) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))
		}
		bar.Describe(plain.Line(what))
		_ = bar.Set(done)
		if done == total {
			_ = bar.Finish()
		}
	}
}

// progressEvery is how often a run tells how far it is where no terminal shows a bar.
const progressEvery = 10 * time.Second

// progressLines reports in lines, of which a run that ends soon writes none.
func progressLines(w io.Writer, now func() time.Time) func(done, total int, what string) {
	last := now()
	return func(done, total int, what string) {
		if t := now(); total > 0 && done < total && t.Sub(last) >= progressEvery {
			last = t
			fmt.Fprintf(w, "rdmasim: %d %% done: %s\n", int(100*int64(done)/int64(total)), plain.Line(what))
		}
	}
}
