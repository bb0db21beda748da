package conformance_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// described is the variable that names the suite which a test runs in a process of its own:
// Ginkgo runs one for each process.
const described = "CONFORMANCE_TEST_DESCRIBED"

// restarting is a target that can run no more in this process after its first case.
type restarting struct {
	fake.Target
	cases *int
}

func (r restarting) NewTestbed(seed uint64, o spec.BedOptions) (spec.Bed, error) {
	if o.ID != "" {
		*r.cases++
	}
	return r.Target.NewTestbed(seed, o)
}

func (r restarting) NeedsRestart() bool { return *r.cases > 0 }

// describe builds the suite of that name.
func describe(t *testing.T, name string) {
	two := &spec.Suite{}
	two.Case("DEV-001", func(c *spec.C) { c.Equal("one", 1, 1) })
	two.Case("DEV-002", func(c *spec.C) { c.Equal("one", 1, 1) })
	items, err := conformance.Items(two)
	if err != nil {
		t.Fatal(err)
	}
	own := conformance.Item{Entry: conformance.Entry{ID: "NIC-900", Area: "NIC", Text: "A case of its own", Strength: conformance.Exact},
		Case: spec.Case{ID: "NIC-900", Body: func(c *spec.C) { c.Failf("not today") }}}
	switch name {
	case "good":
		conformance.Describe("two", fake.Target{}, conformance.Options{Items: items})
	case "null":
		conformance.Describe("all", fake.Target{Null: true}, conformance.Options{})
	case "lacking":
		conformance.Describe("two", fake.Target{Capabilities: map[string]verbs.Capability{"td": verbs.Absent}},
			conformance.Options{Items: items, Policy: &conformance.Policy{Required: []string{"td"}}})
	case "restarting":
		conformance.Describe("two", restarting{cases: new(int)}, conformance.Options{Items: items})
	case "own":
		conformance.Describe("own", fake.Target{}, conformance.Options{Items: append(items, own)})
	}
	config, reporter := ginkgo.GinkgoConfiguration()
	ginkgo.RunSpecs(t, name, config, reporter)
}

func TestDescribe(t *testing.T) {
	if name := os.Getenv(described); name != "" {
		describe(t, name)
		return
	}
	tests := map[string]struct {
		passed  int
		message string // of a failure; empty: the suite passes
	}{
		"good":       {2, ""},
		"null":       {0, "no case passes: the target refuses everything"},
		"lacking":    {2, "the target lacks what it must have: td"},
		"restarting": {1, "DEV-002: not run: case DEV-001 left the target unusable until this process ends"},
		"own":        {2, "NIC-900: fail: not today"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			cmd := exec.Command(os.Args[0], "-test.run", "^TestDescribe$", "--ginkgo.json-report", file)
			cmd.Env = append(os.Environ(), described+"="+name)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (tt.message == "") {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var suites []types.Report
			if err := json.Unmarshal(text, &suites); err != nil || len(suites) != 1 {
				t.Fatalf("%d suites, %v", len(suites), err)
			}
			specs := suites[0].SpecReports
			found := tt.message == "" || slices.ContainsFunc(specs, func(s types.SpecReport) bool {
				return strings.Contains(s.Failure.Message, tt.message)
			})
			if n := specs.WithLeafNodeType(types.NodeTypeIt).CountWithState(types.SpecStatePassed); n != tt.passed || !found {
				t.Errorf("%d passed, want %d and %q\n%s", n, tt.passed, tt.message, out)
			}
		})
	}
}
