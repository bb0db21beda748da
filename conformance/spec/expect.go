package spec

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/onsi/gomega/types"

	"github.com/rdmasim/rdmasim/conformance/report"
)

// Expect is Gomega's Expect for cases: it takes Gomega's matchers, and a failure fails the case
// with their message. It has no step, so the ledger cannot predict it. It imports only Gomega's
// types: the package itself would link character sets, HTML and YAML into every program that has a
// case.
//
// As with Gomega, the values after the first must be nil or zero.
func (c *C) Expect(actual any, extra ...any) types.Assertion {
	return &assertion{c: c, actuals: slices.Concat([]any{actual}, extra)}
}

// assertion is a value that waits for its matcher.
type assertion struct {
	c       *C
	actuals []any
	at      int  // of the value that is matched
	error   bool // it is an error, besides which the other values count only if there is one
}

func (a *assertion) Should(m types.GomegaMatcher, words ...any) bool {
	return a.match(m, true, words)
}

func (a *assertion) ShouldNot(m types.GomegaMatcher, words ...any) bool {
	return a.match(m, false, words)
}

func (a *assertion) To(m types.GomegaMatcher, words ...any) bool    { return a.match(m, true, words) }
func (a *assertion) ToNot(m types.GomegaMatcher, words ...any) bool { return a.match(m, false, words) }
func (a *assertion) NotTo(m types.GomegaMatcher, words ...any) bool { return a.match(m, false, words) }

// WithOffset changes nothing: the case finds the line of its check by itself.
func (a *assertion) WithOffset(int) types.Assertion { return a }

// Error matches the last value in place of the first.
func (a *assertion) Error() types.Assertion {
	return &assertion{c: a.c, actuals: a.actuals, at: len(a.actuals) - 1, error: true}
}

func (a *assertion) match(m types.GomegaMatcher, want bool, words []any) bool {
	if text := a.match1(m, want); text != "" {
		a.c.end(report.Fail, "", description(words)+text)
	}
	return true
}

// match1 says why the values are not as expected.
func (a *assertion) match1(m types.GomegaMatcher, want bool) string {
	actual := a.actuals[a.at]
	for i, extra := range a.actuals {
		if i == a.at || a.error && actual == nil || extra == nil || reflect.DeepEqual(extra, reflect.Zero(reflect.TypeOf(extra)).Interface()) {
			continue
		}
		if err, ok := extra.(error); ok {
			return fmt.Sprintf("unexpected error: %v", err)
		}
		return fmt.Sprintf("unexpected value at index %d: <%T>: %#v", i, extra, extra)
	}
	switch matches, err := m.Match(actual); {
	case err != nil:
		return err.Error()
	case matches == want:
		return ""
	case want:
		return m.FailureMessage(actual)
	}
	return m.NegatedFailureMessage(actual)
}

// description is what the caller says of a check: a function that returns it, or a format and its
// values.
func description(words []any) string {
	if len(words) == 0 {
		return ""
	}
	switch w := words[0].(type) {
	case func() string:
		return w() + "\n"
	case string:
		return fmt.Sprintf(w, words[1:]...) + "\n"
	}
	return fmt.Sprintln(words...)
}
