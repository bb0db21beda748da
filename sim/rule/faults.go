package rule

// Rules of what nobody answers, on a device with adaptive retransmission.
const (
	AdaptivePhaseTakesARetry Rule = iota + 560
	AdaptiveTimeoutsCountApart
	RetransmissionsMakeNotices
	RetryCountZeroSendsAgain
)

// Rules of what a device shows when something fails, as ConnectX-5 and ConnectX-6 do
// (Params.CardFaults of package hca).
const (
	LocalKeyErrorsNameTheirCause Rule = iota + 564
	FlushedHeadNamesItsCause
	FlushedHeadIsNoFlush
	RespondersCountNoError
	RefusedRequestsAreCounted
	DeregistrationIsSilent
	WritesAreCheckedByPacket
	LengthsAreCheckedByPacket
	QueryTellsWhereItStopped
	RecordRulesInError
)

// Rules about receives that are missing.
const (
	RNRNAKSilencesWhatFollows Rule = iota + 574
	RNRWaitStopsTheTimer
	RNRTimerChangesAlone
	CreditsArePosted
)
