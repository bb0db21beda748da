package spec

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/verbs"
)

// C is a running case: the thread in which its body runs, its testbed, and the checks. A check such
// as Errno, Status, Equal or True holds if the value is as expected, or as the ledger predicts
// (Deviation); otherwise it fails the case and ends its thread. Other threads of the case get their
// own view with On.
type C struct {
	T  verbs.Thread
	TB verbs.Testbed

	run *run
}

// run is what all views of one running case share.
type run struct {
	id   string
	rand *Rand
	full bool

	mu      sync.Mutex // on hardware, threads are goroutines
	obs     []report.Observation
	verdict *Verdict
	failed  func(v Verdict, skip int) // may be nil
	defers  []func()
	ledger  []Deviation
	seen    []string    // IDs of the deviations that were seen
	shown   []Deviation // predictions that came true
	frames  []verbs.WireFrame
	held    map[string]bool // see Hold
}

// Verdict says why a case ended early.
type Verdict struct {
	Outcome report.Outcome
	Step    string        // of the check; empty where the case ended between two checks
	Reason  string        // what was expected and what was seen
	Where   string        // file:line of the case, and of the check if that is in a helper
	At      time.Duration // on the clock of the check's thread
	Stale   string        // entry of the ledger that predicts what the step no longer shows
}

// stop is the panic that ends a thread of a case whose verdict is set.
type stop struct{}

// Result is what is known of a case, complete once Execute has returned.
type Result struct {
	Verdict      *Verdict // nil: the body returned and every check held
	Observations []report.Observation
	// Deviations are the IDs of the ledger entries whose prediction came true.
	Deviations []string
	// Stale are the predictions that no step confirmed.
	Stale []Deviation
	// Frames are those that the case has kept.
	Frames []verbs.WireFrame
}

// Running is a case that is being executed. Its result can be read even if the body never
// returns.
type Running struct{ run *run }

// NewRunning prepares the execution of a case. ledger holds the deviations that are predicted for
// the case.
func NewRunning(id string, seed uint64, ledger ...Deviation) *Running {
	return &Running{&run{id: id, rand: NewRand(seed), ledger: ledger}}
}

// SetFull sets whether the case runs at the length that the catalogue demands.
func (r *Running) SetFull(v bool) { r.run.full = v }

// OnFailure sets a function that is called when the case ends early. It is called in the thread of
// the check, before that thread ends; skip is how many calls above f the line of the case is. It is
// called at most once, never after Result has returned, and must not use the case.
func (r *Running) OnFailure(f func(v Verdict, skip int)) { r.run.failed = f }

// Scale returns a number of repetitions: in a full run the catalogue's, otherwise the short one, so
// that the suite stays short. The case should record the number.
func (c *C) Scale(short, catalogue int) int {
	if c.run.full {
		return catalogue
	}
	return short
}

// Execute runs body in thread t and then the functions that it deferred. A failed check is in the
// result; any other panic is passed on.
func (r *Running) Execute(t verbs.Thread, tb verbs.Testbed, body func(*C)) {
	c := newC(r.run, t, tb)
	c.guard(func() { c.Within(func() { body(c) }) })
}

// Within runs f and then, whether f ended or failed, the functions that it deferred.
func (c *C) Within(f func()) {
	before := c.run.deferred()
	defer func() {
		for d := c.run.popDefer(before); d != nil; d = c.run.popDefer(before) {
			c.guard(d)
		}
	}()
	f()
}

// Result returns what is known now. It also unsets the function of OnFailure.
func (r *Running) Result() Result {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	r.run.failed = nil
	res := Result{Verdict: r.run.verdict, Observations: slices.Clone(r.run.obs), Deviations: slices.Clone(r.run.seen), Frames: slices.Clone(r.run.frames)}
	for _, d := range r.run.ledger {
		if !d.Sometimes && !slices.Contains(r.run.shown, d) {
			res.Stale = append(res.Stale, d)
		}
	}
	return res
}

