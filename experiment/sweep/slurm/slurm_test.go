package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// commands puts programs of the test before all others.
func commands(t *testing.T, texts map[string]string) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// The script is one that a shell takes, with names and folders as they are, and runs the program
// with its part.
func TestScriptRunsThePart(t *testing.T) {
	t.Chdir(t.TempDir()) // whose path Slurm may not take
	j := &Job{Name: "it's; rm", Dir: "job", Tasks: 7, Partition: "batch", Time: "1-00:00:00", Memory: "2G",
		Program: "/bin/echo", Args: []string{"a b", "it's"}}
	path, err := j.Write()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--array=0-6\n", "--partition=batch\n", "--time=1-00:00:00\n", "--mem=2G\n", "--job-name=rdmasim-it_s__rm\n", "--output=job/%a.log\n"} {
		if !strings.Contains(string(text), "#SBATCH "+want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	run := exec.Command("/bin/sh", path)
	run.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID=3")
	if out, err := run.CombinedOutput(); err != nil || string(out) != "a b it's 3/7\n" {
		t.Errorf("%q, %v", out, err)
	}
	j.Program = "/nowhere/it's"
	if path, err = j.Write(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("/bin/sh", path).CombinedOutput(); err == nil || !strings.Contains(string(out), "has no program /nowhere/it's: put it where all nodes see it") {
		t.Errorf("%q, %v", out, err)
	}
	j.Partition = "a b"
	if _, err := j.Script(); err == nil {
		t.Error("a partition of two words")
	}
	j.Partition, j.Dir = "", "/a b"
	if _, err := j.Script(); err == nil {
		t.Error("logs in a folder that Slurm cannot write to")
	}
}

// A job is followed until no task goes on; a controller that is silent for a while ends nothing.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	commands(t, map[string]string{"squeue": `n=$(cat "` + dir + `/n" 2>/dev/null || echo 0); echo $((n+1)) >"` + dir + `/n"
case $n in
0) echo "0|PENDING"; echo "1|PENDING";;
1) echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1;;
2) echo "0|RUNNING"; echo "1|NODE_FAIL";;
3) echo "0|COMPLETED"; echo "1|REQUEUED";;
*) echo "0|COMPLETED"; echo "1|OUT_OF_MEMORY";;
esac`, "sbatch": `echo "17;cluster"`})
	j := &Job{Dir: dir, Tasks: 2}
	id, err := j.Submit(t.Context(), "x")
	if err != nil || id != "17" {
		t.Fatalf("%q, %v", id, err)
	}
	var told []string
	status, err := j.Follow(t.Context(), id, time.Millisecond, func(s Status) { told = append(told, s.String()) })
	if err != nil || status[0] != "COMPLETED" || status[1] != "OUT_OF_MEMORY" {
		t.Errorf("%v, %v", status, err)
	}
	if got := strings.Join(told, "; "); got != "2 pending, 0 running, 0 done, 0 failed; 0 pending, 1 running, 0 done, 1 failed; 1 pending, 0 running, 1 done, 0 failed; 0 pending, 0 running, 1 done, 1 failed" {
		t.Error(got)
	}
	commands(t, map[string]string{"squeue": `echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1`, "sbatch": `echo "sbatch: error: invalid partition specified: x" >&2; exit 1`})
	if status, err := j.Follow(t.Context(), id, time.Millisecond, nil); err != nil || len(status) != 0 {
		t.Errorf("a job that Slurm has forgotten: %v, %v", status, err)
	}
	if _, err := j.Submit(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "invalid partition specified") {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := j.Submit(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "sbatch is not in PATH") {
		t.Errorf("%v", err)
	}
}
