package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// killedRun runs conform, kills it when it has printed so many cases, and returns the workers that
// it had then. It cannot end before, because what it prints does not fit into the pipe that this
// test no longer reads; its workers can.
func killedRun(t *testing.T, cases int, args ...string) (workers []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "-v")...)
	cmd.Env = append(os.Environ(), "CONFORM_TEST_PROGRAM=1")
	out, in, err := os.Pipe()
	if err == nil {
		_, err = unix.FcntlInt(in.Fd(), unix.F_SETPIPE_SZ, 4096)
	}
	if cmd.Stdout = in; err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	_ = in.Close()
	for lines := bufio.NewScanner(out); cases > 0; {
		if !lines.Scan() {
			t.Fatal("the run ended before it was killed")
		}
		if !strings.HasPrefix(lines.Text(), " ") {
			cases--
		}
	}
	workers = children(t, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // signal: killed
	return workers
}

// stat returns the state and the parent of a process; an ended one that nobody has waited for has
// none.
func stat(pid string) (state, parent string) {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	if f := strings.Fields(rest); len(f) > 1 && f[0] != "Z" && f[0] != "X" {
		return f[0], f[1]
	}
	return "", ""
}

// running says whether a process has not ended.
func running(pid string) bool {
	state, _ := stat(pid)
	return state != ""
}

