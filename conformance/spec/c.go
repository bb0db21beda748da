package spec

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/rdmasim/rdmasim/report"
	"github.com/rdmasim/rdmasim/verbs"
)

// C is a running case: the thread that its body runs in, its testbed, and the
// checks. Other threads of the case get their own view with On.
type C struct {
	T  verbs.Thread
	TB verbs.Testbed

	run    *run
	gomega gomega.Gomega
}

// run is what all views of one running case share.
type run struct {
	id   string
	rand *Rand
	full bool

	mu      sync.Mutex // on hardware, threads are goroutines
	obs     []report.Observation
	verdict *Verdict
	defers  []func()
	ledger  []Deviation
	met     []string // IDs of the deviations that were seen
}

// Verdict is why a case ended early.
type Verdict struct {
	Outcome report.Outcome
	Reason  string
	Where   string // file:line of the check
}

// stop unwinds a body whose verdict is set.
type stop struct{}

// Result is what Execute leaves.
type Result struct {
	Verdict      *Verdict // nil: the body returned and every check held
	Observations []report.Observation
	// Deviations are the IDs of the ledger entries that came true, Stale those of
	// which no step showed anything.
	Deviations, Stale []string
}

// Running is a case being executed; its result can be read even when the body never
// returned.
type Running struct{ run *run }

// NewRunning prepares the execution of a case of which the ledger predicts deviations.
func NewRunning(id string, seed uint64, ledger ...Deviation) *Running {
	return &Running{&run{id: id, rand: NewRand(seed), ledger: ledger}}
}

// SetFull has the case do as much as the catalogue says.
func (r *Running) SetFull(v bool) { r.run.full = v }

// Scale is how often to do something: as often as the catalogue says in a full run, else
// so often that the suite stays short. The case observes which.
func (c *C) Scale(short, catalogue int) int {
	if c.run.full {
		return catalogue
	}
	return short
}

// Execute runs body in thread t and then what it deferred. A failed check is in the
// result; any other panic of body surfaces.
func (r *Running) Execute(t verbs.Thread, tb verbs.Testbed, body func(*C)) {
	c := newC(r.run, t, tb)
	c.guard(func() { body(c) })
	for {
		f := r.run.popDefer()
		if f == nil {
			return
		}
		c.guard(f)
	}
}

// Result is what is known now.
func (r *Running) Result() Result {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	res := Result{Verdict: r.run.verdict, Observations: slices.Clone(r.run.obs), Deviations: slices.Clone(r.run.met)}
	for _, d := range r.run.ledger {
		if !d.Sometimes && !slices.Contains(res.Deviations, d.ID) {
			res.Stale = append(res.Stale, d.ID)
		}
	}
	return res
}

func newC(r *run, t verbs.Thread, tb verbs.Testbed) *C {
	c := &C{T: t, TB: tb, run: r}
	c.gomega = gomega.NewGomega(func(msg string, _ ...int) { c.end(report.Fail, msg) })
	return c
}

func (r *run) popDefer() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.defers)
	if n == 0 {
		return nil
	}
	f := r.defers[n-1]
	r.defers = r.defers[:n-1]
	return f
}

// guard runs f and swallows the unwinding of a failed check.
func (c *C) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stop); !ok {
				panic(p)
			}
		}
	}()
	f()
}

// ID is the catalogue ID of the case.
func (c *C) ID() string { return c.run.id }

// On is the case as seen by another of its threads.
func (c *C) On(t verbs.Thread) *C { return newC(c.run, t, c.TB) }

// Go starts a thread of the case's process on the given core (-1: any). A check
// that fails in it fails the case and ends the thread.
func (c *C) Go(name string, core int, body func(c *C)) verbs.Thread {
	return c.T.Process().Start(c.T, name, core, func(t verbs.Thread) {
		n := c.On(t)
		n.guard(func() { body(n) })
	})
}

// Process is the process of the case's thread.
func (c *C) Process() verbs.Process { return c.T.Process() }

// Device is the first device of the process.
func (c *C) Device() verbs.Device {
	devs, err := c.Process().Devices(c.T)
	c.must("list devices", err)
	if len(devs) == 0 {
		c.Failf("the device list is empty")
	}
	return devs[0]
}

// Open opens the first device; the context is closed when the case ends.
func (c *C) Open() verbs.Context {
	ctx, err := c.Device().Open(c.T)
	c.must("open device", err)
	c.Defer(func() { c.must("close device", ctx.Close(c.T)) })
	return ctx
}

// Defer has f called when the body has ended, whether it passed or failed; the last
// deferred is the first called.
func (c *C) Defer(f func()) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.defers = append(c.run.defers, f)
}

// Rand is the case's source of draws, seeded by (run seed, ID).
func (c *C) Rand() *Rand { return c.run.rand }

// Has reports whether the testbed claims a capability.
func (c *C) Has(token string) bool { return c.TB.Capability(token) == verbs.Present }

// Expect is Gomega's, failing this case.
func (c *C) Expect(actual any, extra ...any) types.Assertion {
	return c.gomega.Expect(actual, extra...)
}

// Observe records a value that takes part in comparisons of runs.
func (c *C) Observe(step string, value any) {
	c.record(report.Observation{Step: step, Kind: "value", Got: value})
}

// Failf fails the case.
func (c *C) Failf(format string, a ...any) { c.end(report.Fail, fmt.Sprintf(format, a...)) }

// Integrityf ends the case without a verdict on the target: what was captured is not
// whole.
func (c *C) Integrityf(format string, a ...any) { c.end(report.Integrity, fmt.Sprintf(format, a...)) }

// Errorf ends the case without a verdict on the target: the harness or the testbed
// could not do its part.
func (c *C) Errorf(format string, a ...any) { c.end(report.Error, fmt.Sprintf(format, a...)) }

func (c *C) record(o report.Observation) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.obs = append(c.run.obs, o)
}

// end sets the verdict, unless there is one, and unwinds the calling thread.
func (c *C) end(o report.Outcome, reason string) {
	c.run.mu.Lock()
	if c.run.verdict == nil {
		c.run.verdict = &Verdict{o, strings.TrimSpace(reason), caller()}
	}
	c.run.mu.Unlock()
	panic(stop{})
}

// caller is the innermost frame that belongs to a case and not to the framework.
func caller() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		fn := f.Function
		if !strings.Contains(fn, "/conformance/spec.") && !strings.Contains(fn, "/conformance/kit.") &&
			!strings.Contains(fn, "/onsi/gomega") && !strings.HasPrefix(fn, "runtime.") {
			return place(f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// place is file:line without the directory that the module was built in.
func place(file string, line int) string {
	dir, base := filepath.Split(file)
	return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), base, line)
}
