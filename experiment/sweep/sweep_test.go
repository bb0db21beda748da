package sweep

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
)

// trouble is what a worker of the tests does instead of a run: "crash 3" at point 3.
const trouble = "SWEEP_TEST_TROUBLE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == WorkerCommand {
		in, out := io.Pipe()
		go meddle(os.Stdin, out, os.Getenv(trouble))
		if err := Work(context.Background(), in, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// meddle hands lines on, up to the order that is to go wrong.
func meddle(from io.Reader, to *io.PipeWriter, what string) {
	var kind string
	point := -1
	_, _ = fmt.Sscanf(what, "%s %d", &kind, &point)
	lines := bufio.NewReader(from)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		var o order
		if err != nil {
			to.CloseWithError(err)
			return
		}
		if n > 0 && json.Unmarshal(line, &o) == nil && o.Point == point {
			switch kind {
			case "":
			case "crash":
				panic("in the simulator")
			case "kill":
				p, _ := os.FindProcess(os.Getpid())
				_ = p.Kill()
			case "hang":
				time.Sleep(time.Hour) // select{} is a deadlock to the runtime where nothing else waits for input
			case "memory":
				var all [][]byte
				for {
					b := make([]byte, 16<<20)
					for i := range b {
						b[i] = 1
					}
					if all = append(all, b); len(all) == cap(all) {
						_ = all[0]
					}
				}
			}
		}
		if at, ok := strings.CutPrefix(what, "instant "); ok && n > 0 && json.Unmarshal(line, &o) == nil {
			fmt.Printf("{\"point\":%d,\"address\":%q,\"cached\":true}\n", o.Point, at)
			continue
		}
		if _, err := to.Write(line); err != nil {
			return
		}
	}
}

const question = `name: q
traffic: [{threads: 2, messages: 40, window: 8}]
`

func planOf(t *testing.T, text string, f Flags, set ...string) *Plan {
	t.Helper()
	sc, err := experiment.ParseScenario("q.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "q.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(t.Context(), path, sc.Experiment(), experiment.Request{Seed: 1, Set: set, Version: "1.2.3"}, f)
	if err != nil {
		t.Fatal(err)
	}
	p.Name = "q.yaml"
	return p
}

func optionsOf(t *testing.T, workers int, dir string) *Options {
	t.Helper()
	model, err := Model()
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(dir, model)
	if err != nil {
		t.Fatal(err)
	}
	return &Options{Workers: workers, Memory: 1 << 30, Wall: time.Minute, Store: st, Command: func() *exec.Cmd { return exec.Command(os.Args[0], WorkerCommand) }}
}

// bytesOf are all files of an answer and what it prints.
func bytesOf(t *testing.T, a *Answer) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, format := range []string{"table", "json", "csv", "jsonl"} {
		var b bytes.Buffer
		if err := a.Write(&b, format); err != nil {
			t.Fatal(err)
		}
		files[format] = b.String()
	}
	dir := t.TempDir()
	names, err := a.WriteFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		text, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		files[n] = string(text)
	}
	return files
}

func runPlan(t *testing.T, p *Plan, o *Options) (*Answer, *Outcome, error) {
	t.Helper()
	sw, err := p.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	return sw.Run(t.Context(), o)
}

var swept = Flags{Sweep: []string{"traffic.0.payload,traffic.0.window=2:8,64B:4", "uar.bf_conflict=none,serialize"}, Seeds: 2}