// children are the processes that a process has started and that have not ended.
func children(t *testing.T, of int) []string {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, path := range list {
		pid := filepath.Base(path)
		if _, parent := stat(pid); parent == strconv.Itoa(of) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A run that was killed is recovered: its record has the cases that had finished, as the whole run
// has them.
func TestKilledRunIsRecovered(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var dir string
	at := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"--target=sim", "--label-filter", "CQ || PD", "--parallel", "2"}
	// On a busy machine all workers may have ended before the kill: then nobody is left to remove
	// the folder, and another run is killed.
	for try := 0; ; try++ {
		dir = t.TempDir()
		t.Setenv("TMPDIR", t.TempDir())
		workers := killedRun(t, 5, append(args, "--report", at("run.json"), "--pcap", at("run.pcapng"), "--trace", at("run.trace"), "--junit", at("run.xml"))...)
		for wait := time.Now(); slices.ContainsFunc(workers, running); time.Sleep(10 * time.Millisecond) {
			if time.Since(wait) > 2*time.Minute {
				t.Fatalf("of the workers %v some have not ended", workers)
			}
		}
		left := entries(t, os.TempDir())
		if len(left) == 0 {
			break
		}
		if try == 20 {
			t.Fatalf("the workers left %v", left)
		}
	}
	if _, err := os.Stat(at("run.json")); err == nil {
		t.Fatal("the run has ended")
	}
	text, err := os.ReadFile(at("run.json.journal"))
	if err != nil || bytes.Count(text, []byte("\n")) < 6 {
		t.Fatalf("journal: %v\n%s", err, text)
	}
	if left := entries(t, dir); len(left) != 1 {
		t.Errorf("beside the journal: %v", left)
	}
	if code, _, stderr := command(t, append(args, "--report", at("run.json"))...); code != exitUsage || !strings.Contains(stderr, "conform recover "+at("run.json.journal")) {
		t.Errorf("the next run: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, append(args, "--report", at("whole.json"))...); code != exitOK {
		t.Fatalf("the whole run: exit %d, %s", code, stderr)
	}
	if left, err := filepath.Glob(at("whole.json?*")); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	text = append(text, `{"schema":"rdmasim/conf`...)
	if err := os.WriteFile(at("run.json.journal"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := command(t, "recover", at("run.json.journal"))
	if code != exitOK || !strings.Contains(out, "marked as incomplete") || !strings.Contains(stderr, "the last line is not whole") {
		t.Fatalf("recover: exit %d\n%s%s", code, out, stderr)
	}
	if _, err := os.Stat(at("run.json.journal")); err == nil {
		t.Error("the journal is still there")
	}
	got, _ := readRun(t, at("run.json"))
	whole, _ := readRun(t, at("whole.json"))
	same := 0
	for i, c := range got.Cases {
		if a, b := text1(t, c), text1(t, whole.Cases[i]); a == b {
			same++
		} else if c.Outcome != report.NotRun {
			t.Errorf("recovered %s\nwhole run %s", a, b)
		}
	}
	if !got.Incomplete || same < 5 || same == len(got.Cases) {
		t.Errorf("incomplete %v, %d of %d cases", got.Incomplete, same, len(got.Cases))
	}
	if code, out, stderr := command(t, "diff", at("whole.json"), at("run.json")); code != exitOK || !strings.Contains(out, "NOT-COMPARED") || !regexp.MustCompile(`ok: \d+ of \d+ cases compared`).MatchString(out) {
		t.Errorf("diff: exit %d\n%s%s", code, out, stderr)
	}
	if code, _, stderr := command(t, append(args, "--report", at("run.json"))...); code != exitOK {
		t.Errorf("a run after that: exit %d, %s", code, stderr)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func text1(t *testing.T, c report.Case) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A recovered record replaces only that of another interrupted run, and is no baseline.
func TestRecoverReplacesNoFinishedRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "card.json")
	card := &report.Run{Schema: report.Schema, Target: report.Target{Kind: "hw"}, Environment: map[string]string{report.KeyProvider: "mlx5", report.KeyPart: "0x1017"},
		Cases: []report.Case{{ID: "CQ-001", Outcome: report.NotRun}, {ID: "CQ-002", Outcome: report.NotRun}}}
	leave := func() {
		j, err := runs.OpenJournal(t.Context(), path, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Begin(card), j.Add(report.Case{ID: "CQ-002", Outcome: report.Pass})); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := command(t, "recover", j.Path()); code != exitUsage || !strings.Contains(stderr, "has not ended") {
			t.Errorf("of a run that goes on: exit %d, %s", code, stderr)
		}
		if code, _, stderr := command(t, "--label-filter", "CQ-001", "--report", path); code != exitUsage || !strings.Contains(stderr, "another run writes") {
			t.Errorf("a second run: exit %d, %s", code, stderr)
		}
		j.Close() // as a kill does
	}
	write := func(r *report.Run) {
		f, err := outfile.Create(t.Context(), path)
		if err == nil {
			err = f.Commit(r.WriteJSON)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	leave()
	write(card)
	if code, _, stderr := command(t, "recover", path+".journal"); code != exitUsage || !strings.Contains(stderr, "--report FILE.json") {
		t.Errorf("over a finished record: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "recover", path+".journal", "--report", path+".2"); code != exitOK {
		t.Errorf("beside a finished record: exit %d, %s", code, stderr)
	}
	leave()
	write(&report.Run{Schema: report.Schema, Incomplete: true})
	if code, _, stderr := command(t, "recover", path+".journal"); code != exitOK {
		t.Errorf("over an incomplete record: exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "accept", "--into", t.TempDir(), path); code != exitUsage || !strings.Contains(stderr, "interrupted") {
		t.Errorf("accept: exit %d, %s", code, stderr)
	}
	for want, args := range map[string][]string{"no such file": {path + ".journal"}, "name the record with --report": {path}, "has no finished case": {os.DevNull + ".journal", "--report", path}} {
		if strings.HasPrefix(args[0], os.DevNull) {
			args[0] = filepath.Join(t.TempDir(), "x.journal")
			if err := os.WriteFile(args[0], nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, _, stderr := command(t, append([]string{"recover"}, args...)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("recover %v: exit %d, %s", args, code, stderr)
		}
	}
}

// When the n-th operation on a file fails, the exit status says so, the error names the file, each
// output is whole or not there, nothing else is left, and cases whose report was not written are in
// the journal.
func TestEachOperationOnOutputsMayFail(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	whole := map[string][]byte{}
	step := 1
	if testing.Short() {
		step = 12
	}
	for n := 0; ; n += step {
		calls, failed := 0, ""
		ctx := outfile.WithFail(context.Background(), func(op outfile.Operation, path string) error {
			if calls++; calls != n {
				return nil
			}
			failed = path
			return syscall.EIO
		})
		args := []string{"--label-filter", "PD-007", "--parallel", "1"}
		names := map[string]string{"--report": "r.json", "--junit": "j.xml", "--pcap": "p.pcapng", "--trace": "t.json"}
		for flag, name := range names {
			args = append(args, flag, filepath.Join(dir, name))
		}
		var out, stderr bytes.Buffer
		code := program.Execute(ctx, args, &out, &stderr)
		there := map[string]bool{}
		for _, name := range entries(t, dir) {
			there[name] = true
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				whole[name] = text
			} else if name != "r.json.journal" && !bytes.Equal(text, whole[name]) {
				t.Errorf("operation %d, on %s: %s has %d bytes of %d", n, failed, name, len(text), len(whole[name]))
			}
			_ = os.Remove(filepath.Join(dir, name))
		}
		if tmp := entries(t, os.TempDir()); len(tmp) > 0 {
			t.Errorf("operation %d, on %s: in the temporary folder: %v", n, failed, tmp)
		}
		switch {
		case failed == "":
			if code != exitOK || len(there) != len(names) {
				t.Fatalf("exit %d, %v\n%s", code, there, stderr.String())
			}
			if n > 0 {
				if n < 25 {
					t.Errorf("only %d operations", n-1)
				}
				return
			}
		case code != exitFailed && code != exitUsage || !strings.Contains(stderr.String(), failed):
			t.Errorf("operation %d, on %s: exit %d, %s", n, failed, code, stderr.String())
		case there["r.json.journal"] && (there["r.json"] && !strings.HasPrefix(failed, filepath.Join(dir, "r.json")) || !strings.Contains(stderr.String(), "r.json.journal")):
			t.Errorf("operation %d, on %s: %v, %s", n, failed, there, stderr.String())
		case code == exitFailed && !there["r.json"] && !there["r.json.journal"]:
			t.Errorf("operation %d, on %s: the run is lost: %s", n, failed, stderr.String())
		}
	}
}

// A page and captures are written whole or not at all, and what failed is named.
func TestEachOperationOnPagesAndCapturesMayFail(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("CONFORM_MUTANTS", os.Args[0]) // the test binary is the worker
	page, captures := filepath.Join(dir, "h.html"), filepath.Join(dir, "captures")
	for n := 1; ; n++ {
		calls, failed := 0, ""
		ctx := outfile.WithFail(context.Background(), func(op outfile.Operation, path string) error {
			if strings.HasPrefix(path, page) || strings.HasPrefix(path, captures) {
				calls++
			}
			if calls != n || failed != "" {
				return nil
			}
			failed = path
			return syscall.EIO
		})
		var out, stderr bytes.Buffer
		code := program.Execute(ctx, []string{"--mutant", "nak-access-as-invalid", "--label-filter", "RC-007", "--parallel", "1", "--report", filepath.Join(dir, "r.json"), "--html", page, "--captures", captures}, &out, &stderr)
		if failed == "" {
			if code != exitFailed || n < 12 {
				t.Errorf("exit %d after %d operations\n%s", code, n-1, stderr.String())
			}
			return
		}
		if code != exitFailed && code != exitUsage || !strings.Contains(stderr.String(), failed) {
			t.Errorf("operation %d, on %s: exit %d, %s", n, failed, code, stderr.String())
		}
		for _, name := range []string{"h.html", "captures", "r.json", "r.json.journal"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if left := entries(t, dir); len(left) > 0 {
			t.Errorf("operation %d, on %s: left %v", n, failed, left)
		}
	}
}

// What lies in the place of a journal and is none is left alone, and named.
func TestForeignFileInPlaceOfAJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "e.json")
	journal := file + report.JournalSuffix
	if err := os.WriteFile(journal, []byte("my diary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := command(t, "--label-filter", "PD-001", "--report", file)
	if text, err := os.ReadFile(journal); code != exitUsage || !strings.Contains(stderr, journal+": it does not begin as a journal does") || err != nil || string(text) != "my diary\n" {
		t.Errorf("exit %d, %s%s; then %q, %v", code, out, stderr, text, err)
	}
}
