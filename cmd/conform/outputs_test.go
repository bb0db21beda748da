package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
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
	if code, _, stderr := command(t, "--label-filter", "CQ-001", "--captures", at("c"), "--report", at("c")); code != exitUsage || !strings.Contains(stderr, "are one file") {
		t.Errorf("captures and a report: exit %d, %s", code, stderr)
	}
	for flag, path := range map[string]string{"--report": at("c/CQ-001.pcapng"), "--pcap": at("d/../c/CQ-001.pcapng"), "--html": at("e/CQ-001.pcapng")} {
		captures := at("c")
		if flag == "--html" {
			captures = at("d") // e is a link to it
		}
		code, _, stderr := command(t, "--label-filter", "CQ-001", "--captures", captures, flag, path)
		if code != exitUsage || !strings.Contains(stderr, flag+" "+path+" is where --captures puts the frames of CQ-001") {
			t.Errorf("%s among the captures: exit %d, %s", flag, code, stderr)
		}
	}
	if _, err := os.Stat(at("c")); err == nil {
		t.Error("a refused command has left its folder")
	}
	if code, _, stderr := command(t, "--label-filter", "CQ-001", "--fault", at("old"), "--report", at("hard")); code != exitUsage || !strings.Contains(stderr, "--fault and --report are one file") {
		t.Errorf("faults and report: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "merge", at("x"), at("old"), "--report", at("soft")); code != exitUsage || !strings.Contains(stderr, "a part and --report are one file") {
		t.Errorf("part and report: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "mutants", "--matrix", "--filter", "range-unchecked", "--label-filter", "RC-034", "--report", at("x"), "--update", at("x")); code != exitUsage || !strings.Contains(stderr, "--report and --update are one file") {
		t.Errorf("report and matrix of mutants: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "--label-filter", "CQ-001", "--report", os.DevNull, "--junit", os.DevNull); code != exitOK {
		t.Errorf("nothing is lost in %s: exit %d, %s", os.DevNull, code, stderr)
	}
}

// With --report - or --junit - standard output is the report alone, and what is for people goes to
// standard error.
func TestReportToStandardOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Setenv("CONFORM_TEST_PROGRAM", "1")
	dir := t.TempDir()
	run := func(args ...string) (stdout, stderr []byte) {
		t.Helper()
		cmd := exec.Command(os.Args[0], append([]string{"-v", "--label-filter", "CQ-001", "--parallel", "1"}, args...)...)
		cmd.Dir = dir
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, &errs)
		}
		return out.Bytes(), errs.Bytes()
	}
	run("--report", "run.json", "--junit", "run.xml")
	for flag, name := range map[string]string{"--report": "run.json", "--junit": "run.xml"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.Remove(filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"-", "/dev/stdout"} {
			if got, errs := run(flag, path); !bytes.Equal(got, want) || !bytes.Contains(errs, []byte("ok: 1 case")) || !bytes.Contains(errs, []byte("CQ-001")) {
				t.Errorf("%s %s: standard output is not the file of the other run:\n%s\nand on standard error: %s", flag, path, got, errs)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Where "-" cannot be standard output, it makes no file of that name.
func TestNoOutputIsNamedDash(t *testing.T) {
	t.Chdir(t.TempDir())
	const cannot = " -: this output cannot go to standard output: name a file, or write ./- for a file of that name"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--label-filter", "CQ-001", "--pcap", "-"}, "--pcap" + cannot},
		{[]string{"--label-filter", "CQ-001", "--trace", "-"}, "--trace" + cannot},
		{[]string{"recover", "x.json.journal", "--report", "-"}, "--report" + cannot},
		{[]string{"accept", "x.json", "--into", "-"}, "--into" + cannot},
		{[]string{"--label-filter", "CQ-001", "--report", "-", "--junit", "-"}, "--report and --junit are one file"},
		{[]string{"--target=sim,hw", "--report", "-"}, "--report -: two targets write two reports"},
		{[]string{"--target=sim,hw", "--junit", "/dev/fd/1"}, "--junit /dev/fd/1: two targets write two reports"},
	} {
		if code, out, stderr := command(t, c.args...); code != exitUsage || !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("%v: exit %d\n%s%s\nwant exit 2 with %s", c.args, code, out, stderr, c.want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
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
	if code := program.Execute(ctx, []string{"--label-filter", "CQ-001", "--report", path}, &out, &stderr); code != exitInterrupted || !strings.Contains(stderr.String(), "nobody reads it") {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}

// Whatever output is a pipe whose reader has stopped reading, an interrupted run ends, and says
// what it lost.
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
		code := program.Execute(ctx, []string{"-v", "--label-filter", "PD-007", flag, path}, w, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), path+" cannot be written: its reader has stopped reading") {
			t.Errorf("%s: exit %d, %s", flag, code, stderr.String())
		}
		cancel()
		_ = syscall.Close(pipe)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestFoldersOfKilledWorkersAreRemoved: a worker that is killed, as in a run that is interrupted,
// leaves the folder of its case's files, and the run removes it.
func TestFoldersOfKilledWorkersAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left := filepath.Join(os.TempDir(), outfile.CaseFolder+"-"+strings.Repeat("A", 26))
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := command(t, "--target=sim", "--label-filter", "PD-001")
	if _, err := os.Stat(left); code != 0 || err == nil {
		t.Errorf("status %d, left: %t; %s", code, err == nil, stderr)
	}
}

// Standard output and error that nobody reads, a pipe that is full or a terminal that is stopped,
// do not keep a command that was asked to end.
func TestUnreadTextsDoNotHoldTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	never := make(chan struct{})
	defer close(never)
	full := writerFunc(func([]byte) (int, error) { <-never; return 0, syscall.EPIPE })
	for _, args := range [][]string{{"list"}, {"frobnicate"}} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan int, 1)
		go func() { ended <- program.Execute(ctx, args, full, full) }()
		cancel()
		select {
		case code := <-ended:
			if code == 0 {
				t.Errorf("%v: exit 0", args)
			}
		case <-time.After(10 * time.Minute):
			t.Fatalf("%v: it waits for its reader", args)
		}
	}
}

