package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// library are mutants of what libmlx5 does.
var library = []Mutant{
	{Name: "record-after-doorbell", Area: "BF", broken: rule.RecordBeforeDoorbell, Killers: []string{"BF-006"}},
	{Name: "send-counts-as-receive", Area: "BF", Killers: []string{"BF-006"}, broken: rule.SendRecordIsItsOwn},
	{Name: "one-half-only", Area: "BF", broken: rule.HalvesAlternate, Killers: []string{"BF-005"}},
	{Name: "shared-register-unlocked", Area: "TD", Killers: []string{"BF-008"}, broken: rule.SharedRegisterIsLocked},
	{Name: "two-threads-unnoticed", Area: "TD", Killers: []string{"TD-010"}, broken: rule.SingleThreadedIsChecked},
	{Name: "send-queue-overfilled", Area: "POST", Killers: []string{"POST-002"}, broken: rule.SendQueueHasALimit},
	{Name: "inline-without-limit", Area: "POST", Killers: []string{"POST-006"}, broken: rule.InlineHasALimit},
	{Name: "fence-dropped", Area: "RC", Killers: []string{"RC-021"}, broken: rule.FenceIsPassedOn},
	{Name: "armed-for-any", Area: "COMP", Killers: []string{"COMP-003"}, broken: rule.SolicitedArmIsPassedOn},
	{Name: "consumer-index-unwritten", Area: "CQ", Killers: []string{"CQ-020"}, broken: rule.ConsumerIndexIsWritten},
	{Name: "cq-keeps-dead-entries", Area: "CQ", Killers: []string{"CQ-035"}, broken: rule.CQIsCleanedOfAQP},
	{Name: "unsignalled-stay", Area: "POST", Killers: []string{"PERF-001"}, broken: rule.RetiresUnsignalled},
	{Name: "destroy-without-acks", Area: "COMP", Killers: []string{"COMP-008"}, broken: rule.EventsAreAwaited},
	{Name: "receive-list-without-end", Area: "POST", Killers: []string{"RC-012"}, broken: rule.ReceiveListEnds},
	{Name: "immediate-without-flag", Area: "RC", Killers: []string{"RC-002"}, broken: rule.ImmediateIsFlagged},
	{Name: "last-freed-register-first", Area: "TD", Killers: []string{"TD-023"}, broken: rule.FreedRegistersQueue},
	{Name: "old-library-with-a-list", Area: "TD", Killers: []string{"TD-025"}, broken: rule.OldLibraryNumbersRegisters},
	{Name: "lock-rule-of-another-time", Area: "BF", Killers: []string{"BF-012"}, broken: rule.LockRuleIsTheLibrarys},
}
