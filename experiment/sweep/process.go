package sweep

import (
	"bufio"
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
)

// process is a worker process as its supervisor sees it.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies chan reply // closed when the process says no more
	errors  head
}

// startProcess starts a worker in a process group of its own, so that an interrupt of the terminal reaches the supervisor only.
func startProcess(command func() *exec.Cmd, j *job) (*process, error) {
	p := &process{cmd: command(), replies: make(chan reply)}
	p.cmd.Stderr = &p.errors
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = 5 * time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go p.read(out)
	go func() { _ = json.NewEncoder(in).Encode(j) }() // one that dies before it has read the job says nothing more
	return p, nil
}

func (p *process) read(out io.Reader) {
	defer close(p.replies)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(line, &r) != nil {
			return
		}
		p.replies <- r
	}
}

// send asks for a run. An error is seen when no reply comes.
func (p *process) send(o order) { _ = json.NewEncoder(p.in).Encode(o) }

// stop ends the process and what it started, and says how it ended.
func (p *process) stop() error {
	_ = p.in.Close()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	for range p.replies { // so that its reader ends
	}
	return p.cmd.Wait()
}

// died says why a worker has ended that should not have.
func (p *process) died(memory uint64) string {
	for begin := time.Now(); time.Since(begin) < 5*time.Second && !p.ended(); time.Sleep(5 * time.Millisecond) {
	}
	err := p.stop()
	first := p.errors.firstLine()
	var exit *exec.ExitError
	switch {
	case strings.Contains(first, "out of memory") || strings.Contains(first, "cannot allocate memory") || strings.Contains(first, "failed to allocate") || strings.Contains(first, "failed to reserve"):
		return fmt.Sprintf("it needs more memory than a worker may take, %d MiB: give more with --worker-memory, and fewer workers with -j", memory>>20)
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && first == "":
		return "its worker was killed (SIGKILL), as the kernel does when memory runs out: give less with --memory, or fewer workers with -j"
	case first != "":
		return fmt.Sprintf("its worker crashed (%v): %s", err, first)
	}
	return fmt.Sprintf("its worker ended (%v)", err)
}

func (p *process) ended() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return true
	}
	_, rest, _ := bytes.Cut(text, []byte(") "))
	return len(rest) > 0 && rest[0] == 'Z'
}

// head keeps the beginning of what a process prints.
type head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const headSize = 16 << 10

func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if room := headSize - h.buf.Len(); room > 0 {
		h.buf.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (h *head) firstLine() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range strings.Lines(h.buf.String()) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
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
