package modes

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	programs = flag.Int("programs", 0, "how many generated programs TestModes runs (0: 20 with -short, else 300)")
	first    = flag.Uint64("first", 1, "seed of the first generated program")
	workers  = flag.Int("workers", runtime.NumCPU(), "how many programs run at a time")
	shrink   = flag.Int("shrink", 200, "how many smaller programs are tried when one fails")
)

// maxFailures is how many programs fail before TestModes stops.
const maxFailures = 3

// TestModes runs generated programs in every mode.
func TestModes(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a program leaves much garbage, and little else
	n := uint64(*programs)
	if n == 0 {
		if n = 300; testing.Short() {
			n = 20
		}
	}
	var next, failures atomic.Uint64
	var wg sync.WaitGroup
	for range *workers {
		wg.Go(func() {
			for k := next.Add(1) - 1; k < n && failures.Load() < maxFailures; k = next.Add(1) - 1 {
				if !generated(t, *first+k) {
					failures.Add(1)
				}
			}
		})
	}
	wg.Wait()
}

// generated runs the program of a seed.
func generated(t *testing.T, seed uint64) bool {
	p := Generate(seed)
	err := p.Check()
	var d *Difference
	if errors.As(err, &d) {
		small, d := p.Shrink(*shrink)
		t.Errorf("seed %d of generator %d: %v\nagain: go test ./internal/modes -run TestModes -programs 1 -first %d\nfor testdata, with what is left when the rest is taken out: %v\n%s",
			seed, Generator, err, seed, d, small.Text())
	} else if err != nil {
		t.Errorf("seed %d cannot be run: %v", seed, err)
	}
	return err == nil
}

// TestCorpus runs what failed once.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d programs: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			p := new(Program)
			if err := json.Unmarshal(text, p); err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOneOSThread: a run does not depend on how many OS threads there are.
func TestOneOSThread(t *testing.T) {
	n := uint64(20)
	if testing.Short() {
		n = 3
	}
	mode := Mode{Watched: true}
	run := func(seed uint64) *Record {
		r, err := Generate(seed).Run(mode)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for seed := uint64(1); seed <= n; seed++ {
		many := run(seed)
		before := runtime.GOMAXPROCS(1)
		one := run(seed)
		runtime.GOMAXPROCS(before)
		if d := compare(mode, mode, many, one); d != nil {
			t.Errorf("seed %d: GOMAXPROCS %d and 1: %v", seed, before, d)
		}
	}
}

// A program as data means what it meant.
func TestProgramsAreData(t *testing.T) {
	for seed := range uint64(50) {
		p := Generate(seed)
		if string(p.clone().Text()) != string(p.Text()) || string(Generate(seed).Text()) != string(p.Text()) {
			t.Fatalf("seed %d: the program is not the same again", seed)
		}
	}
}

// Most programs get far: they complete requests, and few end by an error of the run.
func TestProgramsDoSomething(t *testing.T) {
	events := uint64(0)
	const n = 15
	for seed := uint64(1); seed <= n; seed++ {
		r, err := Generate(seed).Run(Mode{})
		if err != nil {
			t.Fatal(err)
		}
		events += r.Events
	}
	if events < 200*n {
		t.Errorf("%d events in %d programs", events, n)
	}
}
