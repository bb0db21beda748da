package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Files that would overwrite each other, or what the run reads, are refused before the run.
func TestTwoOutputsWithOnePathAreRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.WriteFile(at("old"), nil, 0o600), os.Link(at("old"), at("hard")), os.Symlink("old", at("soft")),
		os.Symlink("new", at("dangling")), os.Mkdir(at("d"), 0o700), os.Symlink("d", at("e"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, pair := range map[string][2]string{"same": {at("x"), at("x")}, "spelling": {at("x"), dir + "/d/../x"}, "hard link": {at("old"), at("hard")},
		"link": {at("old"), at("soft")}, "link to what is not there yet": {at("new"), at("dangling")}, "linked folder": {at("d/x"), at("e/x")}} {
		code, _, stderr := command(t, "--label-filter", "CQ-001", "--report", pair[0], "--junit", pair[1])
		if code != exitUsage || !strings.Contains(stderr, "--report and --junit are one file") {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
	if code, _, stderr := command(t, "--label-filter", "CQ-001", "--trace", at("x"), "--pcap", at("x")); code != exitUsage || !strings.Contains(stderr, "are one file") {
		t.Errorf("capture and timeline: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "--label-filter", "CQ-001", "--fault", at("old"), "--report", at("hard")); code != exitUsage || !strings.Contains(stderr, "--fault and --report are one file") {
		t.Errorf("faults and report: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "--label-filter", "CQ-001", "--report", os.DevNull, "--junit", os.DevNull); code != exitOK {
		t.Errorf("nothing is lost in %s: exit %d, %s", os.DevNull, code, stderr)
	}
}

// A report that goes to a FIFO which nobody reads does not keep an interrupted run.
func TestReportToAFIFOEndsWithTheRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	var out, stderr bytes.Buffer
	if code := execute(ctx, []string{"--label-filter", "CQ-001", "--report", path}, &out, &stderr); code != exitInterrupted || !strings.Contains(stderr.String(), "nobody reads it") {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}

// Whatever output is a pipe whose reader has stopped reading, an interrupted run ends, and says what it lost.
func TestReaderThatStopsDoesNotHoldAnInterruptedRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, flag := range []string{"--report", "--junit", "--pcap", "--trace"} {
		path := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		pipe, err := syscall.Open(path, syscall.O_RDWR|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil { // until it is full
			_, err = syscall.Write(pipe, make([]byte, 1))
		}
		ctx, cancel := context.WithCancel(context.Background())
		var out, stderr bytes.Buffer
		var w io.Writer = &out
		if flag != "--report" { // interrupted when the case has run, so that there is something to write
			w = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		} else {
			time.AfterFunc(300*time.Millisecond, cancel)
		}
		code := execute(ctx, []string{"-v", "--label-filter", "PD-007", flag, path}, w, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), path+" cannot be written: its reader has stopped reading") {
			t.Errorf("%s: exit %d, %s", flag, code, stderr.String())
		}
		cancel()
		_ = syscall.Close(pipe)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
