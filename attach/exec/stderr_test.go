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

// TestNobodyReadsStderr: programs go on, and a session ends when it is asked to, while what the
// supervisor has to say has no reader.
func TestNobodyReadsStderr(t *testing.T) {
	needs(t, "ibv_devinfo")
	for _, c := range []struct {
		then   string
		first  string
		ask    int // how often SIGTERM is sent; -1: until the session ends
		grace  string
		status int
	}{
		{"exit 7", "trap '' TERM; ", -1, "1h", 7},
		{"while :; do sleep 0.05; done", "trap '' TERM; ", -1, "50ms", 128 + 9},
		{"exec sleep 3600", "", 1, "1h", 128 + 15},
	} {
		u := users()[0]
		done := filepath.Join(shared(t), "done")
		run := u.command("-v", "-grace", c.grace, "--", "sh", "-c", fmt.Sprintf("%sibv_devinfo >%s && touch %s; %s", c.first, quote(done), quote(done), c.then))
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
		for ended, asked := false, 0; !ended; {
			select {
			case <-over:
				ended = true
			case <-time.After(100 * time.Millisecond):
				if asked != c.ask {
					_ = run.Process.Signal(unix.SIGTERM)
					asked++
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