// The answer's bytes do not depend on the number of workers, on parts and their order, or on what
// was known before.
func TestSameBytesWhoeverRuns(t *testing.T) {
	p := planOf(t, question, swept)
	a, out, err := runPlan(t, p, optionsOf(t, 1, t.TempDir()))
	if err != nil || out.Ran != 8 || out.Cached != 0 {
		t.Fatalf("%v: %+v", err, out)
	}
	want := bytesOf(t, a)
	if len(want) < 12 {
		t.Errorf("files: %d", len(want))
	}
	compare := func(what string, a *Answer) {
		t.Helper()
		for name, text := range bytesOf(t, a) {
			if want[name] != text {
				t.Errorf("%s: %s differs", what, name)
			}
		}
	}
	if a, _, err = runPlan(t, p, optionsOf(t, 3, t.TempDir())); err != nil {
		t.Fatal(err)
	}
	compare("three workers", a)

	dir := t.TempDir()
	for _, i := range []int{2, 0, 2, 1} {
		o := optionsOf(t, 2, dir)
		o.Shard, o.Shards = i, 3
		if a, _, err := runPlan(t, p, o); err != nil || a != nil {
			t.Fatalf("part %d: %v", i, err)
		}
	}
	a, out, err = runPlan(t, p, optionsOf(t, 2, dir))
	if err != nil || out.Ran != 0 || out.Cached != 8 {
		t.Fatalf("parts leave something to do: %v, %+v", err, out)
	}
	compare("parts", a)

	// Two sweeps on one store at once, one of them wider.
	dir = t.TempDir()
	wide := swept
	wide.Seeds = 3
	var both sync.WaitGroup
	for _, p := range []*Plan{p, planOf(t, question, wide)} {
		both.Go(func() {
			if _, _, err := runPlan(t, p, optionsOf(t, 2, dir)); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	a, out, err = runPlan(t, p, optionsOf(t, 2, dir))
	if err != nil || out.Ran != 0 {
		t.Fatalf("%v, %+v", err, out)
	}
	compare("a store of two", a)
}

// A result that is cut off, as by a loss of power, is made again.
func TestDamagedResultIsMadeAgain(t *testing.T) {
	p := planOf(t, question, Flags{Sweep: []string{"traffic.0.window=4,8"}})
	dir := t.TempDir()
	a, _, err := runPlan(t, p, optionsOf(t, 1, dir))
	if err != nil {
		t.Fatal(err)
	}
	want := bytesOf(t, a)
	n := 0
	for e := range store.Entries(dir) {
		text, err := os.ReadFile(e.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(e.Path, text[:len(text)/(1+n)-n], 0o600); err != nil { // one cut off, one whole
			t.Fatal(err)
		}
		n++
	}
	a, out, err := runPlan(t, p, optionsOf(t, 1, dir))
	if err != nil || out.Ran != 1 || out.Cached != 1 {
		t.Fatalf("%v, %+v", err, out)
	}
	if got := bytesOf(t, a); got["json"] != want["json"] {
		t.Error("another answer")
	}
}

// What has a valid sum and is no result, as other programs may put it there, is made again, and
// left out of an export meanwhile.
func TestNonsenseIsMadeAgain(t *testing.T) {
	p := planOf(t, question, Flags{Sweep: []string{"traffic.0.window=4,8"}})
	dir := t.TempDir()
	a, _, err := runPlan(t, p, optionsOf(t, 1, dir))
	if err != nil {
		t.Fatal(err)
	}
	want := bytesOf(t, a)
	for _, nonsense := range []string{`5`, `null`, `{"name":"x","profile":"y","rows":[1]}`, `{"name":"x","profile":"y","rows":[{"rate_mps":1e999}]}`, `{"name":"x","profile":"y","rows":[{"rate_mps":{}}]}`} {
		var first store.Entry
		for e, err := range store.Entries(dir) {
			if err != nil {
				t.Fatal(err)
			}
			first = e
			break
		}
		text, err := os.ReadFile(first.Path)
		if err != nil {
			t.Fatal(err)
		}
		var sealed struct{ Address string }
		if err := json.Unmarshal(text, &sealed); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(nonsense))
		if err := os.WriteFile(first.Path, fmt.Appendf(nil, `{"sum":"%x","address":%q,"result":%s}`, sum[:8], sealed.Address, nonsense), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, n, err := Export(dir, "", ""); n != 1 || err != nil {
			t.Errorf("%s: %d results in the export: %v", nonsense, n, err)
		}
		a, out, err := runPlan(t, p, optionsOf(t, 1, dir))
		if err != nil || out.Ran != 1 || out.Cached != 1 {
			t.Fatalf("%s: %v, %+v", nonsense, err, out)
		}
		if got := bytesOf(t, a); got["json"] != want["json"] {
			t.Errorf("%s: another answer", nonsense)
		}
	}
}

// A worker that crashes, hangs, is killed or needs too much memory loses one point, which is named;
// the same call makes it up.
func TestLostPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for what, want := range map[string]string{
		"crash 2":  "its worker crashed (exit status 2): panic: in the simulator",
		"kill 2":   "its worker was killed (SIGKILL)",
		"hang 2":   "it has not ended after 3s: more time is given with --wall-limit",
		"memory 2": "it needs more memory than a worker may take, 200 MiB: give more with --worker-memory",
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv(trouble, what)
			p := planOf(t, question, Flags{Sweep: []string{"traffic.0.window=1:5:1"}})
			dir := t.TempDir()
			o := optionsOf(t, 2, dir)
			o.Wall, o.Memory = time.Minute, 200<<20
			if strings.HasPrefix(what, "hang") {
				o.Wall = 3 * time.Second
			}
			told := ""
			o.Failed = func(l Failure) { told += l.Error() }
			a, out, err := runPlan(t, p, o)
			if err != nil || out.Failed != 1 || out.Ran != 4 || out.Err() == nil {
				t.Fatalf("%v: %+v", err, out)
			}
			if !strings.Contains(told, "traffic.0.window=3: "+want) || !strings.Contains(told, "(alone: rdmasim run q.yaml --seed 1 --set traffic.0.window=3)") {
				t.Errorf("told %s, want %s", told, want)
			}
			if text := bytesOf(t, a)["table"]; a.Result.Complete || !strings.Contains(text, "INCOMPLETE") || !strings.Contains(text, "1 of 5 runs have no result.") {
				t.Errorf("the answer:\n%s", text)
			}
			t.Setenv(trouble, "")
			if a, out, err = runPlan(t, p, optionsOf(t, 2, dir)); err != nil || out.Ran != 1 || out.Cached != 4 || !a.Result.Complete {
				t.Errorf("the second call: %v, %+v", err, out)
			}
		})
	}
}

// A store that takes nothing ends the sweep; what is done stays.
func TestStoreThatTakesNothing(t *testing.T) {
	if os.Geteuid() == 0 {
		if _, err := os.Stat("/dev/full"); err != nil {
			t.Skip("needs /dev/full")
		}
	}
	p := planOf(t, question, Flags{Sweep: []string{"traffic.0.window=1:9:1"}})
	dir := t.TempDir()
	o := optionsOf(t, 1, dir)
	// Where the folders of results belong, files are in the way.
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		for i := range 256 {
			if err := os.WriteFile(filepath.Join(dir, e.Name(), fmt.Sprintf("%02x", i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, out, err := runPlan(t, p, o)
	if err == nil || !strings.Contains(err.Error(), "traffic.0.window=1: ") || !strings.Contains(err.Error(), "not a directory") || out.Ran > 0 {
		t.Errorf("%v, %+v", err, out)
	}
}

// An interrupt keeps what is done.
func TestInterruptedSweepGoesOn(t *testing.T) {
	p := planOf(t, question, Flags{Sweep: []string{"traffic.0.window=1:12:1"}})
	dir := t.TempDir()
	sw, err := p.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := optionsOf(t, 1, dir)
	o.Progress = func(done, _, _ int) {
		if done == 5 {
			cancel()
		}
	}
	a, out, err := sw.Run(ctx, o)
	if !errors.Is(err, experiment.ErrInterrupted) || out.Ran < 5 || out.Ran > 6 || a.Result.Complete {
		t.Fatalf("%v, %+v", err, out)
	}
	ran := out.Ran
	if _, out, err = runPlan(t, p, optionsOf(t, 1, dir)); err != nil || out.Cached < ran || out.Ran+out.Cached != 12 {
		t.Errorf("%v, %+v", err, out)
	}
}

// The profile's hash is that of what ran, and differs between values of the profile; a sweep that
// is wider or spelled otherwise runs only what is new.
func TestWhatDecidesAResult(t *testing.T) {
	dir := t.TempDir()
	base, _, err := runPlan(t, planOf(t, question, Flags{Seeds: 1}), optionsOf(t, 1, dir))
	if err != nil {
		t.Fatal(err)
	}
	a, out, err := runPlan(t, planOf(t, question, Flags{Sweep: []string{"uar.bf_busy=10ns,20ns"}}), optionsOf(t, 1, dir))
	if err != nil || out.Ran != 2 {
		t.Fatalf("%v, %+v", err, out)
	}
	if hashes := strings.Split(a.Result.ProfileHash, ", "); len(hashes) != 2 || hashes[0] == hashes[1] || strings.Contains(a.Result.ProfileHash, base.Result.ProfileHash) {
		t.Errorf("hashes %s, and %s of the profile as it is stored", a.Result.ProfileHash, base.Result.ProfileHash)
	}
	for _, c := range []struct {
		f   Flags
		set []string
		ran int
	}{
		{Flags{Sweep: []string{"set.uar.bf_busy=10000ps,0.02us,30ns"}}, nil, 1},
		{Flags{Sweep: []string{"traffic.0.window=8,16"}}, nil, 1}, // 8 is the file's
		{Flags{Sweep: []string{"traffic.0.window=8,16"}}, []string{"uar.bf_busy=10ns"}, 1},
		{Flags{Sweep: []string{"profile=connectx-5,connectx-4"}}, nil, 1},
		{Flags{Sweep: []string{"traffic.0.window=16"}, Seeds: 3}, nil, 2},
	} {
		if _, out, err := runPlan(t, planOf(t, question, c.f, c.set...), optionsOf(t, 1, dir)); err != nil || out.Ran != c.ran {
			t.Errorf("%v: %v, %d run, want %d", c, err, out.Ran, c.ran)
		}
	}
}

// What cannot be meant is refused before the first run.
func TestPlansThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		f    Flags
		set  []string
		want string
	}{
		{Flags{Sweep: []string{"traffic.0.windw=1"}}, nil, `did you mean "window"`},
		{Flags{Sweep: []string{"traffic.0.payload=64B,64"}}, nil, "64B and 64 are one value, which is given twice"},
		{Flags{Sweep: []string{"uar.bf_busy=1ns,1000ps"}}, nil, "1ns and 1000ps are one value"},
		{Flags{Sweep: []string{"traffic.0.window=1,2", "traffic.0.window=3"}}, nil, "is swept twice"},
		{Flags{Sweep: []string{"traffic.0.window=1,2"}}, []string{"traffic.0.window=3"}, "leave out --set traffic.0.window=3"},
		{Flags{Sweep: []string{"traffic.0.window=1..9"}}, nil, "which only a sample can use"},
		{Flags{Sample: "4"}, nil, "there is no grid to sample"},
		{Flags{Sweep: []string{"seed=1,2"}}, nil, "--seeds N"},
		{Flags{Sweep: []string{"name=a,b"}}, nil, "the name changes nothing"},
		{Flags{Sweep: []string{"traffic.0.threads,traffic.0.qp_sharing=2:2,2:3"}}, nil, "traffic.0.threads=2"},
	} {
		sc, err := experiment.ParseScenario("q.yaml", []byte(question))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "q.yaml")
		if err := os.WriteFile(path, []byte(question), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(t.Context(), path, sc.Experiment(), experiment.Request{Seed: 1, Set: c.set}, c.f)
		if err == nil {
			_, err = p.Prepare()
		}
		if bad := (*experiment.UsageError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.f, err, c.want)
		}
	}
}

// A scenario says what it is run over, and the command line comes before it.
func TestSweepOfAScenarioFile(t *testing.T) {
	const text = question + `sweep:
  over: ["traffic.0.window=4,8", "traffic.0.payload=64B..4KiB*8"]
  seeds: 2
`
	for _, c := range []struct {
		f    Flags
		want int
	}{{Flags{}, 12}, {Flags{Seeds: 1}, 6}, {Flags{Sweep: []string{"traffic.0.window=1,2,3"}}, 18}, {Flags{Sweep: []string{"traffic.0.mrs=1,2"}}, 24}, {Flags{Sample: "4", Seeds: 1}, 4}} {
		if n, err := planOf(t, text, c.f).Points(); err != nil || n != c.want {
			t.Errorf("%v: %d points, %v, want %d", c.f, n, err, c.want)
		}
	}
}

// Means over seeds say of which seeds they are, below pictures and tables.
func TestAnswerNamesItsSeeds(t *testing.T) {
	a, _, err := runPlan(t, planOf(t, question, Flags{Seeds: 2, Sweep: []string{"traffic.0.window=4"}}), optionsOf(t, 1, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(", seeds %d to %d", a.Result.Seed, a.Result.Seed+1)
	var table bytes.Buffer
	if err := a.Write(&table, "table"); err != nil || !strings.Contains(table.String(), want) || !strings.HasSuffix(a.Result.Caption(), want) {
		t.Errorf("%q, %v\n%s", a.Result.Caption(), err, &table)
	}
}

// A supervisor of many points stays small: it keeps an address of each, and reads results one after
// the other. The number is that of SWEEP_POINTS, and the test is skipped without it: a million
// takes minutes.
func TestMemoryOfManyPoints(t *testing.T) {
	var points int
	if _, err := fmt.Sscan(os.Getenv("SWEEP_POINTS"), &points); err != nil {
		t.Skip("needs SWEEP_POINTS, the number of points, as make soak sets it")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(SupervisorMemory))
	one := planOf(t, question, Flags{Seeds: 1})
	dir := t.TempDir()
	if _, _, err := runPlan(t, one, optionsOf(t, 1, dir)); err != nil {
		t.Fatal(err)
	}
	r, err := one.prepare()
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := r.address(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(trouble, "instant "+at.String())
	p := planOf(t, question, Flags{Sweep: []string{fmt.Sprintf("traffic.0.messages=1:%d:1", points/100), "traffic.0.window=1:100:1"}})
	a, out, err := runPlan(t, p, optionsOf(t, 2, dir))
	if err != nil || out.Cached != points/100*100 {
		t.Fatalf("%v, %+v known", err, out.Cached)
	}
	if _, err := a.WriteFolder(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int
	_, _ = fmt.Sscan(rest, &kib)
	t.Logf("%d points: %d MiB", points, kib>>10)
	if kib > 100<<10 {
		t.Errorf("the supervisor took %d MiB", kib>>10)
	}
}
