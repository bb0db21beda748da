package nic_test

import (
	"cmp"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/rdmasim/rdmasim/conformance"
	nic "github.com/rdmasim/rdmasim/examples/testbed"
)

func TestVerbs(t *testing.T) {
	// What the device may lack: cases that need it are skipped after their call was refused.
	policy := conformance.Policy{Profile: "nic", Required: []string{"roce"}, Absent: []conformance.Absence{
		{Token: "pdom", Because: "not written yet"},
		{Token: "mw", Because: "not written yet"},
	}}
	conformance.Describe("verbs", nic.Target{}, conformance.Options{Policy: &policy})
	config, reporter := ginkgo.GinkgoConfiguration()
	config.LabelFilter = cmp.Or(config.LabelFilter, "/DEV-0(01|02|06|13|14)/ || PD && (PD-001 || mw || pdom)") // written so far
	ginkgo.RunSpecs(t, "verbs of nic", config, reporter)
}
