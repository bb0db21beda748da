package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Fates of a mutant.
const (
	killed    = "killed"      // an assertion of a case or a rule of the model noticed it
	crashed   = "crashed"     // the simulator panicked, hung or took all memory, and nothing else noticed
	unnoticed = "not noticed" // a case or a drawn program did something else than without it, and nothing failed
	same      = "same"        // all that came to it did the same as without it
	alike     = "equivalent"  // the same, and so do and send all of 2,000 drawn programs, of which some come to it
	unreached = "not reached" // no case and no drawn program came to it
)

var fates = []string{killed, crashed, unnoticed, same, alike, unreached}

// verdict is what became of a mutant.
type verdict struct {
	site
	Fate  string `json:"fate"`
	By    string `json:"by,omitempty"` // the case that noticed it, or "random", with the profile behind it unless it is the first
	Cases int    `json:"cases"`        // how many cases came to it, on each profile
}

// judge runs cases and drawn programs on mutants.
type judge struct {
	program  string
	dir      string
	programs int // drawn ones
	mutants  int
	rounds   []*round
}

// round is the suite on one profile.
type round struct {
	profile  string
	ids      []string          // the cases that pass or are known to deviate, without a mutant
	reaches  map[int][]string  // by mutant, the cases that come to it, those that come to the fewest mutants first
	drawn    map[int]bool      // by mutant, whether drawn programs come to it
	baseline map[string]string // by case, a hash of what it saw
	random   string            // a hash of what drawn programs did
	met      map[int]bool      // by mutant, whether the programs of the digest come to it
	digest   string            // of what they did and sent
}

// record is the part of a run's record that is needed.
type record struct {
	Cases []struct {
		ID           string          `json:"id"`
		Outcome      string          `json:"outcome"`
		VirtualNS    json.RawMessage `json:"virtual_ns"`
		Observations json.RawMessage `json:"observations"`
	} `json:"cases"`
}

// memory is what a mutant may take before it counts as crashed, and patience how long one process
// of it may run.
const (
	memory   = 4 << 30
	patience = 3 * time.Minute
)

// run starts the program with a mutant, or with none (-1), and returns its output. A mutant that
// hangs or takes too much memory is killed.
func (j *judge) run(ctx context.Context, n int, reached string, args ...string) (out []byte, status int, err error) {
	limit := patience
	if n < 0 {
		limit = time.Hour // of the whole suite
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.program, args...)
	cmd.Env = append(os.Environ(), "RDMASIM_MUTATION="+strconv.Itoa(n), "RDMASIM_MUTATION_REACHED="+reached, "RDMASIM_MUTATION_COUNT="+strconv.Itoa(j.mutants), "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // its workers have process groups of their own
	cmd.Cancel = func() error {
		for _, p := range session(cmd.Process.Pid) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return nil
	}
	cmd.WaitDelay = time.Second
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
				all := 0
				for _, p := range session(cmd.Process.Pid) {
					all += p.resident
				}
				if all > memory {
					cancel()
				}
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return buf.Bytes(), 0, err
	}
	return buf.Bytes(), cmd.ProcessState.ExitCode(), nil
}

// process is one of a session, with the memory that it has, in bytes.
type process struct{ pid, resident int }

// session are the processes of a session.
func session(id int) []process {
	var some []process
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		text, _ := os.ReadFile(path) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(rest)
		if len(f) > 21 && f[3] == strconv.Itoa(id) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pages, _ := strconv.Atoi(f[21])
			some = append(some, process{pid, pages * os.Getpagesize()})
		}
	}
	return some
}

