package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// The test binary is its own worker.
func TestMain(m *testing.M) {
	if os.Getenv("HARNESS_TEST_WORKER") != "" {
		targets := func(job harness.Job) (spec.Target, error) {
			if job.Target != "fake" {
				return nil, fmt.Errorf("no target %q", job.Target)
			}
			return fake.Target{}, nil
		}
		if err := harness.Work(os.Stdin, targets, suite()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Cases that never end.
const (
	hangsForEver = "DEV-005"
	hangs        = "DEV-006"
)

const crashesInRepeat = "DEV-011" // in the third run

// rogue is a worker that sends what it likes on the pipe of its messages, or prints.
func rogue(script string) *harness.Supervisor {
	s := supervisor("DEV-001", "DEV-002", "DEV-003", "DEV-004", "DEV-006")
	s.Shards = 1
	s.Command = func() (*exec.Cmd, error) { return exec.Command("/bin/sh", "-c", script), nil }
	return s
}

// A program that is no worker is named, with what it printed, and ended.
func TestProgramThatIsNoWorker(t *testing.T) {
	for script, want := range map[string]string{
		"yes":                             `prints without end; it printed "y\ny\n`,
		"yes >&2":                         `prints errors without end; it printed "y\ny\n`,
		"yes '\x1b[2J' >&3":               `in place of a message`,
		"tr '\\0' x </dev/zero >&3":       `a message that is longer than 16 MiB and begins with "xxxxxx`,
		`yes '{"started":"DEV-001"}' >&3`: "a message before the description of its target",
		`yes '{"hello":{"Error":"no\u001b"}}' >&3`: "no testbed: no",
	} {
		s := rogue(script)
		s.Job.Faults = strings.Repeat("#", 1<<20) // more than the pipe of the job holds: nobody reads it
		_, err := s.Run(context.Background())
		if !errors.Is(err, harness.ErrWorker) && !errors.Is(err, harness.ErrTarget) {
			t.Errorf("%s: %v", script, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, want) || len(text) > 600 || strings.Contains(want, "prints") && !strings.Contains(text, "/bin/sh") {
			t.Errorf("%s: %s, want %s", script, text, want)
		}
	}
}

// A worker that describes its target and then does what it was not asked for costs the cases that
// it has not run, and nothing waits for its end. Its children may have its descriptors still.
func TestWorkerThatBreaksTheProtocol(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const hello, start = `echo '{"hello":{}}' >&3; `, `echo '{"started":"DEV-001"}' >&3; `
	for script, want := range map[string]string{
		hello + `yes '{"hello":{}}' >&3`:                                                       "a second description",
		hello + `yes '{"started":"XRC-999"}' >&3`:                                              `the start of "XRC-999"`,
		hello + start + `yes '{}' >&3`:                                                         "an empty message",
		hello + start + start + "sleep 1000":                                                   `the start of "DEV-001"`,
		hello + `yes '{"finished":{"id":"A"}}' >&3`:                                            `the end of "A"`,
		hello + start + `echo '{"finished":{"id":"DEV-001","outcome":"pas"}}' >&3; sleep 1000`: `the unknown outcome "pas" of DEV-001`,
		hello + start + `yes >&3`:                                                              `"y\n" in place of a message`,
		hello + start + `setsid sleep 1000 3>&- & exit 5`:                                      "exit status 5",
		hello + start + `exec 3>&-; exec sleep 1000`:                                           "closed its pipe and did not end",
	} {
		s := rogue(script)
		res, err := s.Run(context.Background())
		c := res.Cases["DEV-001"]
		if err != nil || len(res.Cases) != 5 || c.Outcome != report.Error || !strings.Contains(c.Reason, want) {
			t.Errorf("%s: %v, %d cases, %s (%s), want %s", script, err, len(res.Cases), c.Outcome, c.Reason, want)
		}
	}
}

// A worker in which each case hangs is given up, and one that never describes its target.
func TestWorkerThatSaysNothing(t *testing.T) {
	s := rogue("exec sleep 1000")
	s.Wall = time.Millisecond
	if _, err := s.Run(context.Background()); !errors.Is(err, harness.ErrTarget) || !strings.Contains(err.Error(), "sh did not describe its target in 1ms") {
		t.Errorf("silent: %v", err)
	}
	s = rogue(`while read -r job; do for id in 1 2 3 4 6; do case $job in *DEV-00$id*) break; esac; done
		echo '{"hello":{}}' >&3; echo "{\"started\":\"DEV-00$id\"}" >&3; exec sleep 1000; done`)
	begun := map[string]bool{}
	s.Started = func(id string) { begun[id] = true }
	for s.Wall = 100 * time.Millisecond; len(begun) == 0; s.Wall *= 4 { // time enough to begin a case
		clear(begun)
		res, err := s.Run(context.Background())
		if len(begun) < 3 {
			clear(begun)
			continue
		}
		if c := res.Cases["DEV-006"]; err != nil || len(res.Cases) != 5 || len(begun) != 3 || !strings.Contains(c.Reason, "no worker runs it: killed: it hung") {
			t.Errorf("hangs: %v, %d cases of which %d began, %+v", err, len(res.Cases), len(begun), c)
		}
	}
}

// The limit is that of each run of a case. A worker may tell of the runs that it was asked for.
func TestRepeatsHaveTheLimitEach(t *testing.T) {
	if testing.Short() {
		t.Skip("nine seconds of waiting for limits")
	}
	const again = `echo '{"again":true}' >&3; `
	for script, want := range map[string]report.Outcome{
		"for i in 1 2 3 4 5 6; do sleep 0.7; " + again + "done; sleep 0.7; " + `echo '{"finished":{"id":"DEV-001","outcome":"pass"}}' >&3`: report.Pass,
		"while :; do " + again + "done": report.Error,
	} {
		s := rogue(`echo '{"hello":{}}' >&3; echo '{"started":"DEV-001"}' >&3; ` + script + "; sleep 1000")
		s.Job.Cases, s.Job.Repeat, s.Wall = []string{"DEV-001"}, 7, 4*time.Second
		res, err := s.Run(context.Background())
		if c := res.Cases["DEV-001"]; err != nil || c.Outcome != want || strings.Contains(c.Reason, "hung") {
			t.Errorf("%s: %v, %s (%s), want %s", script, err, c.Outcome, c.Reason, want)
		}
	}
}

// A crash in a repeat says in which, and the first run is kept.
func TestCrashInARepeat(t *testing.T) {
	s := supervisor(crashesInRepeat)
	s.Job.Repeat = 4
	res, err := s.Run(context.Background())
	c := res.Cases[crashesInRepeat]
	if err != nil || c.Outcome != report.Flaky || !strings.HasPrefix(c.Reason, "repeat 3 differs from the first run with the same seed: pass, then error (the worker crashed (exit status 9)") {
		t.Errorf("%v, %s (%s)", err, c.Outcome, c.Reason)
	}
	if len(c.Observations) != 1 || c.Observations[0].Step != "fine" || c.Differs == nil || c.Differs.Outcome != report.Error {
		t.Errorf("%+v", c)
	}
}

// suite misbehaves in every way.
func suite() *spec.Suite {
	s := &spec.Suite{}
	s.Case("DEV-001", func(c *spec.C) { c.Observe("big", uint64(1)<<63+1) })
	s.Case("DEV-002", func(c *spec.C) { c.Failf("no") })
	s.Case("DEV-003", func(*spec.C) { panic("in the body") })
	s.Case("DEV-004", func(*spec.C) { fake.Hang() })
	s.Case(hangsForEver, func(*spec.C) { select {} })
	s.Case(hangs, func(*spec.C) { time.Sleep(time.Hour) })
	s.Case("DEV-007", func(*spec.C) { go func() { panic("in another goroutine") }(); time.Sleep(time.Hour) })
	s.Case("DEV-008", func(*spec.C) { os.Exit(7) })
	s.Case("DEV-010", func(*spec.C) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} })
	begun := 0
	s.Case(crashesInRepeat, func(c *spec.C) {
		if begun++; begun == 3 {
			os.Exit(9)
		}
		c.Observe("fine", 7)
	})
	s.Case("DEV-009", func(c *spec.C) { c.Observe("after", true) })
	return s
}

func supervisor(ids ...string) *harness.Supervisor {
	return &harness.Supervisor{
		Command: func() (*exec.Cmd, error) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "HARNESS_TEST_WORKER=1")
			return cmd, nil
		},
		Job:    harness.Job{Target: "fake", Seed: 1, Cases: ids},
		Shards: 2,
		Wall:   20 * time.Minute, // no case reaches it only because the machine is busy
	}
}

