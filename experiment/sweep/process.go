package sweep

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/workers"
)

// process is a worker process as its supervisor sees it.
type process struct {
	*workers.Process
	*workers.Messages[reply]
}

// startProcess starts a worker and hands it the job.
func startProcess(command func() *exec.Cmd, j *job) (*process, error) {
	cmd := command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p, err := workers.Start(cmd, workers.NewHead(0), true)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go func() { _ = p.Send(j) }() // one that dies before it has read the job says nothing more
	return &process{p, workers.Receive[reply](out)}, nil
}

// stop ends the process and what it started.
func (p *process) stop() {
	p.Messages.Close()
	_ = p.Stop()
}

// died says why a worker has ended that should not have.
func (p *process) died(memory uint64) string {
	death := p.Died(5 * time.Second)
	var exit *exec.ExitError
	switch first := death.Line; {
	case strings.Contains(first, "out of memory") || strings.Contains(first, "cannot allocate memory") || strings.Contains(first, "failed to allocate") || strings.Contains(first, "failed to reserve"):
		return fmt.Sprintf("it needs more memory than a worker may take, %d MiB: give more with --worker-memory, and fewer workers with -j", memory>>20)
	case errors.As(death.Err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && first == "":
		return "its worker was killed (SIGKILL), as the kernel does when memory runs out: give less with --memory, or fewer workers with -j"
	case first != "":
		return "its worker " + death.String()
	}
	return fmt.Sprintf("its worker ended (%v)", death.Err)
}

// shellLine is a command line that a shell reads back.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; a == "" || strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%") != "" {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
