package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// project is a folder with a Makefile whose legs run the tests of a module, and the program under
// test as LEG.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/p\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// This program is legs too, so that the tests need no second one.
func TestMain(m *testing.M) {
	if os.Getenv("LEGS_UNDER_TEST") != "" && len(os.Args) > 1 && (os.Args[1] == "run" || os.Args[1] == "all") {
		main()
	}
	os.Exit(m.Run())
}

func start(t *testing.T, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Dir = dir
	for _, v := range os.Environ() { // make test runs this test in a leg
		if !strings.HasPrefix(v, insideEnv+"=") && !strings.HasPrefix(v, partEnv+"=") && !strings.HasPrefix(v, "MAKE") && !strings.HasPrefix(v, "MFLAGS") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "LEGS_UNDER_TEST=1", `LEG=exec "`+self+`" run`, "GOFLAGS=-trimpath", "CGO_ENABLED=0")
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, out
}

func legs(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	c, out := start(t, dir, args...)
	status := wait(t, c)
	return out.String(), status
}

func wait(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	if err := c.Wait(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

// row is the line of the table that begins with a leg's name, its columns joined by one space,
// without the numbers of seconds.
func row(t *testing.T, out, leg string) string {
	t.Helper()
	for line := range strings.Lines(out[max(0, strings.Index(out, "\nleg ")):]) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == leg {
			return strings.Join(f[3:], " ")
		}
	}
	t.Fatalf("there is no row %s in\n%s", leg, out)
	return ""
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	return lines[len(lines)-1]
}

const testOfA = `package a
import "testing"
func TestGood(t *testing.T) { t.Log("said by a test that passes") }
func TestBad(t *testing.T) {
	t.Run("fine", func(t *testing.T) {})
	t.Run("of [two]", func(t *testing.T) { t.Error("it is wrong here") })
}
func TestLater(t *testing.T) { t.Error("also wrong") }
func TestNeedsCard(t *testing.T) { t.Skip("there is no card in this machine") }
func TestNeedsTwo(t *testing.T) { t.Run("x", func(t *testing.T) { t.Skip("there is no card in this machine") }) }
func TestLong(t *testing.T) { if testing.Short() { t.Skip("takes long") } }
`

func TestTableOfAllLegs(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles packages")
	}
	dir := project(t, map[string]string{
		"Makefile": `
build: ; @$(LEG) build sh -c 'echo builds'
broken: ; @$(LEG) broken sh -c 'echo cannot build; exit 3'
after: ; @$(LEG) after touch ran
short: ; @$(LEG) short X='a b' go test -json -vet=off -timeout 5m -short -run 'Good|Long' ./a + go test -json ./b
tests: ; @$(LEG) tests X='a b' go test -json -vet=off -timeout 5m -tags some -skip Nothing ./... + sh -c 'echo; echo "vm: skipped: there is no QEMU"'
norecipe: absent ; @$(LEG) norecipe true
`,
		"a/a_test.go": testOfA,
		"b/b_test.go": "package b\nimport \"testing\"\nfunc TestB(t *testing.T) { t.Run(\"deep\", func(t *testing.T) { go func() { panic(\"out of bounds\") }(); select {} }) }\n",
		"c/c_test.go": "package c\nimport \"testing\"\nfunc TestC(t *testing.T) { undefined() }\n",
		"d/d_test.go": "package d\nimport (\"fmt\"; \"testing\")\nfunc TestD(t *testing.T) { fmt.Println(\"printed\") }\n",
	})
	out, status := legs(t, dir, "all", "build", "broken", "after:build,broken", "short", "tests", "norecipe", "last:after")
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	for leg, want := range map[string]string{
		"build":    `ok 1 0 make build`,
		"broken":   `FAILED 0 1 exit status 3 make broken`,
		"after":    `not run - - (it needs broken) make after`,
		"last":     `not run - - (it needs after) make last`,
		"short":    `FAILED 1 1 b TestB/deep X='a b' go test -count=1 ./b -run '^TestB$/^deep$'`,
		"tests":    `FAILED 4 4 a TestBad/of_[two] X='a b' go test -vet=off -tags some -count=1 ./a -run '^TestBad$/^of_\[two\]$'`,
		"norecipe": `FAILED 0 1 exit status 2 make norecipe`,
	} {
		if got := row(t, out, leg); got != want {
			t.Errorf("row of %s:\n%s\nwant\n%s", leg, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a leg ran whose needed leg had failed")
	}
	for _, want := range []string{"it is wrong here", "also wrong", "panic: out of bounds", "undefined: undefined", "FAIL\ta\t", "ok  \td\t",
		"    2  there is no card in this machine: a TestNeedsCard TestNeedsTwo/x\n", "    1  there is no QEMU: vm\n", "2 of 7 legs did not run"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	for _, bad := range []string{`"Action"`, "=== RUN", "said by a test that passes", "printed", "takes long"} {
		if strings.Contains(out, bad) {
			t.Errorf("%q stands in\n%s", bad, out)
		}
	}
	if got, want := lastLine(out), "6 passed, 7 failed, 3 skipped"; got != want {
		t.Errorf("last line %q, want %q\n%s", got, want, out)
	}
	checkTimes(t, dir, "build 0", "broken 3", "short 1", "tests 1", "norecipe 2")
	// The command of the table runs that test alone.
	c := exec.Command("sh", "-c", "go test -vet=off -tags some -count=1 ./a -run '^TestBad$/^of_\\[two\\]$'")
	c.Dir = dir
	if text, err := c.CombinedOutput(); err == nil || !bytes.Contains(text, []byte("it is wrong here")) || bytes.Contains(text, []byte("TestLater")) {
		t.Errorf("alone: %v\n%s", err, text)
	}
}

// checkTimes reads out/times.json: the legs in order, with their status.
func checkTimes(t *testing.T, dir string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, timesFile))
	if err != nil {
		t.Fatal(err)
	}
	var times struct {
		Legs []struct {
			Leg    string   `json:"leg"`
			CPU    *float64 `json:"cpu_s"`
			Wall   *float64 `json:"wall_s"`
			Status int      `json:"status"`
		} `json:"legs"`
	}
	if err := json.Unmarshal(text, &times); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range times.Legs {
		if l.CPU == nil || l.Wall == nil {
			t.Errorf("%s has no times", l.Leg)
		}
		got = append(got, fmt.Sprint(l.Leg, " ", l.Status))
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("%s has %v, want %v", timesFile, got, want)
	}
}

// Packages that are tested at the same time mix their events; each failure counts once.
func TestFailuresOfInterleavedPackages(t *testing.T) {
	r := &record{}
	o := &outcomes{out: io.Discard, module: "m", record: r, open: map[testKey]*test{}, builds: map[string][]string{}, failed: map[string]bool{},
		alone: func(testKey) string { return "" }}
	for _, line := range []string{
		`{"Action":"run","Package":"m/a","Test":"TestA"}`,
		`{"Action":"run","Package":"m/b","Test":"TestB"}`,
		`{"Action":"fail","Package":"m/b","Test":"TestB"}`,
		`{"Action":"fail","Package":"m/a","Test":"TestA"}`,
		`{"Action":"fail","Package":"m/b"}`,
		`{"Action":"fail","Package":"m/a"}`,
		`{"Action":"fail","Package":"m/c"}`,
	} {
		o.line(line + "\n")
	}
	if r.Failed != 3 || r.First.Package != "a" {
		t.Errorf("%d failures, the first in %s; want 3, the first in a", r.Failed, r.First.Package)
	}
}

func TestAllLegsGreen(t *testing.T) {
	dir := project(t, map[string]string{"Makefile": "one two: ; @$(LEG) $@ true\n"})
	out, status := legs(t, dir, "all", "one", "two:one")
	if status != 0 || lastLine(out) != "2 passed, 0 failed" || strings.Contains(out, "not run") {
		t.Errorf("status %d\n%s", status, out)
	}
	checkTimes(t, dir, "one 0", "two 0")
	// A leg alone replaces its own times only.
	if out, status := legs(t, dir, "run", "one", "false"); status != 1 || !strings.Contains(out, "== one: ") {
		t.Errorf("status %d\n%s", status, out)
	}
	checkTimes(t, dir, "two 0", "one 1")
}

// A signal ends the leg that runs, and the table says what did not run. The command is one process:
// a shell that waits for a child which ends by itself may go on after SIGINT.
func TestInterruptedLegs(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := project(t, map[string]string{"Makefile": "one three: ; @$(LEG) $@ true\n" +
			"two: ; @$(LEG) two sh -c ': >begun; exec sleep 600' + touch not-begun\n"})
		c, out := start(t, dir, "all", "one", "two", "three")
		ended := make(chan int, 1)
		go func() { ended <- wait(t, c) }()
		for begun := false; !begun; { // go test's own limit of time ends this
			select {
			case status := <-ended:
				t.Fatalf("the legs end before the second has begun: exit status %d\n%s", status, out)
			case <-time.After(time.Millisecond):
			}
			_, err := os.Stat(filepath.Join(dir, "begun"))
			begun = err == nil
		}
		to := c.Process.Pid
		if sig == syscall.SIGINT {
			to = -to // as a terminal does, to all of the group
		}
		if err := syscall.Kill(to, sig); err != nil {
			t.Fatal(err)
		}
		status, text := <-ended, out.String()
		if status != interrupted {
			t.Errorf("%v: exit status %d\n%s", sig, status, text)
		}
		if got := row(t, text, "two"); !strings.HasPrefix(got, "interrupted ") {
			t.Errorf("%v: row %q", sig, got)
		}
		if got := row(t, text, "three"); !strings.HasPrefix(got, "not run - - (interrupted)") {
			t.Errorf("%v: row %q", sig, got)
		}
		if !regexp.MustCompile(`\n\d+ passed, 1 failed\n$`).MatchString(text) {
			t.Errorf("%v: %s", sig, text)
		}
		if _, err := os.Stat(filepath.Join(dir, "not-begun")); err == nil {
			t.Errorf("%v: a command ran after it", sig)
		}
	}
}

// A command that SIGINT ended is an interruption, also before the signal of the group is seen here.
func TestCommandEndedBySIGINT(t *testing.T) {
	for _, command := range []string{"kill -INT $$$$", "exit 130"} {
		dir := project(t, map[string]string{"Makefile": "one: ; @$(LEG) one sh -c '" + command + "' + touch not-begun\ntwo: ; @$(LEG) two true\n"})
		out, status := legs(t, dir, "all", "one", "two")
		if status != interrupted || !strings.HasPrefix(row(t, out, "two"), "not run ") {
			t.Errorf("%q: status %d\n%s", command, status, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "not-begun")); err == nil {
			t.Errorf("%q: a command ran after it", command)
		}
	}
}

func TestMistakes(t *testing.T) {
	dir := project(t, map[string]string{})
	for _, args := range [][]string{{"all"}, {"run"}, {"run", "x"}, {"run", "x", "A=1"}, {"run", "x", "true", "+"}, {"all", "a:b", "b"}} {
		if out, status := legs(t, dir, args...); status != 2 || !strings.Contains(out, "legs: ") {
			t.Errorf("%q: status %d, %s", args, status, out)
		}
	}
}
