package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// short is a run that ends soon.
var short = []string{"run", "../../fixtures/scenarios/request-response.yaml", "--set", "traffic.0.duration=10us", "--set", "traffic.1.duration=10us",
	"--set", "traffic.0.warmup=5us", "--set", "traffic.1.warmup=5us"}

// Files that would overwrite each other, or what the run reads, are refused before the run.
func TestTwoOutputsWithOnePathAreRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	own := at("own.yaml")
	if err := os.WriteFile(own, []byte("name: own\ntraffic:\n  - {messages: 10}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", own, "--pcap", at("x"), "--trace", at("x")}, "--pcap and --trace are one file"},
		{[]string{"run", own, "--pcap", own}, "the scenario and --pcap are one file"},
		{[]string{"run", own, "--fault", at("f"), "--trace", at("f")}, "--fault and --trace are one file"},
		{[]string{"run", own, "-o", at("o"), "--pcap", at("o/own.json")}, "a result of -o and --pcap are one file"},
		{[]string{"run", own, "-o", at("o"), "--sweep", "traffic.0.payload=8B,16B", "--pcap", at("o/own-rate.svg")}, "a result of -o and --pcap are one file"},
		{[]string{"run", own, "-o", at("o"), "--sweep", "traffic.0.payload=8B,16B", "--trace", at("o/own-limit.png")}, "a result of -o and --trace are one file"},
		{[]string{"run", own, "-o", at("o"), "--sweep", "traffic.0.payload=8B,16B", "--sweep", "traffic.0.window=1,2", "--pcap", at("o/own-rate-map-1.svg")}, "a result of -o and --pcap are one file"},
		{[]string{"exec", "--pcap", at("x"), "--trace", at("x"), "--", "true"}, "--pcap and --trace are one file"},
		{[]string{"exec", "--trace", at("x"), "--uar-log", at("x"), "--", "true"}, "--trace and --uar-log are one file"},
		{[]string{"exec", "--pcap", at("x"), "--counters-file", at("x"), "--", "true"}, "--pcap and --counters-file are one file"},
	} {
		if code, out := rdmasim(t, c.args...); code != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit %d\n%s\nwant exit 2 with %s", c.args, code, out, c.want)
		}
	}
	if src, err := os.ReadFile(own); err != nil || !bytes.HasPrefix(src, []byte("name: own")) {
		t.Errorf("the scenario is no longer there: %q, %v", src, err)
	}
}

