package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// Options say how Describe runs the suite. The zero value runs every case that has code, as
// conform does without flags.
type Options struct {
	// Seed is the seed of all random choices of the run; 0 stands for 1.
	Seed uint64
	// Policy says what the target may lack and what it must have; nil: the policy that is
	// checked in for the profile of its testbeds (LoadPolicy).
	Policy *Policy
	// Ledger of known deviations; nil: the one that comes with the suite.
	Ledger *report.Ledger
	// Items to run instead of every case that has code: some of Items(Suite()), or cases of
	// your own with entries whose numbers begin at 900.
	Items []Item
	// Repeat is how many times each case runs; a case whose runs differ is flaky. 0 stands for 1.
	Repeat int
	// Full runs long cases at the length that the catalogue demands.
	Full bool
	// Record is the file to write the record of the run to, as conform --report does: conform
	// diff and conform accept read it. Empty: none.
	Record string
}

// Describe adds the suite on a target to the Ginkgo suite that is being built, as Register
// does, and judges the run as a whole in the end: a run in which no case passes, or fewer than
// the policy promises, fails. It is called at the top level of a test package, and RunSpecs
// runs it:
//
//	var _ = conformance.Describe("verbs", target, conformance.Options{})
//
// Ginkgo's own flags choose cases (--ginkgo.label-filter 'RC && !tap'), spread them over
// processes (ginkgo -p) and write reports.
func Describe(text string, target spec.Target, o Options) bool {
	all, err := Items(Suite())
	if err != nil {
		panic(err) // a mistake in the suite itself, which its own tests find
	}
	cat, err := LoadCatalogue()
	if err != nil {
		panic(err)
	}
	r := &described{text: text, target: target, options: o, items: o.Items, whole: o.Items == nil}
	if r.whole {
		r.items = all
	}
	r.prepare = sync.OnceValues(func() (*Runner, error) { return r.prepared() })
	ginkgo.Describe(text, func() { (&registration{runner: r.prepare}).add(cat, r.items) })
	ginkgo.ReportAfterSuite(text+", as a whole", r.judge)
	return true
}

// described is one call of Describe.
type described struct {
	text    string
	target  spec.Target
	options Options
	items   []Item
	whole   bool // every case that has code
	prepare func() (*Runner, error)
	about   Description
}

// prepared asks the target what it is, once in each process and not before a case runs.
func (d *described) prepared() (*Runner, error) {
	o := d.options
	r, about, err := Prepare(d.target, max(o.Seed, 1), o.Policy)
	if err != nil {
		return nil, err
	}
	d.about = about
	if o.Ledger != nil {
		r.Ledger = o.Ledger
	}
	r.Repeat = o.Repeat
	r.Options = func(string) spec.BedOptions { return spec.BedOptions{Full: o.Full} }
	return r, nil
}

// judge judges the run as a whole and writes its record.
func (d *described) judge(r ginkgo.Report) {
	cases, err := d.records(r)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	if len(cases) == 0 { // a dry run, or other specs were chosen
		return
	}
	runner, err := d.prepare()
	if err != nil {
		ginkgo.Fail("no testbed: " + err.Error())
	}
	ran := slices.DeleteFunc(slices.Clone(d.items), func(i Item) bool { _, ok := cases[i.Entry.ID]; return !ok })
	run := NewRecord(d.about.Target.Kind, runner.Seed, d.about, ran, cases)
	run.Incomplete = len(r.SpecialSuiteFailureReasons) > 0
	if !run.Incomplete {
		run.Findings = append(run.Findings, runner.Policy.Findings(run.Cases, d.whole && len(ran) == len(d.items))...)
	}
	if d.options.Record != "" {
		if err := writeRecord(d.options.Record, run); err != nil {
			ginkgo.Fail(err.Error())
		}
	}
	if len(run.Findings) > 0 {
		ginkgo.Fail(strings.Join(run.Findings, "\n"))
	}
}

// records returns the cases that ran, by ID. It reads them from Ginkgo's report, which has those of
// other processes too.
func (d *described) records(r ginkgo.Report) (map[string]report.Case, error) {
	out := map[string]report.Case{}
	for _, s := range r.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
		if !slices.Contains(s.ContainerHierarchyTexts, d.text) {
			continue
		}
		for _, e := range s.ReportEntries {
			if e.Name != EntryRecord {
				continue
			}
			text := []byte(e.Value.AsJSON) // from another process
			if c, here := e.GetRawValue().(report.Case); here {
				var err error
				if text, err = json.Marshal(c); err != nil {
					return nil, err
				}
			}
			var c report.Case
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.UseNumber() // 64-bit values of observations stay exact
			if err := dec.Decode(&c); err != nil {
				return nil, fmt.Errorf("record of %s: %w", s.LeafNodeText, err)
			}
			out[c.ID] = c
		}
	}
	return out, nil
}

func writeRecord(path string, run *report.Run) error {
	f, err := outfile.Create(context.Background(), path)
	if err != nil {
		return err
	}
	return f.Commit(run.WriteJSON)
}