func TestEveryCaseIsAccountedFor(t *testing.T) {
	want := map[string]struct {
		outcome report.Outcome
		reason  string
	}{
		"DEV-001": {report.Pass, ""},
		"DEV-002": {report.Fail, "no"},
		"DEV-003": {report.Error, "panic: in the body"},
		"DEV-004": {report.Error, "did not end"},
		"DEV-007": {report.Error, "in another goroutine"},
		"DEV-008": {report.Error, "exit status 7"},
		"DEV-009": {report.Pass, ""},
		"DEV-010": {report.Error, "signal: killed"},
	}
	var ids []string
	for _, c := range suite().Cases() {
		if c.ID != hangs && c.ID != hangsForEver && c.ID != crashesInRepeat {
			ids = append(ids, c.ID)
		}
	}
	s := supervisor(ids...)
	reports := map[string]int{}
	s.Finished = func(c report.Case) { reports[c.ID]++ }
	res, err := s.Run(context.Background())
	if err != nil || res.Interrupted {
		t.Fatalf("Run: %v, interrupted %v", err, res.Interrupted)
	}
	for id, w := range want {
		got := res.Cases[id]
		if got.Outcome != w.outcome || !strings.Contains(got.Reason, w.reason) || reports[id] != 1 {
			t.Errorf("%s: %s (%s), reported %d times; want %s (%s)", id, got.Outcome, got.Reason, reports[id], w.outcome, w.reason)
		}
	}
	if got := fmt.Sprint(res.Cases["DEV-001"].Observations[0].Got); got != "9223372036854775809" {
		t.Errorf("a 64-bit observation arrived as %s", got)
	}
	if res.Hello.Target.Device != "fake0" {
		t.Errorf("target %+v", res.Hello.Target)
	}
}

