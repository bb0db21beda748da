// Command legs runs the legs of make check and make test, one after another. A leg that fails hides
// no other: a table at the end has all of them, with the first failing test of each and the command
// that runs it alone, and a list has the tests that were skipped, with their reasons.
//
//	legs all NAME[:NEEDED,...]...
//		makes each target; one whose needed targets have failed is not run
//	legs run NAME [VARIABLE=value...] COMMAND... [+ COMMAND...]
//		the recipe of a target: each command runs, whatever the others end with
//
// What a command prints passes through, except that events of go test -json become what go test
// prints without that flag. A line "NAME: skipped: SENTENCE" of any command counts as a skipped
// test. out/legs has a file for each leg, out/times.json the times of all.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Where the results of a run are, below the root of the repository.
const (
	legsDir   = "out/legs"
	timesFile = "out/times.json"
)

// insideEnv is set for what a leg runs: a make within is part of that leg. partEnv is set for the
// legs of legs all.
const (
	insideEnv = "RDMASIM_INSIDE_LEG"
	partEnv   = "RDMASIM_LEGS"
)

// interrupted is the exit status after a signal, by the shell's convention for SIGINT.
const interrupted = 130

var errUsage = errors.New("usage: legs all NAME[:NEEDED,...]... | legs run NAME [VARIABLE=value...] COMMAND... [+ COMMAND...]")

func main() {
	status, err := dispatch(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "legs:", err)
		status = cmp.Or(status, 2)
	}
	os.Exit(status)
}

func dispatch(args []string) (int, error) {
	if len(args) < 2 {
		return 2, errUsage
	}
	switch args[0] {
	case "all":
		return runAll(args[1:])
	case "run":
		l, err := parseLeg(args[1:])
		if err != nil {
			return 2, err
		}
		if os.Getenv(insideEnv) != "" {
			return l.plain(), nil
		}
		return l.run()
	}
	return 2, errUsage
}

// exitStatus is the exit status of a command that has ended, or 127 for one that could not start.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 127
	}
	if code := exit.ExitCode(); code > 0 {
		return code
	}
	return 1
}
