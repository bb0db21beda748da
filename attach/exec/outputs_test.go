//go:build linux && amd64

package exec

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var outputFlags = []string{"-pcap", "-trace", "-uar-log", "-counters"}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A pipe whose reader has stopped reading does not hold a session that was asked to end.
func TestOutputThatNobodyReads(t *testing.T) {
	canListen(t)
	for _, flag := range outputFlags[:2] { // nothing is written to the log
		dir := shared(t)
		path, began := filepath.Join(dir, "fifo"), filepath.Join(dir, "began")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		pipe, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pipe.Close() }()
		for err == nil { // until it is full
			_, err = unix.Write(int(pipe.Fd()), make([]byte, 1))
			_ = unix.SetNonblock(int(pipe.Fd()), true)
		}
		c, out := users()[0].start(t, flag, path, "--", "touch", began)
		for wait := time.Now(); !exists(began); time.Sleep(time.Millisecond) {
			if time.Since(wait) > soon {
				_ = c.Process.Kill()
				_ = c.Wait()
				t.Fatalf("%s: waited %v for the program to make %s\n%s", flag, soon, began, out)
			}
		}
		_ = c.Process.Signal(unix.SIGTERM)
		timer := time.AfterFunc(soon, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		if !timer.Stop() {
			t.Fatalf("%s: waited %v for the session to end after SIGTERM", flag, soon)
		}
		if c.ProcessState.ExitCode() != 125 || !strings.Contains(out.String(), path+" cannot be written: ") || !strings.Contains(out.String(), "its reader has stopped reading") {
			t.Errorf("%s: %v\n%s", flag, c.ProcessState, out)
		}
	}
}

// When the n-th operation on an output fails, the session says so, and the output is whole or not
// there.
func TestEachOperationOnOutputsMayFail(t *testing.T) {
	canListen(t)
	for n := 1; ; n++ {
		dir := shared(t)
		args := []string{"-fail", strconv.Itoa(n)}
		for _, flag := range outputFlags {
			args = append(args, flag, filepath.Join(dir, flag[1:]))
		}
		out, status := users()[0].session(t, append(args, "--", "true")...)
		_, path, failed := strings.Cut(out, "failed: ")
		path, _, _ = strings.Cut(path, "\n")
		switch {
		case !failed && status == 0 && n > 12:
			return
		case !failed:
			t.Fatalf("operation %d: status %d\n%s", n, status, out)
		case status != 125 || strings.Count(out, path) < 2:
			t.Errorf("operation %d, on %s: status %d\n%s", n, path, status, out)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if !slices.Contains(outputFlags, "-"+e.Name()) || e.Name() != "uar-log" && len(text) < 50 {
				err = errors.Join(err, errors.New("half a file"))
			}
			if err != nil {
				t.Errorf("operation %d, on %s: %s: %v", n, path, e.Name(), err)
			}
		}
	}
}

// TestNamesAreText: messages have names of programs as text.
func TestNamesAreText(t *testing.T) {
	canListen(t)
	truth, err := osexec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(shared(t), "\x1b[2J\nx")
	if err := os.Symlink(truth, name); err != nil {
		t.Fatal(err)
	}
	out, _ := users()[0].session(t, "--", name)
	if !strings.Contains(out, `\u001b[2J\u000ax made no RDMA call`) || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
}

// A program that the kernel does not run leaves no counters, which would be those of a run.
func TestNoCountersWithoutAProgram(t *testing.T) {
	canListen(t)
	dir := shared(t)
	bad, counters := filepath.Join(dir, "bad"), filepath.Join(dir, "counters")
	if err := os.WriteFile(bad, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, status := users()[0].session(t, "-counters", counters, "--", bad); status != 125 || !strings.Contains(out, "exec format error") {
		t.Errorf("status %d\n%s", status, out)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want the program alone", entries, err)
	}
}
