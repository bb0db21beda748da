package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// edges are mutants of the kinds that a suite misses: limits, words of which a part is compared, sums beyond 32 bits,
// what is repeated after something newer, what is used again after a partial arrival, what is destroyed with events
// pending, and compressed completions.
var edges = []Mutant{
	{Name: "halves-of-each-queue", Area: "BF", broken: rule.HalvesAreOfTheRegister, Killers: []string{"BF-014"}},
	{Name: "register-unflushed", Area: "BF", broken: rule.RegisterIsFlushed, Killers: []string{"BF-002"}},
	{Name: "doorbell-for-one-request", Area: "BF", broken: rule.DoorbellCoversThoseBefore, Killers: []string{"BF-002"}},
	{Name: "parent-takes-any-bit", Area: "PD", broken: rule.ParentRefusesUnknownBits, Killers: []string{"PD-012"}},
	{Name: "pd-under-parent-goes", Area: "PD", broken: rule.ParentHoldsItsPD, Killers: []string{"PD-013"}},
	{Name: "uar-of-any-kind", Area: "UAR", broken: rule.UnknownUARFlagIsRefused, Killers: []string{"UAR-005"}},
	{Name: "non-cached-uar-each", Area: "UAR", broken: rule.NonCachedUARIsShared, Killers: []string{"UAR-002"}},
	{Name: "own-uar-is-shared", Area: "UAR", broken: rule.OwnUARIsItsOwn, Killers: []string{"UAR-003"}},
	{Name: "one-register-of-a-page", Area: "UAR", broken: rule.FourRegistersOfAPage, Killers: []string{"UAR-004"}},
	{Name: "independent-domains-share", Area: "TD", broken: rule.IndependentDomainsHaveTheirPage, Killers: []string{"TD-018"}},
	{Name: "domain-keeps-its-locks", Area: "TD", broken: rule.DomainQueuesHaveNoLock, Killers: []string{"TD-005"}},
	{Name: "freed-domain-forgotten", Area: "TD", broken: rule.FreedDomainsAreUsedAgain, Killers: []string{"TD-017"}},
	{Name: "qp-destroyed-before-acks", Area: "ASYNC", broken: rule.AsyncEventsAreAwaited, Killers: []string{"ASYNC-013"}},

	{Name: "port-of-any-number", Area: "DEV", broken: rule.PortsAreChecked, Killers: []string{"DEV-006"}},
	{Name: "newest-event-first", Area: "ASYNC", broken: rule.EventsAreReadInOrder, Killers: []string{"ASYNC-014"}},
	{Name: "event-of-a-dead-qp", Area: "ASYNC", broken: rule.QPEventsGoWithTheQP, Killers: []string{"ASYNC-012"}},
	{Name: "event-of-a-dead-srq", Area: "ASYNC", broken: rule.SRQEventsGoWithTheSRQ, Killers: []string{"ASYNC-012"}},
	{Name: "error-of-a-dead-cq", Area: "ASYNC", broken: rule.CQErrorsGoWithTheCQ, Killers: []string{"ASYNC-012"}},
	{Name: "privilege-from-another-bit", Area: "QPS", broken: rule.PrivilegeComesFromTheTopBit, Killers: []string{"QPS-041"}},

	{Name: "arm-looks-forward-only", Area: "COMP", broken: rule.ArmFindsWhatIsThere, Killers: []string{"ODP-039"}},
	{Name: "moderation-one-early", Area: "CQ", broken: rule.ModerationWaitsForItsCount, Killers: []string{"CQ-037"}},
	{Name: "moderation-one-late", Area: "CQ", broken: rule.ModerationReachesItsCount, Killers: []string{"CQ-037"}},
	{Name: "moderation-for-ever", Area: "CQ", broken: rule.ModerationPeriodEnds, Killers: []string{"CQ-036"}},
	{Name: "mini-entry-of-another-length", Area: "CQ", broken: rule.MiniEntriesHaveTheirLength, Killers: []string{"CQ-038"}},
	{Name: "mini-entry-of-another-index", Area: "CQ", broken: rule.MiniEntriesHaveTheirIndex, Killers: []string{"CQ-038"}},

	{Name: "srq-in-order-of-its-ring", Area: "SRQ", broken: rule.SRQFollowsItsList, Killers: []string{"SRQ-005"}},
	{Name: "receive-record-read-once", Area: "RC", broken: rule.DoorbellRecordIsReadAgain, Killers: []string{"RC-001"}},
	{Name: "receive-filled-from-its-middle", Area: "UC", broken: rule.AbandonedReceiveIsFilledAnew, Killers: []string{"UC-004"}},
	{Name: "receive-lost-with-its-message", Area: "UC", broken: rule.AbandonedReceiveIsUsedAgain, Killers: []string{"XRC-022"}},
	{Name: "newer-atomic-hides-older", Area: "WIRE", broken: rule.OlderAtomicsAreReplayed, Killers: []string{"RC-034"}},
	{Name: "newer-read-hides-older", Area: "WIRE", broken: rule.OlderReadsAreReplayed, Killers: []string{"RC-034"}},

	{Name: "write-within-4-gib", Area: "MR", broken: rule.WriteAddressesHave64Bits, Killers: []string{"MR-049"}},
	{Name: "read-within-4-gib", Area: "MR", broken: rule.ReadAddressesHave64Bits, Killers: []string{"MR-049"}},
	{Name: "gather-within-4-gib", Area: "MR", broken: rule.GatherAddressesHave64Bits, Killers: []string{"MR-049"}},
	{Name: "landing-within-4-gib", Area: "MR", broken: rule.LandingAddressesHave64Bits, Killers: []string{"MR-049"}},
	{Name: "scatter-within-4-gib", Area: "MR", broken: rule.ScatterAddressesHave64Bits, Killers: []string{"MR-049"}},
	{Name: "addition-in-two-halves", Area: "ATOM", broken: rule.AdditionsCarry, Killers: []string{"ATOM-003"}},
	{Name: "half-compared", Area: "ATOM", broken: rule.ComparisonsAreWhole, Killers: []string{"ATOM-002"}},
	{Name: "qkey-in-its-low-half", Area: "UD", broken: rule.QKeysMatchInTheirHighHalf, Killers: []string{"UD-004"}},
	{Name: "qkey-in-its-high-half", Area: "UD", broken: rule.QKeysMatchInTheirLowHalf, Killers: []string{"UD-004"}},
	{Name: "limited-members-talk", Area: "IB", broken: rule.LimitedMembersDoNotTalk, Killers: []string{"IB-015"}, Profile: "connectx-5-ib"},
	{Name: "pkey-in-its-low-byte", Area: "WIRE", broken: rule.PKeysMatchInTheirHighByte, Killers: []string{"WIRE-027"}},
	{Name: "packet-for-another-address", Area: "WIRE", broken: rule.PacketsAreForThisAddress, Killers: []string{"WIRE-063"}},
	{Name: "broken-packet-taken", Area: "WIRE", broken: rule.BrokenPacketsAreDropped, Killers: []string{"WIRE-013"}},
	{Name: "repair-takes-its-time", Area: "PERF", broken: rule.RepairIsAtOnce, Killers: []string{"PERF-015"}},
	{Name: "sequence-nak-unheard", Area: "PERF", broken: rule.SequenceNAKIsHeard, Killers: []string{"PERF-015"}},
	{Name: "last-waiting-queue-first", Area: "PERF", broken: rule.WaitingQueuesTakeTurns, Killers: []string{"PERF-016"}},
}
