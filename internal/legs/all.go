package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// planned is a leg of legs all, with the legs without which it cannot run, and what came of it.
type planned struct {
	name   string
	needs  []string
	record *record
	notRun string // why
}

func plan(args []string) ([]*planned, error) {
	known := map[string]bool{}
	var legs []*planned
	for _, arg := range args {
		name, needs, _ := strings.Cut(arg, ":")
		p := &planned{name: name}
		if needs != "" {
			p.needs = strings.Split(needs, ",")
		}
		for _, n := range p.needs {
			if !known[n] {
				return nil, fmt.Errorf("leg %s needs %s, which is not among the legs before it", name, n)
			}
		}
		known[name] = true
		legs = append(legs, p)
	}
	return legs, nil
}

// runAll makes each target in turn, and prints the table.
func runAll(args []string) (int, error) {
	legs, err := plan(args)
	if err != nil {
		return 2, err
	}
	for _, old := range []string{legsDir, timesFile} {
		if err := os.RemoveAll(old); err != nil {
			return 1, err
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	failed := map[string]bool{}
	status, stopped := 0, false
	for i, l := range legs {
		for _, n := range l.needs {
			if failed[n] && l.notRun == "" {
				l.notRun = "it needs " + n
			}
		}
		if stopped {
			l.notRun = "interrupted"
		}
		if l.notRun != "" {
			failed[l.name] = true
			continue
		}
		fmt.Fprintf(os.Stderr, "-- %s, leg %d of %d\n", l.name, i+1, len(legs))
		stopped = l.make(signals)
		if l.record.Status != 0 {
			failed[l.name] = true
			status = 1
		}
	}
	if stopped {
		status = interrupted
	}
	printTable(os.Stdout, legs)
	return status, nil
}

// make makes the leg's target, and tells whether a signal has ended that.
func (p *planned) make(signals <-chan os.Signal) (stopped bool) {
	// The command line of this make reaches those below it too: nothing is built a second time.
	c := exec.Command("make", "--no-print-directory", p.name, "BUILT=")
	c.Env = append(os.Environ(), partEnv+"=1")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	r := &record{Leg: p.name}
	began := time.Now()
	err := c.Start()
	if err == nil {
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		for waiting := true; waiting; {
			select {
			case s := <-signals:
				stopped = true
				if s == syscall.SIGTERM {
					endDescendants()
				}
			case err = <-done:
				waiting = false
			}
		}
	}
	if own, rerr := readRecord(r.path()); rerr == nil {
		r = own
	} else { // its recipe has not come so far
		r.Wall = time.Since(began).Seconds()
		if c.ProcessState != nil {
			r.CPU = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
		}
	}
	stopped = stopped || r.Status == interrupted
	if stopped {
		r.Status = interrupted
	} else if r.Status == 0 {
		r.Status = exitStatus(err)
	}
	if r.Status != 0 && r.Failed == 0 {
		r.Failed = 1
	}
	if err := r.write(); err != nil {
		fmt.Fprintln(os.Stderr, "legs:", err)
	}
	p.record = r
	return stopped
}

// endDescendants sends SIGTERM to all processes below this one, as the terminal would send SIGINT.
func endDescendants() {
	below := map[int]bool{os.Getpid(): true}
	for grown := true; grown; {
		grown = false
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || below[pid] {
				continue
			}
			text, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
			// pid (name) state ppid ...: the name may contain anything.
			fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
			if len(fields) < 2 {
				continue
			}
			if parent, _ := strconv.Atoi(fields[1]); below[parent] {
				below[pid], grown = true, true
			}
		}
	}
	delete(below, os.Getpid())
	for pid := range below {
		syscall.Kill(pid, syscall.SIGTERM)
	}
}
