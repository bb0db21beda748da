package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/internal/cli/rlimit"
)

// Program is a command line.
type Program struct {
	Name string // before its messages
	// Root makes the commands, whose output is set before help and completion are added: cobra
	// keeps it there.
	Root func(stdout, stderr io.Writer) *cobra.Command
	// Status prints the error that a command returned, if there is one, and returns the exit
	// status. wrote says that something was written to standard output.
	Status func(err error, stderr io.Writer, wrote bool) int
}

// Exit statuses that both programs have.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the program with the arguments of the process, and ends the process. Its context ends
// with SIGTERM, and with an interrupt or SIGHUP that the process does not ignore: what a script
// starts in the background ignores the one, and nohup the other.
func (p *Program) Main() {
	if err := rlimit.Check(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		os.Exit(exitUsage)
	}
	ends := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			ends = append(ends, s)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	endOnInterruptAfter(ctx, sameInterrupt)
	// A reader of standard output that has gone does not end a run, which may have files to write.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(p.Execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Execute runs the program with arguments and returns the exit status. What cannot be written to
// standard output fails a command that went well otherwise.
func (p *Program) Execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := plain.NewOutput(outfile.Impatient(ctx, stdout))
	stderr = plain.NewWriter(outfile.Impatient(ctx, stderr))
	root := p.Root(out, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if out.Err != nil {
		if !errors.Is(out.Err, syscall.EPIPE) { // a reader that wants no more, such as head
			fmt.Fprintf(stderr, "%s: the output is not complete: %v\n", p.Name, out.Err)
		}
		if err = ExceptOutputError(err, out.Err); err == nil {
			return exitFailed
		}
	}
	return p.Status(err, stderr, out.Wrote)
}
