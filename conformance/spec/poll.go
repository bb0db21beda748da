package spec

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/onsi/gomega/types"
)

// How long Eventually and Consistently wait, and how often they look, by default: as long as
// Gomega's own, but on the thread's clock.
const (
	eventuallyTimeout   = time.Second
	consistentlyTimeout = 100 * time.Millisecond
	pollingInterval     = 10 * time.Millisecond
)

// Polling is a value that is looked at repeatedly until Should or ShouldNot is decided.
type Polling struct {
	c            *C
	step         string
	actual       any
	consistently bool
	timeout      time.Duration
	interval     time.Duration
}

// Eventually returns a Polling of a value that must match in time, by default within 1 s, looked at
// every 10 ms. Gomega's Eventually cannot be used in a case: it waits on the wall clock, which
// Gomega does not let its callers replace, and while it waits no time passes on a simulated
// testbed. This one sleeps in the case's thread and takes the same matchers.
//
// If actual is a function without arguments, it is called for each look; if it returns more than
// one value, the others must be nil or zero, as with Gomega. It can return gomega.StopTrying or
// gomega.TryAgainAfter, or call their Now.
//
// Waiting records no observation, because the number of looks differs from target to target. A
// check of its own can record the value afterwards.
func (c *C) Eventually(step string, actual any) *Polling {
	return &Polling{c: c, step: step, actual: actual, timeout: eventuallyTimeout, interval: pollingInterval}
}

// Consistently returns a Polling of a value that must match at every look, by default for 100 ms,
// every 10 ms.
func (c *C) Consistently(step string, actual any) *Polling {
	return &Polling{c: c, step: step, actual: actual, consistently: true, timeout: consistentlyTimeout, interval: pollingInterval}
}

// Within sets how long to look, on the thread's clock, and returns p.
func (p *Polling) Within(d time.Duration) *Polling { p.timeout = d; return p }

// ProbeEvery sets how long the thread sleeps between two looks, and returns p.
func (p *Polling) ProbeEvery(d time.Duration) *Polling { p.interval = d; return p }

// Should looks until the value matches, or for Consistently until time is up, and fails the case
// otherwise.
func (p *Polling) Should(m types.GomegaMatcher) { p.match(m, true) }

// ShouldNot does what Should does for a value that must not match.
func (p *Polling) ShouldNot(m types.GomegaMatcher) { p.match(m, false) }

// look is the outcome of one look at the value.
type look struct {
	actual any
	err    error // of the value or the matcher
	holds  bool
	final  bool // a later look cannot have another outcome
}

func (p *Polling) match(m types.GomegaMatcher, want bool) {
	t := p.c.T
	start := t.Now()
	for {
		l := p.look(m, want)
		after := p.interval
		if s := signal(nil); errors.As(l.err, &s) {
			switch {
			case s.IsStopTrying() && s.IsSuccessful() && p.consistently:
				return
			case s.IsStopTrying():
				p.fail(l, m, want, t.Now()-start, "told to stop trying")
			default:
				after = s.TryAgainDuration()
			}
		} else if l.holds != p.consistently {
			if l.holds {
				return
			}
			p.fail(l, m, want, t.Now()-start, "no longer as expected")
		}
		switch end := t.Now() >= start+p.timeout; {
		case p.consistently && l.holds && (end || l.final):
			return
		case end || l.final:
			p.fail(l, m, want, t.Now()-start, "not as expected")
		}
		t.Sleep(after)
	}
}

// look takes one look. A panic with one of Gomega's signals counts as returning it.
func (p *Polling) look(m types.GomegaMatcher, want bool) (l look) {
	defer func() {
		if r := recover(); r != nil {
			s, ok := r.(signal)
			if !ok {
				panic(r)
			}
			l.err, l.holds = s, false
		}
	}()
	if l.actual, l.err = value(p.actual); l.err != nil {
		return l
	}
	matches, err := m.Match(l.actual)
	l.err, l.holds = err, err == nil && matches == want
	if o, ok := m.(interface{ MatchMayChangeInTheFuture(actual any) bool }); ok {
		l.final = !o.MatchMayChangeInTheFuture(l.actual)
	}
	return l
}

func (p *Polling) fail(l look, m types.GomegaMatcher, want bool, after time.Duration, how string) {
	text := ""
	switch {
	case l.err != nil:
		text = l.err.Error()
	case want:
		text = m.FailureMessage(l.actual)
	default:
		text = m.NegatedFailureMessage(l.actual)
	}
	p.c.fail(p.step, "%s after %v: %s", how, after, text)
}

// signal is what gomega.StopTrying and gomega.TryAgainAfter make.
type signal interface {
	error
	IsStopTrying() bool
	IsSuccessful() bool
	TryAgainDuration() time.Duration
}

// value returns the value of this look.
func value(actual any) (any, error) {
	f := reflect.ValueOf(actual)
	if actual == nil || f.Kind() != reflect.Func {
		return actual, nil
	}
	if f.Type().NumIn() != 0 || f.Type().NumOut() == 0 {
		return nil, fmt.Errorf("a function to look at takes no arguments and returns a value: this one is a %T", actual)
	}
	out := f.Call(nil)
	for _, extra := range out[1:] {
		if extra.IsZero() {
			continue
		}
		if err, ok := extra.Interface().(error); ok {
			return out[0].Interface(), err
		}
		return out[0].Interface(), fmt.Errorf("unexpected value besides the first: %v", extra.Interface())
	}
	if err, ok := out[0].Interface().(signal); ok {
		return nil, err
	}
	return out[0].Interface(), nil
}