func newC(r *run, t verbs.Thread, tb verbs.Testbed) *C {
	return &C{T: t, TB: tb, run: r}
}

func (r *run) deferred() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.defers)
}

// popDefer removes the last deferred function if there are more than before.
func (r *run) popDefer(before int) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.defers)
	if n <= before {
		return nil
	}
	f := r.defers[n-1]
	r.defers = r.defers[:n-1]
	return f
}

// guard runs f and catches the panic of a failed check.
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

// ID returns the catalogue ID of the case.
func (c *C) ID() string { return c.run.id }

// On returns a view of the case for another of its threads.
func (c *C) On(t verbs.Thread) *C { return newC(c.run, t, c.TB) }

// Go starts a thread of the case's process on the given core (-1: any). A check
// that fails in it fails the case and ends the thread.
func (c *C) Go(name string, core int, body func(c *C)) verbs.Thread {
	return c.T.Process().Start(c.T, name, core, func(t verbs.Thread) {
		n := c.On(t)
		n.guard(func() { body(n) })
	})
}

// Process returns the process of the case's thread.
func (c *C) Process() verbs.Process { return c.T.Process() }

// Device returns the first device of the process, and fails the case if there is none.
func (c *C) Device() verbs.Device {
	devs, err := c.Process().Devices(c.T)
	c.must("list devices", err)
	if len(devs) == 0 {
		c.Failf("the device list is empty")
	}
	return devs[0]
}

// Open opens the first device and closes it when the case ends. It fails the case if either is
// refused.
func (c *C) Open() verbs.Context {
	ctx, err := c.Device().Open(c.T)
	c.must("open device", err)
	c.Defer(func() { c.must("close device", ctx.Close(c.T)) })
	return ctx
}

// Defer calls f when the body has ended, whether it passed or failed. Functions are called in the
// reverse order of their Defer.
func (c *C) Defer(f func()) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.defers = append(c.run.defers, f)
}

// Rand returns the case's source of random numbers, seeded with SeedOf(run seed, ID).
func (c *C) Rand() *Rand { return c.run.rand }

// Has reports whether the testbed says that a capability is present.
func (c *C) Has(token string) bool { return c.TB.Capability(token) == verbs.Present }

// Observe records a value without judging it. Comparisons of runs compare it.
func (c *C) Observe(step string, value any) {
	c.record(report.Observation{Step: step, Kind: "value", Got: value})
}

// ObservePlatform records, without judging it, a value that depends on the machine or its kernel
// and not on RDMA, such as the number of processors or what the kernel reserves for itself. Two
// kinds of platform may differ in it, also a simulator and hardware.
func (c *C) ObservePlatform(step string, value any) {
	c.record(report.Observation{Step: step, Kind: report.KindPlatform, Got: value})
}

// KeepFrames keeps what a tap has recorded, for the report of a case that fails.
func (c *C) KeepFrames(frames []verbs.WireFrame) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.frames = append(c.run.frames, frames...)
}

// Hold takes something of which a case has only one, such as the tap of its wire. ok is false, and
// release nil, if it is taken already.
func (c *C) Hold(what string) (release func(), ok bool) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	if c.run.held[what] {
		return nil, false
	}
	if c.run.held == nil {
		c.run.held = map[string]bool{}
	}
	c.run.held[what] = true
	return func() {
		c.run.mu.Lock()
		defer c.run.mu.Unlock()
		delete(c.run.held, what)
	}, true
}

// Failed reports whether a check of the case has failed.
func (c *C) Failed() bool {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	return c.run.verdict != nil
}

// Failf fails the case with a reason and ends the calling thread.
func (c *C) Failf(format string, a ...any) { c.end(report.Fail, "", fmt.Sprintf(format, a...)) }

// fail fails the case in a step.
func (c *C) fail(step, format string, a ...any) {
	c.end(report.Fail, step, step+": "+fmt.Sprintf(format, a...))
}

