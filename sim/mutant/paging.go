package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// paging are mutants of on-demand paging, in the kernel and in the device.
var paging = []Mutant{
	{Name: "stale-pages-committed", Area: "ODP", broken: rule.RacedPagesAreLookedUpAgain, Killers: []string{"ODP-061"}},
	{Name: "invalidation-unheard", Area: "ODP", broken: rule.InvalidationReachesTheDevice, Killers: []string{"ODP-043"}},
	{Name: "invalidation-overtakes", Area: "ODP", broken: rule.InvalidationAwaitsAccesses, Killers: []string{"ODP-044"}},
	{Name: "invalidation-misses-last-page", Area: "ODP", broken: rule.InvalidationReachesTheLastPage, Killers: []string{"ODP-047"}},
	{Name: "fault-counts-a-page-less", Area: "ODP", broken: rule.FaultsCountTheirPages, Killers: []string{"ODP-027"}},
	{Name: "invalidation-counts-a-page-more", Area: "ODP", broken: rule.InvalidationsCountTheirPages, Killers: []string{"ODP-028"}},
	{Name: "prefetch-counts-a-page-more", Area: "ODP", broken: rule.PrefetchesCountTheirPages, Killers: []string{"ODP-029"}},
	{Name: "prefetch-always-waits", Area: "ODP", broken: rule.PrefetchIsBestEffort, Killers: []string{"ODP-014"}},
	{Name: "prefetch-hides-errors", Area: "ODP", broken: rule.AwaitedPrefetchReportsItsError, Killers: []string{"ODP-013"}},
	{Name: "prefetch-of-any-pd", Area: "ODP", broken: rule.PrefetchIsOfThePD, Killers: []string{"ODP-019"}},
	{Name: "prefetch-by-any-variant", Area: "ODP", broken: rule.PrefetchNamesItsKey, Killers: []string{"ODP-016"}},
	{Name: "prefetch-without-right", Area: "ODP", broken: rule.PrefetchForWritingNeedsTheRight, Killers: []string{"ODP-020"}},
	{Name: "prefetch-of-read-only-memory", Area: "ODP", broken: rule.PrefetchForWritingNeedsWritableMemory, Killers: []string{"ODP-021"}},
	{Name: "prefetch-always-faults", Area: "ODP", broken: rule.PrefetchMayBringNothing, Killers: []string{"ODP-023"}},
	{Name: "prefetch-brings-nothing", Area: "ODP", broken: rule.PrefetchBringsPages, Killers: []string{"ODP-012"}},
	{Name: "registration-faults", Area: "ODP", broken: rule.RegistrationTakesWhatIsThere, Killers: []string{"ODP-003"}},
	{Name: "second-segment-forgotten", Area: "ODP", broken: rule.EverySegmentIsPaged, Killers: []string{"ODP-009"}},
	{Name: "pinned-segment-missing", Area: "ODP", broken: rule.PinnedSegmentsArePresent, Killers: []string{"ODP-009"}},
	{Name: "child-not-linked", Area: "ODP", broken: rule.EveryPlaceLeadsToItsChild, Killers: []string{"ODP-038"}},
	{Name: "dead-child-linked", Area: "ODP", broken: rule.EmptyChildLeavesItsPlace, Killers: []string{"ODP-039"}},
	{Name: "gather-fails", Area: "ODP", broken: rule.GatherWaitsForPages, Killers: []string{"ODP-004"}},
	{Name: "landing-fails", Area: "ODP", broken: rule.LandingWaitsForPages, Killers: []string{"ODP-006"}},
	{Name: "paged-write-refused", Area: "ODP", broken: rule.WriteWaitsForPages, Killers: []string{"ODP-005"}},
	{Name: "paged-read-refused", Area: "ODP", broken: rule.ReadWaitsForPages, Killers: []string{"ODP-006"}},
	{Name: "paged-atomic-refused", Area: "ODP", Profile: "generic-roce", broken: rule.AtomicWaitsForPages, Killers: []string{"ODP-007"}},
	{Name: "paged-receive-fails", Area: "ODP", broken: rule.ReceiveWaitsForPages, Killers: []string{"ODP-004"}},
	{Name: "lost-pages-awaited", Area: "ODP", broken: rule.LostPagesFailTheRequest, Killers: []string{"ODP-011"}},
	{Name: "lost-target-awaited", Area: "ODP", broken: rule.LostPagesFailThePeer, Killers: []string{"ODP-011"}},
	{Name: "landed-data-lost", Area: "ODP", broken: rule.LandingIsAskedForAgain, Killers: []string{"ODP-006"}},
	{Name: "answer-to-the-other-side", Area: "ODP", broken: rule.AnswerReachesItsSide, Killers: []string{"ODP-004"}},
	{Name: "fault-of-the-next-request", Area: "ODP", broken: rule.FaultNamesItsRequest, Killers: []string{"ODP-004"}},
	{Name: "paged-request-overtakes-answer", Area: "ODP", broken: rule.FaultHoldsItsSide, Killers: []string{"ODP-062"}},
}
