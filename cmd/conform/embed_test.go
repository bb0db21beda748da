package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
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

// A case of another suite, numbered from 900 in an area of ours, runs, is filtered, and its records
// are read and compared like those of our own. Files of deviations and policies can name it.
func TestEmbeddedCaseOfAnotherSuite(t *testing.T) {
	const id = "RC-901"
	if record := os.Getenv(embedded); record != "" {
		target, err := simulator.New(simulator.Config{})
		if err != nil {
			t.Fatal(err)
		}
		items, err := conformance.Items(conformance.Suite())
		if err != nil {
			t.Fatal(err)
		}
		seen := os.Getenv(embedded + "_SEEN")
		own := conformance.Item{Entry: conformance.Entry{ID: id, Area: "RC", Text: "A case of its own", Strength: conformance.Exact},
			Case: spec.Case{ID: id, Body: func(c *spec.C) { c.Observe("word", seen) }}}
		conformance.Describe("verbs", target, conformance.Options{Record: record, Items: append(items, own)})
		config, reporter := ginkgo.GinkgoConfiguration()
		config.LabelFilter = id + " || PD-007"
		ginkgo.RunSpecs(t, "embedded", config, reporter)
		return
	}
	dir := t.TempDir()
	record := func(seen string) string {
		path := filepath.Join(dir, seen+".json")
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), embedded+"="+path, embedded+"_SEEN="+seen)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return path
	}
	one, two := record("one"), record("two")
	run, _ := readRun(t, one)
	if len(run.Cases) != 2 || run.Cases[1].ID != id || run.Cases[1].Outcome != report.Pass {
		t.Fatalf("the record has %+v", run.Cases)
	}
	if code, out, stderr := command(t, "diff", one, one); code != exitOK {
		t.Errorf("diff of a record and itself: exit %d\n%s%s", code, out, stderr)
	}
	if code, out, _ := command(t, "diff", one, two); code != exitFailed || !strings.Contains(out, id) {
		t.Errorf("diff of two records in which the case saw different words: exit %d\n%s", code, out)
	}
	html := filepath.Join(dir, "page.html")
	if code, out, stderr := command(t, "diff", "--html", html, one, two); code != exitFailed {
		t.Errorf("a page: exit %d\n%s%s", code, out, stderr)
	} else if page, err := os.ReadFile(html); err != nil || !bytes.Contains(page, []byte(id)) {
		t.Errorf("the page does not show %s, %v", id, err)
	}
	text := "provider: mlx5\ndeviations:\n- {id: MINE-01, title: t, where: {profile: connectx-5}, kind: errno, evidence: e, owner: o, " +
		"opened: \"2026-11-24\", review_by: \"2027-05-01\", predicts: [{case: " + id + ", step: word, got: two}]}\n"
	if _, err := conformance.LoadLedger(conformance.LedgerFile{Name: "own.yaml", Text: text}); err != nil {
		t.Errorf("a ledger that names %s: %v", id, err)
	}
	if _, err := conformance.ParsePolicy("own.yaml", []byte("profiles: [mine]\nallowed:\n  - {id: "+id+", because: ours}\n")); err != nil {
		t.Errorf("a policy that names %s: %v", id, err)
	}
}
