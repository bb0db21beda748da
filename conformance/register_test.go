package conformance_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// failed stands in for the testing.T of the other suite.
type failed struct{ yes bool }

func (f *failed) Fail() { f.yes = true }

// The cases can be registered in any Ginkgo suite; Ginkgo runs one suite for each
// process, so this is the only test here that runs one.
func TestRegisterInAnotherSuite(t *testing.T) {
	s := &spec.Suite{}
	s.Case("DEV-001", func(c *spec.C) { c.Equal("one", 1, 1) })
	s.Case("DEV-002", func(c *spec.C) { c.Errno("query", syscall.EIO, syscall.EINVAL) })
	s.Case("DEV-003", func(c *spec.C) { c.Errno("query", syscall.EIO, syscall.EINVAL) })
	s.Case("PD-006", func(*spec.C) {}) // strength H: nothing to compare with
	items, err := conformance.Items(s)
	if err != nil {
		t.Fatal(err)
	}
	ledger := &report.Ledger{}
	if err := ledger.Add("test.yaml", []byte(`
provider: mlx5
deviations:
- {id: X-01, title: the errno is another, where: {profile: p}, kind: errno, evidence: test, owner: o, opened: "2026-01-01", review_by: "2026-12-31",
   predicts: [{case: DEV-003, step: query, got: EIO}]}
`), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	var records []report.Case
	if err := conformance.Register(conformance.Config{Runner: &conformance.Runner{Target: fake.Target{Profile: "p"}, Ledger: ledger}, Items: items,
		Finished: func(c report.Case) { records = append(records, c) }}); err != nil {
		t.Fatal(err)
	}
	got := map[string]types.SpecReport{}
	ginkgo.ReportAfterSuite("collect", func(r ginkgo.Report) {
		for _, sp := range r.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
			got[strings.Fields(sp.LeafNodeText)[0]] = sp
		}
	})
	suiteConfig, reporterConfig := ginkgo.GinkgoConfiguration()
	reporterConfig.Succinct = true
	var f failed
	ginkgo.RunSpecs(&f, "another suite", suiteConfig, reporterConfig)
	if !f.yes || len(records) != 4 {
		t.Errorf("suite failed: %v; %d records", f.yes, len(records))
	}
	want := map[string]struct{ state, entries, message string }{
		"DEV-001": {"passed", "record observations", ""},
		"DEV-002": {"failed", "record observations", "DEV-002: fail: query: want EINVAL, got EIO"},
		"DEV-003": {"passed", "record observations deviation", ""},
		"PD-006":  {"skipped", "record", "unrecorded: no recording on hardware"},
	}
	for id, w := range want {
		sp := got[id]
		var entries []string
		for _, e := range sp.ReportEntries {
			entries = append(entries, e.Name)
		}
		if sp.State.String() != w.state || strings.Join(entries, " ") != w.entries || !strings.Contains(sp.Failure.Message, w.message) {
			t.Errorf("%s: %s, entries %q, %q; want %+v", id, sp.State, entries, sp.Failure.Message, w)
		}
		if at := sp.LeafNodeLocation; !strings.HasSuffix(at.FileName, "/conformance/register_test.go") {
			t.Errorf("%s is said to be at %v", id, at)
		}
		if len(sp.ContainerHierarchyTexts) != 1 || len(sp.Labels()) < 3 {
			t.Errorf("%s is in %q, with labels %q", id, sp.ContainerHierarchyTexts, sp.Labels())
		}
	}
	sp := got["DEV-002"]
	if at := sp.FailureLocation(); at.LineNumber != sp.LeafNodeLocation.LineNumber || at.FileName != sp.LeafNodeLocation.FileName {
		t.Errorf("the failure is said to be at %v, not at the check at %v", at, sp.LeafNodeLocation)
	}
	for name, want := range map[string]string{
		conformance.EntryObservations: `query: "EIO"  (want "EINVAL")  deviation X-01`,
		conformance.EntryDeviation:    "X-01: the errno is another (query)",
	} {
		if i := slices.IndexFunc(got["DEV-003"].ReportEntries, func(e types.ReportEntry) bool { return e.Name == name }); got["DEV-003"].ReportEntries[i].StringRepresentation() != want {
			t.Errorf("entry %s: %s", name, got["DEV-003"].ReportEntries[i].StringRepresentation())
		}
	}
}
