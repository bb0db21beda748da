package conformance

import (
	"cmp"
	"maps"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Version of the suite, stamped into records.
const Version = "0.2.0"

// Description is what a target says of itself before the first case.
type Description struct {
	Target verbs.Target
	// Chosen says in one line which devices a target of hardware chose.
	Chosen string
	// Lacks lists the required capabilities that it does not claim.
	Lacks []string
}

// Prepare asks the target what it is, on a testbed of its own, and makes the runner for it. Without
// a policy it takes the one that is checked in for the target's profile. What more has is added to
// the ledger.
func Prepare(target spec.Target, seed uint64, policy *Policy, more ...LedgerFile) (*Runner, Description, error) {
	ledger, err := LoadLedger(more...)
	if err != nil {
		return nil, Description{}, err
	}
	bed, err := target.NewTestbed(seed, spec.BedOptions{})
	if err != nil {
		return nil, Description{}, err
	}
	d := Description{Target: bed.Target()}
	if policy == nil {
		policy, err = LoadPolicy(d.Target.Profile, d.Target.Details)
	}
	if err == nil {
		d.Lacks = policy.Lacks(bed)
	}
	if c, ok := target.(spec.Chooser); ok {
		d.Chosen = c.Chosen()
	}
	err = cmp.Or(err, closeBed(bed))
	return &Runner{Target: target, Seed: seed, Policy: policy, Ledger: ledger}, d, err
}

// NewRecord makes the record of a run of items, in the order of items. An item that is not among
// cases was not reached.
func NewRecord(kind string, seed uint64, d Description, items []Item, cases map[string]report.Case) *report.Run {
	run := &report.Run{Schema: report.Schema, Seed: seed,
		Target:      report.Target{Kind: kind, Profile: d.Target.Profile, Device: d.Target.Device},
		Environment: map[string]string{"conform": Version}}
	maps.Copy(run.Environment, d.Target.Details)
	for _, i := range items {
		c, ran := cases[i.Entry.ID]
		if !ran {
			c = report.Case{ID: i.Entry.ID, Outcome: report.NotRun, Reason: "the run was interrupted"}
		}
		c.Area, c.Text, c.Strength = i.Entry.Area, i.Entry.Text, string(i.Entry.Strength)
		if c.Observations == nil {
			c.Observations = []report.Observation{}
		}
		run.Cases = append(run.Cases, c)
	}
	if len(d.Lacks) > 0 {
		run.Findings = append(run.Findings, "the target lacks what it must have: "+strings.Join(d.Lacks, ", "))
	}
	run.Count()
	return run
}
