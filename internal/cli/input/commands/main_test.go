package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// waits is a program that says so and waits for the end of its standard input or of its context.
var waits = &Program{Name: "waits", Root: func(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(c *cobra.Command, _ []string) error {
		fmt.Fprintln(c.OutOrStdout(), "waiting")
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, os.Stdin)
			ended <- err
		}()
		select {
		case <-c.Context().Done():
			return c.Context().Err()
		case err := <-ended:
			return err
		}
	}}
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root
}, Status: func(err error, stderr io.Writer, wrote bool) int {
	fmt.Fprintln(stderr, err, wrote)
	if errors.Is(err, context.Canceled) {
		return 130
	}
	return 0
}}

func TestMain(m *testing.M) {
	if os.Getenv("COMMANDS_TEST_MAIN") != "" {
		os.Args = os.Args[:1]
		waits.Main()
	}
	os.Exit(m.Run())
}

// An interrupt ends a program, and a hang-up does, unless the process ignores them: as a script's
// background command or below nohup.
func TestIgnoredSignalsEndNothing(t *testing.T) {
	// What is caught here is not ignored in a child, whatever nohup or a script has begun this test
	// with.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, tt := range []struct {
		before string
		signal syscall.Signal
		want   string
	}{
		{"", syscall.SIGINT, "130 context canceled true"},
		{"trap '' INT; ", syscall.SIGINT, "0 <nil> true"},
		{"", syscall.SIGHUP, "130 context canceled true"},
		{"trap '' HUP; ", syscall.SIGHUP, "0 <nil> true"},
		{"trap '' INT; trap '' HUP; ", syscall.SIGTERM, "130 context canceled true"},
	} {
		cmd := exec.Command("sh", "-c", tt.before+`exec "$0"`, os.Args[0])
		cmd.Env = append(os.Environ(), "COMMANDS_TEST_MAIN=1")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "waiting\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if err := cmd.Process.Signal(tt.signal); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(tt.want, "0") { // nothing else ends it
			_ = in.Close()
		}
		_ = cmd.Wait() // the status says how
		_ = in.Close()
		if got := fmt.Sprintf("%d %s", cmd.ProcessState.ExitCode(), strings.TrimSpace(stderr.String())); got != tt.want {
			t.Errorf("%s%v: %s, want %s", tt.before, tt.signal, got, tt.want)
		}
	}
}
