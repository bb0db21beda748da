package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
)

// embedded is the variable that names the file to which TestEmbeddedSuite writes its record.
const embedded = "CONFORM_TEST_EMBEDDED"

// A test of another project that runs the suite by Describe leaves the same record as conform does.
// Ginkgo runs one suite for each process, so the test runs itself again.
func TestEmbeddedSuiteLeavesTheSameRecord(t *testing.T) {
	const filter = "ATOM && !ATOM-010 || PD-007"
	if record := os.Getenv(embedded); record != "" {
		target, err := simulator.New(simulator.Config{})
		if err != nil {
			t.Fatal(err)
		}
		conformance.Describe("verbs", target, conformance.Options{Record: record})
		config, reporter := ginkgo.GinkgoConfiguration()
		config.LabelFilter, config.RandomizeAllSpecs = filter, true
		ginkgo.RunSpecs(t, "embedded", config, reporter)
		return
	}
	dir := t.TempDir()
	byConform, byGinkgo := filepath.Join(dir, "conform.json"), filepath.Join(dir, "ginkgo.json")
	if code, out, stderr := command(t, "--target=sim", "--label-filter", filter, "--report", byConform); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), embedded+"="+byGinkgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, want := readRun(t, byConform)
	_, got := readRun(t, byGinkgo)
	if !bytes.Equal(got, want) {
		t.Errorf("the records differ: %d and %d bytes", len(got), len(want))
	}
}
