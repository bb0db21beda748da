package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/conformance"
)

// Bounds of what a worker may print before it describes its target, beyond which it is no worker: its standard output
// gets Ginkgo's report later, and driver libraries warn on its standard error.
const (
	maxEarlyOutput = 64 << 10
	maxEarlyErrors = 8 << 20
)

// reapDelay is how long the descriptors of a worker that has ended are waited for, which its children may have.
const reapDelay = 5 * time.Second

// process is a running worker.
type process struct {
	cmd            *exec.Cmd
	stdin          io.Closer
	pipe           *os.File
	stdout, stderr *head
	messages       chan Message
	broken         error // that ended the messages, once they are closed; nil at their proper end
	quit           chan struct{}
	waited         sync.Once
	err            error
}

// start starts a worker in a process group of its own, so that the terminal's
// interrupt reaches the supervisor only, and hands it the job.
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
	p := &process{cmd: cmd, pipe: r, stdout: newHead(maxEarlyOutput), stderr: newHead(maxEarlyErrors), messages: make(chan Message), quit: make(chan struct{})}
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	if s.Stderr != nil {
		cmd.Stderr = io.MultiWriter(p.stderr, s.Stderr)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = reapDelay
	stdin, err := cmd.StdinPipe()
	if err == nil {
		p.stdin = stdin
		err = cmd.Start()
	}
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go p.read(r)
	// If the worker dies before it has read its job, its messages end. One that never reads it holds up nobody.
	go func() {
		if json.NewEncoder(stdin).Encode(job) == nil {
			_, _ = stdin.Write(packed)
			_, _ = stdin.Write([]byte{'\n'}) // messages are lines
		}
	}()
	return p, nil
}

func (p *process) read(r *os.File) {
	defer func() { _ = r.Close() }()
	defer close(p.messages)
	in := newReader(r)
	for {
		m, err := in.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.broken = err
			}
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
	_ = p.pipe.Close()
	p.wait()
}

// printed is the beginning of what a worker printed, for a message.
func (p *process) printed() string {
	text := p.stderr.text()
	if text == "" {
		text = p.stdout.text()
	}
	if text == "" {
		return "; it printed nothing"
	}
	return fmt.Sprintf("; it printed %.*q", maxQuoted, text)
}

func (p *process) wait() { p.waited.Do(func() { p.err = p.cmd.Wait() }) }

// endOfCrash is how long a worker may take to end that has closed its pipe: the kernel takes its memory first.
const endOfCrash = 2 * time.Second

// ends reports whether the worker ends by itself within a time. It stays to be waited for.
func (p *process) ends(within time.Duration) bool {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil || info.Signo != 0 {
			return true
		}
		if time.Since(began) > within {
			return false
		}
	}
}

// crash says how a worker ended that closed its pipe too early. It quotes the first line of the
// worker's standard error, which for a Go program is the fatal error.
func (p *process) crash() string {
	_ = p.stdin.Close()
	ended := p.ends(endOfCrash)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its children too
	p.wait()
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	if !ended {
		return "killed: the worker closed its pipe and did not end" + p.printed()
	}
	if line := p.stderr.firstLine(); line != "" {
		return fmt.Sprintf("the worker crashed (%s): %s", how, line)
	}
	return fmt.Sprintf("the worker crashed (%s)", how)
}

// head keeps the beginning of what a process writes to standard output or error.
type head struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	limit int // more than so many bytes are too much
	size  int
	much  chan struct{} // closed when they are
}

const headSize = 64 << 10

func newHead(limit int) *head { return &head{limit: limit, much: make(chan struct{})} }

func (t *head) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := headSize - t.buf.Len(); room > 0 {
		t.buf.Write(p[:min(room, len(p))])
	}
	if t.size <= t.limit {
		if t.size += len(p); t.size > t.limit {
			close(t.much)
		}
	}
	return len(p), nil
}

func (t *head) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}

func (t *head) firstLine() string {
	line, _, _ := strings.Cut(t.text(), "\n")
	return line
}
