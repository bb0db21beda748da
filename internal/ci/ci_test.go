// Package ci runs the shell steps of the CI jobs that docs/ci.md offers to users, and of this
// project's own workflow.
package ci

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const root = "../.."

// few are the cases that the steps run with here.
const few = "DEV-001 || RC-001 || UD-001 || PD-009"

// pureTags are the tags by which the Makefile keeps cgo out of the standard library.
const pureTags = "netgo,osusergo"

// step is a step of a job with the shell command that it runs, if any.
type step struct {
	Name string `yaml:"name"`
	Run  string `yaml:"run"`
}

// job is a job of GitHub Actions or of GitLab.
type job struct {
	Steps  []step   `yaml:"steps"`
	Script []string `yaml:"script"`
}

// shell is what the job's steps run, in order.
func (j job) shell() []step {
	var out []step
	for _, s := range j.Steps {
		if s.Run != "" {
			out = append(out, s)
		}
	}
	for _, line := range j.Script {
		out = append(out, step{line, line})
	}
	return out
}

// pageJobs are the jobs of a page by the heading that they stand below.
func pageJobs(t *testing.T) map[string]job {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]job{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, _, _ := strings.Cut(section, "\n")
		block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)
		if block == nil {
			continue
		}
		var doc struct {
			Jobs    map[string]job `yaml:"jobs"`
			Conform job            `yaml:"conform"`
		}
		text := []byte(block[1])
		if strings.HasPrefix(block[1], " ") { // steps alone
			text = append([]byte("conform:\n    steps:\n"), text...)
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", heading, err)
		}
		if doc.Jobs != nil {
			doc.Conform = doc.Jobs["conform"]
		}
		if len(doc.Conform.shell()) > 0 {
			jobs[heading] = doc.Conform
		}
	}
	return jobs
}

// run runs a step in a folder as both services do, and returns what it printed and whether it was
// green.
func run(t *testing.T, dir string, s step) (string, bool) {
	t.Helper()
	if strings.Contains(s.Run, "${{") {
		t.Errorf("%q needs a value of the service", s.Run)
	}
	script := s.Run
	if strings.Contains(os.Getenv("GOFLAGS"), pureTags) {
		// A command's tags are in place of those in GOFLAGS: with both, what the build around this
		// test has compiled is used again.
		script = strings.ReplaceAll(script, " -tags hw ", " -tags hw,"+pureTags+" ")
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CASES="+few, "RDMASIM=main")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err == nil
}

// runAll runs steps up to the first that is not green, whose name and output it returns.
func runAll(t *testing.T, dir string, steps []step) (failed, out string) {
	t.Helper()
	for _, s := range steps {
		if text, ok := run(t, dir, s); !ok {
			return s.Name, text
		}
	}
	return "", ""
}

// programs is the folder bin of all jobs here: the build of a job finds what the one before has
// linked, and that it is of this tree.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "ci-programs-"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(status)
}

// users is a folder such as a job of a user's repository has, with the project in rdmasim.
func users(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	link(t, absolute(t), filepath.Join(dir, "rdmasim"))
	link(t, programs, filepath.Join(dir, "bin"))
	return dir
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// The first run has nothing to compare with and leaves a record, the second finds it the same, and
// one that differs from what the last green run saw fails and leaves the record alone.
func TestJobsOfUsers(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs")
	}
	jobs := pageJobs(t)
	if got, want := slices.Sorted(maps.Keys(jobs)), []string{"GitHub Actions", "GitLab", "Your own libibverbs and provider"}; !slices.Equal(got, want) {
		t.Fatalf("jobs %q, want %q", got, want)
	}
	for _, name := range []string{"GitHub Actions", "GitLab"} {
		t.Run(name, func(t *testing.T) {
			dir, steps := users(t), jobs[name].shell()
			if len(steps) < 3 {
				t.Fatalf("steps %+v", steps)
			}
			if failed, out := runAll(t, dir, steps); failed != "" {
				t.Fatalf("%s:\n%s", failed, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "diff.txt")); err == nil {
				t.Error("the first run has compared something")
			}
			if failed, out := runAll(t, dir, steps); failed != "" {
				t.Fatalf("second run, %s:\n%s", failed, out)
			}
			if text := read(t, dir, "diff.txt"); !strings.Contains(text, "ok: 4 cases compared") {
				t.Errorf("comparison:\n%s", text)
			}
			for _, file := range []string{"conform.xml", "conform.html", "record.json", "last/record.json"} {
				if read(t, dir, file) == "" {
					t.Errorf("%s is empty", file)
				}
			}
			was := strings.Replace(read(t, dir, "last/record.json"), `"step": "create_qp with an SRQ of another PD",
     "kind": "value",
     "got": "0"`, `"step": "create_qp with an SRQ of another PD",
     "kind": "value",
     "got": "EINVAL"`, 1)
			if err := os.WriteFile(filepath.Join(dir, "last/record.json"), []byte(was), 0o600); err != nil {
				t.Fatal(err)
			}
			failed, out := runAll(t, dir, steps)
			if !strings.Contains(failed, "ompare") && !strings.Contains(failed, "diff") || !strings.Contains(out, `REGRESSION PD-009`) {
				t.Errorf("a regression: %q\n%s", failed, out)
			}
			if read(t, dir, "last/record.json") != was {
				t.Error("a run that is not green has put its record in place of the last green one")
			}
		})
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The steps for a library of one's own, where one is installed.
func TestJobWithALibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs")
	}
	need := os.Getenv("RDMASIM_NEED_RDMA") != ""
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil && !need {
		t.Skip("needs libibverbs-dev")
	}
	jobs, dir := pageJobs(t), users(t)
	var steps []step
	for _, s := range jobs["GitHub Actions"].shell() {
		if s.Name == "Run the suite" {
			steps = append(steps, jobs["Your own libibverbs and provider"].shell()...)
			continue
		}
		steps = append(steps, s)
	}
	if len(steps) != 4 {
		t.Fatalf("steps %+v", steps)
	}
	if failed, out := runAll(t, dir, steps); failed != "" {
		t.Fatalf("%s:\n%s", failed, out)
	}
	if text := read(t, dir, "record.json"); !strings.Contains(text, `"below": "rdmasim exec"`) {
		t.Errorf("the record is not of a run below exec:\n%.600s", text)
	}
}

// This project's own job, in a copy of what it reads.
func TestOwnWorkflow(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs")
	}
	text, err := os.ReadFile(filepath.Join(root, ".github/workflows/conform.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Jobs map[string]job `yaml:"jobs"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if check := doc.Jobs["check"].shell(); len(check) != 1 || check[0].Run != "make check" {
		t.Errorf("job check: %+v", check)
	}
	dir := t.TempDir()
	for _, name := range []string{"cmd", "fixtures", "go.mod"} { // the programs are built where the sources are
		link(t, filepath.Join(absolute(t), name), filepath.Join(dir, name))
	}
	link(t, programs, filepath.Join(dir, "bin"))
	steps := doc.Jobs["conform"].shell()
	if len(steps) != 3 || !strings.HasPrefix(steps[0].Run, "go build ") {
		t.Fatalf("steps %+v", steps)
	}
	steps[0].Run = strings.Replace(steps[0].Run, "go build ", "go build -C '"+absolute(t)+"' ", 1)
	if failed, out := runAll(t, dir, steps); failed != "" {
		t.Fatalf("%s:\n%s", failed, out)
	}
	if text := read(t, dir, "out/diff.txt"); strings.Count(text, "ok: 4 cases compared") != 2 {
		t.Errorf("comparison:\n%s", text)
	}
}

func absolute(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
