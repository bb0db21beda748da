package conformance_test

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/report"
)

// failed stands in for the testing.T of the other suite.
type failed struct{ yes bool }

func (f *failed) Fail() { f.yes = true }

// The cases can be registered in any Ginkgo suite; Ginkgo runs one suite for each
// process, so this is the only test here that runs one.
func TestRegisterInAnotherSuite(t *testing.T) {
	s := &spec.Suite{}
	s.Case("DEV-001", func(c *spec.C) { c.Equal("one", 1, 1) })
	s.Case("DEV-002", func(c *spec.C) { c.Failf("no") })
	s.Case("PD-006", func(*spec.C) {}) // strength H: nothing to compare with
	items, err := conformance.Items(s)
	if err != nil {
		t.Fatal(err)
	}
	var records []report.Case
	if err := conformance.Register(conformance.Config{Runner: &conformance.Runner{Target: fake.Target{}}, Items: items,
		Finished: func(c report.Case) { records = append(records, c) }}); err != nil {
		t.Fatal(err)
	}
	states, labels := map[string]string{}, 0
	ginkgo.ReportAfterSuite("collect", func(r ginkgo.Report) {
		for _, sp := range r.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
			states[sp.LeafNodeText[:7]] = sp.State.String()
			labels += len(sp.LeafNodeLabels)
			if len(sp.ReportEntries) != 1 {
				t.Errorf("%s has %d report entries", sp.LeafNodeText, len(sp.ReportEntries))
			}
		}
	})
	suiteConfig, reporterConfig := ginkgo.GinkgoConfiguration()
	reporterConfig.Succinct = true
	var f failed
	ginkgo.RunSpecs(&f, "another suite", suiteConfig, reporterConfig)
	want := map[string]string{"DEV-001": "passed", "DEV-002": "failed", "PD-006 ": "skipped"}
	for id, state := range want {
		if states[id] != state {
			t.Errorf("%s: %s, want %s", id, states[id], state)
		}
	}
	if !f.yes || len(records) != 3 || labels < 9 {
		t.Errorf("suite failed: %v; %d records; %d labels", f.yes, len(records), labels)
	}
}
