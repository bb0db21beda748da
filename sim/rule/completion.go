package rule

// Rules of the kernel's completion models and of the operating system under them.
const (
	IRQPollHasABudget Rule = iota + 288
	PollBatchIs16
	DirectBatchIs8
	ShortBatchEnds
	ArmFollowsThePoll
	MissedEventsAreHandled
	FullBudgetIsNotRearmed
	IRQPollIsScheduledOnce
	OneArmOneEvent
	EQIsArmedAgain
	EQHasABudget
	DirectIsNeverArmed
	BoundWorkStaysOnItsCPU
	PoolsGrow
	BlockedWorkersAreReplaced
	WorkIsNotReentrant
	PendingIsClearedFirst
	WorkersAreLIFO
	SoftirqsEnd
)
