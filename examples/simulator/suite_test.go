// Package simulator_test runs the conformance suite on the simulated device from an ordinary
// Go test: go test ./examples/simulator. Every flag of Ginkgo works, for example
// -args --ginkgo.label-filter 'RC && !tap' -ginkgo.v --ginkgo.junit-report verbs.xml.
package simulator_test

import (
	"cmp"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
)

func TestVerbs(t *testing.T) {
	target, err := simulator.New(simulator.Config{Profile: "connectx-5"})
	if err != nil {
		t.Fatal(err)
	}
	conformance.Describe("verbs", target, conformance.Options{})
	config, reporter := ginkgo.GinkgoConfiguration()
	config.LabelFilter = cmp.Or(config.LabelFilter, "ATOM || PD") // without this line: every case
	ginkgo.RunSpecs(t, "verbs on the simulator", config, reporter)
}
