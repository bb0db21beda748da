package harness

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/internal/cli/workers"
)

// Bounds of what a worker may print before it describes its target, beyond which it is no worker:
// its standard output gets Ginkgo's report later, and driver libraries warn on its standard error.
const (
	maxEarlyOutput = 64 << 10
	maxEarlyErrors = 8 << 20
)

// process is a running worker.
type process struct {
	*workers.Process
	*workers.Messages[Message]
	pipe   *os.File
	stdout *workers.Head
}

// start starts a worker and hands it the job.
func (s *Supervisor) start(job Job) (*process, error) {
	packed, err := conformance.Pack()
	if err != nil {
		return nil, err
	}
	job.Catalogue = true
	cmd, err := s.Command()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{pipe: r, stdout: workers.NewHead(maxEarlyOutput)}
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stdout, cmd.Stderr = p.stdout, s.Stderr
	p.Process, err = workers.Start(cmd, workers.NewHead(maxEarlyErrors), true)
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	p.Messages = workers.Receive[Message](r)
	// If the worker dies before it has read its job, its messages end. One that never reads it
	// holds up nobody.
	go func() {
		if p.Send(job) == nil {
			_, _ = p.In.Write(packed)
			_, _ = p.In.Write([]byte{'\n'}) // messages are lines
		}
	}()
	return p, nil
}

// stop kills the worker and the processes that it started, and waits for it.
func (p *process) stop() {
	p.Messages.Close()
	_ = p.pipe.Close()
	_ = p.Stop()
}

// printed is the beginning of what a worker printed, for a message.
func (p *process) printed() string {
	text := cmp.Or(p.Errors.Text(), p.stdout.Text())
	if text == "" {
		return "; it printed nothing"
	}
	return fmt.Sprintf("; it printed %.*q", workers.MaxQuoted, text)
}

// endOfCrash is how long a worker may take to end that has closed its pipe: the kernel takes its
// memory first.
const endOfCrash = 2 * time.Second

// crash says how a worker ended that closed its pipe too early.
func (p *process) crash() string {
	death := p.Died(endOfCrash)
	if !death.Ended {
		return "killed: the worker closed its pipe and did not end" + p.printed()
	}
	return "the worker " + death.String()
}
