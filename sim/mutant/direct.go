package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// direct are mutants of mlx5 direct verbs.
var direct = []Mutant{
	{Name: "direct-verbs-anywhere", Area: "DV", broken: rule.ForeignDevicesHaveNoDirectVerbs, Killers: []string{"DV-001"}},
	{Name: "everything-answered", Area: "DV", broken: rule.DirectAnswerIsMasked, Killers: []string{"DV-002"}},
	{Name: "scatter-both-ways", Area: "DV", broken: rule.ScatterFlagsContradict, Killers: []string{"DV-004"}},
	{Name: "direct-flag-of-any-bit", Area: "DV", broken: rule.DirectFlagsAreKnown, Killers: []string{"DV-005"}},
	{Name: "direct-mask-of-any-bit", Area: "DV", broken: rule.DirectMasksAreKnown, Killers: []string{"DV-005"}},
	{Name: "driver-type-unsupported", Area: "DV", broken: rule.DriverTypeNamesAnEnd, Killers: []string{"DV-007"}},
	{Name: "raw-request-by-its-opcode", Area: "DV", broken: rule.RawRequestsSayTheyAre, Killers: []string{"DV-019"}},
	{Name: "raw-request-always-signalled", Area: "DV", broken: rule.RawRequestsHaveTheirFlags, Killers: []string{"DV-019"}},
	{Name: "old-timestamp-ahead", Area: "DV", broken: rule.OldTimestampsAreBehind, Killers: []string{"DV-038"}},
	{Name: "increment-overwrites", Area: "DV", broken: rule.IncrementsAdd, Killers: []string{"DV-033"}},
	{Name: "test-without-set", Area: "DV", broken: rule.TestsSet, Killers: []string{"DV-033"}},
	{Name: "direct-memory-mask-of-any-bit", Area: "DV", broken: rule.DirectMemoryMasksAreKnown, Killers: []string{"DV-034"}},
	{Name: "source-port-kept", Area: "DV", broken: rule.SourcePortIsTaken, Killers: []string{"DV-025"}},
	{Name: "reserved-number-given", Area: "DV", broken: rule.ReservedNumbersAreKept, Killers: []string{"DV-027"}},
}
