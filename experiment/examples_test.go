package experiment

import (
	"fmt"
	"strings"
	"testing"
)

// The ten examples of the reference are read without complaint, ask of nothing that cannot act, and
// run.
func TestExamples(t *testing.T) {
	all := Examples()
	if len(all) != 10 {
		t.Errorf("%d examples", len(all))
	}
	for i, x := range all {
		t.Run(x.Asks, func(t *testing.T) {
			if !strings.HasSuffix(x.Text, "\n") || strings.Count(x.Text, "\n") > 8 {
				t.Errorf("an example is short, and ends with its line:\n%s", x.Text)
			}
			s, err := ParseScenario(fmt.Sprintf("example-%d.yaml", i), []byte(x.Text))
			if err != nil {
				t.Fatal(err)
			}
			req := Request{Seed: 1, Set: short(s)}
			res, err := s.Experiment().Execute(t.Context(), req, nil)
			if err != nil || !res.Complete || len(res.Rows) == 0 {
				t.Fatalf("%v: %+v", err, res)
			}
			for _, n := range res.Notes {
				if strings.Contains(n, "changes nothing") || strings.Contains(n, "can act on nothing") {
					t.Error(n)
				}
			}
		})
	}
}

// short are settings with which a scenario ends soon.
func short(s *Scenario) (set []string) {
	if s.Completions != nil {
		return []string{"completions.warmup=100us", "completions.duration=500us"}
	}
	for i, t := range s.given.Traffic {
		if t.Messages > 0 {
			set = append(set, fmt.Sprintf("traffic.%d.messages=5", i))
		} else {
			set = append(set, fmt.Sprintf("traffic.%d.duration=50us", i))
		}
	}
	return set
}
