// Package workers runs worker processes: programs of this project that take work on standard input,
// as JSON values one a line, and answer the same way. It starts them, reads their messages, kills
// them with what they started, and says why one died.
package workers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reapDelay is how long the descriptors of a worker that has ended are waited for, which its
// children may have.
const reapDelay = 5 * time.Second

// Process is a running worker.
type Process struct {
	Cmd    *exec.Cmd
	In     io.WriteCloser // its standard input
	Errors *Head          // what it writes to standard error
	waited sync.Once
	err    error
}

// Start starts a worker. What it writes to standard error goes to errors, and to cmd.Stderr too if
// that is set. With group it has a process group of its own: an interrupt of the terminal reaches
// only who started it, and Kill ends everything that it started.
func Start(cmd *exec.Cmd, errors *Head, group bool) (*Process, error) {
	p := &Process{Cmd: cmd, Errors: errors}
	if cmd.Stderr != nil {
		cmd.Stderr = io.MultiWriter(errors, cmd.Stderr)
	} else {
		cmd.Stderr = errors
	}
	cmd.SysProcAttr = cmp.Or(cmd.SysProcAttr, &syscall.SysProcAttr{})
	cmd.SysProcAttr.Setpgid = group
	cmd.WaitDelay = cmp.Or(cmd.WaitDelay, reapDelay)
	var err error
	if p.In, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Send writes a value as JSON to the worker's standard input.
func (p *Process) Send(v any) error { return json.NewEncoder(p.In).Encode(v) }

// Kill ends the worker with SIGKILL, and its process group if it has one.
func (p *Process) Kill() {
	if p.Cmd.SysProcAttr.Setpgid {
		_ = syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGKILL)
	}
	_ = p.Cmd.Process.Kill()
}

// Wait waits until the worker has ended, and returns how: nil for exit status 0. It may be called
// again.
func (p *Process) Wait() error {
	p.waited.Do(func() { p.err = p.Cmd.Wait() })
	return p.err
}

// Stop kills the worker and waits for it. One that was waited for has nothing to kill: its number
// may be another's.
func (p *Process) Stop() error {
	p.waited.Do(func() {
		p.Kill()
		_ = p.In.Close()
		p.err = p.Cmd.Wait()
	})
	return p.err
}

// Death is how a worker ended that should not have.
type Death struct {
	Ended bool   // by itself; false: it was killed, because it did not end in time
	Err   error  // exit status or signal; nil: exit status 0
	Line  string // the first that it wrote to standard error, which for a Go program is the fatal error; empty: none
}

// String returns "crashed (exit status 2): fatal error: ...", without the colon if the worker wrote
// no line.
func (d Death) String() string {
	how := "exit status 0"
	if d.Err != nil {
		how = d.Err.Error()
	}
	if d.Line == "" {
		return fmt.Sprintf("crashed (%s)", how)
	}
	return fmt.Sprintf("crashed (%s): %s", how, d.Line)
}

// Died says how a worker ended that has closed its output. It may take the given time to end,
// because the kernel takes its memory first; then it is killed, as its children are in either case.
func (p *Process) Died(within time.Duration) Death {
	_ = p.In.Close()
	ended := p.ends(within)
	err := p.Stop()
	return Death{ended, err, p.Errors.FirstLine()}
}

// ends reports whether the worker ends by itself within a time. It stays to be waited for.
func (p *Process) ends(within time.Duration) bool {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil || info.Signo != 0 {
			return true
		}
		if time.Since(began) > within {
			return false
		}
	}
}

// Head keeps the beginning of what a process writes to standard output or error: 64 KiB.
type Head struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	limit int
	size  int
	much  chan struct{}
}

const headSize = 64 << 10

// NewHead makes a Head for which more than limit bytes are too many; 0: none are.
func NewHead(limit int) *Head { return &Head{limit: limit, much: make(chan struct{})} }

// Write takes all, and keeps the beginning.
func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if room := headSize - h.buf.Len(); room > 0 {
		h.buf.Write(p[:min(room, len(p))])
	}
	if h.limit > 0 && h.size <= h.limit {
		if h.size += len(p); h.size > h.limit {
			close(h.much)
		}
	}
	return len(p), nil
}

// TooMuch is closed when more bytes came than the limit.
func (h *Head) TooMuch() <-chan struct{} { return h.much }

// Text returns the beginning, without space around it.
func (h *Head) Text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(h.buf.String())
}

// FirstLine returns the first line that is not blank.
func (h *Head) FirstLine() string {
	line, _, _ := strings.Cut(h.Text(), "\n")
	return strings.TrimSpace(line)
}
