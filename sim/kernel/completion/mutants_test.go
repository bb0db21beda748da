//go:build mutants

package completion

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/sim/rule"
)

// Each rule of the models that is broken shows in a count.
func TestBrokenRulesShow(t *testing.T) {
	for r := rule.IRQPollHasABudget; r <= rule.SoftirqsEnd; r++ {
		by := ""
		for _, p := range probes {
			if wrong := run(t, p, rule.Break(r)); len(wrong) > 0 {
				by = fmt.Sprintf("%s: %.300s", p.name, wrong[0])
				break
			}
		}
		if by == "" {
			t.Errorf("no count differs in a kernel that breaks the rule: %v", r)
			continue
		}
		t.Logf("%v: %s", r, by)
	}
}

// run takes a panic of a broken simulator for an answer.
func run(t *testing.T, p probe, b rule.Broken) (wrong []string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = append(wrong, fmt.Sprint("panic: ", r))
		}
	}()
	return p.run(t, b)
}
