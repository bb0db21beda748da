package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// leg is a recipe: commands with variables of the environment that are for them alone.
type leg struct {
	name     string
	vars     []string
	commands [][]string
}

var assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)

// parseLeg reads NAME [VARIABLE=value...] COMMAND... [+ COMMAND...].
func parseLeg(args []string) (leg, error) {
	l := leg{name: args[0]}
	args = args[1:]
	for len(args) > 0 && assignment.MatchString(args[0]) {
		l.vars, args = append(l.vars, args[0]), args[1:]
	}
	for {
		i := slices.Index(args, "+")
		if i < 0 {
			i = len(args)
		}
		if i == 0 {
			return l, errUsage
		}
		l.commands = append(l.commands, args[:i])
		if i == len(args) {
			return l, nil
		}
		args = args[i+1:]
	}
}

func (l leg) command(words []string) *exec.Cmd {
	c := exec.Command(words[0], words[1:]...)
	c.Env = append(os.Environ(), insideEnv+"="+l.name)
	if os.Getenv("GOGC") == "" {
		// Compilers and static checks take a tenth less CPU time, and up to half as much memory
		// again.
		c.Env = append(c.Env, "GOGC=200")
	}
	c.Env = append(c.Env, l.vars...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c
}

// plain runs the commands as part of another leg, and returns the status of the first that failed.
func (l leg) plain() int {
	status := 0
	for _, words := range l.commands {
		words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "-json" })
		status = cmp.Or(status, exitStatus(l.command(words).Run()))
	}
	return status
}

// run runs the commands, prints what came of them, and stores it.
func (l leg) run() (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	part := os.Getenv(partEnv) != ""
	r := &record{Leg: l.name}
	module := modulePath()
	began := time.Now()
	for _, words := range l.commands {
		o := &outcomes{out: os.Stdout, module: module, leg: l.name, record: r, open: map[testKey]*test{}, builds: map[string][]string{}, failed: map[string]bool{},
			alone: func(k testKey) string { return alone(l, words, k) }}
		status, cpu, err := o.of(l.command(words), signals, part)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", l.name, err)
		}
		r.CPU += cpu
		r.Status = cmp.Or(r.Status, status)
		if r.Status == interrupted {
			break
		}
	}
	r.Wall = time.Since(began).Seconds()
	if r.Passed+r.Failed+r.Skipped == 0 && r.Status == 0 {
		r.Passed = 1 // the leg is the test
	}
	if r.Status != 0 && r.Failed == 0 {
		r.Failed = 1
	}
	if err := r.write(); err != nil {
		return max(r.Status, 1), err
	}
	fmt.Fprintf(os.Stderr, "== %s: %.2f s of CPU time, %.2f s by the clock, %s, exit status %d\n", l.name, r.CPU, r.Wall, r.counts(), r.Status)
	if !part {
		if r.First != nil {
			fmt.Fprintf(os.Stderr, "   first failure: %s; alone: %s\n", r.First, r.First.Alone)
		}
		printSkips(os.Stderr, []*record{r})
	}
	return r.Status, nil
}

// of runs a command and returns its exit status and the CPU time, in seconds, of the command and
// its children. A signal of the terminal reaches the command by itself; a SIGTERM is passed on,
// unless the legs around this one do that.
func (o *outcomes) of(c *exec.Cmd, signals <-chan os.Signal, part bool) (status int, cpu float64, err error) {
	c.Stdout = nil
	pipe, write, err := os.Pipe()
	if err != nil {
		return 1, 0, err
	}
	defer pipe.Close()
	c.Stdout = write
	err = c.Start()
	write.Close()
	if err != nil {
		return 127, 0, err
	}
	stopped := false
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	read := make(chan error, 1)
	go func() { read <- o.read(pipe) }()
	for waiting := true; waiting; {
		select {
		case s := <-signals:
			stopped = true
			if s == syscall.SIGTERM && !part {
				endDescendants()
			}
		case err = <-done:
			waiting = false
		}
	}
	// What the command left running in the background may hold the pipe; it is given a moment to
	// print what is there.
	select {
	case rerr := <-read:
		if rerr != nil {
			fmt.Fprintf(os.Stderr, "reading what it prints: %v\n", rerr)
		}
	case <-time.After(10 * time.Second):
		pipe.SetReadDeadline(time.Now())
		<-read
	}
	cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	if stopped || endedBySIGINT(err) || err != nil && signalFollows(signals) {
		return interrupted, cpu, nil
	}
	return exitStatus(err), cpu, nil
}

// endedBySIGINT tells whether a command ended because of SIGINT, by its wait status or by the
// shell's convention. A terminal sends SIGINT to all of a group, so the command's end may be seen
// before the signal of this process.
func endedBySIGINT(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal() == syscall.SIGINT
	}
	return exit.ExitCode() == interrupted
}

// signalFollows waits a moment for the signal of this process after a command that may have caught
// the same signal and failed of it.
func signalFollows(signals <-chan os.Signal) bool {
	select {
	case <-signals:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// modulePath is that of go.mod in the working directory.
func modulePath() string {
	text, _ := os.ReadFile("go.mod")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}
