package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"

	"github.com/onsi/ginkgo/v2"
	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// Targets makes the target of a job.
type Targets func(job Job) (spec.Target, error)

// Work is the main function of a worker: it reads a job from in, runs it with the cases of suite,
// and writes messages to the pipe that the supervisor gave it.
func Work(in io.Reader, targets Targets, suite *spec.Suite) error {
	// A case leaves much garbage, and little else: collect it less often, unless there is much.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(WorkerMemory)
	dec := json.NewDecoder(in)
	var job Job
	if err := dec.Decode(&job); err != nil {
		return fmt.Errorf("worker: job: %w", err)
	}
	if job.Catalogue {
		var packed json.RawMessage
		if err := dec.Decode(&packed); err != nil {
			return fmt.Errorf("worker: catalogue: %w", err)
		}
		if err := conformance.Adopt(packed); err != nil {
			return fmt.Errorf("worker: %w", err)
		}
	}
	// Its standard output is a pipe to the supervisor. Without this, a write to it after the
	// supervisor's end would kill the worker before it has removed the captures.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	leave := func() { // a worker does not outlive its supervisor, nor do its captures
		if job.Dir != "" {
			outfile.RemoveOrphan(job.Dir)
		}
		os.Exit(3)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		leave()
	}()
	pipe := os.NewFile(pipeFD, "messages")
	if pipe == nil {
		return fmt.Errorf("worker: not started by a supervisor")
	}
	enc := json.NewEncoder(pipe)
	send := func(m Message) {
		if err := enc.Encode(m); err != nil {
			leave() // the supervisor has ended
		}
	}
	runner, hello := prepare(job, targets)
	send(Message{Hello: hello})
	if hello.Error != "" {
		return nil
	}
	runner.Again = func(first *report.Case) { send(Message{Again: true, First: first}) }
	items, err := pick(suite, job.Cases)
	if err != nil {
		return err
	}
	err = conformance.Register(conformance.Config{Runner: runner, Items: items,
		Started: func(id string) { send(Message{Started: id}) },
		Finished: func(c report.Case) {
			send(Message{Finished: &c})
			if f, ok := runner.Target.(spec.Restarter); ok && f.NeedsRestart() {
				os.Exit(0) // the supervisor starts another for the rest
			}
		},
	})
	if err != nil {
		return err
	}
	runGinkgo()
	send(Message{Done: true})
	return nil
}

func prepare(job Job, targets Targets) (*conformance.Runner, *Hello) {
	target, err := targets(job)
	if err != nil {
		return nil, &Hello{Error: err.Error()}
	}
	r, about, err := conformance.Prepare(target, job.Seed, nil, job.Ledgers...)
	if err != nil {
		return nil, &Hello{Error: err.Error()}
	}
	r.Repeat = job.Repeat
	r.Options = func(id string) spec.BedOptions {
		o := spec.BedOptions{Lockstep: job.Lockstep, Full: job.Full, MaxEvents: job.MaxEvents}
		if job.Pcap {
			o.Pcap = filepath.Join(job.Dir, id+".pcapng")
		}
		if job.Trace {
			o.Trace = filepath.Join(job.Dir, id+".trace")
		}
		return o
	}
	if job.Evidence {
		r.Evidence = func(id string) string { return filepath.Join(job.Dir, id+EvidenceSuffix) }
	}
	return r, &Hello{Description: about}
}

// pick returns the items of the IDs, in the suite's order.
func pick(suite *spec.Suite, ids []string) ([]conformance.Item, error) {
	all, err := conformance.Items(suite)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	out := []conformance.Item{}
	for _, i := range all {
		if want[i.Entry.ID] {
			out = append(out, i)
		}
	}
	if len(out) != len(want) {
		return nil, fmt.Errorf("worker: %d of the %d cases have code here", len(out), len(want))
	}
	return out, nil
}

// verdict stands in for testing.T. A failed suite needs no action here, because the supervisor
// gets the outcome of each case in its record.
type verdict struct{}

func (verdict) Fail() {}

func runGinkgo() {
	suiteConfig, reporterConfig := ginkgo.GinkgoConfiguration()
	suiteConfig.RandomizeAllSpecs, suiteConfig.RandomSeed = false, 1
	suiteConfig.Timeout = 0 // the supervisor owns deadlines
	reporterConfig.Succinct = true
	reporterConfig.NoColor = true
	ginkgo.RunSpecs(verdict{}, "conform", suiteConfig, reporterConfig)
}
