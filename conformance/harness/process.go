package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// process is a running worker.
type process struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	stderr   *head
	messages chan Message
	quit     chan struct{}
	waited   sync.Once
	err      error
}

// start starts a worker in a process group of its own, so that the terminal's
// interrupt reaches the supervisor only, and hands it the job.
func (s *Supervisor) start(job Job) (*process, error) {
	cmd, err := s.Command()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stderr: &head{}, messages: make(chan Message), quit: make(chan struct{})}
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stdout, cmd.Stderr = io.Discard, p.stderr
	if s.Stderr != nil {
		cmd.Stderr = io.MultiWriter(p.stderr, s.Stderr)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go p.read(r)
	// If the worker dies before it has read its job, its messages end.
	_ = json.NewEncoder(stdin).Encode(job)
	return p, nil
}

func (p *process) read(r *os.File) {
	defer func() { _ = r.Close() }()
	defer close(p.messages)
	in := newReader(r)
	for {
		m, err := in.next()
		if err != nil {
			return
		}
		select {
		case p.messages <- m:
		case <-p.quit:
			return
		}
	}
}

// stop kills the worker and the processes that it started, and waits for it.
func (p *process) stop() {
	close(p.quit)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.stdin.Close()
	p.wait()
}

func (p *process) wait() { p.waited.Do(func() { p.err = p.cmd.Wait() }) }

// crash says how a worker ended that closed its pipe too early. It quotes the first line of the
// worker's standard error, which for a Go program is the fatal error.
func (p *process) crash() string {
	_ = p.stdin.Close()
	p.wait()
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	if line := p.stderr.firstLine(); line != "" {
		return fmt.Sprintf("the worker crashed (%s): %s", how, line)
	}
	return fmt.Sprintf("the worker crashed (%s)", how)
}

// head keeps the beginning of what a process writes to standard error.
type head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const headSize = 64 << 10

func (t *head) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := headSize - t.buf.Len(); room > 0 {
		t.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *head) firstLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(t.buf.String()), "\n")
	return line
}
