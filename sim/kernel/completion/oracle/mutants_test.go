//go:build mutants

package oracle

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim/rule"
)

// Each rule of the models that is broken shows in a count.
func TestBrokenRulesShow(t *testing.T) {
	for r := rule.IRQPollHasABudget; r <= rule.SoftirqsEnd; r++ {
		by, why := "", ""
		for _, p := range Probes() {
			if wrong := p.Check(rule.Break(r)); len(wrong) > 0 {
				by, why = p.Name, wrong[0]
				break
			}
		}
		if by == "" {
			t.Errorf("no count differs in a kernel that breaks the rule: %v", r)
			continue
		}
		t.Logf("%v: %s: %.300s", r, by, why)
	}
}