// Integrityf ends the case without a verdict on the target, because its capture is not complete. It
// ends the calling thread.
func (c *C) Integrityf(format string, a ...any) {
	c.end(report.Integrity, "", fmt.Sprintf(format, a...))
}

// Errorf ends the case without a verdict on the target, because the suite or the testbed could not
// do its part. It ends the calling thread.
func (c *C) Errorf(format string, a ...any) { c.end(report.Error, "", fmt.Sprintf(format, a...)) }

func (c *C) record(o report.Observation) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.obs = append(c.run.obs, o)
}

// end sets the verdict, if it is the first, and ends the calling thread.
func (c *C) end(o report.Outcome, step, reason string) {
	where, skip := caller()
	c.run.conclude(c.now(Verdict{Outcome: o, Step: step, Reason: strings.TrimSpace(reason), Where: where}), skip)
	panic(stop{})
}

// now gives a verdict its time.
func (c *C) now(v Verdict) Verdict {
	if c.T != nil {
		v.At = c.T.Now()
	}
	return v
}

// conclude calls the function of OnFailure under the lock, so that Result waits until it has
// returned.
func (r *run) conclude(v Verdict, skip int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.verdict != nil {
		return
	}
	r.verdict = &v
	if r.failed != nil {
		r.failed(v, skip+1)
	}
}

// caller returns the line of the case at which a check stands, followed by that of the check where
// a helper of the case's package has it, and how many calls the former is above a function that the
// caller of caller calls.
//
// The outermost function that is not the framework's is the body of the case or of one of its
// threads. The line is the innermost one in that function or in a function literal of it, which the
// kit may have called.
func caller() (where string, skip int) {
	pcs := make([]uintptr, maxCalls)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var calls []runtime.Frame
	depth := map[int]int{} // of each call
	for n := 1; ; n++ {
		f, more := frames.Next()
		if len(calls) > 0 && strings.HasSuffix(f.Function, "/conformance/spec.(*C).guard") {
			break
		}
		if inCase(f.Function) {
			depth[len(calls)] = n
			calls = append(calls, f)
		}
		if !more {
			break
		}
	}
	if len(calls) == 0 {
		return "", 0
	}
	body := literalOf.ReplaceAllString(calls[len(calls)-1].Function, "")
	for i, f := range calls {
		if literalOf.ReplaceAllString(f.Function, "") != body {
			continue
		}
		where = place(f.File, f.Line)
		if i > 0 {
			where += fmt.Sprintf(", in %s (%s)", functionName(calls[0].Function), place(calls[0].File, calls[0].Line))
		}
		return where, depth[i]
	}
	return "", 0
}

// maxCalls is how deep a check may be below the body of its case for its line to be found.
const maxCalls = 128

// literalOf matches what the compiler adds to the name of a function for the literals in it.
var literalOf = regexp.MustCompile(`(\.func\d+|\.\d+|\.gowrap\d+|-range\d+)+$`)

// inCase reports whether a function belongs to a case, and not to what all cases share.
func inCase(fn string) bool {
	for _, shared := range []string{"/conformance/spec.", "/conformance/kit.", "/onsi/gomega"} {
		if strings.Contains(fn, shared) {
			return false
		}
	}
	return !strings.HasPrefix(fn, "runtime.") && !strings.HasPrefix(fn, "iter.")
}

// functionName is the name of a function without its package.
func functionName(fn string) string {
	fn = literalOf.ReplaceAllString(fn[strings.LastIndexByte(fn, '/')+1:], "")
	if _, name, ok := strings.Cut(fn, "."); ok {
		return strings.NewReplacer("(*", "", ")", "", "[...]", "").Replace(name)
	}
	return fn
}

// place returns file:line without the directory in which the module was built.
func place(file string, line int) string {
	dir, base := filepath.Split(file)
	return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), base, line)
}
