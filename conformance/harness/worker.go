package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/report"
)

// Targets makes the target of a job.
type Targets func(job Job) (spec.Target, error)

// Work is a worker's main: it reads a job from in, runs it and writes messages to the
// pipe that the supervisor gave it. suite is what can be run.
func Work(in io.Reader, targets Targets, suite *spec.Suite) error {
	dec := json.NewDecoder(in)
	var job Job
	if err := dec.Decode(&job); err != nil {
		return fmt.Errorf("worker: job: %w", err)
	}
	go func() { // a worker does not outlive its supervisor
		_, _ = io.Copy(io.Discard, in)
		os.Exit(3)
	}()
	pipe := os.NewFile(pipeFD, "messages")
	if pipe == nil {
		return fmt.Errorf("worker: not started by a supervisor")
	}
	enc := json.NewEncoder(pipe)
	send := func(m Message) {
		if err := enc.Encode(m); err != nil {
			os.Exit(3) // nobody listens
		}
	}
	runner, hello := prepare(job, targets)
	send(Message{Hello: hello})
	if hello.Error != "" {
		return nil
	}
	items, err := pick(suite, job.Cases)
	if err != nil {
		return err
	}
	err = conformance.Register(conformance.Config{Runner: runner, Items: items,
		Started: func(id string) { send(Message{Started: id}) },
		Finished: func(c report.Case) {
			send(Message{Finished: &c})
			if f, ok := runner.Target.(spec.Mortal); ok && f.Spent() {
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
	fail := func(err error) (*conformance.Runner, *Hello) { return nil, &Hello{Error: err.Error()} }
	target, err := targets(job)
	if err != nil {
		return fail(err)
	}
	ledger, err := conformance.LoadLedger()
	if err != nil {
		return fail(err)
	}
	bed, err := target.NewTestbed(job.Seed, spec.BedOptions{})
	if err != nil {
		return fail(err)
	}
	hello := &Hello{Target: bed.Target()}
	policy, err := conformance.LoadPolicy(hello.Target.Profile)
	if err != nil {
		return fail(err)
	}
	hello.Lacks = policy.Lacks(bed)
	if c, ok := target.(spec.Chooser); ok {
		hello.Chosen = c.Chosen()
	}
	if err := bed.Close(); err != nil {
		return fail(err)
	}
	r := &conformance.Runner{Target: target, Seed: job.Seed, Policy: policy, Ledger: ledger, Repeat: job.Repeat}
	r.Options = func(id string) spec.BedOptions {
		o := spec.BedOptions{Lockstep: job.Lockstep, Full: job.Full}
		if job.Pcap {
			o.Pcap = filepath.Join(job.Dir, id+".pcapng")
		}
		if job.Trace {
			o.Trace = filepath.Join(job.Dir, id+".trace")
		}
		return o
	}
	return r, hello
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

// verdict stands in for testing.T: outcomes travel as records, so a failed suite is
// nothing to act on.
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