// Where "-" cannot be standard output, it makes no file of that name.
func TestNoOutputIsNamedDash(t *testing.T) {
	scenario, err := filepath.Abs("../../fixtures/scenarios/request-response.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("PATH", t.TempDir()) // no guest boots
	for _, args := range [][]string{
		{"run", scenario, "--pcap", "-"},
		{"run", scenario, "--trace", "-"},
		{"run", scenario, "--output", "-"},
		{"exec", "--pcap", "-", "--", "/bin/true"},
		{"exec", "--trace", "-", "--", "/bin/true"},
		{"exec", "--uar-log", "-", "--", "/bin/true"},
		{"exec", "--counters-file", "-", "--", "/bin/true"},
		{"exec", "--guests", "1", "--socket", "-", "--", "/bin/true"},
		{"pci", "--socket", "s", "--pcap", "-"},
		{"pci", "--socket", "-"},
		{"pci", "--socket", "s", "--tester", "-"},
		{"vm", "--pcap", "-", "--", "true"},
		{"vm", "--dmesg", "-", "--", "true"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		var out, stderr bytes.Buffer
		code := program.Execute(ctx, args, &out, &stderr)
		cancel()
		flag := args[slices.Index(args, "-")-1]
		want := flag + " -: this output cannot go to standard output: name a file, or write ./- for a file of that name"
		if code != exitUsage || !strings.Contains(stderr.String(), want) || out.Len() > 0 {
			t.Errorf("%v: exit %d\n%s%s\nwant exit 2 with %s", args, code, &out, &stderr, want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// When the n-th operation on an output fails, the exit status says so, the error names the file,
// and each file is whole or not there.
func TestEachOperationOnOutputsMayFail(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	whole := map[string][]byte{}
	for n := 0; ; n++ {
		dir := t.TempDir()
		args := append(append([]string{}, short...), "-o", dir, "--pcap", filepath.Join(dir, "p.pcapng"), "--trace", filepath.Join(dir, "t.trace"))
		calls, failed := 0, ""
		writes := map[string]int{}
		ctx := outfile.WithFail(context.Background(), func(op outfile.Operation, path string) error {
			if op == outfile.OpWrite {
				if writes[path]++; writes[path] > 2 { // as the first two
					return nil
				}
			}
			if calls++; calls != n {
				return nil
			}
			failed = path
			return syscall.EIO
		})
		var out, stderr bytes.Buffer
		code := program.Execute(ctx, args, &out, &stderr)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				whole[e.Name()] = text
			} else if !bytes.Equal(text, whole[e.Name()]) {
				t.Errorf("operation %d, on %s: %s has %d bytes of %d", n, failed, e.Name(), len(text), len(whole[e.Name()]))
			}
		}
		switch {
		case failed == "" && n == 0:
			if code != 0 || len(whole) < 4 {
				t.Fatalf("exit %d, %d files\n%s", code, len(whole), stderr.String())
			}
		case failed == "":
			if code != 0 || n < 25 {
				t.Errorf("exit %d, %d operations", code, n-1)
			}
			return
		case code != exitFailure && code != exitUsage || !strings.Contains(stderr.String(), failed):
			t.Errorf("operation %d, on %s: exit %d, %s", n, failed, code, stderr.String())
		}
	}
}

// One output that cannot be written at the end takes neither the table nor the other outputs with
// it, and the status is 1.
func TestOutputThatIsLostLeavesTheRest(t *testing.T) {
	sharing := []string{"run", "uar-sharing", "--set", "graph=1", "--set", "threads=2", "--set", "ablate=false", "--set", "duration_us=10"}
	for _, c := range []struct {
		name string
		args []string
		flag string
	}{{"request-response", short, "--trace"}, {"request-response", short, "--pcap"}, {"uar-sharing", sharing, "--pcap"}} {
		dir := t.TempDir()
		args := append(slices.Clone(c.args), "-o", dir, c.flag, "/dev/full")
		var out, stderr bytes.Buffer
		code := program.Execute(t.Context(), args, &out, &stderr)
		if code != exitFailure || !strings.Contains(stderr.String(), "rdmasim: /dev/full cannot be written: no space left on device") {
			t.Errorf("%s %s: exit %d, %s", c.name, c.flag, code, &stderr)
		}
		if !strings.Contains(out.String(), "rate_mps") || strings.Contains(out.String(), "INCOMPLETE") {
			t.Errorf("%s %s: standard output has\n%s", c.name, c.flag, &out)
		}
		for _, ending := range []string{".json", ".csv"} {
			if _, err := os.Stat(filepath.Join(dir, c.name+ending)); err != nil {
				t.Errorf("%s %s: %v", c.name, c.flag, err)
			}
		}
	}
	// A file of the folder is lost as well, and the others are not.
	dir := t.TempDir()
	ctx := outfile.WithFail(t.Context(), func(op outfile.Operation, path string) error {
		if op == outfile.OpSync && strings.HasSuffix(path, ".json") {
			return syscall.EIO
		}
		return nil
	})
	var out, stderr bytes.Buffer
	if code := program.Execute(ctx, append(slices.Clone(sharing), "-o", dir), &out, &stderr); code != exitFailure || !strings.Contains(stderr.String(), "uar-sharing.json cannot be written: input/output error") || out.Len() == 0 {
		t.Errorf("exit %d, %s", code, &stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 { // CSV, SVG, PNG
		t.Errorf("%v, %v", entries, err)
	}
}

// A folder that has the name of a picture is said before the run.
func TestFolderInPlaceOfAPicture(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "uar-sharing-1.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, out := rdmasim(t, "run", "uar-sharing", "--set", "graph=1", "--set", "threads=1", "--set", "duration_us=10", "-o", dir)
	if code != exitUsage || !strings.Contains(out, "uar-sharing-1.png cannot be written: it is a directory") || strings.Contains(out, "rate_mps") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A pipe without a reader does not hold a run that was asked to end, and one whose reader comes
// late gets all.
func TestOutputToAPipe(t *testing.T) {
	for _, flag := range []string{"--pcap", "--trace"} {
		path := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		args := append(append([]string{}, short...), flag, path)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var out, stderr bytes.Buffer
		if code := program.Execute(ctx, args, &out, &stderr); code != exitInterrupted || !strings.Contains(stderr.String(), "nobody reads it") {
			t.Errorf("%s: exit %d, %s", flag, code, stderr.String())
		}
		read := make(chan []byte)
		go func() {
			text, _ := os.ReadFile(path)
			read <- text
		}()
		code, text := rdmasim(t, args...)
		select {
		case got := <-read:
			if code != 0 || len(got) < 1000 {
				t.Errorf("%s: exit %d, %d bytes\n%s", flag, code, len(got), text)
			}
		case <-time.After(10 * time.Minute):
			t.Fatalf("%s: exit %d, and waited ten minutes for the end of the pipe\n%s", flag, code, text)
		}
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

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A capture of perf of which a part could not be written does not take the place of an older one,
// and the error names it.
func TestCaptureOfPerfThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.pcapng")
	for n := range 3 { // the last write is that at the end
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		writes := 0
		ctx := outfile.WithFail(context.Background(), func(op outfile.Operation, _ string) error {
			if op == outfile.OpWrite {
				if writes++; writes == n+1 {
					return syscall.ENOSPC
				}
			}
			return nil
		})
		var out, stderr bytes.Buffer
		code := program.Execute(ctx, []string{"perf", "send_bw", "-n", "200", "--pcap=" + path}, &out, &stderr)
		if text, err := os.ReadFile(path); code != exitFailure || err != nil || string(text) != "old" || !strings.Contains(stderr.String(), path) {
			t.Errorf("write %d fails: exit %d, %d bytes, %v, %s", n+1, code, len(text), err, &stderr)
		}
	}
}
