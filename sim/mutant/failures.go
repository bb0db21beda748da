package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// failures are mutants of what the device shows when something fails, as ConnectX-5 and ConnectX-6
// do.
var failures = []Mutant{
	{Name: "local-key-errors-alike", Area: "ERR", broken: rule.LocalKeyErrorsNameTheirCause, Killers: []string{"ERR-025"}, Profile: "connectx-5"},
	{Name: "flushed-head-alike", Area: "ERR", broken: rule.FlushedHeadNamesItsCause, Killers: []string{"ERR-033"}, Profile: "connectx-5"},
	{Name: "flushed-head-counted", Area: "ERR", broken: rule.FlushedHeadIsNoFlush, Killers: []string{"ERR-037"}, Profile: "connectx-5"},
	{Name: "responder-counts-errors", Area: "ERR", broken: rule.RespondersCountNoError, Killers: []string{"ERR-035"}, Profile: "connectx-5"},
	{Name: "refused-write-uncounted", Area: "ERR", broken: rule.RefusedRequestsAreCounted, Killers: []string{"ERR-036"}, Profile: "connectx-5"},
	{Name: "slow-restart-without-notice", Area: "ERR", broken: rule.RetransmissionsMakeNotices, Killers: []string{"ERR-038"}, Profile: "connectx-5"},
	{Name: "retry-zero-sends-once", Area: "ERR", broken: rule.RetryCountZeroSendsAgain, Killers: []string{"ERR-040"}, Profile: "connectx-5"},
	{Name: "write-checked-at-once", Area: "ERR", broken: rule.WritesAreCheckedByPacket, Killers: []string{"ERR-041"}, Profile: "connectx-5"},
	{Name: "local-length-checked-at-once", Area: "ERR", broken: rule.LengthsAreCheckedByPacket, Killers: []string{"ERR-042"}, Profile: "connectx-5"},
	{Name: "query-gives-what-was-sent", Area: "ERR", broken: rule.QueryTellsWhereItStopped, Killers: []string{"ERR-043"}, Profile: "connectx-5"},
	{Name: "refused-at-once-after-deregistration", Area: "ERR", broken: rule.DeregistrationIsSilent, Killers: []string{"ERR-046"}, Profile: "connectx-5"},
	{Name: "register-rules-in-error", Area: "ERR", broken: rule.RecordRulesInError, Killers: []string{"ERR-047"}, Profile: "connectx-5"},
}
