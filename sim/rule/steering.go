package rule

// Rules of raw packets and of the rules that steer them.
const (
	FlowsMatchByTheirMask Rule = iota + 592
	FlowPrioritiesHaveTheirOrder
	DestroyedFlowsAreGone
	FlowsShareTheirEntry
	MulticastFlowsComeLast
	FlowsNeedTheRight
	EtherTypeFitsIP
	FlowTagsAreReported
	WrongChecksumsAreReported
	LongPacketsFailTheirReceive
	PacketsWaitForRTR
	ChecksumsAreFilledInOnRequest
)
