//go:build mutants

package mutants

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// Whatever one thing is wrong in the table of QP transitions, a case that is generated from it
// fails: one of 20 things, or all with RDMASIM_TABLE=all (a minute of CPU time).
func TestEveryBitOfTheTableIsNoticed(t *testing.T) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("RDMASIM_TABLE") == "all"
	missed, n := 0, 0
	runners := map[string]*conformance.Runner{} // by profile
	for i, m := range mutant.TableBits() {
		if !all && i%20 != 0 {
			continue
		}
		profile := m.Profile
		if profile == "" {
			profile = simulator.DefaultProfile
		}
		target, err := simulator.New(simulator.Config{Profile: profile, Adjust: m.Break})
		if err != nil {
			t.Fatal(err)
		}
		if runners[profile] == nil {
			if runners[profile], _, err = conformance.Prepare(target, 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		runner := *runners[profile]
		runner.Target = target
		n++
		var seen []string
		noticed := slices.ContainsFunc(items, func(i conformance.Item) bool {
			if !slices.Contains(m.Killers, i.Entry.ID) {
				return false
			}
			c := runner.Run(i.Entry, i.Case)
			seen = append(seen, c.ID+" "+string(c.Outcome))
			return c.Outcome == report.Fail
		})
		if !noticed {
			missed++
			t.Errorf("%s: %s", m.Name, strings.Join(seen, ", "))
		}
	}
	t.Logf("%d of %d noticed", n-missed, n)
	if n < 80 {
		t.Errorf("%d mutants of the table", n)
	}
}
