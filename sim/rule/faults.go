package rule

// Rules of what nobody answers, on a device with adaptive retransmission.
const (
	AdaptivePhaseTakesARetry Rule = iota + 560
	AdaptiveTimeoutsCountApart
)
