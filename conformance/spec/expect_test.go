package spec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// A case's Expect ends it exactly where Gomega's fails, and with the words of the matcher.
func TestExpectIsGomegas(t *testing.T) {
	odd := errors.New("odd")
	values := [][]any{{1}, {2}, {nil}, {"1"}, {1, nil}, {1, 0}, {1, 7}, {1, odd}, {1, nil, odd}, {nil, nil}, {0, odd}, {odd}}
	matchers := map[string]types.GomegaMatcher{"equal": gomega.Equal(1), "zero": gomega.BeZero(), "error": gomega.MatchError("odd"),
		"succeed": gomega.Succeed(), "true": match.BeTrue(), "even": match.Satisfy("even", func(n int) bool { return n%2 == 0 })}
	checks := map[string]func(types.Assertion, types.GomegaMatcher){
		"Should":    func(a types.Assertion, m types.GomegaMatcher) { a.Should(m) },
		"ShouldNot": func(a types.Assertion, m types.GomegaMatcher) { a.ShouldNot(m, "a number, %d", 3) },
		"To": func(a types.Assertion, m types.GomegaMatcher) {
			a.WithOffset(1).To(m, func() string { return "said later" })
		},
		"ToNot":        func(a types.Assertion, m types.GomegaMatcher) { a.ToNot(m, "words") },
		"NotTo":        func(a types.Assertion, m types.GomegaMatcher) { a.NotTo(m) },
		"Error.To":     func(a types.Assertion, m types.GomegaMatcher) { a.Error().To(m) },
		"Error.Should": func(a types.Assertion, m types.GomegaMatcher) { a.Error().WithOffset(2).ShouldNot(m) },
	}
	ends := 0
	for _, v := range values {
		for name, m := range matchers {
			for how, check := range checks {
				want := ""
				g := gomega.NewGomega(func(text string, _ ...int) { want = text })
				check(g.Expect(v[0], v[1:]...), m)
				r, after := spec.NewRunning("DEV-001", 1), false
				r.Execute(&clock{}, nil, func(c *spec.C) {
					check(c.Expect(v[0], v[1:]...), m)
					after = true
				})
				got := ""
				if d := r.Result().Verdict; d != nil {
					got = d.Reason
					ends++
				}
				if after != (want == "") || (got == "") != after || !strings.Contains(strings.ToLower(want), "unexpected") && got != strings.TrimSpace(want) {
					t.Errorf("%v: %s(%s): %q, as Gomega says %q", v, how, name, got, want)
				}
			}
		}
	}
	if ends < 100 {
		t.Errorf("%d checks end their case", ends)
	}
}