// TestHangCostsOneCase: a case that hangs is killed after Wall, and the next worker runs the
// rest. On a busy machine the worker itself may need longer than a short Wall, so it is raised
// until the worker has begun.
func TestHangCostsOneCase(t *testing.T) {
	for _, hanging := range []string{hangs, hangsForEver} {
		for wall := time.Second; ; wall *= 4 {
			s := supervisor(hanging, "DEV-009")
			s.Shards, s.Wall = 1, wall
			res, err := s.Run(context.Background())
			if err != nil && !errors.Is(err, harness.ErrWorker) {
				t.Fatal(err)
			}
			got, after := res.Cases[hanging], res.Cases["DEV-009"]
			// The runtime reports select {} as a deadlock where it notices.
			killed := strings.Contains(got.Reason, "hung in real time") || strings.Contains(got.Reason, "deadlock")
			if got.Outcome == report.Error && killed && after.Outcome == report.Pass {
				break
			}
			if wall > 5*time.Minute {
				t.Fatalf("%s: %s (%s), and then %s (%s)", hanging, got.Outcome, got.Reason, after.Outcome, after.Reason)
			}
		}
	}
}

func TestInterruptLeavesWhatWasDone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := supervisor("DEV-001", hangs, "DEV-009")
	s.Shards = 1
	s.Started = func(id string) {
		if id == hangs {
			cancel()
		}
	}
	res, err := s.Run(ctx)
	if err != nil || !res.Interrupted {
		t.Fatalf("Run: %v, interrupted %v", err, res.Interrupted)
	}
	if len(res.Cases) != 1 || res.Cases["DEV-001"].Outcome != report.Pass {
		t.Errorf("cases: %+v", res.Cases)
	}
}

// A run whose workers have no memory waits for a worker of another run, and says so.
func TestRunWaitsForMemory(t *testing.T) {
	memory, ended, err := harness.FullMachine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := supervisor("DEV-001", "DEV-002", "DEV-009")
	s.Memory = memory
	said := 0
	s.Waiting = func(string) { said++; ended() }
	s.Started = func(id string) {
		if said == 0 {
			t.Errorf("%s begins without memory", id)
		}
	}
	res, err := s.Run(context.Background())
	if err != nil || len(res.Cases) != 3 || said != 1 {
		t.Errorf("Run: %v, %d cases, said %d times", err, len(res.Cases), said)
	}
}

// A run that waits for memory can be interrupted.
func TestRunThatWaitsIsInterrupted(t *testing.T) {
	memory, ended, err := harness.FullMachine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ended()
	ctx, cancel := context.WithCancel(context.Background())
	s := supervisor("DEV-001", "DEV-002")
	s.Memory, s.Waiting = memory, func(string) { cancel() }
	if res, err := s.Run(ctx); err != nil || !res.Interrupted || len(res.Cases) != 0 {
		t.Errorf("Run: %v, interrupted %v, %d cases", err, res.Interrupted, len(res.Cases))
	}
}

func TestUnknownTarget(t *testing.T) {
	s := supervisor("DEV-001")
	s.Job.Target = "nowhere"
	if _, err := s.Run(context.Background()); !errors.Is(err, harness.ErrTarget) {
		t.Errorf("Run: %v", err)
	}
}

func TestWorkerThatNeverStartsEnds(t *testing.T) {
	s := supervisor("DEV-001", "DEV-002")
	s.Command = func() (*exec.Cmd, error) { return exec.Command("/bin/false"), nil }
	res, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"DEV-001", "DEV-002"} {
		if c := res.Cases[id]; c.Outcome != report.Error || !strings.Contains(c.Reason, "no worker runs it") {
			t.Errorf("%s: %+v", id, c)
		}
	}
}