// One output that cannot be written at the end does not take the table and the other outputs with
// it.
func TestOutputThatIsLostLeavesTheRest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, flag := range []string{"--report", "--junit", "--html", "--pcap", "--trace"} {
		dir := t.TempDir()
		all := map[string]string{}
		args := []string{"--label-filter", "CQ-001"}
		for _, f := range []string{"--report", "--junit", "--html", "--pcap", "--trace"} {
			all[f] = filepath.Join(dir, strings.TrimPrefix(f, "--"))
			if f == flag {
				all[f] = "/dev/full"
			}
			args = append(args, f, all[f])
		}
		code, out, stderr := command(t, args...)
		if code != exitFailed || !strings.Contains(out, "ok: 1 case") || !strings.Contains(out, "area") {
			t.Errorf("%s: exit %d, and the table is not there:\n%s", flag, code, out)
		}
		if !strings.Contains(stderr, "part of the run's results is lost: /dev/full cannot be written: no space left on device") {
			t.Errorf("%s: %s", flag, stderr)
		}
		for f, path := range all {
			if st, err := os.Stat(path); err != nil || f != flag && st.Size() == 0 {
				t.Errorf("%s is lost, and so is %s: %v", flag, f, err)
			}
		}
	}
}

// What will keep captures from being written is said before the run, as far as it can be known.
func TestCapturesThatCannotBeWrittenAreSaidBeforeTheRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "CQ-002.pcapng"), 0o700); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"/proc/self": "--captures: /proc/self/CQ-001.pcapng cannot be written", // where nobody, not even root, makes a file
		dir:          "--captures: " + dir + "/CQ-002.pcapng cannot be written: it is a directory",
	} {
		code, out, stderr := command(t, "--label-filter", "CQ-001 || CQ-002", "--captures", folder)
		if code != exitUsage || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d\n%s%s", folder, code, out, stderr)
		}
	}
}
