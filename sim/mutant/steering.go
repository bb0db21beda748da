package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// steering are mutants of raw packets and of the rules that steer them, in all three.
var steering = []Mutant{
	{Name: "flow-mask-without-its-end", Area: "RAW", broken: rule.FlowsMatchByTheirMask, Killers: []string{"RAW-013", "RAW-014", "RAND-016"}},
	{Name: "flow-priorities-reversed", Area: "RAW", broken: rule.FlowPrioritiesHaveTheirOrder, Killers: []string{"RAW-005", "RAND-016"}},
	{Name: "destroyed-flow-still-leads", Area: "RAW", broken: rule.DestroyedFlowsAreGone, Killers: []string{"RAW-006", "RAND-016"}},
	{Name: "flow-takes-all-of-its-entry", Area: "RAW", broken: rule.FlowsShareTheirEntry, Killers: []string{"RAW-006", "RAND-016"}},
	{Name: "multicast-flow-in-its-priority", Area: "RAW", broken: rule.MulticastFlowsComeLast, Killers: []string{"RAW-011", "RAND-016"}},
	{Name: "flow-for-everybody", Area: "RAW", broken: rule.FlowsNeedTheRight, Killers: []string{"RAW-003"}},
	{Name: "flow-of-any-ethertype", Area: "RAW", broken: rule.EtherTypeFitsIP, Killers: []string{"RAW-004", "RAND-016"}},
	{Name: "packet-without-tag", Area: "RAW", broken: rule.FlowTagsAreReported, Killers: []string{"RAW-027", "RAND-016"}},
	{Name: "wrong-checksum-unnoticed", Area: "RAW", broken: rule.WrongChecksumsAreReported, Killers: []string{"RAW-017", "RAND-016"}},
	{Name: "long-packet-cut-off", Area: "RAW", broken: rule.LongPacketsFailTheirReceive, Killers: []string{"RAW-019"}},
	{Name: "packet-before-rtr", Area: "RAW", broken: rule.PacketsWaitForRTR, Killers: []string{"RAW-023"}},
	{Name: "checksum-always-filled-in", Area: "RAW", broken: rule.ChecksumsAreFilledInOnRequest, Killers: []string{"RAW-018"}},
}