// suite runs cases on a mutant and returns their outcomes and hashes of what they saw.
func (j *judge) suite(ctx context.Context, n int, profile, reached string, ids []string) (outcomes, seen map[string]string, err error) {
	f, err := os.CreateTemp(j.dir, "record")
	if err != nil {
		return nil, nil, err
	}
	f.Close()
	defer os.Remove(f.Name())
	args := []string{"--target=sim", "--profile", profile, "--parallel", "1", "--wall-limit", "20s", "--report", f.Name()}
	if ids != nil {
		args = append(args, "--label-filter", strings.Join(ids, " || "))
	}
	if _, _, err = j.run(ctx, n, reached, args...); err != nil {
		return nil, nil, err
	}
	outcomes, seen = map[string]string{}, map[string]string{}
	text, err := os.ReadFile(f.Name())
	var r record
	if err != nil || json.Unmarshal(text, &r) != nil {
		return outcomes, seen, nil // the run itself died: no outcome of any case
	}
	for _, c := range r.Cases {
		outcomes[c.ID] = c.Outcome
		seen[c.ID] = hash(append(append([]byte(c.Outcome), c.VirtualNS...), c.Observations...))
	}
	return outcomes, seen, nil
}

func hash(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// draw runs drawn programs on a mutant.
func (j *judge) draw(ctx context.Context, n int, profile, reached string) (out []byte, status int, err error) {
	return j.run(ctx, n, reached, "random", "--target=sim", "--profile", profile, "--programs", strconv.Itoa(j.programs), "--shrink", "1ms", "--coverage")
}

// alikePrograms is how many programs tell whether a mutant is equivalent.
const alikePrograms = 2000

// digest runs these programs, with the wire tapped.
func (j *judge) digest(ctx context.Context, n int, profile, reached string) (string, error) {
	out, status, err := j.run(ctx, n, reached, "random", "--target=sim", "--profile", profile, "--programs", strconv.Itoa(alikePrograms), "--seed", "2", "--shrink", "1ms", "--digest")
	return fmt.Sprintf("%d %s", status, hash(out)), err
}

// equivalent tells whether drawn programs come to a mutant, and all of them do and send the same as
// without it.
func (j *judge) equivalent(ctx context.Context, n int) (bool, error) {
	met := false
	for _, r := range j.rounds {
		if !r.met[n] {
			continue
		}
		met = true
		if got, err := j.digest(ctx, n, r.profile, ""); err != nil || got != r.digest {
			return false, err
		}
	}
	return met, nil
}

// survey runs everything on a profile without a mutant: what cases see, and which mutants each
// comes to.
func (j *judge) survey(ctx context.Context, profile string) error {
	folder, err := os.MkdirTemp(j.dir, "reached")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	outcomes, seen, err := j.suite(ctx, -1, profile, folder, nil)
	if err != nil {
		return err
	}
	r := &round{profile: profile, baseline: seen, reaches: map[int][]string{}, drawn: map[int]bool{}, met: map[int]bool{}}
	for id, o := range outcomes {
		switch o {
		case "pass", "pass-deviation":
			r.ids = append(r.ids, id)
		case "fail", "error":
			return fmt.Errorf("%s is %s on %s without a mutant: run bin/conform --target=sim first", id, o, profile)
		}
	}
	if len(r.ids) == 0 {
		return fmt.Errorf("no case passes on %s without a mutant: run bin/conform --target=sim first", profile)
	}
	out, status, err := j.draw(ctx, -1, profile, folder)
	if err != nil {
		return err
	}
	if status != 0 {
		return fmt.Errorf("drawn programs fail on %s without a mutant: run bin/conform random --target=sim first\n%s", profile, out)
	}
	r.random = hash(out)
	again, err := os.MkdirTemp(j.dir, "reached")
	if err != nil {
		return err
	}
	defer os.RemoveAll(again)
	if r.digest, err = j.digest(ctx, -1, profile, again); err != nil {
		return err
	}
	met, err := j.reached(again, drawnID)
	if err != nil {
		return err
	}
	for _, n := range met {
		r.met[n] = true
	}
	// What a process comes to before its first case, each process comes to.
	early, err := j.reached(folder, "start")
	if err != nil {
		return err
	}
	slices.Sort(r.ids)
	sets := map[string][]int{}
	for _, id := range append(slices.Clone(r.ids), drawnID) {
		if sets[id], err = j.reached(folder, id); err != nil {
			return err
		}
	}
	for _, n := range append(sets[drawnID], early...) {
		r.drawn[n] = true
	}
	slices.SortStableFunc(r.ids, func(a, b string) int { return len(sets[a]) - len(sets[b]) })
	for _, id := range r.ids {
		set := append(sets[id], early...)
		slices.Sort(set)
		for _, n := range slices.Compact(set) {
			r.reaches[n] = append(r.reaches[n], id)
		}
	}
	j.rounds = append(j.rounds, r)
	return nil
}

// drawnID is what drawn programs run as.
const drawnID = "random"

// reached is which mutants a case has come to.
func (j *judge) reached(folder, id string) (all []int, err error) {
	set, err := os.ReadFile(filepath.Join(folder, id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // it found out that it cannot run
	}
	for n, b := range set {
		if b != 0 {
			all = append(all, n)
		}
	}
	return all, err
}

// firstCases is how many cases are tried before all others that come to a mutant.
const firstCases = 24

// try judges one mutant: profile by profile, until something notices it.
func (j *judge) try(ctx context.Context, n int, s site) (verdict, error) {
	v := verdict{site: s, Fate: unreached}
	for i, r := range j.rounds {
		v.Cases += len(r.reaches[n])
		if v.Fate == killed || v.Fate == crashed || len(r.reaches[n]) == 0 && !r.drawn[n] {
			continue
		}
		if v.Fate == unreached {
			v.Fate = same
		}
		if err := j.tryOn(ctx, r, n, &v); err != nil || ctx.Err() != nil {
			return v, err
		}
		if i > 0 && v.Fate == killed {
			v.By += " on " + r.profile
		}
	}
	if v.Fate == same {
		yes, err := j.equivalent(ctx, n)
		if err != nil || ctx.Err() != nil {
			return v, err
		}
		if yes {
			v.Fate = alike
		}
	}
	return v, nil
}

// tryOn judges one mutant on a profile.
func (j *judge) tryOn(ctx context.Context, r *round, n int, v *verdict) error {
	ids := r.reaches[n]
	for first := true; len(ids) > 0; first = false {
		if !first && r.drawn[n] { // which is quick, and then the many cases
			if done, err := j.tryDrawn(ctx, r, n, v); done || err != nil || ctx.Err() != nil {
				return err
			}
		}
		some := ids[:min(firstCases, len(ids))]
		if len(ids) < len(r.reaches[n]) {
			some = ids
		}
		ids = ids[len(some):]
		outcomes, seen, err := j.suite(ctx, n, r.profile, "", some)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if len(outcomes) == 0 {
			v.Fate = crashed
			return nil
		}
		for _, id := range some {
			switch o := outcomes[id]; {
			case o == "fail":
				v.Fate, v.By = killed, id
				return nil
			case o != "pass" && o != "pass-deviation":
				v.Fate = crashed
			case seen[id] != r.baseline[id] && v.Fate == same:
				v.Fate = unnoticed
			}
		}
	}
	if !r.drawn[n] || len(r.reaches[n]) > firstCases {
		return nil
	}
	_, err := j.tryDrawn(ctx, r, n, v)
	return err
}

// tryDrawn runs drawn programs on a mutant; done: they have noticed it.
func (j *judge) tryDrawn(ctx context.Context, r *round, n int, v *verdict) (done bool, err error) {
	out, status, err := j.draw(ctx, n, r.profile, "")
	switch {
	case err != nil || ctx.Err() != nil:
		return false, err
	case status == 1 && bytes.Contains(out, []byte("leaves the model")):
		v.Fate, v.By = killed, "random"
	case status != 0:
		v.Fate = crashed
	case hash(out) != r.random && v.Fate == same:
		v.Fate = unnoticed
	}
	return v.Fate == killed || v.Fate == crashed, nil
}

// each calls do for 0 to n-1, several at once, until one fails or ctx is done.
func each(ctx context.Context, parallel, n int, do func(i int) error, progress func(done, all int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range parallel {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				done++
				progress(done, n)
				mu.Unlock()
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
