package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// kernel are mutants of what ib_core and mlx5_ib do.
var kernel = []Mutant{
	{Name: "pd-dealloc-in-use", Area: "PD", Killers: []string{"PD-002"}, broken: rule.PDInUseIsBusy},
	{Name: "cq-destroy-in-use", Area: "CQ", Killers: []string{"CQ-018"}, broken: rule.CQInUseIsBusy},
	{Name: "srq-destroy-in-use", Area: "SRQ", Killers: []string{"SRQ-014"}, broken: rule.SRQInUseIsBusy},
	{Name: "channel-destroy-in-use", Area: "COMP", Killers: []string{"COMP-007"}, broken: rule.ChannelInUseIsBusy},
	{Name: "qp-destroy-in-group", Area: "UD", Killers: []string{"QPS-031"}, broken: rule.QPInAGroupIsBusy},
	{Name: "event-of-a-dead-cq", Area: "COMP", Killers: []string{"COMP-014"}, broken: rule.EventsGoWithTheirObject},
	{Name: "mr-rights-unchecked", Area: "MR", Killers: []string{"MR-002"}, broken: rule.RemoteWriteNeedsLocalWrite},
	{Name: "mr-always-readable", Area: "MR", Killers: []string{"MR-021"}, broken: rule.RemoteReadIsAskedFor},
	{Name: "memlock-ignored", Area: "MR", Killers: []string{"MR-009"}, broken: rule.MemlockLimits},
	{Name: "mr-of-read-only-memory", Area: "MR", Killers: []string{"MR-007"}, broken: rule.WritableAccessNeedsWritableMemory},
	{Name: "mr-stays-pinned", Area: "MR", Killers: []string{"MR-009"}, broken: rule.DeregistrationUnpins},
	{Name: "empty-gid-taken", Area: "QPS", Killers: []string{"DEV-009"}, broken: rule.EmptyGIDIsRefused},
	{Name: "any-transition", Area: "QPS", Killers: []string{"QPS-002"}, broken: rule.TransitionsAreATable},
	{Name: "transition-needs-nothing", Area: "QPS", Killers: []string{"QPS-002"}, broken: rule.TransitionsNeedTheirAttributes},
	{Name: "transition-takes-all", Area: "QPS", Killers: []string{"QPS-003"}, broken: rule.TransitionsTakeNoOtherAttributes},
	{Name: "high-qkey-for-all", Area: "UD", Killers: []string{"QPS-040"}, broken: rule.HighQKeysArePrivileged},
	{Name: "reads-above-the-device", Area: "QPS", broken: rule.ReadsAreLimitedByTheDevice, Killers: []string{"QPS-021"}},
	{Name: "port-events-to-one", Area: "ASYNC", Killers: []string{"ASYNC-006"}, broken: rule.PortEventsReachEveryContext},
	{Name: "rights-stay", Area: "MR", Killers: []string{"MR-024"}, broken: rule.ReregistrationChangesRights},
	{Name: "oldest-free-key-first", Area: "MR", Killers: []string{"MR-047"}, broken: rule.FreedKeysHaveTheirOrder},
}
