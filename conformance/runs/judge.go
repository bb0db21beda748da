package runs

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
)

// Demands are what a run as a whole must fulfil.
type Demands struct {
	Whole   bool      // all cases of the suite were chosen
	MinPass int       // the least number of cases that must pass
	Today   time.Time // by which entries of the ledger of deviations must have been reviewed
	Ledgers []conformance.LedgerFile
}

// NoBaseline is the finding of a run that no baseline could be compared with.
const NoBaseline = "no --baseline has this kind of device"

// Judge adds to run.Findings what is wrong with the run as a whole, by the policy of its target,
// the ledger of deviations and the demands. It does not judge an interrupted run.
func Judge(run *report.Run, policy *conformance.Policy, ledger *report.Ledger, d Demands) {
	if run.Incomplete {
		return
	}
	run.Findings = append(run.Findings, policy.Findings(run.Cases, d.Whole)...)
	if pass := conformance.Passed(run.Cases); pass < d.MinPass {
		run.Findings = append(run.Findings, fmt.Sprintf("passed cases: %d, and --min-pass asks for %d", pass, d.MinPass))
	}
	run.Findings = append(run.Findings, ledger.Exceeded(run)...)
	run.Findings = append(run.Findings, ledger.Overdue(run.Platform(), d.Today)...)
}
