// Package match has Gomega matchers for what verbs return: errnos, completions, states of
// queue pairs. The checks of conformance cases use them, and so can any other test:
//
//	Expect(err).To(match.HaveErrno(syscall.EINVAL))
//	Expect(wc).To(match.HaveStatus(verbs.WCRemAccessErr))
//
// What a case expects of the value that it waited for is such a matcher too, see
// spec.C.Eventually.
package match

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/onsi/gomega/types"

	"github.com/rdmasim/rdmasim/verbs"
)

// HaveErrno matches an error that carries one of these errnos, where 0 is a call that
// succeeded.
func HaveErrno(want ...syscall.Errno) types.GomegaMatcher {
	return &matcher[error]{
		holds: func(err error) bool { return slices.Contains(want, verbs.ErrnoOf(err)) },
		want:  names(want, verbs.ErrnoName),
		got:   func(err error) string { return fmt.Sprintf("%s (%v)", verbs.ErrnoName(verbs.ErrnoOf(err)), err) },
	}
}

// HaveStatus matches a completion with one of these statuses.
func HaveStatus(want ...verbs.WCStatus) types.GomegaMatcher {
	return &matcher[verbs.WC]{
		holds: func(wc verbs.WC) bool { return slices.Contains(want, wc.Status) },
		want:  names(want, verbs.WCStatus.String),
		got: func(wc verbs.WC) string {
			return fmt.Sprintf("%v (wr_id %d, vendor error %#x)", wc.Status, wc.ID, wc.VendorErr)
		},
	}
}

// HaveID matches the completion of the work request with this ID.
func HaveID(want uint64) types.GomegaMatcher {
	return &matcher[verbs.WC]{
		holds: func(wc verbs.WC) bool { return wc.ID == want },
		want:  fmt.Sprintf("wr_id %d", want),
		got:   func(wc verbs.WC) string { return fmt.Sprintf("wr_id %d (%v)", wc.ID, wc.Status) },
	}
}

// HaveByteLen matches a successful completion of that many bytes.
func HaveByteLen(want uint32) types.GomegaMatcher {
	return &matcher[verbs.WC]{
		holds: func(wc verbs.WC) bool { return wc.Status == verbs.WCSuccess && wc.ByteLen == want },
		want:  fmt.Sprintf("SUCCESS and %d bytes", want),
		got:   func(wc verbs.WC) string { return fmt.Sprintf("%v and %d bytes", wc.Status, wc.ByteLen) },
	}
}

// BeInState matches the attributes of a queue pair in one of these states, or a state.
func BeInState(want ...verbs.QPState) types.GomegaMatcher {
	return &stateMatcher{matcher[verbs.QPState]{
		holds: func(s verbs.QPState) bool { return slices.Contains(want, s) },
		want:  names(want, verbs.QPState.String),
		got:   verbs.QPState.String,
	}}
}

// Satisfy matches a value for which holds returns true; want says in words what is wanted.
func Satisfy[T any](want string, holds func(T) bool) types.GomegaMatcher {
	return &matcher[T]{holds: holds, want: want, got: func(v T) string { return fmt.Sprintf("%+v", v) }}
}

// BeTrue matches true, as Gomega's matcher does, which needs much more code.
func BeTrue() types.GomegaMatcher { return Satisfy("true", func(b bool) bool { return b }) }

// names is a value, or a set of them.
func names[T any](values []T, name func(T) string) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = name(v)
	}
	if len(all) == 1 {
		return all[0]
	}
	return "one of {" + strings.Join(all, ", ") + "}"
}

// matcher matches a T.
type matcher[T any] struct {
	holds func(T) bool
	want  string
	got   func(T) string
}

// Match implements Gomega's matcher.
func (m *matcher[T]) Match(actual any) (bool, error) {
	v, err := as[T](actual)
	return err == nil && m.holds(v), err
}

func (m *matcher[T]) FailureMessage(actual any) string {
	v, _ := as[T](actual)
	return fmt.Sprintf("want %s, got %s", m.want, m.got(v))
}

func (m *matcher[T]) NegatedFailureMessage(actual any) string {
	v, _ := as[T](actual)
	return fmt.Sprintf("want anything but %s, got %s", m.want, m.got(v))
}

// as is the value as a T, of which nil is one where T is an interface.
func as[T any](actual any) (T, error) {
	v, ok := actual.(T)
	if want := reflect.TypeFor[T](); !ok && (actual != nil || want.Kind() != reflect.Interface) {
		return v, fmt.Errorf("this matcher takes values of type %v, not of type %T", want, actual)
	}
	return v, nil
}

// stateMatcher takes attributes of a queue pair for their state.
type stateMatcher struct{ matcher[verbs.QPState] }

func state(actual any) any {
	switch a := actual.(type) {
	case verbs.QPAttr:
		return a.State
	case *verbs.QPAttr:
		return a.State
	}
	return actual
}

func (m *stateMatcher) Match(actual any) (bool, error) { return m.matcher.Match(state(actual)) }

func (m *stateMatcher) FailureMessage(actual any) string {
	return m.matcher.FailureMessage(state(actual))
}

func (m *stateMatcher) NegatedFailureMessage(actual any) string {
	return m.matcher.NegatedFailureMessage(state(actual))
}
