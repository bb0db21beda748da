//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNobodyReadsStderr: programs go on, and a session ends when it is asked to, while what the supervisor has to say has no reader.
func TestNobodyReadsStderr(t *testing.T) {
	needs(t, "ibv_devinfo")
	for _, c := range []struct {
		then   string
		once   bool // SIGTERM is sent once
		status int
	}{
		{"exit 7", false, 7},
		{"trap '' TERM; while :; do sleep 0.05; done", false, 128 + 9},
		{"exec sleep 60", true, 128 + 15},
	} {
		u := users()[0]
		done := filepath.Join(shared(t), "done")
		run := u.command("-v", "-grace", "50ms", "--", "sh", "-c", fmt.Sprintf("ibv_devinfo >%s.out && touch %s; %s", done, done, c.then))
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		fill(t, w)
		run.Stderr = w
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if !inTime(func() bool { _, err := os.Stat(done); return err == nil }) {
			t.Errorf("the program waits for stderr for %v", soon)
		}
		timer := time.AfterFunc(soon, func() { _ = run.Process.Kill() })
		over := make(chan error, 1)
		go func() { over <- run.Wait() }()
		again := 100 * time.Millisecond // the shell may not be ready for the first one
		for ended := false; !ended; {
			select {
			case <-over:
				ended = true
			case <-time.After(again):
				_ = run.Process.Signal(unix.SIGTERM)
				if c.once {
					again = time.Hour
				}
			}
		}
		if status := run.ProcessState.ExitCode(); !timer.Stop() || status != c.status {
			t.Errorf("%s: status %d, want %d, within %v of SIGTERM", c.then, status, c.status, soon)
		}
	}
}

// fill leaves no room in a pipe.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	fd := int(w.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 4096); ; {
		if _, err := unix.Write(fd, b); err != nil {
			break
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}
