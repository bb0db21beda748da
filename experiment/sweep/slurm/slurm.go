// Package slurm runs the parts of a sweep as a job array of Slurm: it writes the script, submits
// it, and follows its tasks. It talks to Slurm by its commands (sbatch, squeue), so it works with
// any version that a site has.
package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Job is a job array.
type Job struct {
	Name string
	// Dir keeps script and logs. All nodes must see it at the same path.
	Dir   string
	Tasks int
	// Partition, Time and Memory are as sbatch takes them; empty: the site's default.
	Partition, Time, Memory string
	// Program and Args are what a task runs, on its node; behind Args come the task's number and
	// the number of tasks, as i/n.
	Program string
	Args    []string
}

// script is the name of the script in the job's folder.
const script = "job.sh"

var values = regexp.MustCompile(`^[A-Za-z0-9_.,:+-]*$`)

// Script is the batch script of the job.
func (j *Job) Script() ([]byte, error) {
	for _, v := range []struct{ flag, text string }{{"--partition", j.Partition}, {"--time", j.Time}, {"--mem", j.Memory}} {
		if !values.MatchString(v.text) {
			return nil, fmt.Errorf("%s %q has characters that Slurm does not take", v.flag, v.text)
		}
	}
	if strings.ContainsAny(j.Dir, " \n%\\\"'") {
		return nil, fmt.Errorf("logs cannot go to %q, a path that Slurm does not take: give a folder without spaces, quotes, %% and backslashes with --store", j.Dir)
	}
	var b bytes.Buffer
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("#!/bin/sh")
	line("#SBATCH --job-name=%s", nameOf(j.Name))
	line("#SBATCH --array=0-%d", j.Tasks-1)
	line("#SBATCH --ntasks=1")
	line("#SBATCH --cpus-per-task=1")
	line("#SBATCH --requeue")
	line("#SBATCH --open-mode=append")
	line("#SBATCH --output=%s", filepath.Join(j.Dir, "%a.log"))
	for _, v := range []struct{ flag, text string }{{"partition", j.Partition}, {"time", j.Time}, {"mem", j.Memory}} {
		if v.text != "" {
			line("#SBATCH --%s=%s", v.flag, v.text)
		}
	}
	line("program=%s", quote(j.Program))
	line(`if ! [ -x "$program" ]; then`)
	line(`  echo "rdmasim: $(uname -n) has no program $program: put it where all nodes see it, and name it with --program" >&2`)
	line("  exit 127")
	line("fi")
	words := make([]string, len(j.Args))
	for i, a := range j.Args {
		words[i] = quote(a)
	}
	line(`exec "$program" %s "$SLURM_ARRAY_TASK_ID/%d"`, strings.Join(words, " "), j.Tasks)
	return b.Bytes(), nil
}

// nameOf is a name that squeue shows and no shell reads.
func nameOf(s string) string {
	return "rdmasim-" + strings.Map(func(r rune) rune {
		if r < 128 && values.MatchString(string(r)) {
			return r
		}
		return '_'
	}, s)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Write writes the script into the job's folder and returns its path.
func (j *Job) Write() (string, error) {
	text, err := j.Script()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(j.Dir, 0o777); err != nil {
		return "", err
	}
	path := filepath.Join(j.Dir, script)
	return path, os.WriteFile(path, text, 0o755)
}

// ErrNoSlurm says that this machine has no commands of Slurm.
var ErrNoSlurm = errors.New("sbatch is not in PATH: run this where jobs are submitted, or write the script only with --slurm=script")

// Submit submits a script and returns the number of its job. Logs of an earlier job are removed.
func (j *Job) Submit(ctx context.Context, path string) (string, error) {
	if _, err := exec.LookPath("sbatch"); err != nil {
		return "", ErrNoSlurm
	}
	for i := range j.Tasks {
		_ = os.Remove(j.log(i))
	}
	out, err := output(ctx, "sbatch", "--parsable", path)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";") // ";cluster" may follow
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return "", fmt.Errorf("sbatch printed no job number, but %.200q", out)
	}
	return id, nil
}

func (j *Job) log(task int) string { return filepath.Join(j.Dir, strconv.Itoa(task)+".log") }

// LastLines are the end of what a task printed.
func (j *Job) LastLines(task, n int) string {
	text, err := os.ReadFile(j.log(task))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// output runs a command of Slurm.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// Status is the state of each task that Slurm knows, by its number: PENDING, RUNNING, COMPLETED,
// FAILED, NODE_FAIL ...
type Status map[int]string

// kinds are the states that mean that a task has not ended.
var unfinished = []string{"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}

// Ended reports whether a task will not go on.
func Ended(state string) bool { return !slices.Contains(unfinished, state) }

// Count counts tasks: waiting, running, ended well, ended otherwise.
func (s Status) Count() (pending, running, done, failed int) {
	for _, state := range s {
		switch {
		case state == "COMPLETED":
			done++
		case Ended(state):
			failed++
		case state == "RUNNING" || state == "COMPLETING":
			running++
		default:
			pending++
		}
	}
	return pending, running, done, failed
}

// String returns the text form.
func (s Status) String() string {
	pending, running, done, failed := s.Count()
	return fmt.Sprintf("%d pending, %d running, %d done, %d failed", pending, running, done, failed)
}

// Query asks for the tasks of a job. Slurm forgets a job some minutes after its end: then known is
// false.
func Query(ctx context.Context, id string) (status Status, known bool, err error) {
	out, err := output(ctx, "squeue", "--noheader", "--array", "--states=all", "--jobs="+id, "--format=%K|%T")
	if err != nil && strings.Contains(err.Error(), "Invalid job id") {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	status = Status{}
	for line := range strings.Lines(out) {
		task, state, ok := strings.Cut(strings.TrimSpace(line), "|")
		n, err := strconv.Atoi(task)
		if !ok || err != nil {
			continue
		}
		status[n] = state
	}
	return status, len(status) > 0, nil
}

// patience is how long the controller may be silent before following is given up: a restart of it
// takes less.
const patience = 5 * time.Minute

// Follow waits until no task of a job goes on, and returns the last state that was seen of each.
// tell is called when the states have changed.
func (j *Job) Follow(ctx context.Context, id string, every time.Duration, tell func(Status)) (Status, error) {
	last := Status{}
	heard := time.Now()
	for {
		status, known, err := Query(ctx, id)
		switch {
		case ctx.Err() != nil:
			return last, ctx.Err()
		case err != nil && time.Since(heard) > patience:
			return last, err
		case err == nil && !known:
			return last, nil
		case err == nil:
			heard = time.Now()
			changed := false
			goesOn := false
			for n, state := range status {
				changed = changed || last[n] != state
				goesOn = goesOn || !Ended(state)
			}
			maps.Copy(last, status)
			if changed && tell != nil {
				tell(maps.Clone(last))
			}
			if !goesOn {
				return last, nil
			}
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(every):
		}
	}
}
