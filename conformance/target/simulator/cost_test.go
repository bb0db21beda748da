package simulator_test

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
)

// What a case may cost where it need not do as much as the catalogue says, so that the suite
// stays a matter of seconds. An event costs about 0.2 us.
const (
	maxSteps = 4_000_000 // events, and synchronisations of programs with them
	maxBytes = 256 << 20 // allocated, in all
	// maxRatio is the CPU time of a case over that of reference. A case above it does something
	// slow that is no event.
	maxRatio = 6
	// maxTotal is that of all cases together.
	maxTotal  = 40
	reference = "COMP-012" // 1.6 million events
)

func TestCasesAreShort(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the whole suite")
	}
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	target, err := simulator.New(simulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	runner := &conformance.Runner{Target: target, Seed: 1, Repeat: 1,
		Options: func(string) spec.BedOptions { return spec.BedOptions{MaxEvents: maxSteps} }}
	cost := func(i conformance.Item) (cpu time.Duration, bytes uint64, reason string) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := cpuTime(t)
		rec := runner.Run(i.Entry, i.Case)
		took := cpuTime(t) - start
		runtime.ReadMemStats(&after)
		return took, after.TotalAlloc - before.TotalAlloc, rec.Reason
	}
	var unit time.Duration
	for _, i := range items {
		if i.Entry.ID == reference {
			for range 2 {
				took, _, _ := cost(i)
				unit = max(unit, took)
			}
		}
	}
	if unit == 0 {
		t.Fatalf("%s took no CPU time", reference)
	}
	var total time.Duration
	for _, i := range items {
		took, bytes, reason := cost(i)
		if strings.Contains(reason, "event budget") {
			t.Errorf("%s: more than %d events without --full: do less and observe how much (spec.C.Scale)", i.Entry.ID, maxSteps)
		}
		if bytes > maxBytes {
			t.Errorf("%s allocates %d MB, at most %d without --full", i.Entry.ID, bytes>>20, maxBytes>>20)
		}
		for range 3 { // another process may have been in the way
			if took > maxRatio*unit {
				again, _, _ := cost(i)
				took = min(took, again)
			}
		}
		if took > maxRatio*unit {
			t.Errorf("%s takes %v of CPU time, %.1f times as much as %s; at most %d without --full",
				i.Entry.ID, took, float64(took)/float64(unit), reference, maxRatio)
		}
		total += took
	}
	if t.Logf("%v of CPU time, %s takes %v", total, reference, unit); total > maxTotal*unit {
		t.Errorf("all cases take %v of CPU time, %.1f times as much as %s; at most %d without --full", total, float64(total)/float64(unit), reference, maxTotal)
	}
}

// cpuTime is what this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
