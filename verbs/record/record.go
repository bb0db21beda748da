// Package record decorates a testbed and writes down what programs asked and what
// they were answered: each verbs call with its arguments, its errno, the completions
// and the events, in the order in which the calls returned.
//
// What differs from run to run and from target to target (QP numbers, keys,
// addresses, GIDs, times) is written as a symbol, numbered by first use within its
// kind: qpn1, key2, addr1+0x40. So two recordings of one program are equal when the
// two targets behaved alike.
package record

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// Call is one recorded call.
type Call struct {
	Thread  string
	Name    string // "post_send"
	Args    []string
	Errno   string // "" for success
	Results []string
}

// String is the call on one line: thread: name(args) = results, or = errno.
func (c Call) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s(%s)", c.Thread, c.Name, strings.Join(c.Args, ", "))
	switch {
	case c.Errno != "":
		b.WriteString(" = " + c.Errno)
	case len(c.Results) > 0:
		b.WriteString(" = " + strings.Join(c.Results, ", "))
	}
	return b.String()
}

// Recorder keeps the calls of all threads that go through one decorated testbed.
type Recorder struct {
	mu    sync.Mutex // on hardware, threads run at once
	calls []Call
	first map[symbol]int
	count map[string]int
	areas []area
	objs  map[any]any // object of the testbed to its wrapper
	// counts, unless nil, takes the place of calls: how often each thread made each call, in the
	// order of their first.
	counts map[string][]Count
}

// Count is how often a call was made.
type Count struct {
	Name string
	N    int
}

// CountOnly has calls counted and not kept, for programs that make very many.
func (r *Recorder) CountOnly() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts = map[string][]Count{}
}

// TakeCounts are the calls of a thread since the last time, in the order of their first.
func (r *Recorder) TakeCounts(thread string) []Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.counts[thread]
	delete(r.counts, thread)
	return all
}

func (r *Recorder) countCall(thread, name string) {
	all := r.counts[thread]
	for i := range all {
		if all[i].Name == name {
			all[i].N++
			return
		}
	}
	r.counts[thread] = append(all, Count{name, 1})
}

type symbol struct {
	kind  string
	value any
}

// area is a range of addresses that has a name.
type area struct {
	start, n uint64
	name     string
}

func newRecorder() *Recorder {
	return &Recorder{first: map[symbol]int{}, count: map[string]int{}, objs: map[any]any{}}
}

// Calls is a copy of what was recorded so far.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Call(nil), r.calls...)
}

// Text is the recording with one line for each call, thread after thread: which of
// two threads returned first from calls that have nothing to do with each other is
// not an observation.
func (r *Recorder) Text() string {
	var b strings.Builder
	calls := r.Calls()
	sort.SliceStable(calls, func(i, j int) bool { return calls[i].Thread < calls[j].Thread })
	for _, c := range calls {
		b.WriteString(c.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// sym is the symbol of a value of a kind.
func (r *Recorder) sym(kind string, v any) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := symbol{kind, v}
	n, ok := r.first[k]
	if !ok {
		r.count[kind]++
		n = r.count[kind]
		r.first[k] = n
	}
	return fmt.Sprintf("%s%d", kind, n)
}

func (r *Recorder) qpn(v uint32) string { return r.sym("qpn", v) }
func (r *Recorder) key(v uint32) string { return r.sym("key", v) }
func (r *Recorder) gid(v verbs.GID) string {
	if v == (verbs.GID{}) {
		return "no gid"
	}
	return r.sym("gid", v)
}

// mapped names a range of addresses by the order of mapping.
func (r *Recorder) mapped(start, n uint64) {
	name := r.sym("addr", start)
	r.mu.Lock()
	defer r.mu.Unlock()
	i := sort.Search(len(r.areas), func(i int) bool { return r.areas[i].start >= start })
	if i < len(r.areas) && r.areas[i].start == start {
		r.areas[i] = area{start, n, name}
		return
	}
	r.areas = append(r.areas, area{})
	copy(r.areas[i+1:], r.areas[i:])
	r.areas[i] = area{start, n, name}
}

// addr is an address as an offset in the last mapping at or below it; small numbers
// stand for themselves.
func (r *Recorder) addr(a uint64) string {
	const small = 1 << 16
	if a < small {
		return fmt.Sprintf("%#x", a)
	}
	r.mu.Lock()
	i := sort.Search(len(r.areas), func(i int) bool { return r.areas[i].start > a })
	var in area
	if i > 0 {
		in = r.areas[i-1]
	}
	r.mu.Unlock()
	if i == 0 || a-in.start > in.n+small {
		return r.sym("addr", a)
	}
	if a == in.start {
		return in.name
	}
	return fmt.Sprintf("%s+%#x", in.name, a-in.start)
}

// add records a call that has returned, and returns its error.
func (r *Recorder) add(t verbs.Thread, name string, args []string, err error, results ...string) error {
	c := Call{Name: name, Args: args, Results: results}
	if t != nil {
		c.Thread = t.Name()
	}
	if err != nil {
		c.Errno = verbs.ErrnoName(verbs.ErrnoOf(err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts != nil {
		r.countCall(c.Thread, c.Name)
		return err
	}
	r.calls = append(r.calls, c)
	return err
}

// made records a call that makes an object. If it succeeded, see returns the object as programs see
// it, and the results to record.
func made[T any](r *Recorder, t verbs.Thread, name string, args []string, err error, see func() (T, []string)) (out T, _ error) {
	var results []string
	if err == nil {
		out, results = see()
	}
	return out, r.add(t, name, args, err, results...)
}

// bare returns the target's object behind one that programs see, and any other object as it is.
func bare[T any](v T) T {
	if w, ok := any(v).(interface{ inner() T }); ok {
		return w.inner()
	}
	return v
}

// on calls f with v if v has the optional interface I. Otherwise the error, EOPNOTSUPP, says what
// is missing.
func on[I any](v any, what string, f func(I) error) error {
	if x, ok := v.(I); ok {
		return f(x)
	}
	return fmt.Errorf("%s: %w", what, syscall.EOPNOTSUPP)
}

// valueOn is on for a call that returns a value.
func valueOn[I, T any](v any, what string, f func(I) (T, error)) (out T, err error) {
	err = on(v, what, func(x I) error {
		out, err = f(x)
		return err
	})
	return out, err
}

// list makes arguments of values in their default format.
func list(v ...any) []string {
	s := make([]string, len(v))
	for i := range v {
		s[i] = fmt.Sprint(v[i])
	}
	return s
}

// mask prints a bit mask.
func mask[T ~uint32 | ~uint64](v T) string { return fmt.Sprintf("%#x", uint64(v)) }
